"""`ebbtide run`: the hot tier, then scan, plan, mark and sweep in one go, once or for ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime

from ebbtide.app.ledger import open_for_writing
from ebbtide.app.mark import exit_code as mark_exit_code
from ebbtide.app.mark import mark_round, would_mark
from ebbtide.app.mark import summary as mark_summary
from ebbtide.app.metrics_port import metrics_port
from ebbtide.app.observed import observed
from ebbtide.app.results.tier import TierResult
from ebbtide.app.results.tier import exit_code as tier_exit_code
from ebbtide.app.round import RetentionRun, plan_round, sweeper
from ebbtide.app.runs import recorded
from ebbtide.app.storage_history import record_stored
from ebbtide.app.sweep import counts, exit_code, summary, sweep_round, would_sweep
from ebbtide.config import Project
from ebbtide.config.project import Limits
from ebbtide.errors import EbbtideError, InputError, RefusedError, UnreadableError
from ebbtide.model.durations import Duration
from ebbtide.run import RunContext, quiet
from ebbtide.sweep.limits import refuse_over
from ebbtide.sweep.mark import MarkReport
from ebbtide.sweep.values import SweepReport


@dataclass(frozen=True, slots=True)
class RunReport:
    """One round. `error` is what stopped it, where something did; `warnings` are the plan's, `unread` is what could not
    be read.
    """

    marked: MarkReport | None
    swept: SweepReport | None
    exit_code: int
    error: EbbtideError | None = None
    warnings: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    tier: tuple[TierResult, ...] = ()


def run_once(
    project: Project,
    *,
    as_of: datetime | None = None,
    limits: Limits | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> RunReport:
    """The hot tier first, whose rows have to be in the lake; then the lake, whatever came of the tier."""
    context = quiet(context, as_of=as_of)
    with observed(project, "run", context, dry_run=dry_run) as seen:
        tier, error = _tier(project, dry_run=dry_run, context=context)
        lake = _lake(project, limits=limits, dry_run=dry_run, context=context)
        codes = [tier_exit_code(tier), lake.exit_code, 0 if error is None else error.exit_code]
        report = replace(lake, tier=tier, exit_code=_gravest(codes), error=lake.error or error)
        if report.error is not None:
            seen.stopped_by(report.error)
        seen.exit_code = report.exit_code
        if report.marked or report.swept:
            over = seen.over or bool((report.marked and report.marked.over) or (report.swept and report.swept.over))
            run = next((part.run for part in (report.swept, report.marked) if part is not None), None)
            if not dry_run:
                record_stored(project, now=context.now())
            seen.ended(report.exit_code, run=run, over=over, counts=_counts(report))
        return report


def _tier(
    project: Project, *, dry_run: bool, context: RunContext
) -> tuple[tuple[TierResult, ...], EbbtideError | None]:
    """What a run of the hot tier did, where the project has one, or what stopped all of it."""
    if not (project.root / "hottier").is_dir():
        return (), None
    from ebbtide.app.tier import run_tier

    try:
        return run_tier(project, dry_run=dry_run, context=context), None
    except EbbtideError as error:
        return (), error
    except Exception as error:
        # Whatever a library of the tier raised: it keeps the lake from nothing.
        return (), UnreadableError.unexpected("the hot tier", error)


def _gravest(codes: Sequence[int]) -> int:
    """A broken proof, then what failed or could not be read, then what was refused, then wrong input."""
    return next((code for code in (1, 4, 3) if code in codes), max(codes, default=0))


def _lake(project: Project, *, limits: Limits | None, dry_run: bool, context: RunContext) -> RunReport:
    """Mark what is due and sweep what is past its grace, by one plan. The lake's limit on either stops both."""
    try:
        ledger, _ = open_for_writing(project, context)
        if dry_run:
            with plan_round(project, ledger, context, limits=limits) as round_:
                return _both(round_, lambda: would_mark(round_), lambda: would_sweep(round_))
        with (
            sweeper(ledger, context) as lease,
            recorded(context, ledger, "run", lease) as run,
            plan_round(project, ledger, run.context, limits=limits) as round_,
        ):
            report = _both(round_, lambda: mark_round(round_, lease), lambda: sweep_round(round_, lease))
            run.ended(report.exit_code, _summary(report))
            return report
    except EbbtideError as error:
        return RunReport(None, None, error.exit_code, error)


def _both(round_: RetentionRun, mark: Callable[[], MarkReport], sweep: Callable[[], SweepReport]) -> RunReport:
    marked = swept = refused = None
    try:
        for verb in ("mark", "sweep"):
            refuse_over(round_.plan, verb)
        marked = mark()
        swept = sweep()
    except RefusedError as error:
        refused = error
    codes = [exit_code(swept) if swept else 0, mark_exit_code(marked) if marked else 0, 3 if refused else 0]
    codes.append(4 if round_.unread else 0)
    return RunReport(marked, swept, _gravest(codes), refused, round_.plan.warnings, round_.unread)


def _counts(report: RunReport) -> dict[str, int]:
    marked = {"marked": len(report.marked.marked) if report.marked else 0}
    return {**marked, **(counts(report.swept) if report.swept else {}), "unread": len(report.unread)}


def _summary(report: RunReport) -> str:
    marked = report.marked and mark_summary(report.marked)
    swept = report.swept and summary(report.swept)
    return "; ".join(said for said in (marked, swept, report.error and report.error.message) if said)


def run_for_ever(
    project: Project,
    every: Duration,
    *,
    limits: Limits | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
    around: Callable[[], AbstractContextManager[RunContext]] | None = None,
    after: Callable[[RunReport], None],
    rounds: int | None = None,
) -> None:
    """A round every so often, from begin to begin; errors of a round are told, and the next one comes.

    `around` gives each round a context of its own, whose progress ends with it.
    """
    if every.exact.total_seconds() <= 0:
        raise InputError(f"--every {every} is no time", hint="write 1h or 1d")
    context = quiet(context)

    def one() -> RunReport:
        with around() if around is not None else nullcontext(context) as of_round:
            return run_once(project, limits=limits, dry_run=dry_run, context=of_round)

    with metrics_port(project):
        _rounds(one, every, context, after, rounds)


def _rounds(
    one: Callable[[], RunReport],
    every: Duration,
    context: RunContext,
    after: Callable[[RunReport], None],
    rounds: int | None,
) -> None:
    while rounds is None or rounds > 0:
        began = time.monotonic()
        try:
            report = one()
        except Exception as error:
            # Whatever a store, a catalog or Spark raised this time: the next round begins from what is there then.
            report = RunReport(None, None, 4, UnreadableError.unexpected("this round", error))
        after(report)
        rounds = None if rounds is None else rounds - 1
        if rounds != 0:
            with context.cancellation.at_once():
                time.sleep(max(0.0, every.exact.total_seconds() - (time.monotonic() - began)))
