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
from ebbtide.spark.session import activate, of_formats, session

CHANGED = 5


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


def build_iceberg(numbers: Iterable[int], root: Path, commits: int) -> None:
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
        for commit in range(commits):
            append_iceberg(catalog, number, commit)


def append_iceberg(catalog: Any, number: int, commit: int) -> None:
    day = date(2026, 1, 1) + timedelta(days=commit)
    rows = pa.table({"id": [commit], "name": ["x"], "day": pa.array([day], pa.date32())})
    catalog.load_table(f"db.t{number}").append(rows)


def build_delta(numbers: Iterable[int], root: Path, commits: int) -> None:
    from deltalake import write_deltalake

    for number in numbers:
        for commit in range(commits):
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


class InTurn:
    """Our scans and the statements that a user would run, in turn: each round scans everything once, and asks a few
    tables, which are extrapolated to all. The middle of the scans counts, and the mean of the tables.
    """

    def __init__(self, ours: Callable[[int], Any], theirs: Callable[[str], Any], tables: list[str]) -> None:
        self._ours, self._theirs, self._tables = ours, theirs, tables

    def run(self, rounds: int, asked: int) -> tuple[float, float]:
        self._theirs(self._tables[0])  # warm: classes loaded, code compiled
        sample = random.Random(7).sample(self._tables, min(asked, len(self._tables)))
        ours, theirs = [], []
        for number in range(rounds):
            ours.append(timed(lambda: self._ours(number))[0])  # noqa: B023
            theirs += [timed(lambda: self._theirs(table))[0] for table in sample[number::rounds]]  # noqa: B023
        return statistics.median(ours), statistics.fmean(theirs) * len(self._tables)


def main(root: Path) -> Iterator[Result]:
    return measure(root, iceberg=500, delta=100, commits=20, rounds=5, asked=50)


def smoke(root: Path) -> Iterator[Result]:
    return measure(root, iceberg=200, delta=20, commits=3, rounds=2, asked=10)


def measure(root: Path, *, iceberg: int, delta: int, commits: int, rounds: int, asked: int) -> Iterator[Result]:
    shutil.rmtree(root, ignore_errors=True)
    (root / "lake").mkdir(parents=True)
    (root / "delta").mkdir()
    lake, events = catalogs(root)
    spark = session([lake, events], master="local[2]")
    plain = of_formats(spark, "iceberg")  # a script on Iceberg tables has no other format's extension in its session
    from pyiceberg.catalog.sql import SqlCatalog

    SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db").create_namespace("db")
    build_iceberg([0], root, commits)
    build = spark.sparkContext.parallelize(range(1, iceberg), 32)
    build.foreachPartition(lambda numbers: build_iceberg(numbers, root, commits))
    spark.sparkContext.parallelize(range(delta), 16).foreachPartition(lambda n: build_delta(n, root, commits))

    def run(catalog: Catalog, depth: Depth, inventory: str, *, full: bool = False) -> ScanReport:
        now = datetime.now(UTC)
        report = scan([catalog], root / inventory, lambda: spark, now=now, depth=depth, full=full)
        assert report.current.error_count == 0
        return report

    def against(catalog: Catalog, depth: Depth, theirs: Callable[[str], Any], tables: list[str]) -> tuple[float, float]:
        """The first scan of each inventory: nothing is known of any table."""
        folder = f"{catalog.name}-{depth.name}-"
        run(catalog, depth, f"{folder}warm")  # Python workers started, as the baseline's classes are
        return InTurn(lambda n: run(catalog, depth, f"{folder}{n}"), theirs, tables).run(rounds, asked)

    def script(ask: Callable[[Any, str], None]) -> Callable[[str], None]:
        def asked(table: str) -> None:
            activate(plain)
            ask(plain, table)
            activate(spark)

        return asked

    names = [f"lake.db.t{n}" for n in range(iceberg)]
    what = f"{iceberg} Iceberg tables × {commits} commits"
    ours, loop = against(lake, Depth.HISTORY, script(baseline_history), names)
    yield Result(f"{what}: transactions, branches, schemas", ours, "loop over metadata tables", loop, 60)
    first, loop = against(lake, Depth.FILES, script(baseline_files), names)
    yield Result(f"{what}: with partitions and files", first, "loop over metadata tables", loop, 10)
    deep = f"lake-{Depth.FILES.name}-0"
    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db")
    for number in range(CHANGED):
        append_iceberg(catalog, number, commits)
    second, report = timed(lambda: run(lake, Depth.FILES, deep))
    assert len(report.read) == CHANGED, report.read
    unchanged, report = timed(lambda: run(lake, Depth.FILES, deep))
    assert not report.read
    with PeakMemory() as memory:  # in a scan of its own: looking at all pages takes a core's time away
        run(lake, Depth.FILES, deep, full=True)
    yield Result(f"second scan, {CHANGED} tables changed", second, "first scan with files", first, 20)
    yield Result("second scan, nothing changed", unchanged, "first scan with files", first, 20)
    yield Result.limit("memory of driver and Python together, MiB", memory.bytes / 2**20, 4096)

    tables = [f"{root}/delta/db/t{n}" for n in range(delta)]
    what = f"{delta} Delta tables × {commits} commits"
    for depth, title in (
        (Depth.HISTORY, "transactions, branches, schemas"),
        (Depth.FILES, "with partitions and files"),
    ):
        ours, loop = against(events, depth, lambda t: spark.sql(f"DESCRIBE HISTORY delta.`{t}`").collect(), tables)
        yield Result(f"{what}: {title}", ours, "DESCRIBE HISTORY in a loop", loop, 20)
    spark.stop()
