"""`allow_latest_view` alone: rows leave the head, and the versions of what is marked go by id after that (spec §2)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from ebbtide.sweep.values import SweepReport
from tests.conformance.driver import Driver, Table
from tests.tide import Tide

POLICIES = """
policies:
  - name: latest
    select: {tables: ["**"]}
    transactions: {older_than: 30d, allow_latest_view: true}
    grace: 1d
"""
NAMES = ("whole", "young", "tagged")


@dataclass
class Lake:
    """T1 and T2 in every table, marked on day 40."""

    tide: Tide
    driver: Driver
    tables: dict[str, Table]

    def append(self, name: str, number: int) -> None:
        self.driver.append(self.tables[name], [(number, f"T{number}", "2026-01-01")])

    def ids(self, name: str) -> list[str]:
        return self.driver.native_ids(self.tables[name])

    def rows(self, name: str) -> list[str]:
        return sorted(row["name"] for row in self.driver.rows(self.tables[name]))

    def data(self, name: str) -> int:
        return len([p for p in self.tide.files() if f"/{name}/data/" in p and p.endswith(".parquet")])

    def sweep(self, day: float) -> dict[str, str]:
        """What became of each object, by its id; nothing went wrong."""
        report: SweepReport = self.tide.sweep(day)
        told = (sum(one.files for one in report.datasets), sum(one.bytes for one in report.datasets))
        assert told == (report.removed_files, report.removed_bytes), "a row for each dataset, and nothing beside them"
        assert not report.errors
        assert not report.findings
        return {result.key.object: f"{result.state}: {result.because}" for result in report.results}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    tide = Tide(spark, tmp_path_factory.mktemp("latest") / "p", "iceberg", policies=POLICIES)
    driver = tide.drivers["iceberg"]
    lake = Lake(tide, driver, {name: driver.create(name) for name in NAMES})
    for name in NAMES:
        lake.append(name, 1)
        lake.append(name, 2)
    tide.mark(40)
    return lake


def test_the_files_leave_the_head_and_then_go_with_the_versions_of_what_is_marked(lake: Lake) -> None:
    lake.append("young", 3)
    ids = {name: lake.ids(name) for name in NAMES}
    first = lake.sweep(42)
    assert {name: lake.rows(name) for name in NAMES} == {"whole": [], "young": ["T3"], "tagged": []}
    assert all(first[id_].startswith("waiting: version:") for name in NAMES for id_ in ids[name][:2])
    assert {name: lake.data(name) for name in NAMES} == {"whole": 2, "young": 3, "tagged": 2}, "versions have them"

    t1, t2 = ids["tagged"]
    lake.driver.create_tag(lake.tables["tagged"], "late", t1)
    planned = lake.tide.plan(44)
    for id_ in ids["young"][:2]:
        row = planned[f"{lake.tables['young'].id}#transactions:{id_}"]
        assert (row["decision"], row["waits_for"]) == ("wait", [f"version:{ids['young'][2]}"]), "T3 is not marked"
    second = lake.sweep(44)
    assert {second[id_].partition(":")[0] for id_ in (*ids["whole"], t2)} == {"swept"}
    assert second[t1] == "unmarked: protected by tag:late"
    assert {second[id_] for id_ in ids["young"][:2]} == {f"waiting: version:{ids['young'][2]}"}
    assert {name: lake.data(name) for name in NAMES} == {"whole": 0, "young": 3, "tagged": 1}
    kept = lake.driver.spark.read.option("tag", "late").table(lake.tables["tagged"].sql)
    assert [row["name"] for row in kept.collect()] == ["T1"]
    assert not lake.ids("whole")[:-1], "the delete's own version is the head"


def test_it_goes_when_the_versions_between_are_marked_too(lake: Lake) -> None:
    """T3 is due now; the delete of T1 and T2 still has it, and is out of the latest view once T3 has left too."""
    table = lake.tables["young"]
    t1, t2, t3 = lake.ids("young")[:3]
    lake.tide.mark(45)
    lake.sweep(47)
    assert lake.rows("young") == []
    lake.sweep(48)
    assert lake.data("young") == 3
    lake.tide.mark(49)
    lake.sweep(51)
    lake.sweep(52)
    states = lake.tide.states(table)
    assert {states[id_][0] for id_ in (t1, t2, t3)} == {"swept"}
    assert lake.data("young") == 0
    assert len(lake.ids("young")) == 1
