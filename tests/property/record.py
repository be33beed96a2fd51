"""The record of a run of the property test: seeds, operations, and what each protection alone saved."""

from __future__ import annotations

from collections.abc import Mapping

from tests.property.judge import Outcome


def record(outcome: Outcome, seed: int, seconds: float) -> str:
    wrong = sum(len(texts) for texts in outcome.wrong.values())
    lines = [
        "# Property test",
        "",
        "Written by `make nightly`: random histories under random policies, marked and swept in rounds, judged by",
        "`tests/oracle`.",
        "",
        f"{outcome.histories:,} histories, seeds from {seed}, {seconds:,.0f} s. {outcome.heads:,} heads read row for"
        f" row, {outcome.removed_files:,} files removed, {outcome.orphans:,} of"
        f" them planted orphans, {outcome.tables:,} tables dropped, {wrong} things wrong.",
        "",
        "Of the planner of SQL files (docs/decisions/0016-plans-as-sql-files.md).",
        *_table("protection", "objects that it alone saved", outcome.alone.counts()),
        *_table("operation of a writer", "times", outcome.operations),
        *_table("between mark and sweep", "times", outcome.people),
        *_table("target", "objects marked", outcome.marked),
        *_table("state after a sweep", "objects", outcome.results),
    ]
    for sentence, texts in sorted(outcome.wrong.items()):
        lines += ["", f"Broken: {sentence}", "", *(f"- {text}" for text in texts[:50])]
    return "\n".join(lines) + "\n"


def _table(what: str, number: str, counts: Mapping[str, int]) -> list[str]:
    return ["", f"| {what} | {number} |", "|---|---|", *(f"| {key} | {n:,} |" for key, n in sorted(counts.items()))]
