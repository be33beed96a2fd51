"""The information schema as Spark views, as checks and reports see it (spec §3).

Whoever runs them hands in the frames: the inventory with its labels, lineage, and the state. What is worked out from
policies (`retention`, `promises`) and from time grains (the days that a partition covers) is added here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ebbtide.config.classifiers import Classifiers
from ebbtide.config.policies import PolicySet
from ebbtide.governance.functions import register_functions
from ebbtide.model.durations import Duration
from ebbtide.plan.datasets import prepare, with_settings
from ebbtide.plan.others import last_writes
from ebbtide.plan.partitions import covered_days
from ebbtide.plan.promises import Proof, derive_auto, prove
from ebbtide.plan.retention import retention
from ebbtide.plan.world import HOLDS as PLANS_HOLDS
from ebbtide.plan.world import MARKS as PLANS_MARKS
from ebbtide.plan.world import UNMARKS as PLANS_UNMARKS
from ebbtide.plan.world import World, settled

# What the plan asks of the state, and what people do.
MARKS = (
    f"{PLANS_MARKS}, id string, state string, because string, waits_for array<string>, rows long, bytes long, "
    "run string"
)
UNMARKS = f"{PLANS_UNMARKS}, id string, created_at timestamp"
HOLDS = f"{PLANS_HOLDS}, id string, scope string, created_at timestamp"
LINEAGE = "source_column string, target_column string, kind string, provenance string"
PROBLEMS = "kind string, place string, subject string, message string, hint string"
SCAN_ERRORS = "catalog string, table_id string, error string, hint string"
DRIFT = "table_id string, aspect string, found string, wanted string"
READABLE = "table_id string, column_id string, statistics string"
_CLASSIFIERS = "name string, kind string, propagate boolean, label string"
_PROMISES = (
    "promise string, table_id string, labels array<string>, gone_within string, bound_days int, breaks string, "
    "terms array<struct<term:string,days:double,because:string>>"
)


@dataclass(frozen=True, slots=True)
class Schema:
    """Everything that the views are made of. `world.tables` and `world.columns` carry labels.

    A hold on a subject is among `holds` without a table: erasure finds out where it applies.
    """

    world: World
    lineage: DataFrame
    problems: DataFrame
    marks: DataFrame
    unmarks: DataFrame
    holds: DataFrame
    scan_errors: DataFrame
    contract_drift: DataFrame
    readable_statistics: DataFrame


def register_views(
    schema: Schema, policies: PolicySet, classifiers: Classifiers, *, tick: Duration, now: datetime
) -> None:
    """Make every section a temporary view of the frames' session, and give it the functions."""
    world, spark = schema.world, schema.world.tables.sparkSession
    register_functions(spark, now=now)
    policies = derive_auto(policies, world, tick=tick)
    datasets = prepare(policies, world, schema.holds).select("table_id", F.col("blocks").alias("blocked"))
    views = {
        # Most checks ask these two, and all that they come from is worked out once.
        "tables": settled(world.tables.join(datasets, "table_id", "left")),
        "columns": world.columns,
        "partitions": _partitions(world),
        "branches": world.branches,
        "transactions": world.transactions,
        "files": world.files,
        "lineage": schema.lineage,
        "problems": schema.problems,
        "marks": schema.marks,
        "unmarks": schema.unmarks,
        "holds": schema.holds,
        "scan_errors": schema.scan_errors,
        "contract_drift": schema.contract_drift,
        "readable_statistics": schema.readable_statistics,
        "classifiers": spark.createDataFrame(_labels(classifiers), _CLASSIFIERS),
        "retention": settled(retention(policies, world.tables, tick=tick)),
        "promises": spark.createDataFrame(_rows(prove(policies, world, schema.holds, tick=tick)), _PROMISES),
    }
    for name, frame in views.items():
        frame.createOrReplaceTempView(name)


def _partitions(world: World) -> DataFrame:
    """The partitions with the days that they cover; the table's settings that say so are dropped again.

    A table that has none is a row of its own, without a `partition`: every table that was written to has one.
    """
    settings = ("time_grain", "schedule", "covers")
    tables = with_settings(world.tables)
    rows = world.partitions.unionByName(_whole_tables(world, tables), allowMissingColumns=True)
    return covered_days(rows.join(tables.select("table_id", *settings), "table_id", "left")).drop(*settings)


def _whole_tables(world: World, tables: DataFrame) -> DataFrame:
    """Tables without partitions, dated by their last write; one with a schedule by the begin of its month or year."""
    last, unit = F.to_date("landed_at"), F.substring("schedule", -1, 1)
    day = F.when(unit == "m", F.trunc(last, "month")).when(unit == "y", F.trunc(last, "year")).otherwise(last)
    data = world.files.where("live AND role = 'data'").groupBy("table_id")
    sums = data.agg(F.sum("rows").alias("rows"), F.count(F.lit(1)).alias("files"), F.sum("bytes").alias("bytes"))
    writes = last_writes(world.transactions).withColumnRenamed("committed_at", "landed_at")
    ids = world.transactions.groupBy("table_id").agg(
        F.max_by("transaction_id", F.struct("committed_at", "position")).alias("last_transaction")
    )
    # Also those that were partitioned once: what they hold now lies in no partition.
    whole = tables.join(world.partitions.select("table_id").distinct(), "table_id", "left_anti")
    whole = (
        whole.select("table_id", "schedule")
        .join(writes.where("landed_at IS NOT NULL"), "table_id")
        .join(sums, "table_id", "left")
        .join(ids, "table_id", "left")
    )
    return whole.select(
        "table_id", F.lit(None).cast("string").alias("partition"), day.alias("_date"), day.alias("first_day"),
        day.alias("last_day"), "landed_at", "last_transaction",
        *(F.coalesce(name, F.lit(0)).alias(name) for name in ("rows", "files", "bytes")),
    )  # fmt: skip


def _labels(classifiers: Classifiers) -> list[tuple[object, ...]]:
    return [
        (one.name, one.kind.value, one.propagate, f"{one.name}.{label}")
        for one in classifiers.by_name.values()
        for label in one.labels
    ]


def _rows(proofs: Iterable[Proof]) -> list[tuple[object, ...]]:
    return [
        (
            p.promise, p.table_id, list(p.labels), p.gone_within, p.bound.days, p.breaks,
            [(term.name, term.days, term.because) for term in p.bound.terms],
        )
        for p in proofs
    ]  # fmt: skip
