"""Scan against a loop over Spark's metadata tables: 500 Iceberg tables of 20 commits, 100 Delta tables of 20.

Every number of one run comes from the same machine, session and lake. Baselines are measured on 50 random tables and
extrapolated linearly.
"""

from __future__ import annotations

import random
import shutil
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil
import pyarrow as pa

from benchmarks.results import Result
from ebbtide.formats.base import Depth
from ebbtide.inventory.scan import ScanReport, scan
from ebbtide.model.dataset import Catalog
from ebbtide.spark.session import session

ICEBERG_TABLES, DELTA_TABLES, COMMITS, CHANGED, BASELINE = 500, 100, 20, 5, 50


class PeakMemory:
    """The most memory that this process and its children (JVM, Python workers) held together."""

    def __enter__(self) -> PeakMemory:
        self.bytes, self._stop = 0, Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        me = psutil.Process()
        while not self._stop.wait(0.2):
            total = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    # What forked workers share is counted once.
                    total += process.memory_full_info().pss
                except psutil.Error:
                    continue
            self.bytes = max(self.bytes, total)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    answer = work()
    return time.perf_counter() - begin, answer


def catalogs(root: Path) -> tuple[Catalog, Catalog]:
    lake = Catalog("lake", "iceberg", f"{root}/lake", "jdbc", {"uri": f"jdbc:sqlite:{root}/catalog.db"})
    return lake, Catalog("events", "delta", f"{root}/delta")


def build_iceberg(numbers: Iterable[int], root: Path) -> None:
    """Tables written with pyiceberg: much quicker than by Spark, and the same files."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import DateType, LongType, NestedField, StringType

    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/lake")
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "name", StringType()), NestedField(3, "day", DateType())
    )
    spec = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "day"))
    for number in numbers:
        catalog.create_table(f"db.t{number}", schema, partition_spec=spec)
        for commit in range(COMMITS):
            append_iceberg(catalog, number, commit)


def append_iceberg(catalog: Any, number: int, commit: int) -> None:
    day = date(2026, 1, 1) + timedelta(days=commit)
    rows = pa.table({"id": [commit], "name": ["x"], "day": pa.array([day], pa.date32())})
    catalog.load_table(f"db.t{number}").append(rows)


def build_delta(numbers: Iterable[int], root: Path) -> None:
    from deltalake import write_deltalake

    for number in numbers:
        for commit in range(COMMITS):
            rows = pa.table({"id": [commit], "name": ["x"], "day": [f"2026-01-{commit + 1:02}"]})
            write_deltalake(f"{root}/delta/db/t{number}", rows, mode="append", partition_by=["day"])


def baseline_history(spark: Any, table: str) -> None:
    spark.sql(f"SELECT snapshot_id, parent_id, committed_at, operation, summary FROM {table}.snapshots").collect()
    spark.sql(f"SELECT name, type, snapshot_id FROM {table}.refs").collect()
    spark.table(table).schema.json()


def baseline_files(spark: Any, table: str) -> None:
    baseline_history(spark, table)
    spark.sql(f"SELECT partition, record_count, file_count FROM {table}.partitions").collect()
    spark.sql(f"SELECT file_path, content, file_size_in_bytes FROM {table}.all_files").collect()
    spark.sql(f"SELECT path, length FROM {table}.all_manifests").collect()


def baseline(run: Callable[[str], Any], tables: list[str], total: int) -> float:
    """Seconds for all tables, from a random sample, extrapolated linearly."""
    run(tables[0])  # warm: classes loaded, code compiled
    sample = random.Random(7).sample(tables, min(BASELINE, len(tables)))
    return statistics.fmean(timed(lambda t=t: run(t))[0] for t in sample) * total  # type: ignore[misc]


def main(root: Path) -> Iterator[Result]:
    shutil.rmtree(root, ignore_errors=True)
    (root / "lake").mkdir(parents=True)
    (root / "delta").mkdir()
    lake, events = catalogs(root)
    spark = session([lake], master="local[2]")
    from pyiceberg.catalog.sql import SqlCatalog

    SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db").create_namespace("db")
    build_iceberg([0], root)
    build = spark.sparkContext.parallelize(range(1, ICEBERG_TABLES), 32)
    build.foreachPartition(lambda numbers: build_iceberg(numbers, root))
    spark.sparkContext.parallelize(range(DELTA_TABLES), 16).foreachPartition(lambda n: build_delta(n, root))

    def run(catalog: Catalog, depth: Depth, inventory: str, *, full: bool = False) -> ScanReport:
        now = datetime.now(UTC)
        report = scan([catalog], root / inventory, lambda: spark, now=now, depth=depth, full=full)
        assert report.current.error_count == 0
        return report

    names = [f"lake.db.t{n}" for n in range(ICEBERG_TABLES)]
    run(lake, Depth.HISTORY, "warm")  # Python workers started, as the baseline's classes are
    shallow, _ = timed(lambda: run(lake, Depth.HISTORY, "shallow"))
    first, _ = timed(lambda: run(lake, Depth.FILES, "deep"))
    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db")
    for number in range(CHANGED):
        append_iceberg(catalog, number, COMMITS)
    second, report = timed(lambda: run(lake, Depth.FILES, "deep"))
    assert len(report.read) == CHANGED, report.read
    unchanged, report = timed(lambda: run(lake, Depth.FILES, "deep"))
    assert not report.read
    with PeakMemory() as memory:  # in a scan of its own: looking at all pages takes a core's time away
        run(lake, Depth.FILES, "deep", full=True)
    loop_history = baseline(lambda t: baseline_history(spark, t), names, ICEBERG_TABLES)
    loop_files = baseline(lambda t: baseline_files(spark, t), names, ICEBERG_TABLES)
    what = f"{ICEBERG_TABLES} Iceberg tables × {COMMITS} commits"
    yield Result(f"{what}: transactions, branches, schemas", shallow, "loop over metadata tables", loop_history, 50)
    yield Result(f"{what}: with partitions and files", first, "loop over metadata tables", loop_files, 10)
    yield Result(f"second scan, {CHANGED} tables changed", second, "first scan with files", first, 20)
    yield Result("second scan, nothing changed", unchanged, "first scan with files", first, 20)
    yield Result.limit("memory of driver and Python together, MiB", memory.bytes / 2**20, 4096)

    run(events, Depth.HISTORY, "delta-warm")
    delta_shallow, _ = timed(lambda: run(events, Depth.HISTORY, "delta-shallow"))
    delta_first, _ = timed(lambda: run(events, Depth.FILES, "delta-deep"))
    tables = [f"{root}/delta/db/t{n}" for n in range(DELTA_TABLES)]
    describe = baseline(lambda t: spark.sql(f"DESCRIBE HISTORY delta.`{t}`").collect(), tables, DELTA_TABLES)
    what = f"{DELTA_TABLES} Delta tables × {COMMITS} commits"
    yield Result(f"{what}: transactions, branches, schemas", delta_shallow, "DESCRIBE HISTORY in a loop", describe, 20)
    yield Result(f"{what}: with partitions and files", delta_first, "DESCRIBE HISTORY in a loop", describe, 20)
    spark.stop()
