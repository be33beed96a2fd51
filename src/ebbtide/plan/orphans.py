"""The target `orphans`: files that nothing references, one object per folder (spec §2).

A mark covers exactly the files that it named: it freezes the newest modification time among them, in microseconds since
1970. Files that grow old later wait for the next mark; one that was referenced, written or removed meanwhile sends the
folder back.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ebbtide.config.policies import PolicySet
from ebbtide.model.durations import first_kept_instant
from ebbtide.model.times import as_text
from ebbtide.plan.datasets import any_holds, under_floor
from ebbtide.plan.others import as_objects, with_state
from ebbtide.plan.select import setting
from ebbtide.plan.verdict import verdict
from ebbtide.plan.world import World, joined, no_texts, texts


def orphan_objects(
    policies: PolicySet,
    world: World,
    datasets: DataFrame,
    marks: DataFrame | None,
    pinned: DataFrame | None,
    now: datetime,
) -> tuple[DataFrame, DataFrame] | None:
    """Folders with files that nothing references, and the files of each; None where nobody listed the storage.

    Ages are measured by the store's clock at the time of the listing, whatever `now` is (spec §2). `datasets` has the
    owners that are no datasets any more, too.
    """
    if world.orphans is None or world.listed_at is None:
        return None
    guards = [None if policy.orphans is None else policy.orphans.older_than for policy in policies.policies]
    owners = datasets.withColumn("owner", F.get("for_orphans", F.lit(0))).select("table_id", "owner")
    kept = F.coalesce(F.col("kept_until") >= F.lit(world.listed_at), F.lit(True))
    rows = world.orphans.join(world.files.where(kept).select("path"), "path", "left_anti")
    rows = rows.withColumnRenamed("folder", "object_id")
    rows = rows.join(owners.where("owner IS NOT NULL"), "table_id")
    rows = with_state(rows, "orphans", marks, pinned)
    first_kept = [None if guard is None else as_text(first_kept_instant(guard, world.listed_at)) for guard in guards]
    allowed = setting(first_kept, F.col("owner"), "string")
    rows = rows.withColumns({"allowed": allowed.cast("timestamp"), "at": F.unix_micros("modified_at")})
    frozen = F.col("mark_orphans.cutoff").cast("bigint")
    old = F.when(frozen.isNotNull(), F.col("at") <= frozen).otherwise(F.col("modified_at") < F.col("allowed"))
    rows = rows.withColumn("old", F.coalesce(old, F.lit(False)))
    folders = _folders(rows).join(datasets, "table_id")
    said = setting([None if guard is None else str(guard) for guard in guards], F.col("owner"), "string")

    def age(due: Column) -> Column:
        count = F.size("named").cast("string")
        some = F.concat(count, F.lit(" files that nothing references, older than "), said)
        return F.when(due, some).otherwise(F.concat(F.lit("no file is older than "), said))

    unread = texts(*(f"unknown:{error}" for error in world.errors))
    folders = verdict(
        folders, policies, owner=F.col("owner"), due=(F.size("named") > 0) & (F.col("newest") < F.col("allowed")),
        age=age, protections=joined(under_floor(policies, F.col("newest"), now), F.col("floor_gc")),
        blocks=joined(F.col("blocks"), unread), held=any_holds(), mark=F.col("mark_orphans"),
        fingerprint=F.col("fingerprint"), now=now,
    )  # fmt: skip
    files = rows.where("old").select(
        "table_id", F.lit("orphans").alias("target"), "object_id", "path", "bytes",
        F.lit(None).cast("bigint").alias("rows"),
    )  # fmt: skip
    # What the folder's decision is decides whether its files are named: they are joined with it later.
    return as_objects(folders, "orphans", no_texts()), files


def _folders(rows: DataFrame) -> DataFrame:
    """One row per folder: its old files, with their sizes and times, are what a mark is bound to."""
    seen = F.concat_ws("|", "path", "bytes", "at")
    state = ("owner", "mark_orphans", "pin", "allowed")
    return (
        rows.groupBy("table_id", "object_id")
        .agg(
            F.sort_array(F.collect_list(F.when(F.col("old"), seen))).alias("named"),
            F.max(F.when(F.col("old"), F.col("modified_at"))).alias("newest"),
            *(F.first(name).alias(name) for name in state),
        )
        .withColumn("fingerprint", F.sha2(F.array_join("named", "\n"), 256))
        .withColumn("cutoff", F.coalesce(F.col("mark_orphans.cutoff"), F.unix_micros("newest").cast("string")))
    )
