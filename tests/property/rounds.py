"""Rounds of mark, people, sweep over a random lake, each judged by the oracle."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import SparkSession

from ebbtide.app.ledger import open_for_writing
from ebbtide.app.mark import mark_round
from ebbtide.app.round import RetentionRun, plan_round, sweeper
from ebbtide.app.runs import recorded
from ebbtide.app.sweep import sweep_round
from ebbtide.run import Progress, Silent, quiet
from ebbtide.state.lease import Lease
from ebbtide.sweep.values import ObjectOutcome, SweepReport
from tests.oracle import lake_by_hand as oracle
from tests.oracle import oldest_first_by_hand
from tests.oracle.lake_by_hand import Seen
from tests.property.judge import FAILED, Judge, Outcome
from tests.property.lake import RandomLake
from tests.property.people import People
from tests.tide import Tide

ROUNDS = 2
_FIRST, _APART, _GRACE = 40, 40, 8


def run_lake(spark: SparkSession, root: Path, seed: int, size: int, outcome: Outcome) -> None:
    """Build the lake of a seed and take it through its rounds."""
    begin = time.monotonic()

    def tell(text: str) -> None:
        sys.stderr.write(f"seed {seed}, {time.monotonic() - begin:.0f} s: {text}\n")

    lake = RandomLake(spark, root, seed, size)
    tell(f"{size} tables built")
    people = People(lake)
    for turn in range(ROUNDS):
        if turn:
            lake.write_on(turn)
            lake.upgrade_one()
        day = _FIRST + _APART * turn
        objects, marked = _verb(lake.tide, day, mark_round)
        keys = {*marked.marked}
        tell(f"round {turn}: {len(keys)} objects marked")
        outcome.marked += Counter(key.target for key in keys)
        outcome.alone.count(seed, objects)
        people.act(keys, day + 1, Random(f"{seed}:people:{turn}"))
        if not turn:
            lake.borrow_one()
        before, rows_before = _look(lake), _rows_by_spark(lake)
        judge = Judge(outcome, f"seed {seed}, round {turn}", held=people.held, held_days=people.held_days)
        if not turn:
            with lake.hiding_the_borrower() as hidden:
                objects, swept = _verb(lake.tide, day + _GRACE, sweep_round)
            outcome.alone.count_unread(seed, objects, hidden)
            judge.nothing_went(before, _look(lake), swept.removed_files)
        meanwhile = Silent() if turn else _Meanwhile(lake.replace_one)
        objects, swept = _verb(lake.tide, day + _GRACE + 1, sweep_round, meanwhile)
        if not turn:
            refused = _another_table(swept, lake.replaced)
            outcome.alone.count_refused(seed, refused)
            swept = replace(
                swept, results=tuple(result for result in swept.results if result not in refused),
                errors=tuple(error for error in swept.errors if not error.startswith(f"{lake.replaced}: ")),
            )  # fmt: skip
        outcome.alone.count(seed, objects, keys, people.rescued)
        outcome.results += Counter(result.state for result in swept.results)
        tell(f"round {turn}: {swept.removed_files} files removed")
        outcome.removed_files += swept.removed_files
        failed = [f"{result.key}: {result.because}" for result in swept.results if result.state == "failed"]
        for text in (*failed, *swept.errors, *swept.findings, *(f"over a limit: {over}" for over in swept.over)):
            outcome.say(FAILED, f"seed {seed}, round {turn}: {text}")
        judge = replace(judge, going=_going(objects))
        after = _look(lake)
        if not turn:  # another table by now
            before.pop(lake.replaced), after.pop(lake.replaced)
        judge.compare(before, after)
        judge.orphans(lake.planted)
        lake.planted = [file for file in lake.planted if file.path.exists()]
        for (dataset, head), rows in _rows_by_spark(lake).items():
            judge.read_by_spark(dataset, head, rows_before[dataset, head], rows)
    outcome.histories += size
    outcome.operations += lake.done
    outcome.people += people.done


@dataclass
class _Meanwhile(Silent):
    """Lets something happen between a sweep's plan and its commits."""

    happens: Callable[[], None] | None

    def start(self, step: str, total: int | None = None, *, unit: str = "") -> None:  # noqa: ARG002
        if self.happens is not None and step.endswith("metadata"):
            happens, self.happens = self.happens, None
            happens()


def _another_table(swept: SweepReport, dataset: str) -> list[ObjectOutcome]:
    """What was refused because the table of that name is another one: all of its objects, and nothing else."""
    mine = [result for result in swept.results if result.key.dataset == dataset]
    return [result for result in mine if result.state == "failed" and "another table" in result.because]


def _verb(
    tide: Tide, days: float, carry_out: Callable[[RetentionRun, Lease], Any], progress: Progress | None = None
) -> tuple[list[dict[str, Any]], Any]:
    """`mark` or `sweep` as their commands do it, with the plan's objects beside the report."""
    project = tide.project
    context = replace(quiet(as_of=tide.at(days)), progress=progress or Silent())
    ledger, _ = open_for_writing(project, context)
    with (
        sweeper(ledger, context) as lease,
        recorded(context, ledger, "verb", lease) as run,
        plan_round(project, ledger, run.context) as round_,
    ):
        return list(round_.plan.rows()), carry_out(round_, lease)


def _going(objects: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Per dataset what the plan said would go."""
    going: dict[str, set[str]] = {}
    for row in objects:
        if row["decision"] == "sweep":
            going.setdefault(row["dataset"], set()).add(row["object"])
    return going


def _look(lake: RandomLake) -> dict[str, Seen]:
    """Every table as the oracle sees it, by dataset."""
    found = {
        "iceberg": oracle.iceberg(lake.iceberg.database, lake.iceberg.name),
        "delta": oracle.delta(lake.delta),
        "paimon": oldest_first_by_hand.paimon(lake.warehouse("paimon")),
        "hudi": oldest_first_by_hand.hudi(lake.warehouse("hudi")),
    }
    return {f"{lake.names[format_]}.db.{name}": seen for format_, each in found.items() for name, seen in each.items()}


def _rows_by_spark(lake: RandomLake) -> dict[tuple[str, str], list[Any]]:
    """Heads and tags of Paimon, heads of Hudi, read by the formats themselves."""
    found: dict[tuple[str, str], list[Any]] = {}
    for dataset, (driver, table, tags) in lake.read_by_spark.items():
        found[dataset, "branch:main"] = driver.rows(table)
        for tag in tags:
            reader = driver.spark.read.format("paimon").option("scan.tag-name", tag)
            found[dataset, f"tag:{tag}"] = sorted(reader.load(table.location).collect(), key=str)
    return found


def seeds(first: int, histories: int, a_lake: int) -> Iterator[tuple[int, int]]:
    """Lakes of at most `a_lake` tables, with their seeds."""
    for number in range(0, histories, a_lake):
        yield first + number // a_lake, min(a_lake, histories - number)
