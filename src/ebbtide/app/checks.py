"""`ebbtide check` and `ebbtide report`: SQL over the information schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from ebbtide.app.information_schema import information_schema
from ebbtide.config import Project
from ebbtide.run import RunContext, quiet

if TYPE_CHECKING:
    from ebbtide.governance.checks import CheckOutcome
    from ebbtide.governance.run import QueryResult


def run_checks(
    project: Project, names: Sequence[str], *, now: datetime, time_limit: float, context: RunContext | None = None
) -> Iterator[CheckOutcome]:
    """The named checks, or all; every file is read, and what is wrong refused, before any of them runs."""
    from ebbtide.app.runs import watched
    from ebbtide.governance import checks

    chosen, day, failed = checks.chosen_checks(project.root, names), now.astimezone(UTC).date(), 0
    with watched(quiet(context), project, "check") as run:
        run.context.step("preparing the views")
        with information_schema(project, now=now) as spark:
            run.context.step("running checks", len(chosen), unit="checks")
            for outcome in checks.run_checks(spark, chosen, day, time_limit=time_limit, context=run.context):
                failed += outcome.fails_the_run
                yield outcome
        run.ended(1 if failed else 0, f"{failed} of {len(chosen)} checks failed")


def run_report(
    project: Project,
    name: str,
    days: Sequence[date],
    *,
    now: datetime,
    time_limit: float,
    context: RunContext | None = None,
) -> Iterator[tuple[date, QueryResult]]:
    """A report for each of the days. The day of `now` is taken at that time, as a plan at `now` does."""
    from ebbtide.app.runs import watched
    from ebbtide.governance.checks import chosen_report
    from ebbtide.governance.run import run_statement

    report = chosen_report(project.root, name)
    with watched(quiet(context), project, "report") as run:
        run.context.step("preparing the views")
        with information_schema(project, now=now) as spark:
            run.context.step(f"report {name}", len(days), unit="days")
            for day in days:
                check = run.context.cancellation.check
                yield day, run_statement(spark, report, day, time_limit=time_limit, check=check)
                run.context.advance()
        run.ended(0, f"{name} of {len(days)} days")


def as_json(outcome: CheckOutcome) -> dict[str, Any]:
    """A check in the shape of design.md."""
    return {
        "name": outcome.check.name,
        "passed": outcome.passed,
        "severity": outcome.check.severity.value,
        "description": outcome.check.description,
        "do": outcome.check.do,
        "rows": list(outcome.result.rows),
    }
