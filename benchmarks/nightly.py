"""A nightly pass over 100 Iceberg tables of which 10 have work, against a script that cleans each of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from benchmarks.results import Result
from ebbtide.app.mark import run_mark
from ebbtide.app.run import run_once
from ebbtide.app.scan import start_session
from ebbtide.config import load_project
from ebbtide.spark.session import activate, of_formats

WARM, SHARE, COMMITS = 10, 10, 6
PROJECT = """
project: nightly
clock: simulated
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
spark: {master: "local[2]"}
"""
POLICY = """
policies:
  - name: nightly
    select: {tables: ["**"]}
    versions: {older_than: 7d, keep_min: 1}
    orphans: {older_than: 3d}
    grace: 1d
"""


def _lake(root: Path, name: str, tables: int) -> SqlCatalog:
    root.mkdir(parents=True)
    catalog = SqlCatalog(name, uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/lake")
    catalog.create_namespace("db")
    rows = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    for number in range(tables):
        table = catalog.create_table(("db", f"t{number:03}"), rows.schema)
        for _ in range(COMMITS if number < tables // SHARE else 1):
            table.append(rows)
    return catalog


def main(folder: Path) -> Iterator[Result]:
    return measure(folder, tables=100, rounds=3)


def smoke(folder: Path) -> Iterator[Result]:
    return measure(folder, tables=60, rounds=1)


def measure(folder: Path, *, tables: int, rounds: int) -> Iterator[Result]:
    """Both sides first work on a small lake: neither pays for classes that are loaded and compiled for the first time,
    as in `run --every 1d`, or in a script that has been at work for some minutes. Then they take turns, each time on a
    lake of its own, and the middle one of the rounds counts: a machine is not equally fast from minute to minute.
    """
    _pass(folder / "warm" / "ours", WARM)
    _script(folder / "warm" / "theirs", "warm", WARM)
    took = []
    for number in range(rounds):
        ours = _pass(folder / f"ours-{number}", tables)
        took.append((ours, _script(folder / f"theirs-{number}", f"theirs{number}", tables)))
        print(f"  round {number + 1}: {ours:.2f} s against {took[-1][1]:.1f} s", flush=True)
    ours, theirs = sorted(took, key=lambda pair: pair[1] / pair[0])[rounds // 2]
    name = f"{tables} tables, {tables // SHARE} with work: listing, scans, plan, mark, sweep, proof"
    yield Result(name, ours, "a script of expire_snapshots and remove_orphan_files", theirs, 15)
    SparkSession.active().stop()


def _pass(root: Path, tables: int) -> float:
    _lake(root, "lake", tables)
    (root / "ebbtide.yml").write_text(PROJECT)
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(POLICY)
    project = load_project(root)
    start_session(project)
    now = datetime.now(UTC)
    # What a night finds: the inventory of the night before, and marks whose grace is over.
    marked = run_mark(project, as_of=now + timedelta(days=8))
    assert len({key.dataset for key in marked.marked}) == tables // SHARE, marked
    began = time.monotonic()
    done = run_once(project, as_of=now + timedelta(days=10))
    took = time.monotonic() - began
    assert done.exit_code == 0, done
    assert done.swept is not None
    assert done.swept.removed_files > 0, done
    return took


def _script(root: Path, name: str, tables: int) -> float:
    """Every table after the other, as people do it today: in a session that knows Iceberg and nothing else."""
    spark = of_formats(SparkSession.active(), "iceberg")
    activate(spark)
    _lake(root, name, tables)
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog", ".type": "jdbc", ".uri": f"jdbc:sqlite:{root}/catalog.db",
        ".jdbc.schema-version": "V1", ".warehouse": f"{root}/lake",
    }  # fmt: skip
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
    now = datetime.now(UTC)
    newer = f"TIMESTAMP '{now + timedelta(minutes=5):%Y-%m-%d %H:%M:%S}'"
    older = f"TIMESTAMP '{now - timedelta(days=3):%Y-%m-%d %H:%M:%S}'"
    began = time.monotonic()
    for number in range(tables):
        table = f"db.t{number:03}"
        spark.sql(f"CALL {name}.system.expire_snapshots('{table}', {newer}, 1)").collect()
        spark.sql(f"CALL {name}.system.remove_orphan_files(table => '{table}', older_than => {older})").collect()
    return time.monotonic() - began
