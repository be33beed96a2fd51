"""`ebbtide mark`: schedule for deletion what the plan wants gone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from ebbtide.app.ledger import open_for_writing
from ebbtide.app.plan import choice_of
from ebbtide.app.round import RetentionRun, plan_round, sweeper
from ebbtide.app.runs import recorded
from ebbtide.app.world import some_policies
from ebbtide.config import Project
from ebbtide.config.project import Limits
from ebbtide.run import RunContext, quiet
from ebbtide.state.lease import Lease
from ebbtide.sweep.act_planning import decided
from ebbtide.sweep.limits import left_out, refuse_over
from ebbtide.sweep.mark import MarkReport, mark, propose, send_back
from ebbtide.sweep.values import ObjectOutcome


def run_mark(
    project: Project,
    *,
    as_of: datetime | None = None,
    plan_file: Path | None = None,
    limits: Limits | None = None,
    select: Sequence[str] = (),
    dry_run: bool = False,
    context: RunContext | None = None,
) -> MarkReport:
    """Plan on a fresh inventory and mark, all or what `select` takes. Marking again changes nothing (spec §1)."""
    context = quiet(context, as_of=as_of)
    choice_of(select, [policy.name for policy in some_policies(project).policies])  # what is wrong is told at once
    ledger, _ = open_for_writing(project, context)
    if dry_run:
        with plan_round(project, ledger, context, plan_file=plan_file, limits=limits) as round_:
            return would_mark(round_, select)
    with (
        sweeper(ledger, context) as lease,
        recorded(context, ledger, "mark", lease) as run,
        plan_round(project, ledger, run.context, plan_file=plan_file, limits=limits) as round_,
    ):
        report = mark_round(round_, lease, select)
        run.ended(exit_code(report), summary(report))
        return report


def mark_round(round_: RetentionRun, lease: Lease, select: Sequence[str] = ()) -> MarkReport:
    """Carry out the plan's marks, and send back what it can no longer prove."""
    choice = round_.choice(select)
    refuse_over(round_.plan, "mark")
    ledger, plan, inputs = round_.ledger, round_.plan, round_.inputs
    round_.context.step("marking")
    round_.declare(lease)
    run = round_.run
    sent = send_back(ledger, lease, run, inputs.snapshot, decided(plan, "unmarked", "held"))
    proposals = propose(plan, inputs.policies, ledger.clock.now(), choice)
    dated = inputs.dated() if any(proposal.key.target == "partitions" for proposal in proposals) else frozenset()
    new, before, pinned = mark(ledger, lease, run, proposals, dated)
    before += len(inputs.snapshot.marks) - len(sent)
    over = left_out(plan, "mark")
    return MarkReport(run, tuple(new), before, tuple(pinned), tuple(sent), over, plan.warnings, round_.unread)


def summary(report: MarkReport) -> str:
    """What the state keeps of it."""
    return f"{len(report.marked)} marked, {len(report.pinned)} pinned, {len(report.sent_back)} sent back"


def exit_code(report: MarkReport) -> int:
    """What could not be read first, then what a limit left out."""
    return 4 if report.unread else 3 if report.over else 0


def would_mark(round_: RetentionRun, select: Sequence[str] = ()) -> MarkReport:
    """The same, without writing anything."""
    takes = round_.choice(select).takes()
    refuse_over(round_.plan, "mark")
    back = decided(round_.plan, "unmarked", "held")
    sent = [
        ObjectOutcome(m.key, "unmarked", back[m.key]["because"]) for m in round_.inputs.snapshot.marks if m.key in back
    ]
    before = len(round_.inputs.snapshot.marks) - len(sent)
    marked = tuple(key for key, row in decided(round_.plan, "mark").items() if takes(row))
    over = left_out(round_.plan, "mark")
    return MarkReport(None, marked, before, (), tuple(sent), over, round_.plan.warnings, round_.unread)
