"""`ebbtide check` and `ebbtide report`: SQL over the information schema."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ebbtide.app.world import orders_of, read_state, state_views, tick_of, world_of
from ebbtide.config import Project
from ebbtide.config.classifiers import load_classifiers
from ebbtide.config.policies import load_policies
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.labelled import Labelled, label_inventory
from ebbtide.private import private_file
from ebbtide.run import RunContext, quiet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ebbtide.governance.checks import Outcome
    from ebbtide.governance.run import Result
    from ebbtide.governance.views import Schema
    from ebbtide.model.contract import Drift
    from ebbtide.plan.views import Views
    from ebbtide.state.values import Snapshot

_PROBLEMS = pa.schema([(name, pa.string()) for name in ("kind", "place", "subject", "message", "hint")])


def run_checks(
    project: Project, names: Sequence[str], *, now: datetime, time_limit: float, context: RunContext | None = None
) -> Iterator[Outcome]:
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
) -> Iterator[tuple[date, Result]]:
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


@contextmanager
def information_schema(project: Project, *, now: datetime) -> Iterator[SparkSession]:
    """A session of its own, in which every section of the information schema is a view."""
    from ebbtide.app.scan import start_plan_session
    from ebbtide.governance.views import register_views
    from ebbtide.plan.promises import derive_auto
    from ebbtide.plan.views import plan_views

    policies, classifiers = load_policies(project.root, unsafe=True), load_classifiers(project.root / "classifiers")
    inventory, snapshot, tick = Inventory.open(project.inventory), read_state(project), tick_of(project)
    labelled = label_inventory(project, inventory)
    world, orders = world_of(labelled, inventory), orders_of(snapshot, inventory)
    policies = derive_auto(policies, world, tick=tick)
    views = plan_views(policies, world, orders, tick=tick, now=now)
    spark = start_plan_session(project, inventory)
    with tempfile.TemporaryDirectory(prefix="views-", dir=project.inventory) as folder:
        schema = _schema(spark, inventory, labelled, snapshot, views, Path(folder))
        register_views(spark, schema, views.proofs, classifiers, now=now)
        yield spark


def _schema(
    spark: SparkSession,
    inventory: Inventory,
    labelled: Labelled,
    snapshot: Snapshot,
    views: Views,
    folder: Path,
) -> Schema:
    from ebbtide.governance.contracts import drift
    from ebbtide.governance.views import DRIFT, READABLE, Schema
    from ebbtide.spark.frames import small_frame

    problems = [asdict(problem) for problem in labelled.problems]
    for row in problems:
        row["place"], row["kind"] = row.pop("where"), row["kind"].value
    drifts = drift(labelled, inventory)
    readable = [(one.table_id, *kept) for one in drifts for kept in one.readable.items()]
    worked_out = {
        "tables": views.tables,
        "columns": labelled.section(inventory, "columns"),
        "partitions": views.partitions,
        "retention": views.retention,
        "lineage": labelled.lineage.graph.to_arrow(),
        "problems": pa.Table.from_pylist(problems, _PROBLEMS),
    }
    return Schema(
        **{name: _frame(spark, table, folder / name) for name, table in worked_out.items()},
        **{name: inventory.frame(spark, name) for name in ("branches", "transactions", "files")},
        **state_views(spark, snapshot, inventory),
        scan_errors=inventory.errors_frame(spark),
        contract_drift=small_frame(spark, _asked(drifts, labelled), DRIFT),
        readable_statistics=small_frame(spark, readable, READABLE),
    )


def _asked(drifts: Sequence[Drift], labelled: Labelled) -> list[tuple[str, str, str, str]]:
    """Where tables differ from a contract that somebody wrote; what only labels ask for has checks of its own."""
    asked = {
        table_id
        for table_id, about in labelled.settings.items()
        if about.contract is not None or about.enforce or about.is_pii is not None
    }
    return [(one.table_id, one.aspect.value, one.found, one.wanted) for one in drifts if one.table_id in asked]


def _frame(spark: SparkSession, table: pa.Table, path: Path) -> DataFrame:
    """Through a file: a million edges would be slow to hand over value by value."""
    from ebbtide.spark.frames import own_parquet

    pq.write_table(table, private_file(path))
    return own_parquet(spark, path)


def as_json(outcome: Outcome) -> dict[str, Any]:
    """A check in the shape of design.md."""
    return {
        "name": outcome.check.name,
        "passed": outcome.passed,
        "severity": outcome.check.severity.value,
        "description": outcome.check.description,
        "rows": list(outcome.result.rows),
    }
