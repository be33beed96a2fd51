"""Warehouse-wide orphans against Iceberg's `remove_orphan_files` table by table: 100,000 files in 50 tables.

Both only look (`dry_run`), at the same lake, in the same session, each warm, and take turns; the middle of the rounds
counts. Ours lists, scans and joins: once as after a night in which some tables were written to, once reading every
table anew; the procedure is run on every table.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.results import Result
from benchmarks.scan import timed
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.listing import list_storage
from ebbtide.inventory.orphans import find_orphans
from ebbtide.inventory.ownership import places
from ebbtide.inventory.scan import scan
from ebbtide.model.dataset import Catalog
from ebbtide.spark.session import session

STRAYS, COMMITS, CHANGED = 20, 10, 5
_OLD = 10 * 86_400


def main(root: Path) -> Iterator[Result]:
    return measure(root, files=100_000, tables=50, rounds=3)


def smoke(root: Path) -> Iterator[Result]:
    return measure(root, files=20_000, tables=20, rounds=1)


def build(numbers: Iterable[int], root: Path, files: int) -> None:
    """Tables whose data files are small, and committed in a few commits; beside them old strays that nobody knows."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/lake")
    rows = pa.table({"id": [1], "name": ["x"]})
    for number in numbers:
        table = catalog.load_table(f"db.t{number}")
        data = Path(table.location().removeprefix("file://"), "data")
        data.mkdir(parents=True, exist_ok=True)
        first = data / "first.parquet"
        pq.write_table(rows, first)
        per_commit = files // COMMITS
        for commit in range(COMMITS):
            paths = [data / f"{commit:03}-{n:05}.parquet" for n in range(per_commit)]
            for path in paths:
                shutil.copyfile(first, path)
            table.add_files([f"file://{path}" for path in paths], check_duplicate_files=False)
        first.unlink()
        then = time.time() - _OLD
        for stray in range(STRAYS):
            path = data / f"stray-{stray}.parquet"
            path.write_bytes(b"left by a writer that died")
            os.utime(path, (then, then))


def measure(root: Path, *, files: int, tables: int, rounds: int) -> Iterator[Result]:
    shutil.rmtree(root, ignore_errors=True)
    (root / "lake").mkdir(parents=True)
    lake = Catalog("lake", "iceberg", f"{root}/lake", "jdbc", {"uri": f"jdbc:sqlite:{root}/catalog.db"})
    spark = session([lake], master="local[2]")
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/lake")
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    for number in range(tables):
        catalog.create_table(f"db.t{number}", schema)
    making = spark.sparkContext.parallelize(range(tables), min(tables, 16))
    making.foreachPartition(lambda some: build(some, root, files // tables))
    catalogs, inventory, prefixes = {"lake": lake}, root / "inventory", [f"file://{root}/lake"]

    def read(full: bool) -> None:
        report = scan([lake], inventory, lambda: spark, now=datetime.now(UTC), full=full)
        assert report.current.error_count == 0

    def ours(full: bool) -> int:
        listing = list_storage(places(Inventory.open(inventory).current, catalogs, prefixes), inventory)
        read(full)
        found = Inventory.open(inventory)
        return int(find_orphans(listing, found, catalogs, prefixes).files.num_rows)

    def theirs() -> int:
        return sum(
            spark.sql(f"CALL lake.system.remove_orphan_files(table => 'db.t{n}', dry_run => true)").count()
            for n in range(tables)
        )

    read(True)
    ours(False)
    spark.sql("CALL lake.system.remove_orphan_files(table => 'db.t0', dry_run => true)").count()  # warm, as ours is
    took = []
    for number in range(rounds):
        for changed in range(CHANGED):
            catalog.load_table(f"db.t{changed}").append(pa.table({"id": [1], "name": ["x"]}))
        timings = [timed(lambda: ours(False)), timed(theirs), timed(lambda: ours(True))]
        assert {found for _, found in timings} == {tables * STRAYS}, timings
        night, slow, anew = (seconds for seconds, _ in timings)
        print(f"  round {number + 1}: {night:.2f} s and {anew:.2f} s against {slow:.1f} s", flush=True)
        took.append((night, slow, anew))
    night, slow, anew = sorted(took, key=lambda each: each[1] / each[0])[rounds // 2]
    what = f"orphans of {files:,} files in {tables} tables, listing and scan included"
    yield Result(f"{what}, {CHANGED} tables written to since", night, "remove_orphan_files on each", slow, 8)
    yield Result(f"{what}, every table read anew", anew, "remove_orphan_files on each", slow, 8)
    spark.stop()
