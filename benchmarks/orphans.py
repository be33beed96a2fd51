"""Warehouse-wide orphans against Iceberg's `remove_orphan_files` table by table: 100,000 files in 50 tables.

Both only look (`dry_run`), at the same lake, in the same session, each warm. Ours lists, scans and joins: once as after
a night in which some tables were written to, once reading every table anew; the procedure is run on every table.
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
from ebbtide.inventory.areas import places
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.listing import list_storage
from ebbtide.inventory.orphans import find_orphans
from ebbtide.inventory.scan import scan
from ebbtide.model.dataset import Catalog
from ebbtide.spark.session import session

FILES, TABLES, STRAYS, COMMITS, CHANGED = 100_000, 50, 20, 10, 5
_OLD = 10 * 86_400


def build(numbers: Iterable[int], root: Path) -> None:
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
        per_commit = FILES // TABLES // COMMITS
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


def main(root: Path) -> Iterator[Result]:
    shutil.rmtree(root, ignore_errors=True)
    (root / "lake").mkdir(parents=True)
    lake = Catalog("lake", "iceberg", f"{root}/lake", "jdbc", {"uri": f"jdbc:sqlite:{root}/catalog.db"})
    spark = session([lake], master="local[2]")
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/lake")
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    for number in range(TABLES):
        catalog.create_table(f"db.t{number}", schema)
    spark.sparkContext.parallelize(range(TABLES), min(TABLES, 16)).foreachPartition(lambda some: build(some, root))
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
            for n in range(TABLES)
        )

    read(True)
    ours(False)
    spark.sql("CALL lake.system.remove_orphan_files(table => 'db.t0', dry_run => true)").count()  # warm, as ours is
    for number in range(CHANGED):
        catalog.load_table(f"db.t{number}").append(pa.table({"id": [1], "name": ["x"]}))
    night, found = timed(lambda: ours(False))
    anew, again = timed(lambda: ours(True))
    slow, native = timed(theirs)
    assert found == again == native == TABLES * STRAYS, (found, again, native)
    what = f"orphans of {FILES:,} files in {TABLES} tables, listing and scan included"
    yield Result(f"{what}, {CHANGED} tables written to since", night, "remove_orphan_files on each", slow, 3)
    yield Result(f"{what}, every table read anew", anew, "remove_orphan_files on each", slow, 3)
    spark.stop()
