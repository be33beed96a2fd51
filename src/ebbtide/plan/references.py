"""Who references what: named heads, files of a transaction, files of several datasets (spec §1, invariant 1)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ebbtide.plan.verdict import READY
from ebbtide.plan.world import ANY_ORDER, CONTENT, World, joined, no_texts, texts

REFS = "array<struct<name:string,head:string,position:bigint>>"


def named_heads(world: World) -> DataFrame:
    """Per dataset, its branches, tags and staged snapshots with the positions that they pin.

    A head that is not among the retained transactions has no position: `chosen_with_refs` locks such a dataset.
    """
    heads = world.branches.where("head IS NOT NULL").select(
        "table_id", F.concat_ws(":", "kind", "name").alias("name"), "head"
    )
    places = world.transactions.select("table_id", F.col("transaction_id").alias("head"), "position")
    named = heads.join(places, ["table_id", "head"], "left").select("table_id", "name", "head", "position")
    staged = world.transactions.where("staged").select(
        "table_id",
        F.concat(F.lit("staged:"), "transaction_id").alias("name"),
        F.col("transaction_id").alias("head"),
        "position",
    )
    return (
        named.unionByName(staged)
        .groupBy("table_id")
        .agg(F.sort_array(F.collect_list(F.struct("name", "head", "position"))).alias("refs"))
    )


def names_with_file() -> Column:
    """For a row with a file's `versions` and its dataset's `refs`: the names of those whose version references it."""
    inside = F.filter(
        "refs",
        lambda ref: F.exists(
            "versions", lambda run: (run["first"] <= ref["position"]) & (ref["position"] <= run["last"])
        ),
    )
    return F.transform(inside, lambda ref: ref["name"])


def shared_files(files: DataFrame) -> DataFrame:
    """Paths that more than one dataset references, with those datasets (hazard 18).

    Equal paths have equal hashes, so a pass over hashes leaves few suspects, and only their paths are compared.
    """
    hashed = files.select("table_id", F.xxhash64("path").alias("hash"))
    twice = hashed.groupBy("hash").agg(F.min("table_id").alias("a"), F.max("table_id").alias("b")).where("a <> b")
    suspects = files.select("table_id", "path", F.xxhash64("path").alias("hash")).join(
        F.broadcast(twice.select("hash")), "hash", "left_semi"
    )
    return (
        suspects.groupBy("path")
        .agg(F.sort_array(F.collect_set("table_id")).alias("datasets"))
        .where(F.size("datasets") > 1)
    )


def waits_for_unread(objects: DataFrame, datasets: DataFrame, unread: Sequence[str]) -> DataFrame:
    """What is ready and would take files, while somebody may reference them whom nobody could read (spec §7).

    What leaves a head first may do so: that is metadata. Formats whose own operations commit and remove in one (those
    without the capability of removing in any order) are deferred whole.
    """
    apart = datasets.select("table_id", F.array_contains("capabilities", ANY_ORDER).alias("apart"))
    only_metadata = (F.size("drops_from") > 0) | F.col("target").isin("rows", "branches")
    ready = objects.where(F.col("decision") == READY).join(apart, "table_id", "left")
    stuck = ready.where(~(only_metadata & F.coalesce("apart", F.lit(False))))
    return stuck.select("table_id", "target", "object_id", texts(*unread).alias("waits"))


def references_of_transactions(world: World, datasets: DataFrame, shared: DataFrame | None) -> DataFrame:
    """Per transaction that added content files: the heads, tags and staged snapshots whose version references one of
    them, and the other datasets that do. `datasets` has `refs`.
    """
    content = world.files.where(F.col("role").isin(*CONTENT) & F.col("first_transaction").isNotNull())
    content = content.select("table_id", "path", "first_transaction", "versions").join(datasets, "table_id")
    named = content.withColumn("names", names_with_file())
    if shared is not None:
        others = F.transform(
            F.array_except("datasets", F.array("table_id")), lambda other: F.concat(F.lit("reference:"), other)
        )
        named = named.join(F.broadcast(shared), "path", "left").withColumn(
            "names", joined(F.col("names"), F.when(F.col("datasets").isNotNull(), others).otherwise(no_texts()))
        )
    return named.groupBy("table_id", F.col("first_transaction").alias("transaction_id")).agg(
        F.array_distinct(F.flatten(F.collect_set("names"))).alias("referenced_by")
    )


def lines(timeline: DataFrame) -> DataFrame:
    """Per transaction and branch that reaches it: its rank from the head (1 is the head) and the views after its own.

    Costs a row per branch and transaction, so `timeline` holds only the datasets whose rules ask for it.
    """
    from pyspark.sql import Window

    newest_first = Window.partitionBy("table_id", "branch").orderBy(F.col("position").desc())
    later = newest_first.rowsBetween(Window.unboundedPreceding, -1)
    places = timeline.select(
        "table_id", "transaction_id", "position", "starts_view", F.explode("branches").alias("branch")
    )
    ranked = places.withColumn("rank", F.row_number().over(newest_first)).withColumn(
        "views_after", F.coalesce(F.sum(F.col("starts_view").cast("int")).over(later), F.lit(0))
    )
    return ranked.groupBy("table_id", "transaction_id").agg(
        F.sort_array(F.collect_list(F.struct("branch", "rank", "views_after"))).alias("places")
    )


def supersession(transactions: DataFrame) -> DataFrame:
    """Per transaction that has one: when a child took its place, on a branch if any child is on one (spec §2)."""
    on_branch = F.when(F.size("branches") > 0, F.col("committed_at"))
    return (
        transactions.where("parent_id IS NOT NULL")
        .groupBy("table_id", F.col("parent_id").alias("transaction_id"))
        .agg(F.coalesce(F.max(on_branch), F.max("committed_at")).alias("child_at"))
    )
