"""Rule by rule, on one lake with a dataset for each: one plan, many small questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from ebbtide.model.capabilities import Capability
from ebbtide.model.dataset import Column, Partition
from ebbtide.model.history import TransactionKind
from ebbtide.plan.plan import Plan
from tests.plan.worlds import ANY_ORDER, DROPS_FILES, NOW, Table, ago, decided, plan, policies, world

POLICIES = """\
policies:
  - {name: v1, select: {tables: [lake.v.*]}, versions: {older_than: 7d}}
  - {name: v3, select: {tables: [lake.vmin.*]}, versions: {older_than: 0d, keep_min: 3}}
  - {name: vmax, select: {tables: [lake.vmax.*]}, versions: {older_than: 1000d, keep_max: 2}}
  - {name: vlimit, select: {tables: [lake.vlimit.*]}, versions: {older_than: 0d, limit: 2}}
  - {name: t, select: {tables: [lake.t.*]}, transactions: {older_than: 90d}}
  - {name: views, select: {tables: [lake.views.*]}, transactions: {older_than: 0d, keep_views: 2}}
  - {name: staged, select: {tables: [lake.staged.*]}, transactions: {older_than: 0d, staged: true}}
  - {name: newest, select: {tables: [lake.newest.*]}, partitions: {older_than: 90d}, versions: {older_than: 7d}}
  - {name: oldest, select: {tables: [lake.oldest.*]}, partitions: {older_than: 90d, age_of: oldest}}
  - {name: ttl, select: {tables: [lake.rows.*]}, rows: {column: at, older_than: 1m}}
  - {name: where, select: {tables: [lake.where.*]}, rows: {where: "kind = 'debug'"}}
  - {name: branches, select: {tables: [lake.branches.*]}, branches: {unused_for: 30d}}
  - {name: adhoc, select: {tables: [lake.adhoc.*]}, tables: {older_than: 30d}}
  - {name: orphans, select: {tables: [lake.orphans.*]}, orphans: {}}
  - {name: nobody, select: {tables: [lake.newst.daily]}, tables: {older_than: 30d}}
floors:
  - {name: tax, tables: ["lake.*.floored"], keep_at_least: 7y, basis: tax code}
"""
TODAY = NOW.date()
DELTA_FLOOR = {"delta.deletedFileRetentionDuration": "interval 6 weeks"}


def day(age: int, *, span: tuple[date | None, date | None] | None = None) -> Partition:
    at = TODAY - timedelta(days=age)
    first, last = span or (at, at)
    return Partition(f"0/day={at}", at, first, last, ago(1), 10, 1, 100, "1")


def dated(name: str, *ages: int, **extra: Any) -> Table:
    table = Table(name, extra=extra, partitions=tuple(day(age) for age in ages))
    for n, age in enumerate(ages):
        at = TODAY - timedelta(days=age)
        table.commit(str(n), max(ages) - n + 1, partition=f"0/day={at}")
    return table


def line(name: str, *ages: float, **settings: Any) -> Table:
    table = Table(name, **settings)
    for n, age in enumerate(ages, 1):
        table.commit(f"T{n}", age)
    return table


def lake() -> list[Table]:
    rewritten = line("lake.t.rewritten", 200, 100).commit("T3", 95, kind=TransactionKind.SNAPSHOT)
    border = line("lake.t.border", 91, 90).commit("T3", 1, kind=TransactionKind.SNAPSHOT)
    in_use = line("lake.t.in_use", 200, 190).commit("T3", 180, kind=TransactionKind.SNAPSHOT, adds=["T3", "T1"])
    in_use.tag("old", "T3").commit("T4", 100, kind=TransactionKind.SNAPSHOT)
    shared = Table("lake.t.shared").commit("T1", 200, adds=["file:///elsewhere/one"])
    shared.commit("T2", 100, kind=TransactionKind.SNAPSHOT)
    sharing = Table("lake.t.sharing").commit("U1", 200, adds=["file:///elsewhere/one"])
    views = line("lake.views.t", 50, 49)
    for n, age in enumerate((40, 30, 20), 3):
        views.commit(f"T{n}", age, kind=TransactionKind.SNAPSHOT)
    wap = (
        line("lake.t.wap", 200, 190)
        .commit("S", 180, parent="T2", staged=True)
        .commit("T3", 95, kind=TransactionKind.SNAPSHOT)
    )
    forked = line("lake.v.forked", 100, 90).branch("b", "T2").commit("T3", 80).commit("T4", 5, on="b")
    replaced = Table("lake.v.replaced").commit("T1", 100).commit("T2", 90)
    replaced.drop("main").commit("T3", 3, on="main")
    rolled = line("lake.v.rolled", 100, 90, 80).branch("main", "T1").commit("T4", 70)
    paimon = Table("lake.v.paimon", format="paimon")
    for n in range(14):
        paimon.commit(f"main/{n}", 100 - n)
    time_kept = line("lake.v.time_kept", 100, 20, 10, floors={"snapshot.time-retained": "30 d"})
    own = {"branch:b.snapshot.num-retained.min": "3", "branch:c.snapshot.time-retained": "95 d"}
    branch_kept = line("lake.v.branch_kept", 100, 90, floors=own).branch("b", "T2").branch("c", "T2")
    branch_kept.commit("T3", 80, on="b").commit("T4", 70, on="b").commit("T5", 60, on="c")
    branch_kept.commit("T6", 50).commit("T7", 40)
    odd_floor = line("lake.v.odd_floor", 100, 90, 80, floors={"snapshot.time-retained": "a fortnight"})
    consumer = Table("lake.v.consumer", floors={"consumer:job": "main/2"})
    for n in range(4):
        consumer.commit(f"main/{n}", 100 - n)
    mirrored = line("lake.v.mirrored", 100, 90, 80, 70, floors={"versions:ebbtide.hot.position": "T3,T2"})
    monthly = Table("lake.newest.monthly", extra={"schedule": "1m", "time_grain": "+1m"}, partitions=tuple(
        replace(day(0), id=f"0/d={d}", date=d, first_day=d, last_day=d) for d in (date(2026, 7, 1), date(2026, 8, 1))
    )).commit("1", 1, adds=[])  # fmt: skip
    undated = Table("lake.newest.undated", partitions=(replace(day(0), id="0/d=%00", date=None, first_day=None,
                    last_day=None),)).commit("1", 1, adds=[])  # fmt: skip
    return [
        line("lake.v.linear", 100, 50, 7, 6.99),
        line("lake.v.delta", 100, 50, 40, 1, format="delta", floors=DELTA_FLOOR),
        line("lake.v.capitals", 100, 50, 40, 1, format="delta", floors={k: v.upper() for k, v in DELTA_FLOOR.items()}),
        line("lake.v.min", 100, 90, 80, 70, floors={"history.expire.min-snapshots-to-keep": "3"}),
        line("lake.v.gc", 100, 90, 80, floors={"gc.enabled": "false"}),
        line("lake.v.floored", 100, 90, 80),
        forked, replaced, rolled, paimon, time_kept, odd_floor, consumer, mirrored, branch_kept,
        line("lake.vmin.t", 9, 8, 7, 6, 5), line("lake.vmax.t", 9, 8, 7, 6), line("lake.vlimit.t", 9, 8, 7, 6, 5),
        rewritten, border, in_use, shared, sharing, views, wap,
        line("lake.staged.t", 50).commit("S", 40, parent="T1", staged=True),
        line("lake.t.unknown", 200, unknown=("unreadable manifest",)).commit("T2", 100, kind=TransactionKind.SNAPSHOT),
        line("lake.t.locked", 200, extra={"locked_by": ["lake.t.other"]})
        .commit("T2", 100, kind=TransactionKind.SNAPSHOT),
        line("lake.t.failed", 200, extra={"scan_error": "no answer"}).commit("T2", 100, kind=TransactionKind.SNAPSHOT),
        dated("lake.newest.daily", 92, 91, 90, 1, schedule="1d"),
        dated("lake.newest.held", 300, 200, 100, schedule="1d"),
        dated("lake.newest.tagged", 300, 1).tag("keep", "0"),
        dated("lake.newest.l90", 500, schedule="1d", time_grain="90d"),
        dated("lake.newest.odd", 500, time_grain="fortnight"),
        monthly, undated,
        dated("lake.oldest.l7", 85, 84, 83, schedule="1d", time_grain="7d"),
        dated("lake.oldest.leading", 91, 90, schedule="1d", time_grain="7d", covers="leading"),
        dated("lake.oldest.floored", 3000, 1000),
        line("lake.rows.at", 9, columns=(Column("at", "timestamptz", 0),)),
        line("lake.rows.day", 9, columns=(Column("at", "date", 0),)),
        line("lake.rows.text", 9, columns=(Column("at", "string", 0),)),
        line("lake.rows.without", 9),
        line("lake.where.t", 9), line("lake.where.floored", 9),
        line("lake.branches.t", 100).branch("old", "T1").branch("new", "T1").commit("T2", 5, on="new"),
        line("lake.adhoc.old", 100, 31), line("lake.adhoc.young", 100, 30),
        # Its last write is gone from the history, and what is left of it is older than that was.
        line("lake.adhoc.hole", 100).branch("b", "T1")
        .commit("T3", 5, parent="T2", kind=TransactionKind.METADATA, adds=[]),
        line("lake.adhoc.planned", 100, extra={"schedule": "1d"}), line("lake.adhoc.tagged", 100).tag("x", "T1"),
        line("lake.orphans.t", 9), line("lake.orphans.unknown", 9, unknown=("gap in the log",)),
    ]  # fmt: skip


ORPHANS = [
    ("lake.orphans.t", "data", "file:///lake/o/1", 7, ago(4)),
    ("lake.orphans.t", "data", "file:///lake/o/2", 8, ago(3)),
    ("lake.orphans.t", "data", "file:///lake/lake.orphans.t/T1", 9, ago(40)),
    ("lake.orphans.unknown", "data", "file:///lake/o/3", 9, ago(40)),
]
HOLDS = [("lake.newest.held", TODAY - timedelta(days=210), TODAY - timedelta(days=190), "legal", None)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plan]:
    rules = policies(tmp_path_factory.mktemp("rules"), POLICIES)
    with plan(rules, world(*lake(), orphans=ORPHANS), holds=HOLDS) as found:
        yield found


@pytest.fixture(scope="module")
def found(made: Plan) -> dict[str, dict[str, Any]]:
    return decided(made)


def goes(found: dict[str, dict[str, Any]], dataset: str, target: str = "") -> list[str]:
    """The ids that would be marked, of one target or of all."""
    rows = [row for row in found.values() if row["dataset"] == dataset and target in ("", row["target"])]
    return sorted(row["object"] for row in rows if row["decision"] == "mark")


def of(found: dict[str, dict[str, Any]], key: str) -> dict[str, Any]:
    return found[f"lake.{key}"]


def kept_by(found: dict[str, dict[str, Any]], key: str) -> list[str]:
    assert of(found, key)["decision"] in ("keep", "held")
    protected: list[str] = of(found, key)["protected_by"]
    return protected


def test_the_plan_and_the_formats_name_capabilities_alike() -> None:
    assert (DROPS_FILES, ANY_ORDER) == (Capability.DROPS_FILES, Capability.ANY_ORDER)


def test_a_version_is_as_old_as_its_supersession(found: Any) -> None:
    # T2 was superseded exactly 7 days ago, which is not older; T4 is current.
    assert goes(found, "lake.v.linear") == ["T1"]
    assert of(found, "v.linear#versions:T2")["because"] == "not superseded for 7d"
    assert kept_by(found, "v.linear#versions:T4") == ["branch:main"]


def test_a_version_at_a_fork_is_superseded_when_its_last_branch_moved_on(found: Any) -> None:
    assert goes(found, "lake.v.forked") == ["T1"]


def test_what_no_branch_reaches_was_superseded_by_the_next_commit(found: Any) -> None:
    assert goes(found, "lake.v.replaced") == ["T1"]  # T2 was replaced 3 days ago
    assert goes(found, "lake.v.rolled") == ["T1", "T2", "T3"]


def test_paimon_keeps_ten_versions_unless_told_otherwise(found: Any) -> None:
    assert goes(found, "lake.v.paimon") == ["main/0", "main/1", "main/2", "main/3"]
    assert kept_by(found, "v.paimon#versions:main/4") == ["keep_min:main"]


def test_keep_min_keeps_the_newest_of_each_branch(found: Any) -> None:
    assert goes(found, "lake.vmin.t") == ["T1", "T2"]


def test_keep_max_takes_what_is_young_as_well(found: Any) -> None:
    assert goes(found, "lake.vmax.t") == ["T1", "T2"]
    assert of(found, "vmax.t#versions:T1")["because"] == "more than 2 versions are kept"


def test_a_limit_takes_the_oldest_first(found: Any) -> None:
    assert goes(found, "lake.vlimit.t") == ["T1", "T2"]
    assert "limit of 2" in of(found, "vlimit.t#versions:T3")["because"]


def test_settings_of_the_formats_are_floors_and_are_named(found: Any) -> None:
    assert goes(found, "lake.v.delta") == ["T1"]  # superseded 50 days ago; T2 only 40, less than six weeks
    assert kept_by(found, "v.delta#versions:T2") == ["floor:delta.deletedFileRetentionDuration=interval 6 weeks"]
    assert goes(found, "lake.v.capitals") == ["T1"]  # Spark reads it in any case
    assert goes(found, "lake.v.min") == ["T1"]
    assert kept_by(found, "v.min#versions:T2") == ["floor:history.expire.min-snapshots-to-keep=3"]
    assert kept_by(found, "v.gc#versions:T1") == ["floor:gc.enabled=false"]
    assert goes(found, "lake.v.time_kept") == ["T1"]
    assert goes(found, "lake.v.consumer") == ["main/0", "main/1"]
    assert kept_by(found, "v.consumer#versions:main/2") == ["floor:consumer:job"]
    assert goes(found, "lake.v.mirrored") == ["T1"]
    for kept in ("T2", "T3"):
        assert kept_by(found, f"v.mirrored#versions:{kept}") == ["floor:versions:ebbtide.hot.position"]


def test_settings_of_a_branch_keep_what_that_branch_has(found: Any) -> None:
    assert goes(found, "lake.v.branch_kept") == ["T1", "T6"]
    by_count = "floor:branch:b.snapshot.num-retained.min=3"
    assert kept_by(found, "v.branch_kept#versions:T3") == [by_count]
    assert kept_by(found, "v.branch_kept#versions:T2") == [by_count, "floor:branch:c.snapshot.time-retained=95 d"]


def test_a_floor_that_cannot_be_read_keeps_everything(found: Any) -> None:
    assert goes(found, "lake.v.odd_floor") == []


def test_a_statutory_floor_keeps_every_target(found: Any) -> None:
    assert kept_by(found, "v.floored#versions:T1") == ["floor:tax"]
    assert goes(found, "lake.oldest.floored") == [f"0/day={TODAY - timedelta(days=3000)}"]
    assert kept_by(found, "where.floored#rows:where") == ["floor:tax"]


def test_ninety_days_stay_and_ninety_one_go(found: Any) -> None:
    assert goes(found, "lake.t.border") == ["T1"]
    assert goes(found, "lake.newest.daily", "partitions") == [
        f"0/day={TODAY - timedelta(days=age)}" for age in (92, 91)
    ]


def test_transactions_outside_the_latest_view_go_and_free_their_files(found: Any) -> None:
    assert goes(found, "lake.t.rewritten") == ["T1", "T2"]
    assert of(found, "t.rewritten#transactions:T1")["bytes"] == 100
    assert of(found, "t.rewritten#transactions:T1")["rows"] == 10


def test_a_transaction_stays_while_a_tag_reads_a_file_that_it_added(found: Any) -> None:
    # T1's file lives on in T3, which is tagged; T2's does not.
    assert goes(found, "lake.t.in_use") == ["T2"]
    assert kept_by(found, "t.in_use#transactions:T1") == ["tag:old"]


def test_a_file_of_another_dataset_keeps_its_transaction(found: Any) -> None:
    assert kept_by(found, "t.shared#transactions:T1") == ["reference:lake.t.sharing"]


def test_keep_views_keeps_the_last_views_of_each_branch(found: Any) -> None:
    assert goes(found, "lake.views.t") == ["T1", "T2", "T3"]
    assert kept_by(found, "views.t#transactions:T4") == ["views:main"]


def test_staged_snapshots_are_protected_and_protect_what_they_read(found: Any) -> None:
    assert kept_by(found, "t.wap#transactions:S") == ["staged", "staged:S"]
    assert kept_by(found, "t.wap#transactions:T1") == ["staged:S"]
    assert goes(found, "lake.staged.t") == ["S"]


def test_unknown_locked_and_unread_datasets_are_never_marked(found: Any) -> None:
    assert kept_by(found, "t.unknown#transactions:T1") == ["unknown:unreadable manifest"]
    assert kept_by(found, "t.locked#transactions:T1") == ["locked:lake.t.other"]
    assert kept_by(found, "t.failed#transactions:T1") == ["unknown:no answer"]


def test_a_trailing_week_goes_at_age_84_by_its_oldest_day(found: Any) -> None:
    assert goes(found, "lake.oldest.l7") == [f"0/day={TODAY - timedelta(days=age)}" for age in (85, 84)]
    assert goes(found, "lake.oldest.leading") == [f"0/day={TODAY - timedelta(days=91)}"]


def test_a_leading_month_goes_by_its_newest_day(found: Any) -> None:
    # July ended 107 days ago, August 76; their first days are 137 and 106 days old.
    assert goes(found, "lake.newest.monthly") == ["0/d=2026-07-01"]


def test_a_retention_not_longer_than_the_grain_keeps_the_table(found: Any) -> None:
    row = of(found, f"newest.l90#partitions:0/day={TODAY - timedelta(days=500)}")
    assert row["decision"] == "keep"
    assert row["because"].startswith("grain: 90d")


def test_no_date_is_never_due_and_listed(found: Any) -> None:
    assert of(found, "newest.undated#partitions:0/d=%00")["because"] == "no date: never due"
    assert goes(found, "lake.newest.odd") == []


def test_a_hold_on_days_keeps_their_partitions_and_every_version_that_reads_them(found: Any) -> None:
    kept = of(found, f"newest.held#partitions:0/day={TODAY - timedelta(days=200)}")
    assert (kept["decision"], kept["protected_by"]) == ("held", ["hold:legal"])
    gone = [f"0/day={TODAY - timedelta(days=age)}" for age in (300, 100)]
    assert goes(found, "lake.newest.held", "partitions") == gone
    # The partition's file came with commit 1: 0 never saw it.
    assert of(found, "newest.held#versions:0")["decision"] == "mark"
    assert of(found, "newest.held#versions:1")["decision"] == "held"


def test_a_tagged_file_is_not_counted_as_freed_by_its_partition(found: Any) -> None:
    row = of(found, f"newest.tagged#partitions:0/day={TODAY - timedelta(days=300)}")
    assert (row["decision"], row["bytes"], row["files"]["count"]) == ("mark", 0, 0)
    assert of(found, f"newest.daily#partitions:0/day={TODAY - timedelta(days=92)}")["bytes"] == 100


def test_rows_have_a_cutoff_of_the_columns_type(found: Any) -> None:
    assert of(found, "rows.at#rows:ttl")["cutoff"] == "2026-10-15T12:00:00.000000Z"
    assert of(found, "rows.day#rows:ttl")["cutoff"] == "2026-10-15"
    assert of(found, "rows.text#rows:ttl")["decision"] == of(found, "rows.without#rows:ttl")["decision"] == "keep"
    assert of(found, "where.t#rows:where")["decision"] == "mark"
    assert of(found, "rows.at#rows:ttl")["bytes"] is None


def test_forgotten_branches_go_and_main_never(found: Any) -> None:
    assert goes(found, "lake.branches.t") == ["old"]
    assert kept_by(found, "branches.t#branches:main") == ["main branch"]


def test_ad_hoc_tables_go_whole_and_others_never(found: Any) -> None:
    assert goes(found, "lake.adhoc.old") == ["lake.adhoc.old"]
    assert of(found, "adhoc.old#tables:lake.adhoc.old")["files"]["count"] == 2
    assert goes(found, "lake.adhoc.young") == goes(found, "lake.adhoc.planned") == goes(found, "lake.adhoc.hole") == []
    assert kept_by(found, "adhoc.tagged#tables:lake.adhoc.tagged") == ["tag:x"]


def test_orphans_are_old_enough_by_the_listing_and_referenced_by_nobody(found: Any) -> None:
    row = of(found, "orphans.t#orphans:data")
    assert (row["decision"], row["files"]["count"], row["bytes"]) == ("mark", 1, 7)
    assert kept_by(found, "orphans.unknown#orphans:data") == ["unknown:gap in the log"]


def test_a_policy_that_selects_nothing_is_a_warning_with_the_nearest_names(made: Plan) -> None:
    assert len(made.warnings) == 1
    assert made.warnings[0].startswith("policy 'nobody' selects nothing; nearest: lake.newest.daily")


def test_now_is_an_argument(made: Plan) -> None:
    assert made.as_of == datetime.fromisoformat("2026-11-15T12:00:00Z")
