"""`erase run` against what people do today, on Iceberg: delete, purge and residue in one batch.

1. 1,000 people in 10 million rows and 200 files, against DELETE, `rewrite_data_files` and `expire_snapshots` for each
   person; theirs is measured on 10 people and extrapolated linearly.
2. People who live in 10 of 200 files, against rewriting all of them: where bounds tell, and where they do not.
3. 100 tables of which 20 hold anybody, against a project of these 20 alone.

Ours is both runs, with their scans, looks and proofs; the wait for readers between them is the clock's. In 2 and 3 the
session has erased somebody before, as theirs has written before.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.results import Result
from benchmarks.scan import timed
from ebbtide.app.ebbtide import Ebbtide
from ebbtide.app.scan import start_session

PEOPLE, ROWS, FILES, HIT, ASKED = 1_000, 10_000_000, 200, 10, 10
ROWS_OF_ALL = 25_000_000
"""Rewriting less of them takes hardly longer than what a run does in any case."""
TABLES, HOLDING = 100, 20
_PROJECT = """\
project: erase
clock: simulated
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
spark: {master: "local[2]", conf: {"spark.driver.memory": "4g"}}
limits: {erase_share: 1.0}
"""
_WIDE = ("sha2(cast(id AS STRING), 256) AS payload", "date_add(DATE '2026-01-01', cast(id % 90 AS INT)) AS day")


def project(root: Path, tables: Sequence[str]) -> Ebbtide:
    root.mkdir(parents=True, exist_ok=True)
    (root / "ebbtide.yml").write_text(_PROJECT)
    columns = [f"lake.db.{table}.user_id" for table in tables]
    (root / "subjects.yml").write_text(json.dumps({"subjects": {"user_id": {"columns": columns}}}))
    return Ebbtide(root)


def write(spark: SparkSession, table: str, user: str, rows: int, files: int) -> None:
    """A table of so many files of one commit. `user` says whose row number `id` is."""
    spark.sql(f"CREATE TABLE lake.db.{table} (user_id BIGINT, payload STRING, day DATE) USING iceberg "
              "TBLPROPERTIES ('write.distribution-mode' = 'none', 'write.delete.mode' = 'merge-on-read')")  # fmt: skip
    frame = spark.range(0, rows, 1, files).selectExpr(f"{user} AS user_id", *_WIDE)
    frame.writeTo(f"lake.db.{table}").append()


def ask(tide: Ebbtide, people: Sequence[int]) -> list[str]:
    file = tide.project.root / "people.jsonl"
    file.write_text("".join(f'{{"user_id": {person}}}\n' for person in people))
    return list(tide.erase.requests_from(file, law="gdpr").requests)


def erase(tide: Ebbtide, requests: Sequence[str]) -> int:
    """Both runs; gives how many datasets ended clean."""
    now = datetime.now(UTC)
    tide.erase.run(*requests, at_once=True, as_of=now + timedelta(days=1))
    done = tide.erase.run(*requests, at_once=True, as_of=now + timedelta(days=2))
    assert done.exit_code == 0, done
    return sum(each.state == "removed" for each in done.datasets)


def warm(tide: Ebbtide, spark: SparkSession) -> None:
    """An erasure of somebody from a table of three files."""
    write(spark, "warm", f"id + {10**12}", 300, 3)
    tide.scan()
    assert erase(tide, ask(tide, [10**12 + 7])) == 1


def one_by_one(spark: SparkSession, table: str, people: Sequence[int]) -> None:
    soon = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%d %H:%M:%S}"
    for person in people:
        spark.sql(f"DELETE FROM lake.db.{table} WHERE user_id = {person}")
        call(spark, "rewrite_data_files", table, "options => map('delete-file-threshold', '1')")
        call(spark, "expire_snapshots", table, f"retain_last => 1, older_than => TIMESTAMP '{soon}'")


def call(spark: SparkSession, procedure: str, table: str, arguments: str) -> None:
    spark.sql(f"CALL lake.system.{procedure}(table => 'db.{table}', {arguments})").collect()


def rewrite_all(spark: SparkSession, table: str) -> None:
    call(spark, "rewrite_data_files", table, "options => map('rewrite-all', 'true')")


def people_everywhere(root: Path, people: int, rows: int, files: int, asked: int) -> Iterator[Result]:
    with project(root, ["ours"]) as tide:
        spark = start_session(tide.project)
        spark.sql("CREATE NAMESPACE lake.db")
        for table in ("ours", "theirs"):
            write(spark, table, f"(id * 7919) % {rows // 10}", rows, files)
        some = random.Random(3).sample(range(rows // 10), people + asked)
        tide.scan()
        requests = ask(tide, some[:people])
        ours, ended = timed(lambda: erase(tide, requests))
        assert ended == 1
        theirs, _ = timed(lambda: one_by_one(spark, "theirs", some[people:]))
    yield Result(
        f"{people:,} people in {rows:,} rows and {files} files", ours,
        "DELETE, rewrite_data_files, expire_snapshots person by person", theirs / asked * people, 200,
    )  # fmt: skip


def people_in_some_files(root: Path, rows: int, files: int, hit: int) -> Iterator[Result]:
    """`sorted`: bounds tell where people are. `mixed`: every file has users from both ends, and bounds tell nothing."""
    each = rows // files
    layouts = {
        "sorted": ("id", [n * each * (files // hit) + k for n in range(hit) for k in range(100)]),
        "mixed": (f"CASE WHEN id % {each} = 0 THEN 0 WHEN id % {each} = 1 THEN {10 * rows} ELSE id + 7 END",
                  [n * each * (files // hit) + 9 + k for n in range(hit) for k in range(100)]),
    }  # fmt: skip
    for name, (user, people) in layouts.items():
        with project(root / name, ["ours", "warm"]) as tide:
            spark = start_session(tide.project)
            spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
            write(spark, "ours", user, rows, files)
            warm(tide, spark)
            requests = ask(tide, people)
            before = data_files(tide)
            ours, ended = timed(lambda tide=tide, requests=requests: erase(tide, requests))  # type: ignore[misc]
            assert ended == 1
            after = data_files(tide)
            theirs, _ = timed(lambda spark=spark: rewrite_all(spark, "ours"))  # type: ignore[misc]
        gone, new = before.keys() - after.keys(), after.keys() - before.keys()
        share = 100 * sum(after[path] for path in new) / sum(before[path] for path in gone)
        what, against = f"people in {len(gone)} of {files} files, {name}", "rewriting all files"
        sorted_ = name == "sorted"
        yield Result(what, ours, against, theirs, 5) if sorted_ else Result(what, ours, against, theirs, 2)
        yield Result.limit(f"bytes written, per cent of those {len(gone)} files'", share, 120)


def data_files(tide: Ebbtide) -> dict[str, int]:
    tide.scan()
    files = tide.information_schema("files").where("table_id = 'lake.db.ours' AND role = 'data' AND live")
    return {row["path"]: row["bytes"] for row in files.collect()}


def few_of_many(root: Path, tables: int, holding: int) -> Iterator[Result]:
    taken: dict[int, float] = {}
    for count in (holding, tables):
        where = root / str(count)
        names = [f"t{number}" for number in range(count)]
        with project(where, [*names, "warm"]) as tide:
            _small_tables(where, names, holding)
            warm(tide, start_session(tide.project))
            requests = ask(tide, [10**9 + n for n in range(50)])
            taken[count], ended = timed(lambda tide=tide, requests=requests: erase(tide, requests))  # type: ignore[misc]
            assert ended == holding
    yield Result.limit(
        f"{tables} tables of which {holding} hold anybody, per cent of the {holding} alone",
        100 * taken[tables] / taken[holding], 130,
    )  # fmt: skip


def _small_tables(root: Path, names: Sequence[str], holding: int) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/lake")
    catalog.create_namespace("db")
    for number, name in enumerate(names):
        people = [10**9 + n for n in range(50)] if number < holding else []
        rows = pa.table({"user_id": [*range(1000), *people], "text": ["x"] * (1000 + len(people))})
        catalog.create_table(f"db.{name}", rows.schema).append(rows)


def measure(
    root: Path, *, people: int, rows: int, rows_of_all: int, files: int, hit: int, tables: int, holding: int
) -> Iterator[Result]:
    parts: list[Callable[[], Iterator[Result]]] = [
        lambda: people_everywhere(root / "everywhere", people, rows, files, ASKED),
        lambda: people_in_some_files(root / "some", rows_of_all, files, hit),
        lambda: few_of_many(root / "many", tables, holding),
    ]
    for part in parts:
        yield from part()


def main(root: Path) -> Iterator[Result]:
    yield from measure(
        root, people=PEOPLE, rows=ROWS, rows_of_all=ROWS_OF_ALL, files=FILES, hit=HIT, tables=TABLES, holding=HOLDING
    )
