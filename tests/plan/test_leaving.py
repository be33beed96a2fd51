"""Limits count what leaves a head, not only what is freed (spec §2, "Limits"; hazard 36)."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from ebbtide.config.project import Limits
from ebbtide.model.history import TransactionKind
from ebbtide.plan.explain import explain
from ebbtide.plan.world import Orders
from tests.plan.test_marks import mark
from tests.plan.worlds import NOW, Table, day_partition, decided, plan, policies, world

POLICIES = """\
policies:
  - {name: days, select: {tables: ["lake.days.*"]}, partitions: {older_than: 90d}}
  - name: latest
    select: {tables: ["lake.latest.*"], branches: [main]}
    transactions: {older_than: 90d, allow_latest_view: true}
  - {name: branches, select: {tables: ["lake.branches.*"]}, branches: {unused_for: 30d}}
  - {name: adhoc, select: {tables: ["lake.adhoc.*"]}, tables: {older_than: 30d}}
"""
DAYS = [date(2020, 1, 1), date(2020, 1, 2), date(2026, 11, 1), date(2026, 11, 2)]


def by_days(name: str, *, files_elsewhere: bool = False) -> Table:
    """Four days of one file each, of which two are old."""
    table = Table(name, partitions=tuple(day_partition(day) for day in DAYS))
    for n, day in enumerate(DAYS):
        path = [f"file:///elsewhere/{n}"] if files_elsewhere else None
        table.commit(f"T{n}", 200 - n, partition=f"0/day={day}", adds=path)
    return table


def lake() -> list[Table]:
    latest = Table("lake.latest.t")
    for n, age in enumerate((200, 199, 10)):
        latest.commit(f"T{n}", age)
    latest.branch("other", "T0").commit("T3", 5, on="other", kind=TransactionKind.SNAPSHOT)
    forgotten = Table("lake.branches.t").commit("T0", 200, size=900).branch("old", "T0").commit("T1", 100, on="old")
    # Two that only have each other, and a tag on what one of them has.
    twins = Table("lake.branches.twins").commit("T0", 200).branch("a", "T0").commit("T1", 100, on="a", size=400)
    twins.branch("b", "T1").tag("seen", "T1")
    return [
        by_days("lake.days.free"),
        by_days("lake.days.kept").branch("audit", "T3").tag("first", "T0"),
        by_days("lake.days.borrowed", files_elsewhere=True),
        # The borrower's references keep the files, and leave main as they are.
        Table("lake.other.borrower").commit("U", 9, adds=["file:///elsewhere/0"]),
        latest, forgotten, twins, Table("lake.adhoc.t").commit("T0", 100),
    ]  # fmt: skip


def test_a_plan_says_what_leaves_which_head_and_who_keeps_it(tmp_path: Path) -> None:
    made = plan(policies(tmp_path, POLICIES), world(*lake()))
    found = {
        key: (row["decision"], row["bytes"], row["leaves"], row["kept_by"])
        for key, row in decided(made).items()
        if row["decision"] == "mark"
    }
    left = {"main": {"rows": 10, "bytes": 100}}
    assert found == {
        "lake.days.free#partitions:0/day=2020-01-01": ("mark", 100, left, {}),
        "lake.days.free#partitions:0/day=2020-01-02": ("mark", 100, left, {}),
        "lake.days.kept#partitions:0/day=2020-01-01": ("mark", 0, left, {"branch:audit": 100, "tag:first": 100}),
        "lake.days.kept#partitions:0/day=2020-01-02": ("mark", 0, left, {"branch:audit": 100}),
        "lake.days.borrowed#partitions:0/day=2020-01-01": (
            "mark", 0, left, {"reference:lake.other.borrower": 100}
        ),
        "lake.days.borrowed#partitions:0/day=2020-01-02": ("mark", 100, left, {}),
        "lake.latest.t#transactions:T0": ("mark", 100, left, {}),
        "lake.latest.t#transactions:T1": ("mark", 100, left, {}),
        "lake.branches.t#branches:old": (
            "mark", 0, {"old": {"rows": 20, "bytes": 1000}}, {"branch:main": 900}
        ),
        "lake.branches.twins#branches:a": (
            "mark", 0, {"a": {"rows": 20, "bytes": 500}}, {"branch:b": 500, "branch:main": 100, "tag:seen": 500}
        ),
        "lake.branches.twins#branches:b": (
            "mark", 0, {"b": {"rows": 20, "bytes": 500}}, {"branch:a": 500, "branch:main": 100, "tag:seen": 500}
        ),
        "lake.adhoc.t#tables:lake.adhoc.t": ("mark", 100, left, {}),
    }  # fmt: skip
    assert made.over == ()
    assert (made.totals["mark"].bytes, made.totals["mark"].leaves) == (600, 1300)


def test_a_branch_that_keeps_the_files_does_not_lift_the_limit(tmp_path: Path) -> None:
    """Half of main would leave it, whoever keeps the bytes; a branch that goes counts what nobody else reads."""
    limits = Limits(max_share=0.45, lake_max_share=1.0, min_bytes=50)
    rules, whole = policies(tmp_path, POLICIES), world(*lake())
    over = {o.dataset: o.text for o in plan(rules, whole, limits=limits).over}
    assert over == {
        "lake.days.free": "mark of 200 of 400 bytes, more than 45% of the dataset",
        "lake.days.kept": "mark of 200 of 400 bytes, more than 45% of the dataset",
        "lake.days.borrowed": "mark of 200 of 400 bytes, more than 45% of the dataset",
        # Of 400 bytes of the dataset main has 300, and 200 of those would leave it.
        "lake.latest.t": "mark of 200 of 400 bytes, more than 45% of the dataset",
        "lake.branches.twins": "mark of 400 of 500 bytes, more than 45% of the dataset",
        "lake.adhoc.t": "mark of 100 of 100 bytes, more than 45% of the dataset",
    }
    more = Limits(max_share=0.6, lake_max_share=1.0, min_bytes=50)
    over = {o.dataset: o.text for o in plan(rules, whole, limits=more).over}
    assert over == {
        "lake.latest.t": "mark of 200 of the 300 bytes that main has, more than 60% of that branch",
        "lake.branches.twins": "mark of 400 of 500 bytes, more than 60% of the dataset",
        "lake.adhoc.t": "mark of 100 of 100 bytes, more than 60% of the dataset",
    }
    # The lake counts the same way: 200 bytes of `kept` are freed by nobody.
    some = Limits(max_share=1.0, lake_max_share=0.3, min_bytes=50)
    (lakes,) = plan(rules, whole, limits=some).over
    assert (lakes.dataset, lakes.text) == (None, "mark of 1,400 of 3,300 bytes, more than 30% of the lake")


def test_a_sweep_is_limited_by_what_leaves_and_explain_names_who_keeps_it(tmp_path: Path) -> None:
    rules, whole = policies(tmp_path, POLICIES), world(by_days("lake.days.kept").branch("audit", "T3"))
    first = plan(rules, whole)
    marks = [mark(row) for row in first.rows() if row["decision"] == "mark"]
    limits = Limits(max_share=0.3, lake_max_share=1.0, min_bytes=50)
    made = plan(rules, whole, marks=marks, limits=limits)
    assert [(o.verb, o.text) for o in made.over] == [
        ("sweep", "sweep of 200 of 400 bytes, more than 30% of the dataset")
    ]
    assert {row["decision"] for row in made.rows() if row["leaves"]} == {"wait"}
    found = explain(
        rules, whole, Orders(), dataset="lake.days.kept", target="partitions",
        object_id=f"0/day={DAYS[0]}", now=NOW,
    )  # fmt: skip
    assert found.planned is not None
    assert found.planned["kept_by"] == {"branch:audit": 100}
    assert found.planned["leaves"]["main"]["rows"] == 10
