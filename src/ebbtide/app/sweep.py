"""`ebbtide sweep`: remove what is marked, past its grace, and proved again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path

from ebbtide.acts.engine import Lake
from ebbtide.app.ledger import open_for_writing
from ebbtide.app.observed import observed
from ebbtide.app.outcome import by_dataset
from ebbtide.app.plan import choice_of
from ebbtide.app.proof import prove
from ebbtide.app.round import RetentionRun, plan_round, sweeper
from ebbtide.app.runs import recorded
from ebbtide.config import Project
from ebbtide.config.project import Limits
from ebbtide.run import RunContext, quiet
from ebbtide.state.lease import Lease
from ebbtide.sweep.act_planning import decided
from ebbtide.sweep.foresee import foresee
from ebbtide.sweep.limits import left_out, refuse_over
from ebbtide.sweep.sweep import Sweeper, rows_targets, todo
from ebbtide.sweep.values import ObjectOutcome, SweepReport


def run_sweep(
    project: Project,
    *,
    as_of: datetime | None = None,
    plan_file: Path | None = None,
    limits: Limits | None = None,
    select: Sequence[str] = (),
    dry_run: bool = False,
    context: RunContext | None = None,
) -> SweepReport:
    """Plan on a fresh inventory, and carry out what it says, of all tables or of those that `select` takes. A dry run
    plans the same way and stops there.
    """
    context = quiet(context, as_of=as_of)
    choice_of(select, ()).only_tables("sweep")
    with observed(project, "sweep", context, dry_run=dry_run) as seen:
        ledger, _ = open_for_writing(project, context)
        if dry_run:
            with plan_round(project, ledger, context, plan_file=plan_file, limits=limits) as round_:
                return would_sweep(round_, select)
        with (
            sweeper(ledger, context) as lease,
            recorded(context, ledger, "sweep", lease) as run,
            plan_round(project, ledger, run.context, plan_file=plan_file, limits=limits) as round_,
        ):
            report = sweep_round(round_, lease, select)
            run.ended(exit_code(report), summary(report))
            seen.ended(exit_code(report), run=report.run, over=bool(report.over), counts=counts(report))
            return report


def sweep_round(round_: RetentionRun, lease: Lease, select: Sequence[str] = ()) -> SweepReport:
    """Carry out what the plan says is past its grace, and prove it."""
    choice = round_.choice(select)
    refuse_over(round_.plan, "sweep")
    ledger, inputs = round_.ledger, round_.inputs
    round_.context.step("sweeping")
    round_.declare(lease)
    project, catalogs = inputs.project, inputs.project.catalogs
    lake = Lake(
        cache(lambda: round_.spark),
        round_.rescan,
        lambda touched: prove(project, round_.spark, touched),
        round_.waits_for,
    )
    report = Sweeper(catalogs, lake, ledger, lease, round_.context, round_.limits, choice).sweep(
        round_.plan, inputs.inventory, inputs.policies, inputs.snapshot
    )
    with ledger.database.reader() as state:
        takes = choice.takes()
        open_marks = [mark for mark in state.marks() if takes({"dataset": mark.key.dataset})]
    return replace(
        report,
        datasets=by_dataset(report, decided(round_.plan, "sweep"), open_marks, ledger.clock.now()),
        over=(*left_out(round_.plan, "sweep"), *report.over),
        warnings=round_.plan.warnings,
        unread=round_.unread,
    )


def summary(report: SweepReport) -> str:
    """What the state keeps of it."""
    return f"{report.removed_files} files, {report.removed_bytes} bytes, {len(report.errors)} errors"


def counts(report: SweepReport) -> dict[str, int]:
    """What whoever watches is told of it: objects by what became of them, and what went."""
    states = ("swept", "waiting", "failed", "sent_back")
    objects = {state: sum(getattr(one, state) for one in report.datasets) for state in states}
    went = {"files": report.removed_files, "bytes": report.removed_bytes}
    wrong = {"errors": len(report.errors), "findings": len(report.findings), "unread": len(report.unread)}
    return {**objects, **went, **wrong}


def exit_code(report: SweepReport) -> int:
    """A broken proof, then what failed or could not be read, then what a limit left out; waiting is no failure."""
    if report.findings:
        return 1
    if report.errors or report.unread or any(result.state == "failed" for result in report.results):
        return 4
    return 3 if report.over else 0


def would_sweep(round_: RetentionRun, select: Sequence[str] = ()) -> SweepReport:
    """The same plan and the stages that a sweep would walk, and nothing done."""
    choice = round_.choice(select)
    refuse_over(round_.plan, "sweep")
    inputs = round_.inputs
    marks, inventory = inputs.snapshot.marks, inputs.inventory
    asked = todo(round_.plan, inventory, marks, inputs.project.catalogs, round_.ledger, choice)
    ahead = foresee(asked.batches, inventory, rows_targets(inputs.policies), round_.waits_for(inventory))
    marked = {mark.key for mark in marks}
    back = [
        ObjectOutcome(key, "would be sent back", ", ".join(row["waits_for"]) or row["because"])
        for key, row in decided(round_.plan, "unmarked", "held").items()
        if key in marked
    ]
    waiting = [
        ObjectOutcome(key, "waiting", ", ".join(why)) for key, why in asked.waiting.items() if key in marked and why
    ]
    report = SweepReport(
        None, (*back, *waiting, *ahead.results), len(ahead.files), sum(ahead.files.values()),
        over=left_out(round_.plan, "sweep"), warnings=round_.plan.warnings, unread=round_.unread, stages=ahead.stages,
        freed=ahead.freed,
    )  # fmt: skip
    takes = choice.takes()
    chosen = [mark for mark in marks if takes({"dataset": mark.key.dataset})]
    datasets = by_dataset(report, decided(round_.plan, "sweep"), chosen, round_.ledger.clock.now())
    return replace(report, datasets=datasets)
