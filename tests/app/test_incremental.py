"""Reading what is new: never a gap in silence (spec §8)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import DataFrame, SparkSession

from ebbtide.errors import FullReadNeededError, InputError, MarkedError
from tests.conformance.driver import Driver, Table
from tests.conformance.drivers.delta import DeltaDriver
from tests.tide import Tide

POLICIES = """
policies:
  - name: old
    select: {tables: ["*.db.log"]}
    transactions: {older_than: 30d}
    versions: {older_than: 30d, keep_min: 1}
"""


@dataclass
class Log:
    """Three appends; `ids` are theirs, oldest first."""

    tide: Tide
    driver: Driver
    table: Table
    ids: list[str]

    def since(self, transaction: str | None, **options: Any) -> DataFrame:
        return self.tide.app.incremental(str(self.table.id), since=transaction, **options)

    def remove_all_but_the_last(self) -> None:
        """By the format's own cleanup. A VACUUM would commit to Delta's log, and only the log tells of transactions."""
        if isinstance(self.driver, DeltaDriver):
            self.driver.checkpoint(self.table)
            self.driver.clean_log(self.table, before=int(self.ids[-1]))
        else:
            self.driver.expire(self.table)
        assert self.driver.native_ids(self.table) == self.ids[-1:]


def _names(frame: DataFrame) -> list[str]:
    return sorted(row["name"] for row in frame.collect())


@pytest.fixture(params=["iceberg", "delta"])
def log(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Log:
    return _log(spark, tmp_path, str(request.param))


def _log(spark: SparkSession, tmp_path: Path, format_: str, policies: str = POLICIES) -> Log:
    tide = Tide(spark, tmp_path / "p", format_, policies=policies)
    driver = tide.drivers[format_]
    table = driver.create("log", partitioned=True)
    ids = []
    for number in range(3):
        driver.append(table, [(number, f"n{number}", "2026-01-01")])
        ids.append(driver.native_ids(table)[-1])
    return Log(tide, driver, table, ids)


def test_only_what_came_after_is_read(log: Log) -> None:
    assert _names(log.since(log.ids[0])) == ["n1", "n2"]
    assert _names(log.since(log.ids[2])) == []
    assert _names(log.since(None)) == ["n0", "n1", "n2"]


def test_a_compaction_brings_nothing_new(log: Log) -> None:
    log.driver.compact(log.table)
    assert _names(log.since(log.ids[1])) == ["n2"]


def test_changed_rows_need_a_full_read(log: Log) -> None:
    log.driver.overwrite(log.table, [(9, "other", "2026-01-01")])
    with pytest.raises(FullReadNeededError, match="SNAPSHOT"):
        log.since(log.ids[1])


def test_an_unknown_place_is_wrong_input(log: Log) -> None:
    with pytest.raises(InputError):
        log.since("77777")
    because = "no branch 'x'" + (": Delta has one line of versions" if log.driver.format == "delta" else "$")
    with pytest.raises(InputError, match=because):
        log.since(log.ids[0], branch="x")
    assert _names(log.since(log.ids[1], branch="main")) == ["n2"]


def test_a_place_that_main_left_needs_a_full_read(spark: SparkSession, tmp_path: Path) -> None:
    log = _log(spark, tmp_path, "iceberg")
    log.driver.rollback(log.table, log.ids[1])
    with pytest.raises(FullReadNeededError, match="not on main's line"):
        log.since(log.ids[2])
    assert _names(log.since(log.ids[0])) == ["n1"]
    log.driver.replace(log.table, [(9, "other", "2026-01-01")])
    for allow_retention in (False, True):
        with pytest.raises(FullReadNeededError, match="not on main's line"):
            log.since(log.ids[1], allow_retention=allow_retention)
    with pytest.raises(InputError):
        log.since("77777")


def test_what_another_process_committed_is_read_by_a_session_that_knows_the_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = _log(spark, tmp_path, "iceberg")
    assert _names(log.since(log.ids[1])) == ["n2"]
    name = log.table.id.catalog
    other = SqlCatalog(
        name, uri=f"sqlite:///{log.tide.root}/catalog-{name}.db", warehouse=f"file://{log.tide.root}/{name}"
    )
    for number in (3, 4):
        rows = {"id": [number], "name": [f"n{number}"], "day": ["2026-01-01"]}
        other.load_table(("db", "log")).append(pa.table(rows))
        assert _names(log.since(log.ids[2]))[-1] == f"n{number}"
    assert _names(log.since(None)) == ["n0", "n1", "n2", "n3", "n4"]


def test_what_retention_removed_is_said_and_skipped_only_when_asked(log: Log) -> None:
    log.remove_all_but_the_last()
    with pytest.raises(FullReadNeededError, match="retention removed"):
        log.since(log.ids[0])
    assert _names(log.since(log.ids[0], allow_retention=True)) == ["n2"], "from the oldest that is left"
    assert _names(log.since(log.ids[1])) == ["n2"], "nothing between is missing"
    with pytest.raises(FullReadNeededError, match="after the beginning"):
        log.since(None)


def test_deleted_rows_need_a_full_read_unless_retention_is_allowed(log: Log) -> None:
    log.driver.delete(log.table, "id = 0")
    with pytest.raises(FullReadNeededError, match="DELETE"):
        log.since(log.ids[1])
    assert _names(log.since(log.ids[1], allow_retention=True)) == ["n2"]


def test_a_marked_transaction_in_the_latest_view_is_refused_unless_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    """With `allow_latest_view` even the newest rows may be marked, where the format can drop them (Iceberg)."""
    policies = POLICIES.replace("older_than: 30d}", "older_than: 30d, allow_latest_view: true}", 1)
    log = _log(spark, tmp_path, "iceberg", policies)
    assert log.tide.mark(40).marked
    with pytest.raises(MarkedError, match="scheduled for deletion"):
        log.since(log.ids[0])
    assert _names(log.since(log.ids[0], allow_marked=True)) == ["n1", "n2"]


def test_a_marked_transaction_is_refused_unless_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    """On Delta transactions are marked once they are out of the latest view, and a late reader must pass them."""
    log = _log(spark, tmp_path, "delta")
    log.driver.overwrite(log.table, [(9, "other", "2026-01-01")])
    assert {key.object for key in log.tide.mark(40).marked if key.target == "transactions"} >= set(log.ids)
    with pytest.raises(MarkedError, match=f"{log.ids[1]} is scheduled for deletion"):
        log.since(log.ids[0])
    with pytest.raises(FullReadNeededError, match="SNAPSHOT"):
        log.since(log.ids[0], allow_marked=True)
    head = log.driver.native_ids(log.table)[-1]
    log.driver.append(log.table, [(10, "new", "2026-01-01")])
    assert _names(log.since(head)) == ["new"], "who is past them reads on"
