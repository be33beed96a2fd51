"""How much goes: rows, bytes and files of each object, totals, and the limits of a run (spec §2, invariant 8)."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ebbtide.config.project import Limits
from ebbtide.plan.verdict import READY


@dataclass(frozen=True, slots=True)
class Totals:
    """Distinct files, counted once however many objects name them."""

    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class OverLimit:
    """A limit that the run would break: of a dataset, or of the lake (`dataset` is None)."""

    dataset: str | None
    verb: str
    text: str


def sums(named: DataFrame) -> DataFrame:
    """Per object its rows, bytes and files, with the digest of the sorted paths, a path a line."""
    return named.groupBy("table_id", "target", "object_id").agg(
        F.sum("rows").alias("rows"),
        F.sum("bytes").alias("bytes"),
        F.count("*").alias("file_count"),
        F.sha2(F.concat(F.array_join(F.sort_array(F.collect_list("path")), "\n"), F.lit("\n")), 256).alias(
            "file_digest"
        ),
    )


def per_dataset(named: DataFrame, files: DataFrame) -> DataFrame:
    """Per dataset that something goes from: bytes and files by verb (`mark`, `sweep`), and all its bytes."""
    verb = F.when(F.col("decision") == "mark", "mark").when(F.col("decision") == READY, "sweep")
    once = (
        named.withColumn("verb", verb).where("verb IS NOT NULL").select("table_id", "path", "bytes", "verb").distinct()
    )
    going = once.groupBy("table_id").agg(
        *(
            F.coalesce(F.sum(F.when(F.col("verb") == name, value)), F.lit(0)).alias(f"{name}_{what}")
            for name in ("mark", "sweep")
            for what, value in (("bytes", F.col("bytes")), ("files", F.lit(1)))
        )
    )
    everything = files.groupBy("table_id").agg(F.sum("bytes").alias("all_bytes")).join(going, "table_id", "full")
    # A dataset that is no more has only what it left.
    return everything.withColumn("all_bytes", F.coalesce("all_bytes", F.col("mark_bytes") + F.col("sweep_bytes")))


def over_limits(rows: DataFrame, limits: Limits) -> tuple[dict[str, Totals], list[OverLimit]]:
    """The totals by verb, and the limits that are broken: those of datasets, which are left out, and by all others
    together the lake's.
    """
    verbs = ("mark", "sweep")
    past = {
        verb: (F.col(f"{verb}_bytes") > limits.min_bytes)
        & (F.col(f"{verb}_bytes") > F.col("all_bytes") * limits.max_share)
        for verb in verbs
    }
    broken_by = {
        verb: F.collect_list(F.when(past[verb], F.struct("table_id", F.col(f"{verb}_bytes"), "all_bytes")))
        for verb in verbs
    }
    whole = rows.agg(
        F.sum("all_bytes").alias("all"),
        *(
            F.sum(F.when(~past[verb], F.col(f"{verb}_{what}"))).alias(f"{verb}_{what}")
            for verb in verbs
            for what in ("bytes", "files")
        ),
        *(found.alias(f"{verb}_past") for verb, found in broken_by.items()),
    ).first()
    assert whole is not None
    totals = {verb: Totals(whole[f"{verb}_files"] or 0, whole[f"{verb}_bytes"] or 0) for verb in verbs}
    over = []
    for verb in verbs:
        for dataset, going, everything in sorted(whole[f"{verb}_past"]):
            text = f"{verb} of {going:,} of {everything:,} bytes, more than {limits.max_share:.0%} of the dataset"
            over.append(OverLimit(dataset, verb, text))
        share, everything = totals[verb].bytes, whole["all"] or 0
        if share > limits.min_bytes and share > everything * limits.lake_max_share:
            text = f"{verb} of {share:,} of {everything:,} bytes, more than {limits.lake_max_share:.0%} of the lake"
            over.append(OverLimit(None, verb, text))
    return totals, over
