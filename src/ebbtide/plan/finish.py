"""The last step of a plan: what each object frees, the limits, the digest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ebbtide.config.policies import PolicySet
from ebbtide.config.project import Limits
from ebbtide.plan.leaving import KEPT_BY, LEAVES, leaves_of, live_bytes
from ebbtide.plan.measure import OverLimit, over_limits, per_dataset, per_head, sums
from ebbtide.plan.plan import Plan, digest_and_counts, plan_digest, shape
from ebbtide.plan.select import setting
from ebbtide.plan.warnings import warnings
from ebbtide.plan.world import World, has_few_rows, settled


@dataclass(frozen=True, slots=True)
class Decided:
    """Every object with its decision, the files that each names, what leaves which head, and who keeps what of it.

    The last two are None where no target could make anything leave a head.
    """

    objects: DataFrame
    named: DataFrame
    leaving: DataFrame | None
    kept_by: DataFrame | None


def finish(
    policies: PolicySet, world: World, datasets: DataFrame, decided: Decided, limits: Limits, now: datetime
) -> Plan:
    """The plan of what was decided, with what each object frees, and without what is past a limit."""
    named = settled(decided.named)
    leaving = None if decided.leaving is None else settled(decided.leaving)
    if leaving is not None and leaving.isEmpty():
        leaving = None
    heads = None if leaving is None else per_head(leaving, live_bytes(leaving, datasets, world.files))
    totals, over = over_limits(per_dataset(named, world.files, leaving, heads, limits), limits)
    objects = _with_maps(_leave_out(decided.objects, over), leaving, decided.kept_by)
    empty = F.sha2(F.lit(""), 256)
    unknown = F.col("target") == "rows"  # what matches a predicate is counted by the sweep, not guessed here
    names = setting([policy.name for policy in policies.policies], F.col("policy"), "string")
    measured = objects.join(sums(named), ["table_id", "target", "object_id"], "left").withColumns(
        {
            "rows": F.when(~unknown, F.coalesce("rows", F.lit(0))),
            "bytes": F.when(~unknown, F.coalesce("bytes", F.lit(0))),
            "file_count": F.coalesce("file_count", F.lit(0)),
            "file_digest": F.coalesce("file_digest", empty),
            "leaves": F.when(~unknown, F.coalesce("leaves", F.create_map().cast(LEAVES))),
            "kept_by": F.when(~unknown, F.coalesce("kept_by", F.create_map().cast(KEPT_BY))),
            "policy": names,
        }
    )
    shaped = shape(measured)
    shaped = settled(shaped) if has_few_rows(shaped) else shaped.persist(StorageLevel.DISK_ONLY)
    root, counts = digest_and_counts(shaped)
    if limits.max_objects is not None:
        over += [
            OverLimit(None, verb, f"{verb} of {counts[verb]:,} objects, more than {limits.max_objects:,}")
            for verb in ("mark", "sweep")
            if counts[verb] > limits.max_objects
        ]
    told = tuple(warnings(policies, datasets, world.tables))
    digest = plan_digest(now, root, policies.canonical())
    return Plan(now, digest, shaped, named, counts, totals, tuple(over), told)


def _with_maps(objects: DataFrame, leaving: DataFrame | None, kept_by: DataFrame | None) -> DataFrame:
    maps = ((None if leaving is None else leaves_of(leaving), "leaves", LEAVES), (kept_by, "kept_by", KEPT_BY))
    for found, name, type_ in maps:
        if found is None:
            objects = objects.withColumn(name, F.lit(None).cast(type_))
        else:
            objects = objects.join(found, ["table_id", "target", "object_id"], "left")
    return objects


def _leave_out(objects: DataFrame, over: Sequence[OverLimit]) -> DataFrame:
    """Objects of a dataset past its limit are left out: not marked, not swept (spec §2, "Limits")."""
    texts = {(o.dataset, o.verb): f"limit:{o.text}" for o in over if o.dataset is not None}
    if not texts:
        return objects
    spark = objects.sparkSession
    rows = [(dataset, verb, text) for (dataset, verb), text in sorted(texts.items())]
    limited = spark.createDataFrame(rows, "table_id string, decision string, limit string")
    joined_ = objects.join(F.broadcast(limited), ["table_id", "decision"], "left")
    hit = F.col("limit").isNotNull()
    return joined_.select(
        *(c for c in objects.columns if c not in ("decision", "waits_for", "because")),
        F.when(hit & (F.col("decision") == "mark"), "keep")
        .when(hit, "wait")
        .otherwise(F.col("decision"))
        .alias("decision"),
        F.when(hit & (F.col("decision") == "sweep"), F.array("limit")).otherwise(F.col("waits_for")).alias("waits_for"),
        F.when(hit, F.concat("because", F.lit("; "), "limit")).otherwise(F.col("because")).alias("because"),
    )
