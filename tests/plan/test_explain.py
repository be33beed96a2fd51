"""`explain` for objects of every target, marked, held, rescued and gone: every policy, protection and decision."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ebbtide.plan.explain import ObjectExplanation, explain
from ebbtide.plan.world import World
from tests.plan.worlds import NOW, Table, ago, day_partition, orders, policies, world

DAY = NOW.date() - timedelta(days=200)
PARTITION, FOLDER = f"0/day={DAY}", "file:///lake/t/data"
GONE = "lake.db.gone"


@pytest.fixture(scope="module")
def seen() -> World:
    """One table with a forgotten branch, an old partition and an orphan, and what a table left that is no more."""
    table = Table("lake.db.t", partitions=(day_partition(DAY),)).commit("T1", 300, partition=PARTITION)
    table.branch("old", "T1").commit("T2", 200)
    orphans = [(owner, FOLDER, f"{FOLDER}/{owner}", 7, ago(9)) for owner in (table.name, GONE)]
    made = world(table, orphans=orphans)
    gone = pa.Table.from_pylist([{"table_id": GONE, "format": "iceberg"}], made.tables.schema)
    return replace(made, former=gone)


class Asking:
    """`explain` with the policies of a test, and with what the state says."""

    def __init__(self, seen: World, root: Path) -> None:
        self.seen, self.root = seen, root

    def __call__(
        self,
        target: str,
        id_: str,
        *rules: str,
        dataset: str = "lake.db.t",
        mark: dict[str, Any] | None = None,
        unmark: str | None = None,
        hold: str | None = None,
    ) -> ObjectExplanation:
        """`mark` is what was planned when it was marked; its grace ends tomorrow."""
        told = policies(self.root, "policies:\n" + "".join(f"  - {{{rule}}}\n" for rule in rules))
        marks = [] if mark is None else [(dataset, target, id_, mark["policy"], mark["fingerprint"], ago(8),
                                          ago(-1), mark["cutoff"], None, None)]  # fmt: skip
        unmarks = [] if unmark is None else [(dataset, None, id_, None, unmark)]
        holds = [] if hold is None else [(dataset, None, None, hold, "case 7")]
        return explain(
            told, self.seen, orders(marks, unmarks, holds), dataset=dataset, target=target, object_id=id_, now=NOW,
        )  # fmt: skip


@pytest.fixture
def ask(seen: World, tmp_path: Path) -> Asking:
    return Asking(seen, tmp_path)


ALL = 'select: {tables: ["**"]}'


def outcomes(told: ObjectExplanation) -> list[tuple[str, str, str]]:
    return [(c.policy, c.outcome, c.because) for c in told.considered]


def planned(told: ObjectExplanation) -> dict[str, Any]:
    assert told.planned is not None
    return told.planned


def test_a_marked_partition_waits_for_its_grace(ask: Asking) -> None:
    rules = (f"name: p, {ALL}, partitions: {{older_than: 90d}}", f"name: later, {ALL}, partitions: {{older_than: 1d}}")
    fresh = planned(ask("partitions", PARTITION, *rules))
    assert (fresh["decision"], fresh["policy"]) == ("mark", "p")
    told = ask("partitions", PARTITION, *rules, mark=fresh)
    assert (planned(told)["decision"], planned(told)["waits_for"]) == ("marked", ["grace until 2026-11-16T12:00:00Z"])
    assert outcomes(told) == [
        ("p", "owns", fresh["because"]),
        ("later", "ignores", "p owns it"),
    ]


def test_held_rows_name_who_holds_them(ask: Asking) -> None:
    rules = (f"name: other, {ALL}, branches: {{unused_for: 1d}}", f"name: r, {ALL}, rows: {{where: x = 1}}")
    told = ask("rows", "r", *rules, hold="legal")
    assert (planned(told)["decision"], planned(told)["protected_by"]) == ("held", ["hold:legal (case 7)"])
    assert outcomes(told) == [("other", "ignores", "it has no target rows"), ("r", "owns", "hold:legal (case 7)")]


def test_a_rescued_branch_says_why_and_an_earlier_policy_that_it_names_other_branches(ask: Asking) -> None:
    rules = ('name: main, select: {tables: ["**"], branches: [main]}, branches: {unused_for: 1d}',
             f"name: b, {ALL}, branches: {{unused_for: 30d}}")  # fmt: skip
    told = ask("branches", "old", *rules, unmark="needed")
    said = "unmarked by a person until released: needed"
    assert (planned(told)["decision"], planned(told)["because"]) == ("unmarked", said)
    assert outcomes(told) == [("main", "does not select", "select.branches does not match"), ("b", "owns", said)]


def test_a_table_that_changed_since_its_mark_goes_back(ask: Asking) -> None:
    mark = {"policy": "t", "fingerprint": "another", "cutoff": None}
    told = ask("tables", "lake.db.t", f"name: t, {ALL}, tables: {{older_than: 90d}}", mark=mark)
    assert planned(told)["decision"] == "unmarked"
    assert outcomes(told) == [("t", "owns", "unmarked: it changed since it was marked")]


def test_orphans_of_a_dataset_that_is_no_more_are_explained(ask: Asking) -> None:
    rules = ("name: other, select: {tables: [lake.x.*], formats: [delta]}, orphans: {}",
             f"name: o, {ALL}, orphans: {{}}")  # fmt: skip
    fresh = ask("orphans", FOLDER, *rules, dataset=GONE)
    assert (planned(fresh)["decision"], planned(fresh)["bytes"]) == ("mark", 7)
    assert outcomes(fresh) == [
        ("other", "does not select", "select.tables, select.formats does not match"),
        ("o", "owns", "1 files that nothing references, older than 3d"),
    ]


def test_what_is_not_there_is_said_to_be_missing(ask: Asking) -> None:
    rules = (f"name: b, {ALL}, branches: {{unused_for: 30d}}",
             'name: x, select: {tables: ["**"], branches: [x]}, branches: {unused_for: 1d}')  # fmt: skip
    told = ask("branches", "none", *rules)
    assert told.planned is None
    assert outcomes(told) == [
        ("b", "ignores", "there is no such object"),
        ("x", "ignores", "select.branches does not match, or there is no such object"),
    ]


@pytest.mark.parametrize(
    ("dataset", "target", "decided", "outcome"),
    [
        ("lake.db.t", "branches", ("unmarked", []),
         ("ignores", "unmarked: no policy selects it any more, or it is gone")),
        ("lake.db.dropped", "partitions", ("wait", ["the proof that its files are gone"]),
         ("does not select", "no catalog lists the dataset")),
    ],
    ids=["an object", "a dataset"],
)  # fmt: skip
def test_a_mark_of_what_is_no_more_is_told(
    ask: Asking, dataset: str, target: str, decided: tuple[str, list[str]], outcome: tuple[str, str]
) -> None:
    settings = {"branches": "unused_for: 30d", "partitions": "older_than: 90d"}
    mark = {"policy": "p", "fingerprint": "f", "cutoff": None}
    told = ask(target, "gone", f"name: p, {ALL}, {target}: {{{settings[target]}}}", dataset=dataset, mark=mark)
    assert (planned(told)["decision"], planned(told)["waits_for"]) == decided
    assert outcomes(told) == [("p", *outcome)]
