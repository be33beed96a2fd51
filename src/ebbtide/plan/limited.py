"""`versions.limit`: at most so many versions of a dataset are marked in one run, the oldest first (spec §2)."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ebbtide.config.policies import PolicySet
from ebbtide.plan.select import setting


def limit_versions(policies: PolicySet, rows: DataFrame) -> DataFrame:
    """Versions beyond the limit of their policy are kept for a later run."""
    limits = [None if p.versions is None else p.versions.limit for p in policies.policies]
    if all(limit is None for limit in limits):
        return rows
    would = F.col("v.exists") & (F.col("v.decision") == "mark")
    oldest_first = Window.partitionBy("table_id", "owner_v", would).orderBy("superseded_at", "position")
    limit = setting(limits, F.col("owner_v"), "bigint")
    beyond = would & F.coalesce(F.row_number().over(oldest_first) > limit, F.lit(False))
    later = F.concat(F.col("v.because"), F.lit("; the limit of "), limit.cast("string"), F.lit(" a run is reached"))
    return (
        rows.withColumn("beyond", beyond)
        .withColumn(
            "v",
            F.when(
                F.col("beyond"),
                F.col("v").withField("decision", F.lit("keep")).withField("because", later),
            ).otherwise(F.col("v")),
        )
        .drop("beyond")
    )
