"""mark → grace → sweep on every format: one small lake each, marked once and swept once (spec §1, §2).

What a table is for is its name. Rows are read back row for row, never counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from ebbtide.formats.base import Capability, supports
from ebbtide.formats.registry import load_format
from ebbtide.spark.session import formats_of_session
from ebbtide.sweep.mark import MarkReport
from ebbtide.sweep.values import SweepReport
from tests.conformance.driver import Driver, Table
from tests.tide import Tide

POLICIES = """
policies:
  - name: days
    select: {tables: ["*.db.days"]}
    partitions: {older_than: 30d}
    versions: {older_than: 1d, keep_min: 1}
  - name: changes
    select: {tables: ["*.db.changes"]}
    versions: {older_than: 30d, keep_min: 2}
  - name: old
    select: {tables: ["**"]}
    versions: {older_than: 30d, keep_min: 1}
floors:
  - {name: law, tables: ["*.db.days"], keep_at_least: 2d, basis: a code}
"""
OLD, NEW = "2026-01-01", "2099-01-01"


@dataclass
class Swept:
    """A lake of one format, before and after."""

    tide: Tide
    driver: Driver
    format: str
    tables: dict[str, Table] = field(default_factory=dict)
    ids: dict[str, list[str]] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    reports: dict[str, Any] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    changes: list[set[str]] = field(default_factory=list)

    @property
    def marked(self) -> MarkReport:
        report: MarkReport = self.reports["mark"]
        return report

    @property
    def swept(self) -> SweepReport:
        report: SweepReport = self.reports["sweep"]
        return report

    def objects(self, report: MarkReport, name: str) -> set[str]:
        return {key.object for key in report.marked if key.dataset == str(self.tables[name].id)}

    def states(self, name: str) -> dict[str, str]:
        return {r.key.object: r.state for r in self.swept.results if r.key.dataset == str(self.tables[name].id)}


def _parameters() -> list[object]:
    return [
        pytest.param(name, id=name) for name in ("iceberg", "delta", "paimon", "hudi") if name in formats_of_session()
    ]


@pytest.fixture(scope="module", params=_parameters())
def lake(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Swept:
    format_ = str(request.param)
    tide = Tide(spark, tmp_path_factory.mktemp(f"sweep-{format_}") / "p", format_, policies=POLICIES)
    made = Swept(tide, tide.drivers[format_], format_)
    _write(made)
    made.files = tide.files()
    made.reports["mark"] = tide.mark(40)
    made.reports["sweep"] = tide.sweep(48)
    return made


def _write(lake: Swept) -> None:
    driver = lake.driver
    plain = lake.tables["plain"] = driver.create("plain")
    for number in range(3):
        driver.append(plain, [(number, f"n{number}", OLD)])
    driver.overwrite(plain, [(9, "kept", OLD)])
    tagged = lake.tables["tagged"] = driver.create("tagged")
    driver.append(tagged, [(1, "pinned", OLD)])
    if supports(load_format(lake.format), Capability.TAGS):
        driver.create_tag(tagged, "keep")
    driver.overwrite(tagged, [(2, "now", OLD)])
    days = lake.tables["days"] = driver.create("days", partitioned=True)
    driver.append(days, [(1, "old", OLD), (2, "new", NEW)])
    driver.append(days, [(3, "new", NEW)])
    if lake.format == "delta":
        _write_changes(lake)
    for name, table in lake.tables.items():
        lake.ids[name] = driver.native_ids(table)
        lake.rows[name] = driver.rows(table)


def _write_changes(lake: Swept) -> None:
    """Two deletes with their change data, and a version after them."""
    driver = lake.driver
    table = lake.tables["changes"] = driver.create("changes", properties={"delta.enableChangeDataFeed": "true"})
    driver.append(table, [(number, "a", OLD) for number in range(4)])
    for number in (1, 2):
        before = lake.tide.files()
        driver.delete(table, f"id = {number}")
        new = lake.tide.files() - before
        lake.changes.append({path for path in new if "/_change_data/" in path and path.endswith(".parquet")})
    driver.append(table, [(9, "a", OLD)])


def test_superseded_versions_are_marked_and_the_head_is_not(lake: Swept) -> None:
    marked, ids = lake.objects(lake.marked, "plain"), lake.ids["plain"]
    assert marked, "nothing was marked"
    assert marked <= set(ids[:-1])


def test_the_head_reads_back_row_for_row(lake: Swept) -> None:
    assert not lake.swept.errors
    assert not lake.swept.findings
    for name in lake.tables.keys() - {"days"}:
        assert lake.driver.rows(lake.tables[name]) == lake.rows[name], name


def test_old_files_are_gone_and_the_state_says_so(lake: Swept) -> None:
    gone = lake.files - lake.tide.files()
    assert gone, "no file was removed"
    states = lake.states("plain")
    assert set(states.values()) <= {"swept", "waiting"}
    assert "swept" in states.values()


def test_change_data_goes_with_its_own_version_and_with_no_other(lake: Swept) -> None:
    assert [bool(paths) for paths in lake.changes] == ([True, True] if lake.format == "delta" else [])
    here = lake.tide.files()
    # The policy keeps two versions: of the deletes, the second one.
    assert [paths & here for paths in lake.changes] == [set(), *lake.changes[1:]][: len(lake.changes)]


def test_a_tag_reads_back_after_the_sweep(lake: Swept) -> None:
    if not supports(load_format(lake.format), Capability.TAGS):
        pytest.skip(f"{lake.format}: no tags: {supports(load_format(lake.format), Capability.TAGS).reason}")
    files = [
        f for f in lake.tide.app.information_schema("files").collect() if f["table_id"] == str(lake.tables["tagged"].id)
    ]
    here = lake.tide.files()
    root = f"file://{lake.tide.root}/"
    assert all(f["path"].removeprefix(root) in here for f in files if f["role"] == "data")


def test_a_partition_past_retention_leaves_the_head_and_no_other_row(lake: Swept) -> None:
    support = supports(load_format(lake.format), Capability.DROPS_PARTITIONS)
    if not support:
        pytest.skip(f"{lake.format}: {support.reason}")
    assert {row["name"] for row in lake.driver.rows(lake.tables["days"])} == {"new"}
    assert len(lake.driver.rows(lake.tables["days"])) == 2


def test_every_intent_has_its_outcome(lake: Swept) -> None:
    kinds = lake.tide.ledger_kinds()
    assert kinds.count("act.intent") == kinds.count("act.outcome") > 0


def test_a_second_sweep_removes_nothing_that_the_first_left(lake: Swept) -> None:
    before = {name: lake.driver.rows(table) for name, table in lake.tables.items()}
    days = [(r.state, r.because) for r in lake.tide.sweep(60).results if r.key.target == "partitions"]
    # A floor keeps what has no date. This one left the head, and its mark still knows its day.
    drops = supports(load_format(lake.format), Capability.DROPS_PARTITIONS)
    assert [state for state, _ in days] == (["swept"] if drops else []), days
    assert {name: lake.driver.rows(table) for name, table in lake.tables.items()} == before
