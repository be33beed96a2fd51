"""What keeps objects of every target, whatever policies say: statutory floors, settings of the formats, holds."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ebbtide.model.dataset import Column, Role
from ebbtide.model.history import TransactionKind
from tests.plan.test_marks import mark
from tests.plan.worlds import NOW, Table, ago, day_partition, decided, plan, policies, world

PAIMON = """\
policies:
  - {name: paimon, select: {tables: [stream.default.*]}, versions: {older_than: 1h, keep_min: 10, limit: 10}}
  - {name: down to one, select: {tables: [stream.one.*]}, versions: {older_than: 1h, keep_min: 1, limit: 10}}
"""
POLICIES = (
    PAIMON
    + """\
  - {name: rows, select: {tables: [lake.rows.*]}, rows: {column: at, older_than: 1m}}
  - {name: branches, select: {tables: [lake.branches.*]}, branches: {unused_for: 30d}}
  - {name: tables, select: {tables: [lake.tables.*]}, tables: {older_than: 30d}}
  - {name: orphans, select: {tables: [lake.orphans.*]}, orphans: {}}
floors:
  - {name: tax, tables: ["lake.*.floored"], keep_at_least: 7y, basis: tax code}
  - {name: short, tables: ["lake.*.past"], keep_at_least: 60d, basis: house rule}
"""
)
TODAY = NOW.date()
LONG_AGO = (TODAY - timedelta(days=900), TODAY - timedelta(days=800))
WHOLE = ("rows", "branches", "tables", "orphans")
HOLDS: list[tuple[Any, ...]] = [(f"lake.{target}.held", None, None, "legal", "case 7") for target in WHOLE]
HOLDS += [(f"lake.{target}.range", *LONG_AGO, "legal", None) for target in WHOLE]
NAMES = ("free", "floored", "past", "held", "range")
ORPHANS = [(f"lake.orphans.{name}", "data", f"file:///o/{name}", 7, ago(90)) for name in NAMES]


def lake() -> list[Table]:
    at = (Column("at", "date", 0),)
    tables = [Table(f"lake.rows.{name}", columns=at).commit("T1", 9) for name in NAMES]
    for name in NAMES:
        tables.append(Table(f"lake.branches.{name}").commit("T1", 100).branch("old", "T1").commit("T2", 1))
        tables.append(Table(f"lake.tables.{name}").commit("T1", 100))
        tables.append(Table(f"lake.orphans.{name}").commit("T1", 9))
    return tables


def paimon(name: str, **floors: str) -> Table:
    """25 versions, one an hour; the last but one was superseded half an hour ago."""
    table = Table(f"stream.{name}", "paimon", capabilities=(), floors=floors)
    for n in range(1, 26):
        table.commit(f"main/{n}", (25 - n + 0.5) / 24)
    return table


def seen() -> list[Table]:
    kept = paimon("one.floored", **{"snapshot.num-retained.min": "20"})
    return [*lake(), paimon("default.t"), paimon("one.t"), kept, paimon("one.held")]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    rules = policies(tmp_path_factory.mktemp("floors"), POLICIES)
    held = [*HOLDS, ("stream.one.held", None, None, "legal", None)]
    return decided(plan(rules, world(*seen(), orphans=ORPHANS), holds=held))


@pytest.mark.parametrize(
    ("target", "object_", "due"),
    [
        ("rows", "rows", "rows with at before 2026-10-15, older than 1m"),
        ("branches", "old", "last written more than 30d ago"),
        ("tables", None, "last written more than 30d ago"),
        ("orphans", "data", "1 files that nothing references, older than 3d"),
    ],
)
def test_floors_and_holds_keep_whole_targets(
    found: dict[str, dict[str, Any]], target: str, object_: str | None, due: str
) -> None:
    def verdict(name: str) -> tuple[str, str, list[str]]:
        row = found[f"lake.{target}.{name}#{target}:{object_ or f'lake.{target}.{name}'}"]
        return row["decision"], row["because"], row["protected_by"]

    assert verdict("free") == ("mark", due, [])
    assert verdict("floored") == ("keep", f"{due}, but protected", ["floor:tax"])
    # Sixty days have passed for all of it, but not for rows: what is younger than that would go as well.
    past = ("keep", f"{due}, but protected", ["floor:short"]) if target == "rows" else ("mark", due, [])
    assert verdict("past") == past
    assert verdict("held") == ("held", "hold:legal (case 7)", ["hold:legal (case 7)"])
    # Nobody knows of which days these are, so a hold on any days keeps them.
    assert verdict("range") == ("held", "hold:legal", ["hold:legal"])


def test_what_would_go_with_a_branch_or_a_table_keeps_it(tmp_path: Path) -> None:
    def forked(name: str, **settings: Any) -> Table:
        table = Table(f"lake.branches.{name}", "paimon", **settings).commit("main/1", 100).branch("x", "main/1")
        return table.commit("x/2", 90, on="x").commit("x/3", 80, on="x").branch("xy", "x/2").commit("main/2", 1)

    consumers = {"consumer:x/job": "x/3", "consumer:other": "main/2"}
    tables = [
        forked("tagged").tag("x/own", "main/1").tag("mine", "main/1"), forked("read", floors=consumers),
        forked("rescued"), forked("shared"),
        Table("lake.tables.read", "paimon", floors=consumers).commit("T1", 100),
    ]  # fmt: skip
    unmarks = [(f"lake.branches.{name}", None, id_, None, None) for name, id_ in
               (("rescued", "x/3"), ("shared", "x/2"), ("tagged", "main/1"))]  # fmt: skip
    found = decided(plan(policies(tmp_path, POLICIES), world(*tables), unmarks=unmarks))

    def verdict(key: str) -> tuple[str, str, list[str]]:
        row = found[f"lake.{key}"]
        return row["decision"], row["because"], row["protected_by"]

    due, pin = "last written more than 30d ago", "was unmarked by a person until released"
    assert verdict("branches.tagged#branches:x") == ("keep", f"{due}, but protected", ["tag:x/own"])
    assert verdict("branches.read#branches:x") == ("keep", f"{due}, but protected", ["floor:consumer:x/job"])
    assert verdict("branches.rescued#branches:x") == ("unmarked", f"x/3 {pin}", [])
    assert [verdict(f"branches.{name}#branches:xy")[0] for name in ("tagged", "read", "rescued")] == ["mark"] * 3
    # Whichever of the two goes first: the other might go as well.
    both = [verdict(f"branches.shared#branches:{name}") for name in ("x", "xy")]
    assert both == [("unmarked", f"x/2 {pin}", [])] * 2
    kept = ["floor:consumer:other", "floor:consumer:x/job"]
    assert verdict("tables.read#tables:lake.tables.read") == ("keep", f"{due}, but protected", kept)


def going(found: dict[str, dict[str, Any]], dataset: str) -> list[int]:
    rows = [row for row in found.values() if row["dataset"] == f"stream.{dataset}" and row["decision"] == "mark"]
    return sorted(int(row["object"].removeprefix("main/")) for row in rows)


def version(found: dict[str, dict[str, Any]], dataset: str, number: int) -> dict[str, Any]:
    return found[f"stream.{dataset}#versions:main/{number}"]


def test_paimon_expires_as_many_as_its_limit_oldest_first_and_keeps_its_minimum(found: Any) -> None:
    assert going(found, "default.t") == list(range(1, 11))
    assert "the limit of 10 a run is reached" in version(found, "default.t", 11)["because"]
    assert [version(found, "default.t", n)["protected_by"] for n in (15, 16)] == [[], ["keep_min:main"]]
    assert going(found, "one.t") == list(range(1, 11))
    assert going(found, "one.held") == []


def test_a_version_younger_than_the_age_stays_though_the_minimum_lets_it_go(found: Any) -> None:
    assert version(found, "one.t", 23)["because"].endswith("the limit of 10 a run is reached")
    assert (version(found, "one.t", 24)["decision"], version(found, "one.t", 24)["because"]) == (
        "keep",
        "not superseded for 1h",
    )
    assert version(found, "one.t", 25)["protected_by"] == ["branch:main", "keep_min:main"]


def test_an_explicit_minimum_of_the_table_is_a_floor(found: Any) -> None:
    assert going(found, "one.floored") == [1, 2, 3, 4, 5]
    kept = [version(found, "one.floored", n) for n in range(6, 25)]
    assert {tuple(row["protected_by"]) for row in kept} == {("floor:snapshot.num-retained.min=20",)}


def test_the_next_run_takes_the_next_oldest(tmp_path_factory: pytest.TempPathFactory, found: Any) -> None:
    rules = policies(tmp_path_factory.mktemp("next"), PAIMON)
    marks = [mark(version(found, "one.t", n), grace_until=NOW + timedelta(days=7)) for n in range(1, 11)]
    marks += [mark(version(found, "default.t", n), grace_until=NOW + timedelta(days=7)) for n in range(1, 11)]
    again = decided(plan(rules, world(paimon("default.t"), paimon("one.t")), marks=marks))
    assert going(again, "one.t") == list(range(11, 21))
    assert going(again, "default.t") == list(range(11, 16))
    assert {version(again, "one.t", n)["decision"] for n in range(1, 11)} == {"marked"}


def test_a_hold_on_days_holds_versions_that_have_nothing_but_logs_of_them(tmp_path: Path) -> None:
    """Hudi's writers may put rows into log files first, and compact them later."""
    old = NOW.date() - timedelta(days=400)
    rules = policies(tmp_path, "policies:\n  - {name: v, select: {tables: ['**']}, versions: {older_than: 1d}}\n")
    table = Table("cdc.db.t", "hudi", capabilities=(), partitions=(day_partition(old),))
    table.commit("T1", 90, partition=f"0/day={old}").commit(
        "T2", 80, kind=TransactionKind.SNAPSHOT, partition=f"0/day={old}"
    )
    table.commit("T3", 70)
    table.files["T1"] = replace(table.files["T1"], role=Role.LOG)
    free = decided(plan(rules, world(table)))["versions:T1"]
    assert free["decision"] == "mark"
    holds = [("cdc.db.t", old, old, "legal", None)]
    made = decided(plan(rules, world(table), marks=[mark(free)], holds=holds))
    assert made["versions:T1"]["decision"] == "held"


def test_the_longest_floor_and_the_largest_counts_keep_everything(tmp_path: Path) -> None:
    rules = policies(tmp_path, """\
policies:
  - {name: v, select: {tables: [lake.v.*]}, versions: {older_than: 0d, keep_min: 1}}
  - {name: min, select: {tables: [lake.min.*]}, versions: {older_than: 0d, keep_min: 1000000}}
  - {name: max, select: {tables: [lake.max.*]}, versions: {keep_max: 1000000}}
  - {name: views, select: {tables: [lake.views.*]}, transactions: {older_than: 0d, keep_views: 1000000}}
  - {name: old, select: {tables: [lake.old.*]}, versions: {older_than: 300000y}, tables: {older_than: 999999y}}
  - {name: t, select: {tables: [lake.t.*]}, tables: {older_than: 1d}}
floors:
  - {tables: [lake.v.*, lake.t.*], keep_at_least: 999999y, basis: for ever}
""")  # fmt: skip
    names = ("v.t", "min.t", "max.t", "old.t", "t.t")
    tables = [Table(f"lake.{name}").commit("T1", 9).commit("T2", 8).commit("T3", 7) for name in names]
    views = Table("lake.views.t").commit("T1", 9).commit("T2", 8, kind=TransactionKind.SNAPSHOT)
    views.commit("T3", 7, kind=TransactionKind.SNAPSHOT)
    long = Table("lake.v.long", "delta", floors={"delta.deletedFileRetentionDuration": "interval 99999999999 hours"})
    found = decided(plan(rules, world(*tables, views, long.commit("T1", 9).commit("T2", 8))))
    assert {row["decision"] for row in found.values()} == {"keep"}
    assert {key.split("#")[0] for key in found} == {f"lake.{name}" for name in (*names, "views.t", "v.long")}


def test_an_append_only_table_gives_up_versions_and_nothing_of_its_head(tmp_path: Path) -> None:
    """Delta refuses whatever would take rows out of it."""
    old = NOW.date() - timedelta(days=400)
    rules = policies(
        tmp_path,
        "policies:\n"
        "  - {name: p, select: {tables: ['**']}, partitions: {older_than: 90d}, rows: {where: 'x = 1'},\n"
        "     versions: {older_than: 7d, keep_min: 1}}\n"
        "  - {name: t, select: {tables: ['**']}, transactions: {older_than: 30d, allow_latest_view: true}}\n",
    )
    table = Table("lake.db.t", "delta", floors={"delta.appendOnly": "true"}, partitions=(day_partition(old),))
    table.commit("T1", 90, partition=f"0/day={old}").commit("T2", 80).commit("T3", 1)
    found = decided(plan(rules, world(table)))
    for key in (f"partitions:0/day={old}", "rows:p", "transactions:T1"):
        assert found[key]["decision"] == "keep", key
        assert "floor:delta.appendOnly=true" in found[key]["protected_by"], key
    assert found["versions:T1"]["decision"] == "mark"


def test_changelogs_go_by_their_age_but_for_what_their_settings_and_a_rescued_snapshot_keep(tmp_path: Path) -> None:
    floors = {
        "changelog.time-retained": "10 d",
        "changelog:newest": "main/changelog/4",
        "consumer:etl (changelogs)": "main/changelog/4",
        "snapshot.time-retained": "1000 d",
    }
    tables = []
    for name in ("free", "rescued"):
        table = Table(f"stream.one.{name}", "paimon", capabilities=(), floors=floors)
        for number, days in ((1, 40), (2, 20), (3, 5), (4, 4)):
            table.commit(f"main/changelog/{number}", days, on=None, kind=TransactionKind.METADATA)
        tables.append(table.commit("main/5", 3).commit("main/6", 2))
    unmarks = [("stream.one.rescued", "transactions", "main/2", None, None)]
    found = decided(plan(policies(tmp_path, PAIMON), world(*tables), unmarks=unmarks))

    def of(name: str) -> list[tuple[str, list[str]]]:
        rows = (found[f"stream.one.{name}#versions:main/changelog/{number}"] for number in range(1, 5))
        return [(row["decision"], row["protected_by"]) for row in rows]

    kept = "floor:changelog.time-retained=10 d"
    last = [("keep", [kept]), ("keep", sorted([kept, "floor:changelog:newest", "floor:consumer:etl (changelogs)"]))]
    assert of("free") == [("mark", []), ("mark", []), *last]
    assert of("rescued") == [("mark", []), ("unmarked", []), *last]
    assert found["stream.one.free#versions:main/5"]["protected_by"] == ["floor:snapshot.time-retained=1000 d"]
