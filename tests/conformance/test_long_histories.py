"""Long histories: a thousand commits where a commit is cheap, as many as are affordable elsewhere.

`make test` reads histories that are long enough for checkpoints and lists of manifests; `make test-deep` those on which
a reading that is quadratic in the commits takes minutes.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ebbtide.model.dataset import Role
from ebbtide.model.history import TransactionKind
from tests.conformance.conftest import Bench
from tests.conformance.driver import Table
from tests.tiers import deep_after_first

LONG = {"iceberg": 100, "delta": 100, "paimon": 25, "hudi": 12}
LONGEST = {"iceberg": 1000, "delta": 1000, "paimon": 100, "hudi": 40}
AT_ONCE = 50
"""Iceberg's commits in one transaction: a snapshot each, and one file of metadata, which has all of them in it."""
DAY = "2026-01-01"
_PATIENCE = 60.0  # seconds; a reading that is quadratic in the commits takes minutes


def grow(bench: Bench, table: Table, commits: int) -> None:
    if bench.format == "iceberg":
        _grow_iceberg(bench, table, commits)
    elif bench.format == "delta":
        with TemporaryDirectory() as folder:
            # delta-rs ends where a folder has brackets in its name.
            plain = shutil.move(table.location, folder)
            _grow_delta(Path(plain), commits)
            shutil.move(plain, table.location)
    else:
        for n in range(commits):
            bench.driver.append(table, [(n, "x", DAY)])


def _grow_iceberg(bench: Bench, table: Table, commits: int) -> None:
    """Through Iceberg's core API: each commit adds one (tiny, real) data file that Spark wrote."""
    bench.driver.append(table, [(0, "x", DAY)])
    jvm = bench.spark._jvm
    assert jvm is not None
    native = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(bench.spark._jsparkSession, table.sql)
    tasks = native.newScan().planFiles()
    file = tasks.iterator().next().file()
    tasks.close()
    builder = jvm.org.apache.iceberg.DataFiles.builder(native.spec()).copy(file)
    for first in range(0, commits - 1, AT_ONCE):
        transaction = native.newTransaction()
        for n in range(first, min(first + AT_ONCE, commits - 1)):
            append = transaction.newFastAppend()
            append.appendFile(builder.withPath(f"{file.location()}.{n}").build())
            append.commit()
        transaction.commitTransaction()


def _grow_delta(place: Path, commits: int) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    for n in range(commits):
        rows = pa.table({"id": pa.array([n], pa.int64()), "name": ["x"], "day": [DAY]})
        write_deltalake(place, rows, mode="append")


@pytest.mark.parametrize("commits_of", deep_after_first(LONG, LONGEST), ids=["long", "longest"])
def test_a_long_history_is_read_whole_and_quickly(any_bench: Bench, commits_of: dict[str, int]) -> None:
    bench, commits = any_bench, commits_of[any_bench.format]
    table = bench.create("long")
    grow(bench, table, commits)
    begin = time.perf_counter()
    reading = bench.read(table)
    took = time.perf_counter() - begin
    changes = [t for t in reading.transactions if t.kind is not TransactionKind.METADATA]
    assert len(changes) == commits
    assert [t.parent_id for t in reading.transactions][1:] == [t.id for t in reading.transactions][:-1]
    assert not any(t.starts_view for t in changes if t.parent_id is not None)
    if bench.format != "hudi":  # Hudi packs small inserts into the file that is there
        assert len([f for f in reading.files if f.role is Role.DATA and f.live]) == commits
    assert took < _PATIENCE, f"{commits} commits took {took:.1f} s"
