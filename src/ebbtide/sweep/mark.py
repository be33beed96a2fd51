"""`mark`: what the plan wants gone is scheduled for deletion; what it can no longer prove is sent back (spec §1)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from ebbtide.config.policies import PolicySet
from ebbtide.ledger.entries import Marked, MarkSentBack, salted
from ebbtide.ledger.ledger import Ledger, Step
from ebbtide.ledger.redaction import because_in_ledger, dataset_in_ledger, object_in_ledger
from ebbtide.model.durations import add
from ebbtide.plan.choice import EVERYTHING, Choice
from ebbtide.plan.plan import Plan
from ebbtide.state.lease import Lease
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.values import Condemnation, Mark, Marking, ObjectKey, Proposal, Snapshot
from ebbtide.sweep.act_planning import decided, facts_of
from ebbtide.sweep.values import ObjectOutcome

_logger = logging.getLogger(__name__)
_PER_TRANSACTION = 1000
"""Marks per transaction: a person's hold or unmark never waits longer than for these."""


@dataclass(frozen=True, slots=True)
class MarkReport:
    """What was marked anew, was marked before, was pinned by a person meanwhile, and was sent back; the plan's
    warnings, and what could not be read.
    """

    run: str | None
    marked: tuple[ObjectKey, ...] = ()
    before: int = 0
    pinned: tuple[ObjectOutcome, ...] = ()
    sent_back: tuple[ObjectOutcome, ...] = ()
    over: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def propose(plan: Plan, policies: PolicySet, now: datetime, choice: Choice = EVERYTHING) -> list[Proposal]:
    """The plan's objects with decision `mark`, or those of them that somebody chose."""
    takes = choice.takes()
    rows = {key: row for key, row in decided(plan, "mark").items() if takes(row)}
    graces = {policy.name: policy.grace for policy in policies.policies}
    facts = facts_of(plan, "mark") if rows else {}
    days = _days(plan) if rows else {}
    return [
        Proposal(
            key=key, policy=row["policy"], because=row["because"], fingerprint=row["fingerprint"],
            grace_until=add(now, graces[row["policy"]]), rows=row["rows"] or 0, bytes=row["bytes"] or 0,
            days=days.get(key), frozen=row["cutoff"], facts=facts.get((key.dataset, key.object)),
        )
        for key, row in rows.items()
    ]  # fmt: skip


def mark(
    ledger: Ledger, lease: Lease, run: str, proposals: Sequence[Proposal], dated: Collection[str] = ()
) -> tuple[list[ObjectKey], int, list[ObjectOutcome]]:
    """Mark in transactions of their own: new marks, how many were there before, and what a person pinned meanwhile.

    `dated` are the tables whose partitions the ledger may name by their dates.
    """
    new: list[ObjectKey] = []
    before, pinned = 0, []
    for start in range(0, len(proposals), _PER_TRANSACTION):
        with ledger.sweeping(lease) as step:
            at, condemned = ledger.clock.now(), step.state.condemned()
            for answer in step.state.mark(proposals[start : start + _PER_TRANSACTION], run=run, at=at):
                key = answer.proposal.key
                if answer.mark is None:
                    pinned.append(ObjectOutcome(key, "unmarked", f"pinned by {answer.pinned_by}"))
                elif answer.is_new:
                    new.append(key)
                    step.append(entry_of(answer, at, condemned, dated))
                else:
                    before += 1
    said = "%d objects marked, %d were marked before, %d are pinned by people"
    _logger.info(said, len(new), before, len(pinned), extra={"run": run})
    return new, before, pinned


def entry_of(answer: Marking, at: datetime, condemned: Collection[Condemnation], dated: Collection[str] = ()) -> Marked:
    """What the ledger says of a new mark."""
    made = answer.mark
    assert made is not None
    return Marked(
        at=at, mark=made.id, run=made.run, dataset=dataset_in_ledger(condemned, made.key.dataset),
        target=made.key.target, object=object_in_ledger(made, dated), policy=made.policy,
        because=because_in_ledger(made, dated), fingerprint=salted(made.salt, made.fingerprint),
        grace_until=made.grace_until,
    )  # fmt: skip


def send_back(
    ledger: Ledger, lease: Lease, run: str, snapshot: Snapshot, back: Mapping[ObjectKey, Mapping[str, Any]]
) -> list[ObjectOutcome]:
    """Close the marks of objects that the plan says `unmarked` or `held` of: the sweep cannot prove what they saw."""
    results: list[ObjectOutcome] = []
    marks = [mark for mark in snapshot.marks if mark.key in back]
    for start in range(0, len(marks), _PER_TRANSACTION):
        some = marks[start : start + _PER_TRANSACTION]
        with ledger.sweeping(lease) as step:
            still_open = {mark.id for mark in step.state.marks(datasets={mark.key.dataset for mark in some})}
            results += [
                _close(step, mark, run, str(back[mark.key]["because"]), ledger.clock.now())
                for mark in some
                if mark.id in still_open
            ]
    if results:
        _logger.info("%d marks sent back: the plan cannot prove what they saw", len(results), extra={"run": run})
    return results


def _close(step: Step[SweepWriter], mark: Mark, run: str, because: str, at: datetime) -> ObjectOutcome:
    reason = because.removeprefix("unmarked: ")
    close_unswept(step, mark, run, reason, at)
    return ObjectOutcome(mark.key, "unmarked", reason)


def close_unswept(step: Step[SweepWriter], mark: Mark, run: str, reason: str, at: datetime) -> None:
    """Send a mark back. The reason may name a tag, a person who holds it, or what a format says: it is keyed."""
    step.state.send_back(mark.id, because=reason, at=at)
    step.append(MarkSentBack(at=at, mark=mark.id, run=run, because=salted(mark.salt, reason)))


def _days(plan: Plan) -> dict[ObjectKey, tuple[date, date]]:
    """The days of partitions that are to be marked, for holds on ranges that arrive at the same moment."""
    return {
        ObjectKey(row["table_id"], "partitions", row["partition"]): (row["first_day"], row["last_day"])
        for row in plan.read("days")
    }
