"""Marks, grace, unmarks and re-proof (spec §1): what a plan makes of an object that is marked already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ebbtide.config.project import Limits
from ebbtide.model.dataset import Partition
from ebbtide.model.history import TransactionKind
from tests.plan.worlds import NOW, Table, ago, day_partition, decided, plan, policies, world

TODAY = NOW.date()
OLD = TODAY - timedelta(days=200)
OVER = ago(0.001)
RULES = """\
policies:
  - {name: t, select: {tables: [lake.t.*]}, transactions: {older_than: 90d}}
  - {name: p, select: {tables: [lake.p.*]}, partitions: {older_than: 90d}, versions: {older_than: 7d, keep_min: 5}}
  - {name: only, select: {tables: [lake.only.*]}, partitions: {older_than: 90d}}
  - {name: v, select: {tables: [lake.v.*]}, versions: {older_than: 7d, keep_min: 1}}
  - {name: lift, select: {tables: [lake.lift.*]}, transactions: {older_than: 90d, allow_latest_view: true}}
  - {name: rows, select: {tables: [lake.rows.*]}, rows: {where: "x = 1"}}
  - {name: adhoc, select: {tables: [lake.adhoc.*]}, tables: {older_than: 7d}}
floors:
  - {name: law, tables: [lake.p.floor*], keep_at_least: 10d, basis: a code}
"""


BEFORE = OLD - timedelta(days=60), OLD - timedelta(days=1)
REMEMBERED: dict[str, tuple[tuple[date, date | None] | None, bool]] = {
    "floor": (None, True), "floor_unknown": (None, False), "hold_before": (BEFORE, True),
    "hold_unknown": (BEFORE, False), "hold_on_it": ((OLD, None), True),
}  # fmt: skip
"""Partitions that the sweep deleted from the head: a range hold on the dataset, and whether the mark knows its days."""


def old(name: str, **settings: Any) -> Table:
    """T1 and T2, then a reload: both are eligible, and T2's version still reads T1's file."""
    return Table(name, **settings).commit("T1", 300).commit("T2", 200).commit("T3", 100, kind=TransactionKind.SNAPSHOT)


def part(files: int = 1) -> Partition:
    return Partition(f"0/day={OLD}", OLD, OLD, OLD, ago(1), 10, files, 100, "1")


def deleted(name: str, *, last: float) -> Table:
    """A partition that came with commit 1 and was deleted from the head `last` days ago; 2 and 3 still read it."""
    table = Table(name, partitions=(day_partition(date(2026, 11, 1)),))
    table.commit("1", 100, partition=f"0/day={OLD}").commit("2", 50, partition="0/day=2026-11-01")
    table.commit("3", 40, partition="0/day=2026-11-01")
    return table.commit("4", last, kind=TransactionKind.DELETE, adds=[], removes=["1"])


def mark(
    row: dict[str, Any],
    *,
    grace_until: datetime = OVER,
    policy: str | None = None,
    fingerprint: str | None = None,
    act: str | None = None,
) -> tuple[Any, ...]:
    return (row["dataset"], row["target"], row["object"], policy or row["policy"], fingerprint or row["fingerprint"],
            ago(10), grace_until, row["cutoff"], None, act)  # fmt: skip


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Plan once for the fingerprints, let the world change, and plan again with marks."""
    rules = policies(tmp_path_factory.mktemp("marks"), RULES)
    late = Table("lake.p.late", partitions=(part(),)).commit("1", 100, partition=part().id)
    lifted = Table("lake.lift.dropped").commit("1", 100).commit("2", 50)
    before = [
        lifted, Table("lake.lift.ready").commit("1", 100).commit("2", 50),
        *(old(f"lake.t.{name}") for name in ("grace", "edge", "ready", "first", "tagged", "changed", "renamed", "held",
                                             "rescued", "expired", "unread", "gone")),
        old("lake.t.ordered", capabilities=()), old("lake.v.free"), old("lake.rows.t"), late,
        *(old(f"lake.adhoc.{name}", format="delta", extra={"identity": "a"}) for name in ("same", "swapped", "older")),
        old("lake.adhoc.unnamed", format="delta"), old("lake.rows.swapped", extra={"identity": "a"}),
        Table("lake.p.ready", partitions=(part(),)).commit("1", 100, partition=part().id),
    ]  # fmt: skip
    first = decided(plan(rules, world(*before)))

    def t(name: str, id_: str = "T1") -> dict[str, Any]:
        return first[f"lake.t.{name}#transactions:{id_}"]

    swapped = ("lake.rows.swapped", "lake.adhoc.swapped")
    later = [table for table in before if table.name not in ("lake.t.tagged", "lake.t.unread", "lake.p.late", *swapped)]
    later += [old(name, extra={"identity": "b"}) for name in swapped]
    lifted.commit("3", 1, kind=TransactionKind.DELETE, adds=[], removes=["1"])  # the sweep's own commit
    later.append(old("lake.t.tagged").tag("new", "T1"))
    later.append(old("lake.t.unread", extra={"scan_error": "no answer"}))
    later.append(Table("lake.p.late", partitions=(replace(part(2), last_transaction="2"),)).commit("1", 100))
    later += [deleted(f"lake.p.{name}", last=20) for name in REMEMBERED]
    later += [deleted("lake.p.waits", last=5), deleted("lake.p.done", last=20), deleted("lake.only.waits", last=20)]
    later.append(deleted("lake.p.others", last=20))
    sent = {"dataset": "", "target": "partitions", "object": f"0/day={OLD}", "cutoff": None, "fingerprint": "f"}
    marks = [
        mark(t("grace"), grace_until=NOW + timedelta(hours=1)),
        mark(t("edge"), grace_until=NOW),
        mark(t("ready"), policy="t"), mark(t("ready", "T2")),
        mark(t("first")),
        mark(t("tagged")),
        mark(t("changed"), fingerprint="another"),
        mark(t("renamed"), policy="another"),
        mark(t("held")), mark(t("rescued")), mark(t("expired")), mark(t("unread")),
        mark({**t("gone"), "object": "T0"}),
        mark(t("ordered", "T2")),
        mark(first["lake.lift.ready#transactions:1"]), mark(first["lake.lift.dropped#transactions:1"]),
        mark(first["lake.v.free#versions:T1"]),
        mark({**first["lake.rows.t#rows:rows"], "cutoff": "2020-01-01"}),
        mark({**first["lake.rows.t#rows:rows"], "object": "withdrawn", "policy": "withdrawn"}),
        *(mark(first[f"lake.adhoc.{name}#tables:lake.adhoc.{name}"]) for name in ("same", "swapped")),
        mark(
            first["lake.adhoc.older#tables:lake.adhoc.older"],
            fingerprint=first["lake.adhoc.unnamed#tables:lake.adhoc.unnamed"]["fingerprint"],
        ),
        mark(first["lake.rows.swapped#rows:rows"]),
        mark(first[f"lake.p.late#partitions:0/day={OLD}"]), mark(first[f"lake.p.ready#partitions:0/day={OLD}"]),
        mark({**sent, "dataset": "lake.p.waits", "policy": "p"}, act="a"),
        mark({**sent, "dataset": "lake.p.done", "policy": "p"}, act="a"),
        mark({**sent, "dataset": "lake.p.others", "policy": "p"}),
        mark({**sent, "dataset": "lake.only.waits", "policy": "only"}, act="a"),
        *(mark({**sent, "dataset": f"lake.p.{name}", "policy": "p"}, act="a") for name in REMEMBERED),
    ]  # fmt: skip
    unmarks = [
        ("lake.t.rescued", "versions", "T1", None, None),
        ("lake.t.expired", "transactions", "T1", ago(1), "over"),
    ]
    holds: list[tuple[Any, ...]] = [("lake.t.held", None, None, "legal", "case")]
    holds += [(f"lake.p.{name}", *days, "legal", "case") for name, (days, _) in REMEMBERED.items() if days is not None]
    days = [(f"lake.p.{name}", f"0/day={OLD}", OLD, OLD) for name, (_, known) in REMEMBERED.items() if known]
    return decided(plan(rules, world(*later), marks=marks, unmarks=unmarks, holds=holds, marked_days=days))


def verdict(outcome: dict[str, dict[str, Any]], key: str) -> tuple[str, Sequence[str]]:
    row = outcome[f"lake.{key}"]
    return row["decision"], row["waits_for"]


def test_a_mark_waits_for_its_grace_and_for_the_moment_of_its_end(outcome: Any) -> None:
    assert verdict(outcome, "t.grace#transactions:T1") == ("marked", ["grace until 2026-11-15T13:00:00Z"])
    assert verdict(outcome, "t.edge#transactions:T1") == ("marked", ["grace until 2026-11-15T12:00:00Z"])


def test_past_its_grace_it_is_swept_with_the_files_that_only_marked_objects_reference(outcome: Any) -> None:
    assert verdict(outcome, "t.ready#transactions:T1") == ("sweep", [])
    assert outcome["lake.t.ready#transactions:T1"]["bytes"] == 100


def test_it_waits_for_an_unmarked_version_that_reads_its_file(outcome: Any) -> None:
    assert verdict(outcome, "t.first#transactions:T1") == ("wait", ["version:T2"])
    assert outcome["lake.t.first#transactions:T1"]["files"]["count"] == 0


def test_a_new_tag_sends_it_back(outcome: Any) -> None:
    row = outcome["lake.t.tagged#transactions:T1"]
    assert (row["decision"], row["because"]) == ("unmarked", "unmarked: protected by tag:new")


def test_a_changed_object_and_a_changed_owner_send_it_back(outcome: Any) -> None:
    assert outcome["lake.t.changed#transactions:T1"]["because"] == "unmarked: it changed since it was marked"
    assert outcome["lake.t.renamed#transactions:T1"]["because"] == "unmarked: policy t owns it now"


def test_a_new_hold_and_a_persons_unmark_stop_it(outcome: Any) -> None:
    assert verdict(outcome, "t.held#transactions:T1") == ("held", [])
    assert outcome["lake.t.rescued#transactions:T1"]["decision"] == "unmarked"
    assert outcome["lake.t.rescued#transactions:T1"]["because"] == "unmarked by a person until released"


def test_an_expired_unmark_no_longer_counts(outcome: Any) -> None:
    assert outcome["lake.t.expired#transactions:T1"]["decision"] == "wait"


def test_a_dataset_that_cannot_be_read_keeps_its_marks_and_waits(outcome: Any) -> None:
    assert verdict(outcome, "t.unread#transactions:T1") == ("marked", ["unknown:no answer"])


def test_a_marked_object_that_is_no_longer_there_waits_for_the_proof(outcome: Any) -> None:
    assert verdict(outcome, "t.gone#transactions:T0") == ("wait", ["the proof that its files are gone"])


def test_where_removal_is_oldest_first_it_waits_for_the_older_one(outcome: Any) -> None:
    assert verdict(outcome, "t.ordered#transactions:T2") == ("wait", ["oldest first:T1"])


def test_a_version_is_swept_however_many_files_it_shares(outcome: Any) -> None:
    assert verdict(outcome, "v.free#versions:T1") == ("sweep", [])
    assert outcome["lake.v.free#versions:T1"]["bytes"] == 0


def test_the_mark_freezes_the_cutoff_of_rows(outcome: Any) -> None:
    assert outcome["lake.rows.t#rows:rows"]["cutoff"] == "2020-01-01"
    assert verdict(outcome, "rows.t#rows:rows") == ("sweep", [])


def test_a_mark_of_a_policy_that_is_gone_is_sent_back(outcome: Any) -> None:
    assert outcome["lake.rows.t#rows:withdrawn"]["decision"] == "unmarked"


def test_a_mark_on_a_whole_table_is_not_for_another_one_that_took_its_name(outcome: Any) -> None:
    """Delta's versions are numbers: nothing else tells the two apart. Rows go by the policy, whoever reloads them."""
    assert verdict(outcome, "adhoc.same#tables:lake.adhoc.same") == ("sweep", [])
    other = outcome["lake.adhoc.swapped#tables:lake.adhoc.swapped"]
    assert (other["decision"], other["because"]) == ("unmarked", "unmarked: it changed since it was marked")
    assert verdict(outcome, "adhoc.older#tables:lake.adhoc.older") == ("sweep", []), "from before identities were known"
    assert verdict(outcome, "rows.swapped#rows:rows") == ("sweep", [])


def test_a_late_write_into_a_marked_partition_sends_it_back(outcome: Any) -> None:
    row = outcome[f"lake.p.late#partitions:0/day={OLD}"]
    assert (row["decision"], row["because"]) == ("unmarked", "unmarked: it changed since it was marked")
    assert verdict(outcome, f"p.ready#partitions:0/day={OLD}") == ("sweep", [])


def test_after_the_delete_versions_go_under_the_same_mark_once_they_are_old(outcome: Any) -> None:
    # Superseded 20 days ago: version 3 goes without a mark of its own, and keep_min does not hold it.
    assert verdict(outcome, "p.done#versions:3") == ("sweep", [])
    assert "under the mark of a deleted partition" in outcome["lake.p.done#versions:3"]["because"]
    assert verdict(outcome, f"p.done#partitions:0/day={OLD}") == ("sweep", [])
    assert outcome[f"lake.p.done#partitions:0/day={OLD}"]["files"]["count"] == 1


def test_a_partition_that_left_the_head_before_any_act_was_begun_is_sent_back(outcome: Any) -> None:
    row = outcome[f"lake.p.others#partitions:0/day={OLD}"]
    assert (row["decision"], row["because"]) == ("unmarked", "unmarked: it is gone: someone else removed it")
    assert "lake.p.others#versions:3" in outcome
    assert outcome["lake.p.others#versions:3"]["decision"] == "keep", "its versions do not go along"


def test_after_the_delete_a_young_version_makes_the_partition_wait(outcome: Any) -> None:
    assert verdict(outcome, f"p.waits#partitions:0/day={OLD}") == ("wait", ["version:3"])


def test_without_a_versions_target_the_partition_waits_and_says_so(outcome: Any) -> None:
    decision, waits = verdict(outcome, f"only.waits#partitions:0/day={OLD}")
    assert decision == "wait"
    assert waits == ["a versions target in the policy", "versions that no policy expires"]
    assert outcome[f"lake.only.waits#partitions:0/day={OLD}"]["files"]["count"] == 0


def test_what_is_lifted_leaves_the_head_first_and_then_waits_for_versions(outcome: Any) -> None:
    assert verdict(outcome, "lift.ready#transactions:1") == ("sweep", [])
    assert outcome["lake.lift.ready#transactions:1"]["files"]["count"] == 1
    assert verdict(outcome, "lift.dropped#transactions:1") == ("wait", ["version:2"])
    assert outcome["lake.lift.dropped#transactions:1"]["files"]["count"] == 0


def test_a_dataset_past_its_limit_is_left_out_and_the_lakes_limit_is_named(tmp_path: Path) -> None:
    rules = policies(tmp_path, RULES)
    big = Table("lake.t.big").commit("T1", 300, size=1000).commit("T3", 100, kind=TransactionKind.SNAPSHOT, size=100)
    small = (
        Table("lake.t.small").commit("T1", 300, size=100).commit("T3", 100, kind=TransactionKind.SNAPSHOT, size=1000)
    )
    limits = Limits(max_share=0.3, lake_max_share=0.04, min_bytes=50, max_objects=0)
    made = plan(rules, world(big, small), limits=limits)
    found = decided(made)
    assert found["lake.t.big#transactions:T1"]["decision"] == "keep"
    assert "more than 30% of the dataset" in found["lake.t.big#transactions:T1"]["because"]
    assert found["lake.t.small#transactions:T1"]["decision"] == "mark"
    assert [(o.dataset, o.verb) for o in made.over] == [("lake.t.big", "mark"), (None, "mark"), (None, "mark")]
    assert "mark of 100 of 2,200 bytes" in made.over[1].text, "what is left out does not go"
    assert made.totals["mark"].bytes == 100


def test_what_left_the_head_keeps_the_days_of_its_mark_for_floors_and_holds(outcome: Any) -> None:
    def found(name: str) -> tuple[str, Sequence[str]]:
        return verdict(outcome, f"p.{name}#partitions:0/day={OLD}")

    assert found("floor") == ("sweep", [])
    assert found("hold_before") == ("sweep", [])
    assert found("hold_on_it") == ("held", [])
    # Unknown days lie under every floor and inside every hold.
    assert found("hold_unknown") == ("held", [])
    assert found("floor_unknown") == ("unmarked", [])
