"""While somebody cannot be read who may reference any file, none goes (spec §7, hazard 33)."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from ebbtide.model.history import TransactionKind
from ebbtide.model.reasons import PROOF
from tests.plan.test_marks import mark
from tests.plan.worlds import NOW, Table, ago, day_partition, decided, plan, policies, world

POLICIES = """\
policies:
  - {name: days, select: {tables: ["**.days"]}, partitions: {older_than: 90d}, versions: {older_than: 7d}}
  - {name: old, select: {tables: ["**.old"]}, transactions: {older_than: 90d}}
  - {name: latest, select: {tables: ["**.latest"]}, transactions: {older_than: 90d, allow_latest_view: true}}
  - {name: rows, select: {tables: ["**.rows"]}, rows: {where: "x = 1"}}
  - {name: branches, select: {tables: ["**.branches"]}, branches: {unused_for: 30d}}
  - {name: adhoc, select: {tables: ["**.adhoc"]}, tables: {older_than: 30d}}
"""
OLD = date(2020, 1, 1)
UNREAD = ("unread:lake.x.borrower",)


def lake(place: str, **settings: object) -> list[Table]:
    days = Table(f"{place}.days", partitions=(day_partition(OLD),), **settings)  # type: ignore[arg-type]
    return [
        days.commit("1", 200, partition=f"0/day={OLD}").commit("2", 100, adds=[]),
        Table(f"{place}.old", **settings).commit("1", 200).commit("2", 100, kind=TransactionKind.SNAPSHOT),  # type: ignore[arg-type]
        Table(f"{place}.latest", **settings).commit("1", 200).commit("2", 1),  # type: ignore[arg-type]
        Table(f"{place}.rows", **settings).commit("1", 200),  # type: ignore[arg-type]
        Table(f"{place}.branches", **settings).commit("1", 200).branch("b", "1").commit("2", 1),  # type: ignore[arg-type]
        Table(f"{place}.adhoc", **settings).commit("1", 200),  # type: ignore[arg-type]
    ]


def test_only_metadata_goes_on_and_not_where_one_operation_does_both(tmp_path: Path) -> None:
    tables = [*lake("lake.db"), *lake("cdc.db", format="hudi", capabilities=())]
    rules = policies(tmp_path, POLICIES)
    first = [row for row in plan(rules, world(*tables)).rows() if row["decision"] == "mark"]
    gone = ("lake.db.old", "versions", "9", "old", "f", ago(10), ago(1), None, None, "act-1")
    made = plan(rules, world(*tables, unread=UNREAD), marks=[*map(mark, first), gone], now=NOW)
    rows = {key: row for key, row in decided(made).items() if row["decision"] != "keep"}
    found = {key: (row["decision"], row["waits_for"]) for key, row in rows.items()}
    waits = ("wait", list(UNREAD))
    assert found == {
        f"lake.db.days#partitions:0/day={OLD}": ("sweep", []),
        "lake.db.days#versions:1": waits,
        "lake.db.old#transactions:1": waits,
        "lake.db.old#versions:9": ("wait", [PROOF, *UNREAD]),
        "lake.db.latest#transactions:1": ("sweep", []),
        "lake.db.rows#rows:rows": ("sweep", []),
        "lake.db.branches#branches:b": ("sweep", []),
        "lake.db.adhoc#tables:lake.db.adhoc": waits,
        f"cdc.db.days#partitions:0/day={OLD}": waits,
        "cdc.db.days#versions:1": waits,
        "cdc.db.old#transactions:1": waits,
        "cdc.db.rows#rows:rows": waits,
        "cdc.db.branches#branches:b": waits,
        "cdc.db.adhoc#tables:cdc.db.adhoc": waits,
    }  # fmt: skip
    # Of what waits no file is named: none of it goes by this plan.
    assert {row["files"]["count"] for row in made.rows() if row["decision"] == "wait"} == {0}
