"""How much goes: rows, bytes and files of each object, totals, and the limits of a run (spec §2, invariant 8)."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ebbtide.config.project import Limits
from ebbtide.plan.verdict import READY

_VERBS = ("mark", "sweep")
_HEADS = "array<struct<branch:string,left:bigint,live_bytes:bigint>>"


@dataclass(frozen=True, slots=True)
class Totals:
    """Distinct files that are freed, counted once however many objects name them, and bytes that leave heads."""

    files: int = 0
    bytes: int = 0
    leaves: int = 0


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


def per_head(leaving: DataFrame, live: DataFrame) -> DataFrame:
    """Per head that something leaves: its bytes by verb, each file once, and all that the head has."""
    counted = F.col("counts") & (F.col("target") != "branches")  # a branch that is dropped leaves its head whole
    once = leaving.where(counted).withColumn("verb", _verb()).where("verb IS NOT NULL")
    once = once.select("table_id", "branch", "path", "bytes", "verb").distinct()
    sums_ = once.groupBy("table_id", "branch").agg(*(_sum(name, F.col("bytes"), f"{name}_bytes") for name in _VERBS))
    return sums_.join(live, ["table_id", "branch"])


def per_dataset(
    named: DataFrame, files: DataFrame, leaving: DataFrame | None, heads: DataFrame | None, limits: Limits
) -> DataFrame:
    """Per dataset that something goes from, by verb: what is freed (`bytes`, `files`), what leaves heads (`left`), and
    the heads that lose more than their limit (`heads`); and all its bytes.
    """
    once = (
        named.withColumn("verb", _verb())
        .where("verb IS NOT NULL")
        .select("table_id", "path", "bytes", "verb")
        .distinct()
    )
    going = once.groupBy("table_id").agg(
        *(
            _sum(name, value, f"{name}_{what}")
            for name in _VERBS
            for what, value in (("bytes", F.col("bytes")), ("files", F.lit(1)))
        )
    )
    rows = files.groupBy("table_id").agg(F.sum("bytes").alias("all_bytes")).join(going, "table_id", "full")
    # A dataset that is no more has only what it left.
    rows = rows.withColumn("all_bytes", F.coalesce("all_bytes", F.col("mark_bytes") + F.col("sweep_bytes")))
    if leaving is None or heads is None:
        nothing = {f"{name}_left": F.lit(0).cast("bigint") for name in _VERBS}
        return rows.withColumns(nothing | {f"{name}_heads": F.array().cast(_HEADS) for name in _VERBS})
    lost = leaving.where("counts").withColumn("verb", _verb()).where("verb IS NOT NULL")
    lost = lost.select("table_id", "path", "bytes", "verb").distinct()
    sums_ = lost.groupBy("table_id").agg(*(_sum(name, F.col("bytes"), f"{name}_left") for name in _VERBS))
    rows = rows.join(sums_, "table_id", "left")
    past = heads.groupBy("table_id").agg(
        *(
            F.sort_array(F.collect_list(F.when(_is_past(F.col(f"{name}_bytes"), F.col("live_bytes"), limits),
                                               F.struct("branch", F.col(f"{name}_bytes").alias("left"), "live_bytes"))))
            .alias(f"{name}_heads")
            for name in _VERBS
        )
    )  # fmt: skip
    rows = rows.join(past, "table_id", "left")
    return rows.withColumns(
        {f"{name}_left": F.coalesce(f"{name}_left", F.lit(0)) for name in _VERBS}
        | {f"{name}_heads": F.coalesce(f"{name}_heads", F.array().cast(_HEADS)) for name in _VERBS}
    )


def over_limits(rows: DataFrame, limits: Limits) -> tuple[dict[str, Totals], list[OverLimit]]:
    """The totals by verb, and the limits that are broken: those of datasets and of their heads, which are left out, and
    by all others together the lake's. Counted is what is freed or what leaves heads, whichever is more.
    """
    rows = rows.withColumns({f"{verb}_most": F.greatest(f"{verb}_bytes", f"{verb}_left") for verb in _VERBS})
    past = {verb: _is_past(F.col(f"{verb}_most"), F.col("all_bytes"), limits) for verb in _VERBS}
    out = {verb: past[verb] | (F.size(f"{verb}_heads") > 0) for verb in _VERBS}
    whole = rows.agg(
        F.sum("all_bytes").alias("all"),
        *(
            F.sum(F.when(~out[verb], F.col(f"{verb}_{what}"))).alias(f"{verb}_{what}")
            for verb in _VERBS
            for what in ("bytes", "files", "left", "most")
        ),
        *(
            F.collect_list(F.when(past[verb], F.struct("table_id", F.col(f"{verb}_most"), "all_bytes")))
            .alias(f"{verb}_past")
            for verb in _VERBS
        ),
        *(
            F.collect_list(F.when(F.size(f"{verb}_heads") > 0, F.struct("table_id", F.col(f"{verb}_heads"))))
            .alias(f"{verb}_heads")
            for verb in _VERBS
        ),
    ).first()  # fmt: skip
    assert whole is not None
    totals = {
        verb: Totals(whole[f"{verb}_files"] or 0, whole[f"{verb}_bytes"] or 0, whole[f"{verb}_left"] or 0)
        for verb in _VERBS
    }
    over = []
    for verb in _VERBS:
        datasets = {dataset for dataset, _, _ in whole[f"{verb}_past"]}
        for dataset, going, everything in sorted(whole[f"{verb}_past"]):
            text = f"{verb} of {going:,} of {everything:,} bytes, more than {limits.max_share:.0%} of the dataset"
            over.append(OverLimit(dataset, verb, text))
        for dataset, heads in sorted(whole[f"{verb}_heads"]):
            if dataset not in datasets:
                branch, left, live = heads[0]
                text = f"{verb} of {left:,} of the {live:,} bytes that {branch} has, more than {limits.max_share:.0%}"
                over.append(OverLimit(dataset, verb, f"{text} of that branch"))
        share, everything = whole[f"{verb}_most"] or 0, whole["all"] or 0
        if share > limits.min_bytes and share > everything * limits.lake_max_share:
            text = f"{verb} of {share:,} of {everything:,} bytes, more than {limits.lake_max_share:.0%} of the lake"
            over.append(OverLimit(None, verb, text))
    return totals, over


def _verb() -> Column:
    return F.when(F.col("decision") == "mark", "mark").when(F.col("decision") == READY, "sweep")


def _sum(verb: str, value: Column, name: str) -> Column:
    return F.coalesce(F.sum(F.when(F.col("verb") == verb, value)), F.lit(0)).alias(name)


def _is_past(going: Column, everything: Column, limits: Limits) -> Column:
    """Whether so much may not go at once."""
    return F.coalesce((going > limits.min_bytes) & (going > everything * limits.max_share), F.lit(False))
