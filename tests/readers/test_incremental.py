"""Reading what is new: never a gap in silence (spec §8)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from ebbtide.errors import FullReadNeededError, InputError, MarkedError
from tests.conformance.driver import Driver, Table
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

    def since(self, transaction: str | None, **options: bool) -> DataFrame:
        return self.tide.app.incremental(str(self.table.id), since=transaction, **options)


def _names(frame: DataFrame) -> list[str]:
    return sorted(row["name"] for row in frame.collect())


@pytest.fixture(params=["iceberg", "delta"])
def log(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Log:
    tide = Tide(spark, tmp_path / "p", str(request.param), policies=POLICIES)
    driver = tide.drivers[str(request.param)]
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


def test_what_retention_removed_is_said_and_skipped_only_when_asked(log: Log) -> None:
    if log.driver.format != "iceberg":
        log.driver.delete(log.table, "id = 0")
        with pytest.raises(FullReadNeededError, match="DELETE"):
            log.since(log.ids[1])
        assert _names(log.since(log.ids[1], allow_retention=True)) == ["n2"]
        return
    log.driver.expire(log.table)
    with pytest.raises(FullReadNeededError, match="retention removed"):
        log.since(log.ids[0])
    assert _names(log.since(log.ids[0], allow_retention=True)) == ["n2"], "from the oldest that is left"
    assert _names(log.since(log.ids[1])) == ["n2"], "nothing between is missing"


def test_a_marked_transaction_is_refused_unless_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    """With `allow_latest_view` even the newest rows may be marked."""
    policies = POLICIES.replace("older_than: 30d}", "older_than: 30d, allow_latest_view: true}", 1)
    tide = Tide(spark, tmp_path / "p", "iceberg", policies=policies)
    driver = tide.drivers["iceberg"]
    table = driver.create("log")
    ids = []
    for number in range(3):
        driver.append(table, [(number, f"n{number}", "2026-01-01")])
        ids.append(driver.native_ids(table)[-1])
    log = Log(tide, driver, table, ids)
    assert tide.mark(40).marked
    with pytest.raises(MarkedError, match="scheduled for deletion"):
        log.since(ids[0])
    assert _names(log.since(ids[0], allow_marked=True)) == ["n1", "n2"]
