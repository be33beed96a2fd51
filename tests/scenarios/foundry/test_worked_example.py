"""The worked example of spec §1 in all its variants, on one real Iceberg lake that is marked once and swept once.

Every table has the same history, `main: T1, T2, T3 SNAPSHOT, T4` and `xyz: T1, T2, T5`; what a person did to it is the
table's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from ebbtide.app.hold import add_hold
from ebbtide.app.unmark import unmark_object
from ebbtide.errors import RefusedError
from ebbtide.sweep.mark import MarkReport
from ebbtide.sweep.values import SweepReport
from tests.conformance.driver import Driver, Table
from tests.tide import Tide

MARKED = "This transaction has been scheduled for deletion."
SWEPT = "Transaction data has been deleted."
NAMES = ("base", "dropped", "tagged", "held", "override", "overlap", "rescued", "late", "late_tag", "late_hold")
POLICIES = """
policies:
  - name: override
    select: {tables: ["*.db.override"], branches: [main]}
    transactions: {older_than: 0d, allow_latest_view: true}
    versions: {older_than: 0d}
  - name: first
    select: {tables: ["*.db.overlap"], branches: [main]}
    transactions: {older_than: 360d}
  - name: second
    select: {tables: ["**"], branches: [main]}
    transactions: {older_than: 0d}
"""


@dataclass
class Example:
    """The lake with what each table's transactions are called, and what the rounds said."""

    tide: Tide
    driver: Driver
    tables: dict[str, Table]
    ids: dict[str, dict[str, str]]
    rows: dict[str, list[Row]]
    first: MarkReport
    marked: MarkReport
    told: dict[str, tuple[str, str | None]]
    """What history said of `dropped` between mark and sweep."""
    files: set[str]
    swept: SweepReport

    def marked_of(self, name: str, report: MarkReport) -> set[str]:
        names = {id_: t for t, id_ in self.ids[name].items()}
        return {
            names[key.object]
            for key in report.marked
            if key.dataset == str(self.tables[name].id) and key.target == "transactions"
        }

    def states(self, name: str) -> dict[str, tuple[str, str | None]]:
        return _named(self.tide, self.tables[name], self.ids[name])


def _named(tide: Tide, table: Table, ids: dict[str, str]) -> dict[str, tuple[str, str | None]]:
    names = {id_: t for t, id_ in ids.items()}
    return {names.get(id_, id_): state for id_, state in tide.states(table).items()}


def _write(driver: Driver, name: str) -> tuple[Table, dict[str, str]]:
    table = driver.create(name)
    ids: dict[str, str] = {}

    def commit(transaction: str, number: int, branch: str | None = None) -> None:
        seen = set(driver.native_ids(table))
        rows = [(number, transaction, "2026-01-01")]
        (driver.overwrite if transaction == "T3" else driver.append)(table, rows, branch=branch)
        (ids[transaction],) = set(driver.native_ids(table)) - seen

    commit("T1", 1)
    commit("T2", 2)
    driver.create_branch(table, "xyz", ids["T2"])
    commit("T5", 5, "xyz")
    commit("T3", 3)
    commit("T4", 4)
    return table, ids


@pytest.fixture(scope="module")
def example(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Example:
    root: Path = tmp_path_factory.mktemp("foundry") / "p"
    tide = Tide(spark, root, "iceberg", policies=POLICIES)
    driver = tide.drivers["iceberg"]
    tables, ids = {}, {}
    for name in NAMES:
        tables[name], ids[name] = _write(driver, name)
    first = tide.mark(1)
    for name in NAMES:
        if name != "base":
            driver.drop_branch(tables[name], "xyz")
    driver.create_tag(tables["tagged"], "keep", ids["tagged"]["T1"])
    tide.app.scan()
    add_hold(tide.project, str(tables["held"].id), owner="counsel", reason="case 7", as_of=tide.at(1))
    marked = tide.mark(2)
    unmark_object(
        tide.project, f"{tables['rescued'].id}#transactions:{ids['rescued']['T1']}", reason="needed", as_of=tide.at(3)
    )
    driver.create_branch(tables["late"], "late", ids["late"]["T2"])
    driver.create_tag(tables["late_tag"], "late", ids["late_tag"]["T2"])
    add_hold(tide.project, str(tables["late_hold"].id), owner="counsel", reason="case 8", as_of=tide.at(3))
    told = _named(tide, tables["dropped"], ids["dropped"])
    rows = {name: driver.rows(tables[name]) for name in NAMES}
    files = tide.files()
    swept = tide.sweep(10)
    return Example(tide, driver, tables, ids, rows, first, marked, told, files, swept)


def test_two_latest_views_protect_everything(example: Example) -> None:
    assert {name: example.marked_of(name, example.first) for name in NAMES if name not in ("override", "overlap")} == {
        name: set() for name in NAMES if name not in ("override", "overlap")
    }
    assert example.marked_of("base", example.marked) == set()
    assert {state for state, _ in example.states("base").values()} == {"live"}


def test_without_the_branch_its_transactions_go_and_say_so(example: Example) -> None:
    gone = ("T1", "T2", "T5")
    assert example.marked_of("dropped", example.marked) == set(gone)
    assert {t: example.told[t] for t in gone} == dict.fromkeys(gone, ("marked", MARKED))
    assert (example.told["T3"], example.told["T4"]) == (("live", None), ("live", None))
    states = example.states("dropped")
    assert {t: states[t] for t in gone} == dict.fromkeys(gone, ("swept", SWEPT))
    assert (states["T3"], states["T4"]) == (("live", None), ("live", None))


def test_a_tag_keeps_the_view_that_ends_at_it(example: Example) -> None:
    assert example.marked_of("tagged", example.marked) == {"T2", "T5"}
    states = example.states("tagged")
    assert states["T1"] == ("live", None)
    assert (states["T2"], states["T5"]) == (("swept", SWEPT), ("swept", SWEPT))
    tagged = example.tide.spark.read.option("tag", "keep").table(example.tables["tagged"].sql)
    assert [row["name"] for row in tagged.collect()] == ["T1"]


def test_a_hold_keeps_everything(example: Example) -> None:
    assert example.marked_of("held", example.marked) == set()
    assert {state for state, _ in example.states("held").values()} == {"live"}


def test_the_override_takes_appends_of_the_latest_view_by_their_files(example: Example) -> None:
    """T4 is an APPEND of main's latest view; T3 is a SNAPSHOT and stays: rows of mixed age."""
    assert example.marked_of("override", example.first) == {"T4"}
    assert [row["name"] for row in example.driver.rows(example.tables["override"])] == ["T3"]
    assert example.states("override")["T4"] == ("waiting", MARKED), "its version still reads its file"


def test_the_first_policy_owns_and_later_ones_ignore(example: Example) -> None:
    """T5, which no branch reaches, goes with every policy that selects the dataset: so the first owns it too."""
    assert example.marked_of("overlap", example.marked) == set()
    assert {state for state, _ in example.states("overlap").values()} == {"live"}


def test_an_unmark_within_grace_stays(example: Example) -> None:
    states = example.states("rescued")
    assert states["T1"] == ("unmarked", None)
    assert states["T2"][0] in ("swept", "waiting")
    assert example.driver.rows(example.tables["rescued"], version=example.ids["rescued"]["T1"])


def test_a_late_branch_sends_the_marked_back(example: Example) -> None:
    sent = {r.key.object: r.because for r in example.swept.results if r.state == "unmarked"}
    assert {example.ids["late"]["T1"], example.ids["late"]["T2"]} <= sent.keys()
    assert "branch:late" in sent[example.ids["late"]["T1"]]
    late = example.tide.spark.read.option("branch", "late").table(example.tables["late"].sql)
    assert sorted(row["name"] for row in late.collect()) == ["T1", "T2"]


def test_a_late_tag_sends_the_marked_back(example: Example) -> None:
    """The view that ends at T2 is T1 and T2; T5 is in no view, and goes."""
    sent = {r.key.object: r.because for r in example.swept.results if r.state == "unmarked"}
    ids = example.ids["late_tag"]
    assert {"T1", "T2", "T5"} == example.marked_of("late_tag", example.marked)
    assert {ids["T1"], ids["T2"]} <= sent.keys()
    assert "tag:late" in sent[ids["T1"]]
    assert ids["T5"] not in sent
    late = example.tide.spark.read.option("tag", "late").table(example.tables["late_tag"].sql)
    assert sorted(row["name"] for row in late.collect()) == ["T1", "T2"]


def test_a_hold_between_mark_and_sweep_sends_the_marked_back(example: Example) -> None:
    table, ids = example.tables["late_hold"], example.ids["late_hold"]
    assert example.marked_of("late_hold", example.marked) == {"T1", "T2", "T5"}
    sent = {r.key.object: r.because for r in example.swept.results if r.state == "unmarked"}
    assert {ids["T1"], ids["T2"], ids["T5"]} <= sent.keys()
    assert "case 8" in sent[ids["T1"]]
    assert {state for state, _ in example.states("late_hold").values()} == {"live"}
    assert sorted(row["name"] for row in example.driver.rows(table, version=ids["T5"])) == ["T1", "T2", "T5"]


def test_rows_of_every_head_are_what_they_were(example: Example) -> None:
    for name in NAMES:
        if name != "override":
            assert example.driver.rows(example.tables[name]) == example.rows[name], name
    assert not example.swept.errors
    assert not example.swept.findings


def test_only_named_files_went_and_the_ledger_has_both_sides(example: Example) -> None:
    gone = example.files - example.tide.files()
    assert example.swept.removed_files == len({path for path in gone if "/." not in path})
    kinds = example.tide.ledger_kinds()
    assert kinds.count("act.intent") == kinds.count("act.outcome") > 0


def test_a_second_sweep_changes_nothing(example: Example) -> None:
    before = example.tide.files()
    again = example.tide.sweep(10)
    assert again.removed_files == 0
    assert example.tide.files() == before


def test_a_writing_verb_refuses_another_clock(example: Example) -> None:
    real = (example.tide.root / "ebbtide.yml").read_text()
    (example.tide.root / "ebbtide.yml").write_text(real.replace("clock: simulated", "clock: real"))
    try:
        with pytest.raises(RefusedError):
            example.tide.sweep(10)
    finally:
        (example.tide.root / "ebbtide.yml").write_text(real)


def test_the_override_is_done_when_the_version_is_gone_too(example: Example) -> None:
    """The version that T4 made was the head when the others were marked. The last test: it sweeps the lake again."""
    data = {path for path in example.files if "/override/data/" in path and path.endswith(".parquet")}
    assert len(data) == 5, "T1 to T5 brought a file each"
    assert len(data & example.tide.files()) == 2, "of T3 and T4"
    example.tide.mark(11)
    example.tide.sweep(19)
    assert example.states("override")["T4"] == ("swept", SWEPT)
    assert len(data & example.tide.files()) == 1, "T4's is gone"
    assert [row["name"] for row in example.driver.rows(example.tables["override"])] == ["T3"]
