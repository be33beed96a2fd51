"""Where a format removes oldest first, what a kept version before it stops, and what it does not (spec §2)."""

from __future__ import annotations

from pathlib import Path

from ebbtide.model.history import TransactionKind
from tests.plan.test_marks import mark
from tests.plan.worlds import Table, decided, plan, policies, policy, world

RULES = """\
policies:
  - {name: v, select: {tables: ["**"]}, versions: {older_than: 7d, keep_min: 1}}
"""


def _line(name: str) -> Table:
    """T1, T2 and T3 superseded, T4 the head; every one replaces everything."""
    table = Table(name, capabilities=()).commit("T1", 300)
    for number, days in ((2, 200), (3, 100), (4, 50)):
        table.commit(f"T{number}", days, kind=TransactionKind.SNAPSHOT)
    return table


def test_a_tag_is_passed_and_a_rescued_version_is_not(tmp_path: Path) -> None:
    rules = policies(tmp_path, RULES)
    tagged, rescued = _line("lake.v.tagged").tag("keep", "T1"), _line("lake.v.rescued")
    first = decided(plan(rules, world(tagged, rescued)))
    marks = [
        mark(row) for key, row in first.items() if row["decision"] == "mark" and not key.endswith("rescued#versions:T1")
    ]
    unmarks = [("lake.v.rescued", None, "T1", None, "needed")]
    found = decided(plan(rules, world(tagged, rescued), marks=marks, unmarks=unmarks))
    assert {key: row["decision"] for key, row in found.items() if "tagged" in key} == {
        "lake.v.tagged#versions:T1": "keep",
        "lake.v.tagged#versions:T2": "sweep",
        "lake.v.tagged#versions:T3": "sweep",
        "lake.v.tagged#versions:T4": "keep",
    }
    assert found["lake.v.rescued#versions:T2"]["waits_for"] == ["oldest first:T1"]
    assert found["lake.v.rescued#versions:T3"]["decision"] == "wait"


def test_paimon_passes_a_tagged_transaction_and_not_one_of_its_view(tmp_path: Path) -> None:
    """The worked example with T1 tagged, where no policy looks at versions: T2 goes (spec §1)."""
    rules = policy(tmp_path, "transactions: {older_than: 0d}")

    def example(name: str, tag: str, at: int, format_: str = "paimon") -> Table:
        table = Table(f"lake.t.{name}", format_, capabilities=())
        for number, days in enumerate((300, 200, 150, 100, 50), 1):
            kind = TransactionKind.SNAPSHOT if number == 4 else TransactionKind.APPEND
            table.commit(f"main/{number}", days, kind=kind, adds=[f"f{number}"])
        return table.tag(tag, f"main/{at}")

    tables = [
        example("first", "keep", 1), example("second", "keep", 2), example("aside", "x/own", 1),
        example("rescued", "keep", 1), example("hudi", "keep", 1, "hudi"),
    ]  # fmt: skip
    seen = world(*tables)
    marks = [mark(row) for row in decided(plan(rules, seen)).values() if row["decision"] == "mark"]
    unmarks = [("lake.t.rescued", None, "main/1", None, "needed")]
    found = decided(plan(rules, seen, marks=marks, unmarks=unmarks))

    def verdict(name: str, number: int) -> tuple[str, list[str]]:
        row = found[f"lake.t.{name}#transactions:main/{number}"]
        return row["decision"], row["waits_for"]

    assert [verdict("first", number) for number in (1, 2, 3)] == [("keep", []), ("sweep", []), ("sweep", [])]
    # A tag on the second holds the first one's data, and not its version.
    assert verdict("second", 1) == ("keep", [])
    for name in ("second", "aside", "rescued", "hudi"):
        assert verdict(name, 3) == ("wait", ["oldest first:main/1"]), name
