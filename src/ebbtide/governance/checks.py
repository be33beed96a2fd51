"""Checks and reports: which there are, and what running them says (spec §3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from pyspark.sql import SparkSession

from ebbtide.config.yaml import nearest
from ebbtide.errors import InputError
from ebbtide.governance.run import QueryResult, run_statement
from ebbtide.governance.statement import SHIPPED, Severity, Statement, read_statements
from ebbtide.run import RunContext, quiet


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What one check found. Without rows it passed."""

    check: Statement
    result: QueryResult

    @property
    def passed(self) -> bool:
        return not self.result.rows

    @property
    def fails_the_run(self) -> bool:
        return not self.passed and self.check.severity is Severity.ERROR


def find(root: Path, folder: str) -> dict[str, Statement]:
    """Every check or report of a project by name: its own files, then those that ship."""
    found = {**read_statements(SHIPPED / folder), **read_statements(root / folder)}
    return dict(sorted(found.items()))


def chosen_checks(root: Path, names: Sequence[str]) -> list[Statement]:
    """The named checks, or all that are not off. A check that is off and named counts as an error."""
    found = find(root, "checks")
    if not names:
        return [check for check in found.values() if check.severity is not Severity.OFF]
    checks = [_named(found, name, "check") for name in names]
    return [replace(c, severity=Severity.ERROR) if c.severity is Severity.OFF else c for c in checks]


def chosen_report(root: Path, name: str) -> Statement:
    return _named(find(root, "reports"), name, "report")


def _named(found: dict[str, Statement], name: str, kind: str) -> Statement:
    if name not in found:
        raise InputError(f"no {kind} {name!r}", hint=nearest(name, list(found)))
    return found[name]


def run_checks(
    spark: SparkSession,
    checks: Sequence[Statement],
    day: date,
    *,
    time_limit: float,
    context: RunContext | None = None,
) -> Iterator[CheckOutcome]:
    """One check after the other; whoever looks on sees each as it ends."""
    context = quiet(context)
    for check in checks:
        asked = context.cancellation.check
        yield CheckOutcome(check, run_statement(spark, check, day, time_limit=time_limit, check=asked))
        context.advance()
