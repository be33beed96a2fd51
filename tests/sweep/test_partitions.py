"""Partitions that are hard to tell: older than the calendar, under another name since they were marked, or with single
rows deleted before. One lake for all of them, marked and swept in shared rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from pyspark.sql import Row, SparkSession

from ebbtide.spark.session import formats_of_session
from ebbtide.sweep.mark import MarkReport
from ebbtide.sweep.values import ObjectOutcome, SweepReport
from tests.conformance.driver import Driver, Table
from tests.tide import Tide

POLICIES = """
policies:
  - name: with deletes
    select: {tables: ["*.db.deleted"]}
    partitions: {older_than: 30d}
    versions: {older_than: 1d, keep_min: 3}
  - name: days
    select: {tables: ["**"]}
    partitions: {older_than: 30d}
    versions: {older_than: 1d, keep_min: 1}
"""
ANCIENT, OLD, NEW = "0001-01-01", "2026-01-01", "2099-01-01"
VARIANTS = {"iceberg": "v2", "hudi": "mor"}
"""Iceberg 2 leaves a dangling delete file in the head. Hudi's log files hold rows, and go with their partition."""
WITH_DELETES = [format_ for format_ in VARIANTS if format_ in formats_of_session()]


@dataclass
class Lake:
    """After three marks and three sweeps."""

    tide: Tide
    tables: dict[str, Table] = field(default_factory=dict)
    """By name; by format those of which rows were deleted."""
    marks: dict[int, MarkReport] = field(default_factory=dict)
    sweeps: dict[int, SweepReport] = field(default_factory=dict)
    rows: dict[tuple[str, int], list[Row]] = field(default_factory=dict)
    """Of each table after a sweep."""
    newest: dict[tuple[str, int], list[dict[str, list[Row]]]] = field(default_factory=dict)
    """The versions that the policy keeps at a sweep, with their rows before it and after."""

    def driver(self, name: str) -> Driver:
        return self.tide.drivers[name if name in VARIANTS else "delta"]

    def marked(self, name: str, day: int) -> set[str]:
        """The partitions that were marked on a day."""
        keys = [key for key in self.marks[day].marked if key.target == "partitions"]
        return {key.object for key in keys if key.dataset == str(self.tables[name].id)}

    def result(self, name: str, object_: str, day: int) -> ObjectOutcome | None:
        keyed = {(result.key.dataset, result.key.object): result for result in self.sweeps[day].results}
        return keyed.get((str(self.tables[name].id), object_))

    def sweep(self, day: int) -> None:
        kept = {name: self.driver(name).native_ids(self.tables[name])[-3:] for name in WITH_DELETES}
        before = {name: self._versions(name, ids) for name, ids in kept.items()}
        self.sweeps[day] = self.tide.sweep(day)
        for name, ids in kept.items():
            self.newest[name, day] = [before[name], self._versions(name, ids)]
        for name, table in self.tables.items():
            self.rows[name, day] = self.driver(name).rows(table)

    def _versions(self, name: str, ids: list[str]) -> dict[str, list[Row]]:
        return {id_: self.driver(name).rows(self.tables[name], version=id_) for id_ in ids}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    tide = Tide(spark, tmp_path_factory.mktemp("partitions") / "p", "delta", *WITH_DELETES, policies=POLICIES)
    lake, delta = Lake(tide), tide.drivers["delta"]
    ancient = lake.tables["ancient"] = delta.create("ancient", partitioned=True)
    delta.append(ancient, [(1, "a", ANCIENT), (2, "b", NEW)])
    mapped = {"delta.columnMapping.mode": "name"}
    renamed = lake.tables["renamed"] = delta.create("renamed", partitioned=True, properties=mapped)
    delta.append(renamed, [(1, "old", OLD)])
    delta.append(renamed, [(2, "new", NEW)])
    for format_ in WITH_DELETES:
        driver = tide.drivers[format_]
        table = lake.tables[format_] = driver.create("deleted", variant=VARIANTS[format_], partitioned=True)
        driver.append(table, [(1, "gone", OLD), (2, "old", OLD), (3, "new", NEW)])
        driver.delete(table, "id = 1")

    lake.marks[40] = tide.mark(40)
    spark.sql(f"ALTER TABLE {renamed.sql} RENAME COLUMN day TO dt")
    lake.sweep(48)
    _append(lake, 4, 5)
    lake.marks[49] = tide.mark(49)
    lake.sweep(50)
    _append(lake, 6)
    lake.marks[52] = tide.mark(52)
    lake.sweep(60)
    return lake


def _append(lake: Lake, *numbers: int) -> None:
    for format_ in WITH_DELETES:
        for number in numbers:
            lake.driver(format_).append(lake.tables[format_], [(number, "later", NEW)])


def test_nothing_fails(lake: Lake) -> None:
    for report in lake.sweeps.values():
        assert not report.errors
        assert not report.findings


def test_a_partition_of_the_year_1_is_old_and_nothing_else(lake: Lake) -> None:
    (day,) = lake.marked("ancient", 40)
    assert day.endswith(ANCIENT)
    assert [row.day for row in lake.rows["ancient", 48]] == [NEW]


def test_a_live_partition_under_another_name_is_sent_back_and_marked_anew(lake: Lake) -> None:
    """It is none that this sweep deleted (spec §2)."""
    (day,) = lake.marked("renamed", 40)
    result = lake.result("renamed", day, 48)
    assert result is not None
    assert (result.state, result.because) == ("unmarked", "it is gone: someone else removed it")
    assert sorted(row.id for row in lake.rows["renamed", 48]) == [1, 2]
    (anew,) = lake.marked("renamed", 49)
    assert anew != day


@pytest.mark.parametrize("format_", WITH_DELETES)
def test_a_partition_of_which_rows_were_deleted_goes_and_the_newest_versions_stay(lake: Lake, format_: str) -> None:
    """What says which rows were deleted is not the partition's (spec §2, "its data files")."""
    (day,) = lake.marked(format_, 40)
    # Hudi's cleaner keeps the files of one version more than it keeps versions: the next one must be due too.
    expected = {48: "waiting", 50: "waiting", 60: "swept"} if format_ == "hudi" else {48: "waiting", 50: "swept"}
    for after, state in expected.items():
        result = lake.result(format_, day, after)
        assert result is not None, (after, lake.sweeps[after].results)
        assert result.state == state, (after, result)
    assert [row.id for row in lake.rows[format_, 48]] == [3]
    assert [row.id for row in lake.rows[format_, 60]] == [3, 4, 5, 6]
    read_before, read_after = lake.newest[format_, max(expected)]
    assert read_before == read_after, "they never held the partition"
    folder = lake.tide.relative(lake.tables[format_].location.removeprefix("file:"))
    mine = [path for path in lake.tide.files() if path.startswith(folder) and "deletes" not in path]
    assert not [path for path in mine if OLD in path and path.endswith(".parquet")]
