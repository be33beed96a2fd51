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

from ebbtide.sweep.mark import MarkReport
from ebbtide.sweep.values import SweepReport
from tests.conformance.driver import Driver, Table
from tests.tide import Tide

OLD, NEW = "2026-01-01", "2099-01-01"
COMMITS = 12
PRODUCERS = ("none", "input")
LONG_LOGS = {f"changelog.num-retained.{which}": "50" for which in ("min", "max")} | {"snapshot.num-retained.min": "1"}
SWEPT = "Transaction data has been deleted."
POLICIES = """
policies:
  - name: days
    select: {tables: ["*.db.days", "*.db.logs_*"]}
    partitions: {older_than: 30d}
    versions: {older_than: 1d, keep_min: 1}
    grace: 1d
  - name: keyed
    select: {tables: ["*.db.keyed"]}
    versions: {older_than: 1h, keep_min: 2}
    grace: 1d
  - name: example
    select: {tables: ["*.db.example"], branches: [main]}
    transactions: {older_than: 0d}
    grace: 1d
  - name: followed
    select: {tables: ["*.db.followed"]}
    transactions: {older_than: 0d}
    grace: 1d
  - name: tens
    select: {tables: ["*.db.many"]}
    versions: {older_than: 1h, keep_min: 1, limit: 10}
    grace: 1d
  - name: defaults
    select: {tables: ["**"]}
    versions: {older_than: 1h}
    orphans: {older_than: 3d}
    grace: 1d
"""
# Under a table's folder: what a writer that died may have left.
STRAYS = (
    "bucket-0/data-00000000-0000-0000-0000-000000000000-0.orc", "bucket-0/changelog-00000000-0.orc",
    "index/index-00000000-0", "statistics/stat-00000000-0", "manifest/manifest-00000000-0",
    "manifest/manifest-list-00000000-0", "manifest/index-manifest-00000000-0",
)  # fmt: skip


@dataclass
class Cleaned:
    tide: Tide
    driver: Driver
    tables: dict[str, Table]
    rows: dict[str, list[Row]]
    ids: dict[str, list[list[str]]]
    """Native ids before the first sweep and after each."""
    files: list[set[str]]
    """What lay there before the first sweep and after each."""
    with_branch: dict[str, str]
    """What a plan decided of the worked example's transactions while the branch was there."""
    marks: list[MarkReport]
    sweeps: list[SweepReport]

    def place(self, name: str, path: str) -> Path:
        return Path(self.tables[name].location.removeprefix("file:"), path)


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
        "example": driver.create("example", properties=settings),
        "followed": driver.create(
            "followed",
            variant="key",
            properties={**settings, "changelog-producer": "input", "changelog.time-retained": "10 d"},
        ),
        **{
            f"logs_{producer}": driver.create(
                f"logs_{producer}",
                variant="key",
                partitioned=True,
                properties={**settings, **LONG_LOGS, "changelog-producer": producer},
            )
            for producer in PRODUCERS
        },
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
        for producer in PRODUCERS:
            driver.append(tables[f"logs_{producer}"], [(1, f"v{number}", OLD), (2, f"v{number}", NEW)])
    _worked_example(driver, tables["example"])
    driver.append(tables["followed"], [(1, "T1", OLD)])
    driver.append(tables["followed"], [(2, "T2", OLD)])
    driver.overwrite(tables["followed"], [(3, "T3", OLD)])
    made = Cleaned(tide, driver, tables, {n: driver.rows(table) for n, table in tables.items()}, {}, [], {}, [], [])
    for key, row in tide.plan(35).items():
        if ".example#transactions:" in key:
            made.with_branch[row["object"]] = row["decision"]
    driver.drop_branch(tables["example"], "xyz")
    for stray in STRAYS:
        made.place("many", stray).parent.mkdir(exist_ok=True)
        made.place("many", stray).write_bytes(b"left by a writer that died")
    for old in [*(made.place("many", stray) for stray in STRAYS), *made.place("example", "bucket-0").iterdir()]:
        os.utime(old, (1_700_000_000, 1_700_000_000))
    made.place("many", "bucket-0/data-1-0.orc").write_bytes(b"of a writer that is still at work")
    _look(made)
    for days in (40, 43):
        made.marks.append(tide.mark(days))
        made.sweeps.append(tide.sweep(days + 2))
        _look(made)
    return made


def _worked_example(driver: Driver, table: Table) -> None:
    """Spec §1 on Paimon: `main: T1, T2, T3 SNAPSHOT, T4`, and `xyz`, forked at T2, with T5."""
    driver.append(table, [(1, "T1", OLD)])
    driver.append(table, [(2, "T2", OLD)])
    driver.create_branch(table, "xyz")
    driver.append(table, [(5, "T5", OLD)], branch="xyz")
    driver.overwrite(table, [(3, "T3", OLD)])
    driver.append(table, [(4, "T4", OLD)])


def _look(made: Cleaned) -> None:
    made.files.append(made.tide.files())
    for name, table in made.tables.items():
        made.ids.setdefault(name, []).append(made.driver.native_ids(table))


def test_snapshots_expire_ten_a_run(cleaned: Cleaned) -> None:
    """Eleven may go; the limit is ten."""
    assert [len(ids) for ids in cleaned.ids["many"]] == [COMMITS, 2, 1]
    assert cleaned.driver.rows(cleaned.tables["many"]) == cleaned.rows["many"]


def test_the_last_ten_stay_and_a_tag_keeps_its_data(cleaned: Cleaned) -> None:
    """`keep_min` is 10 on Paimon when nobody says otherwise."""
    first, *others = cleaned.ids["tagged"][-1]
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
    assert len(cleaned.ids["keyed"][-1]) == 2
    assert cleaned.driver.rows(cleaned.tables["keyed"]) == cleaned.rows["keyed"]


def test_changelogs_go_with_their_snapshots_and_those_of_the_others_stay(cleaned: Cleaned) -> None:
    assert [len(_changelogs(files)) for files in (cleaned.files[0], cleaned.files[-1])] == [4, 2]


def _changelogs(files: set[str]) -> list[str]:
    return [path for path in files if "/keyed/bucket-0/changelog-" in path]


@pytest.mark.parametrize("producer", PRODUCERS)
def test_what_changelogs_name_outlives_the_versions_and_the_partition_waits(cleaned: Cleaned, producer: str) -> None:
    """A changelog is read from its own files, and where nothing writes any from the data."""
    name, kind = f"logs_{producer}", "data-" if producer == "none" else "changelog-"
    assert len(cleaned.ids[name][-1]) == 1
    assert len(list(cleaned.place(name, "changelog").glob("changelog-*"))) == 4
    first, last = ([p for p in files if f"/{name}/day={OLD}/" in p] for files in (cleaned.files[0], cleaned.files[-1]))
    assert sorted(last) == sorted(path for path in first if path.rpartition("/")[2].startswith(kind))
    results = [r for r in cleaned.sweeps[-1].results if r.key.dataset.endswith(f".{name}")]
    (waiting,) = (r for r in results if r.key.target == "partitions")
    assert waiting.state == "waiting"
    assert "changelog" in waiting.because


def test_transactions_go_and_then_the_changelogs_that_were_made_of_them(cleaned: Cleaned) -> None:
    """Past `changelog.time-retained` by the plan's clock the policy decides; the newest one is Paimon's."""
    changelogs = cleaned.place("followed", "changelog").glob("changelog-*")
    assert [path.name for path in changelogs] == ["changelog-2"]
    results = [
        {(r.key.object, r.state) for r in sweep.results if ".followed" in r.key.dataset} for sweep in cleaned.sweeps
    ]
    assert results == [{("main/1", "swept"), ("main/2", "swept")}, {("main/changelog/1", "swept")}]
    states = cleaned.tide.states(cleaned.tables["followed"])
    assert {id_: states[id_] for id_ in ("main/1", "main/2", "main/changelog/1", "main/changelog/2")} == {
        "main/1": ("swept", SWEPT),
        "main/2": ("expired", None),
        "main/changelog/1": ("swept", SWEPT),
        "main/changelog/2": ("live", None),
    }
    assert cleaned.driver.rows(cleaned.tables["followed"]) == cleaned.rows["followed"]


def test_orphans_of_every_kind_go_after_their_guard_age_and_young_files_stay(cleaned: Cleaned) -> None:
    assert [stray for stray in STRAYS if cleaned.place("many", stray).exists()] == []
    assert not cleaned.place("many", "index").exists(), "a folder that is empty then goes too"
    assert cleaned.place("many", "bucket-0/data-1-0.orc").exists()


def test_the_worked_example_without_its_branch_and_the_tag_that_it_hung_on(cleaned: Cleaned) -> None:
    """Two latest views protect everything; then T1 and T2 go, and T5's files as orphans (spec §1)."""
    assert set(cleaned.with_branch) >= {"main/1", "main/2"}
    assert set(cleaned.with_branch.values()) == {"keep"}
    marked = [key for key in cleaned.marks[0].marked if key.dataset.endswith(".example")]
    assert {key.object for key in marked if key.target == "transactions"} == {"main/1", "main/2"}
    states = cleaned.tide.states(cleaned.tables["example"])
    assert {id_: states[id_] for id_ in ("main/1", "main/2")} == dict.fromkeys(("main/1", "main/2"), ("swept", SWEPT))
    assert {states[id_] for id_ in ("main/3", "main/4")} == {("live", None)}
    assert cleaned.driver.rows(cleaned.tables["example"]) == cleaned.rows["example"]
    assert len(list(cleaned.place("example", "bucket-0").iterdir())) == 2, "of T3 and T4"
    orphans = [r for sweep in cleaned.sweeps for r in sweep.results if r.key.target == "orphans"]
    assert {r.state for r in orphans if r.key.dataset.endswith(".example")} == {"swept"}


def test_nothing_failed_and_the_proof_held(cleaned: Cleaned) -> None:
    for sweep in cleaned.sweeps:
        assert not sweep.errors
        assert not sweep.findings
