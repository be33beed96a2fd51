"""The three cleanups of the original on one real Paimon lake, by Ebbtide's verbs: snapshots, partitions, orphans.

What the original leaves out works here too: tags, changelogs, primary-key tables, empty directories. The rules
inside Paimon's expiry (added then deleted, the manifests of the range's end, the earliest hint, a hole below the
earliest) have their own tests in `tests/formats/test_paimon_remove.py`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from ebbtide.sweep.values import SweepReport
from tests.conformance.driver import Driver, Table
from tests.tide import Tide

OLD, NEW = "2026-01-01", "2099-01-01"
COMMITS = 12
POLICIES = """
policies:
  - name: days
    select: {tables: ["*.db.days"]}
    partitions: {older_than: 30d}
    versions: {older_than: 1d, keep_min: 1}
    grace: 1d
  - name: keyed
    select: {tables: ["*.db.keyed"]}
    versions: {older_than: 1h, keep_min: 2}
    grace: 1d
  - name: defaults
    select: {tables: ["**"]}
    versions: {older_than: 1h, limit: 10}
    orphans: {older_than: 3d}
    grace: 1d
"""


@dataclass
class Cleaned:
    tide: Tide
    driver: Driver
    tables: dict[str, Table]
    rows: dict[str, list[Row]]
    stray: Path
    young: Path
    sweeps: list[SweepReport]

    def ids(self, name: str) -> list[str]:
        return self.driver.native_ids(self.tables[name])


@pytest.fixture(scope="module")
def cleaned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Cleaned:
    tide = Tide(spark, tmp_path_factory.mktemp("paimon") / "p", "paimon", policies=POLICIES)
    driver = tide.drivers["paimon"]
    settings: dict[str, Any] = {"write-only": "true"}
    tables = {
        "many": driver.create("many", properties=settings),
        "tagged": driver.create("tagged", properties=settings),
        "days": driver.create("days", partitioned=True, properties=settings),
        "keyed": driver.create("keyed", variant="key", properties={**settings, "changelog-producer": "input"}),
    }
    for number in range(COMMITS):
        driver.append(tables["many"], [(number, f"n{number}", OLD)])
    driver.append(tables["tagged"], [(1, "pinned", OLD)])
    driver.create_tag(tables["tagged"], "keep")
    for number in range(COMMITS):
        driver.overwrite(tables["tagged"], [(number, "now", OLD)])
    driver.append(tables["days"], [(1, "old", OLD), (2, "new", NEW)])
    driver.append(tables["days"], [(3, "new", NEW)])
    for number in range(4):
        driver.append(tables["keyed"], [(1, f"v{number}", OLD)])
    folder = next(Path(tables["many"].location.removeprefix("file:")).glob("bucket-*"))
    stray, young = folder / "data-00000000-0000-0000-0000-000000000000-0.orc", folder / "data-1-0.orc"
    stray.write_bytes(b"left by a writer that died")
    os.utime(stray, (1_700_000_000, 1_700_000_000))
    young.write_bytes(b"of a writer that is still at work")
    rows = {name: driver.rows(table) for name, table in tables.items()}
    tide.mark(40)
    return Cleaned(tide, driver, tables, rows, stray, young, [tide.sweep(42), tide.sweep(45)])


def test_snapshots_expire_but_the_last_ten_and_ten_a_run(cleaned: Cleaned) -> None:
    """`keep_min` is 10 on Paimon when nobody says otherwise."""
    assert len(cleaned.ids("many")) == 10
    assert cleaned.driver.rows(cleaned.tables["many"]) == cleaned.rows["many"]


def test_a_tag_keeps_its_data(cleaned: Cleaned) -> None:
    first, *others = cleaned.ids("tagged")
    assert (first, len(others)) == ("main/1", 10), "the tag still names the first; the next two are gone"
    tagged = cleaned.tide.spark.read.option("scan.tag-name", "keep").table(cleaned.tables["tagged"].sql)
    assert [row["name"] for row in tagged.collect()] == ["pinned"]
    assert cleaned.driver.rows(cleaned.tables["tagged"]) == cleaned.rows["tagged"]


def test_a_partition_expires_and_its_files_go_with_the_snapshots(cleaned: Cleaned) -> None:
    assert sorted(row["id"] for row in cleaned.driver.rows(cleaned.tables["days"])) == [2, 3]
    states = {
        (r.key.target, r.state) for sweep in cleaned.sweeps for r in sweep.results if r.key.dataset.endswith(".days")
    }
    assert ("partitions", "waiting") in states
    assert ("partitions", "swept") in states
    left = [path for path in cleaned.tide.files() if "/days/" in path and f"day={OLD}" in path]
    assert left == []


def test_a_primary_key_table_keeps_its_newest_rows(cleaned: Cleaned) -> None:
    assert len(cleaned.ids("keyed")) == 2
    assert cleaned.driver.rows(cleaned.tables["keyed"]) == cleaned.rows["keyed"]


def test_orphans_go_after_their_guard_age_and_young_files_stay(cleaned: Cleaned) -> None:
    assert not cleaned.stray.exists()
    assert cleaned.young.exists()


def test_nothing_failed_and_the_proof_held(cleaned: Cleaned) -> None:
    for sweep in cleaned.sweeps:
        assert not sweep.errors
        assert not sweep.findings
