"""The information schema as Spark views, as checks and reports see it (spec §3).

Whoever runs them hands in the frames: the inventory with its labels, lineage, the state, and what the plan's own steps
make of policies and time grains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from ebbtide.config.classifiers import Classifiers
from ebbtide.governance.functions import register_functions
from ebbtide.plan.promises import PromiseProof
from ebbtide.spark.frames import small_frame

MARKS = (
    "table_id string, target string, object_id string, policy string, fingerprint string, marked_at timestamp, "
    "grace_until timestamp, cutoff string, acted_at timestamp, act string, id string, state string, because string, "
    "waits_for array<string>, rows long, bytes long, run string"
)
UNMARKS = (
    "table_id string, target string, object_id string, until timestamp, reason string, id string, created_at timestamp"
)
HOLDS = (
    "table_id string, partition_from date, partition_to date, owner string, reason string, id string, scope string, "
    "created_at timestamp"
)
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
    """Everything that the views are made of. `tables` and `columns` carry labels; `partitions`, `retention` and what
    blocks a table are outputs of the plan's own steps (`plan.views`).

    A hold on a subject is among `holds` without a table: erasure finds out where it applies.
    """

    tables: DataFrame
    columns: DataFrame
    partitions: DataFrame
    branches: DataFrame
    transactions: DataFrame
    files: DataFrame
    lineage: DataFrame
    problems: DataFrame
    marks: DataFrame
    unmarks: DataFrame
    holds: DataFrame
    scan_errors: DataFrame
    contract_drift: DataFrame
    readable_statistics: DataFrame
    retention: DataFrame


SECTIONS = (*(field.name for field in fields(Schema)), "classifiers", "promises")
"""The names of all sections."""


def sections(
    spark: SparkSession, schema: Schema, proofs: Sequence[PromiseProof], classifiers: Classifiers
) -> dict[str, DataFrame]:
    """Every section by its name."""
    return {
        **{field.name: getattr(schema, field.name) for field in fields(schema)},
        "classifiers": small_frame(spark, _labels(classifiers), _CLASSIFIERS),
        "promises": small_frame(spark, _rows(proofs), _PROMISES),
    }


def register_views(
    spark: SparkSession, schema: Schema, proofs: Sequence[PromiseProof], classifiers: Classifiers, *, now: datetime
) -> None:
    """Make every section a temporary view of the frames' session, and give it the functions."""
    register_functions(spark, now=now)
    for name, frame in sections(spark, schema, proofs, classifiers).items():
        frame.createOrReplaceTempView(name)


def _labels(classifiers: Classifiers) -> list[tuple[object, ...]]:
    return [
        (one.name, one.kind.value, one.propagate, f"{one.name}.{label}")
        for one in classifiers.by_name.values()
        for label in one.labels
    ]


def _rows(proofs: Sequence[PromiseProof]) -> list[tuple[object, ...]]:
    return [
        (
            p.promise, p.table_id, list(p.labels), p.gone_within, p.bound.days, p.breaks,
            [(term.name, term.days, term.because) for term in p.bound.terms],
        )
        for p in proofs
    ]  # fmt: skip
