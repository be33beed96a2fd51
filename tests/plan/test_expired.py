"""Versions that their format still lists though files of them are gone: they keep and name nothing (spec §2)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ebbtide.model.history import TransactionKind
from tests.plan.test_marks import mark
from tests.plan.worlds import Table, decided, plan, policies, world

RULES = """\
policies:
  - {name: v, select: {tables: ["**"]}, versions: {older_than: 7d, keep_min: 1}}
"""


def test_a_file_that_an_expired_version_read_last_goes_with_the_last_that_is_there(tmp_path: Path) -> None:
    """A sweep died after it had removed T2's own file: T1's, which both of them read, must still be named."""
    rules = policies(tmp_path, RULES)
    table = Table("lake.v.t").commit("T1", 300).commit("T2", 200).commit("T3", 100, kind=TransactionKind.SNAPSHOT)
    first = decided(plan(rules, world(table)))
    marks = [mark(row) for row in first.values() if row["decision"] == "mark"]
    table.transactions = [replace(t, expired=t.id == "T2") for t in table.transactions]
    del table.files["T2"]
    found = plan(rules, world(table), marks=marks)
    assert decided(found)["versions:T1"]["decision"] == "sweep"
    assert decided(found)["versions:T2"]["waits_for"] == ["the proof that its files are gone"]
    named = {(row["object_id"], row["path"].rpartition("/")[2]) for row in found.read("files")}
    assert named == {("T1", "T1")}


def test_where_branches_take_turns_the_last_version_that_read_the_file_names_it(tmp_path: Path) -> None:
    """Between two versions of a branch lies one of main, which never had the branch's file."""
    rules = policies(tmp_path, RULES)
    table = (
        Table("lake.v.t").commit("M1", 300).commit("B2", 250, on="b", parent="M1").commit("M3", 200)
        .commit("B4", 150, on="b").commit("M5", 100, kind=TransactionKind.SNAPSHOT)
        .commit("B6", 50, on="b", kind=TransactionKind.SNAPSHOT)
    )  # fmt: skip
    first = decided(plan(rules, world(table)))
    marks = [mark(row) for row in first.values() if row["decision"] == "mark" and row["object"] != "M3"]
    table.transactions = [replace(t, expired=t.id == "B4") for t in table.transactions]
    del table.files["B4"]
    pinned = [("lake.v.t", None, "M3", None, "wanted")]
    found = plan(rules, world(table), marks=marks, unmarks=pinned)
    named = {(row["object_id"], row["path"].rpartition("/")[2]) for row in found.read("files")}
    assert ("B2", "B2") in named
    assert not {path for id_, path in named if id_ == "M3"}
