"""A lake that was recorded once has the same plans ever after: what a digest covers changes by decision only."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from ebbtide.model.history import TransactionKind
from ebbtide.plan.plan import Plan
from tests.plan.worlds import NOW, Table, ago, day_partition, plan, policies, world

RULES = """\
policies:
  - {name: versions, select: {tables: [lake.db.history]}, versions: {older_than: 20d, keep_min: 1}}
  - name: days
    select: {tables: [lake.db.days]}
    partitions: {older_than: 30d}
  - name: all
    select: {tables: ["lake.db.*"]}
    transactions: {older_than: 15d, allow_latest_view: true}
    branches: {unused_for: 30d}
    orphans: {older_than: 7d}
  - {name: old, select: {tables: ["old.**"]}, tables: {older_than: 30d}}
"""

RECORDED = {
    "at first": "sha256:56e3b3b0392ca0de10e3e79336df7f5424f6806b181abae051ecdc0f5b52569b",
    "with marks": "sha256:9585a3090ec793be34450f1be35baa176767e175aa398ef78766b47545c93585",
    "later": "sha256:4202800744fcdffde1ec60dad807e7db7c2f333869dc858af4d1b9433ddc72c4",
}
"""Recorded on 18 November 2026, hours after acts got an engine of their own. The commit before that engine (`2f002d6^`)
has the same three digests: it changed no decision. One that changes is a decision, which the changelog tells people
whose plan files lie somewhere: those no longer fit.
"""


def lake() -> list[Table]:
    history = Table("lake.db.history").commit("h1", 60).commit("h2", 50, kind=TransactionKind.SNAPSHOT).commit("h3", 40)
    history.tag("kept", "h1").commit("h4", 10, kind=TransactionKind.SNAPSHOT)
    forked = Table("lake.db.forked").commit("f1", 50).commit("f2", 45).branch("side", "f2").commit("f3", 40, on="side")
    forked.commit("f4", 35, kind=TransactionKind.SNAPSHOT).commit("f5", 5)
    days = Table("lake.db.days")
    for n in (1, 20, 40, 41):
        day = (NOW - timedelta(days=n)).date()
        days.commit(f"d{n}", n, partition=f"0/day={day}")
        days.partitions = (*days.partitions, day_partition(day))
    broken = Table("lake.db.ünread", unknown=("a commit cannot be read",)).commit("u1", 50).commit("u2", 40)
    whole = Table("old.db.whole").commit("w1", 90).commit("w2", 80)
    return [history, forked, days, broken, whole]


def orphan(name: str, days: int) -> tuple[object, ...]:
    folder = "file:///lake/lake.db.history"
    return ("lake.db.history", folder, f"{folder}/{name}", 7, ago(days))


def made(folder: Path, **state: object) -> Plan:
    now = state.pop("now", NOW)
    seen = world(*lake(), orphans=[orphan("left.parquet", 30), orphan("young.parquet", 1)])
    return plan(policies(folder, RULES), seen, now=now, **state)  # type: ignore[arg-type]


def test_a_recorded_lake_has_the_digests_that_were_recorded(tmp_path: Path) -> None:
    first = made(tmp_path)
    due = [row for row in first.rows() if row["decision"] == "mark"]
    assert {row["target"] for row in due} == {"versions", "transactions", "partitions", "branches", "orphans", "tables"}
    marks = [
        (row["dataset"], row["target"], row["object"], row["policy"], row["fingerprint"], ago(20), ago(10), None)
        for row in due
    ]
    state = {
        "marks": marks[1:],
        "unmarks": [
            next((row["dataset"], None, row["object"], None, "needed") for row in due if "forked" in row["dataset"])
        ],
        "holds": [("lake.db.days", date(2026, 10, 1), date(2026, 10, 5), "counsel", "case 7")],
    }
    marked = made(tmp_path, **state)
    assert min(marked.counts[each] for each in ("sweep", "unmarked", "held", "keep")) > 0
    later = made(tmp_path, now=NOW + timedelta(days=30), **state)
    assert {"at first": first.digest, "with marks": marked.digest, "later": later.digest} == RECORDED
