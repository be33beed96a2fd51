"""Objects of which something went already: what is left of them waits for whoever may still need it."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from ebbtide.model.history import TransactionKind
from ebbtide.model.reasons import PROOF
from tests.plan.worlds import Table, ago, decided, plan, policies, world

RULES = """
policies:
  - {name: rows, select: {tables: [lake.rows.*]}, rows: {where: "x = 1"}, versions: {older_than: 7d, keep_min: 1}}
  - {name: old, select: {tables: ["**"]}, versions: {older_than: 7d, keep_min: 1}}
"""


def _mark(dataset: str, target: str, object_: str, fingerprint: str, policy: str, acted: Any = None) -> tuple[Any, ...]:
    return (dataset, target, object_, policy, fingerprint, ago(30), ago(20), None, acted)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    rules = policies(tmp_path_factory.mktemp("half"), RULES)

    def deleted(name: str) -> Table:
        """Rows were deleted in 2; a branch left main before it, another one after it, and both went on."""
        table = Table(name).commit("1", 15)
        before = table.branch("before", "1") if name.endswith("before") else table
        before.commit("2", 10, kind=TransactionKind.UPDATE)
        return before if name.endswith("before") else before.branch("after", "2")

    before, after = deleted("lake.rows.before"), deleted("lake.rows.after")
    before.commit("b", 5, on="before")
    after.commit("a", 5, on="after")
    held, free = (Table(f"lake.t.{name}").commit("2", 50) for name in ("held", "free"))
    everything = world(before, after, held, free)
    first = decided(plan(rules, everything))
    marks = [
        _mark(f"lake.rows.{name}", "rows", "rows", first[f"lake.rows.{name}#rows:rows"]["fingerprint"], "rows", ago(10))
        for name in ("before", "after")
    ]
    marks += [_mark(f"lake.t.{name}", "versions", "1", "f", "old") for name in ("held", "free")]
    # On days that nobody knows for what is gone.
    holds = [("lake.t.held", date(2026, 1, 1), date(2026, 1, 2), "legal", "case")]
    return decided(plan(rules, everything, marks=marks, holds=holds))


def test_what_a_sweep_left_waits_while_its_dataset_is_held(outcome: dict[str, dict[str, Any]]) -> None:
    left = outcome["lake.t.held#versions:1"]
    assert (left["decision"], left["waits_for"]) == ("wait", ["hold:legal (case)"])
    assert outcome["lake.t.free#versions:1"]["waits_for"] == [PROOF]


def test_deleted_rows_wait_for_a_branch_that_left_main_before(outcome: dict[str, dict[str, Any]]) -> None:
    held = outcome["lake.rows.before#rows:rows"]
    assert held["decision"] == "wait"
    assert "version:b" in held["waits_for"], "it is younger than the delete, and has the rows"
    assert outcome["lake.rows.after#rows:rows"]["waits_for"] == []
