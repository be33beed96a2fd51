"""What leaves which head, and what stays all the same: rows and bytes that nobody reads there any more (hazard 36).

Where a branch or a tag keeps the files nothing is freed, and the rows leave main none the less: limits count both
(spec §2). A row of the frames here is a file that leaves the head of a branch with an object. `counts` says whether
that is a loss of its own: what goes with a dropped branch and another head has can still be read there.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ebbtide.plan.references import names_with_file
from ebbtide.plan.verdict import GOING
from ebbtide.plan.world import HELD_BY_HEAD

_BRANCH = "branch:"
COLUMNS = ("table_id", "target", "object_id", "branch", "path", "bytes", "rows", "decision", "counts")
LEAVES = "map<string,struct<bytes:bigint,rows:bigint>>"
KEPT_BY = "map<string,bigint>"


def of_partitions(theirs: DataFrame) -> DataFrame:
    """Partitions leave main. `theirs` are their files, those that others keep included."""
    leaving = theirs.where(F.col("in_head") & F.col("role").isin(*HELD_BY_HEAD))
    return leaving.withColumns({"branch": F.lit("main"), "counts": F.lit(True)}).select(*COLUMNS)


def of_transactions(timeline: DataFrame, files: DataFrame) -> DataFrame:
    """Transactions of the latest view leave the heads that their policy lifts."""
    going = F.col("t.exists") & F.col("t.decision").isin(*GOING) & (F.size("leaves") > 0)
    leaving = timeline.where(going).select(
        "table_id",
        F.col("object_id").alias("first_transaction"),
        "refs",
        "leaves",
        F.col("t.decision").alias("decision"),
    )
    theirs = files.where(F.col("role").isin(*HELD_BY_HEAD)).join(leaving, ["table_id", "first_transaction"])
    heads = F.array_intersect("leaves", names_with_file())
    found = theirs.withColumn("head", F.explode(heads)).withColumn("object_id", F.col("first_transaction"))
    return _shaped(found.withColumns({"target": F.lit("transactions"), "counts": F.lit(True)}))


def of_whole_heads(objects: DataFrame, datasets: DataFrame, files: DataFrame) -> DataFrame:
    """Branches that are dropped, and all branches of tables that are: their heads go whole."""
    going = objects.where(F.col("decision").isin(*GOING)).select("table_id", "target", "object_id", "decision")
    going = going.join(datasets.select("table_id", "refs"), "table_id")
    theirs = files.where(F.col("live") & F.col("role").isin(*HELD_BY_HEAD)).join(going, "table_id")
    heads = F.filter(names_with_file(), lambda name: name.startswith(_BRANCH))
    own = F.array(F.concat(F.lit(_BRANCH), "object_id"))
    is_branch = F.col("target") == "branches"
    found = theirs.withColumn("heads", heads).withColumn(
        "head", F.explode(F.when(is_branch, F.array_intersect("heads", own)).otherwise(F.col("heads")))
    )
    # A table that goes whole is counted by what is freed.
    return _shaped(found.withColumn("counts", is_branch & (F.size("heads") == 1)))


def _shaped(found: DataFrame) -> DataFrame:
    name = F.substring("head", len(_BRANCH) + 1, 1 << 20)
    rows = F.when(F.col("role") == "data", F.col("rows"))
    return found.withColumns({"branch": name, "rows": rows}).select(*COLUMNS)


def leaves_of(leaving: DataFrame) -> DataFrame:
    """Per object the branches that it leaves, with rows and bytes; rows are NULL where nobody knows them."""
    known = F.min(F.col("rows").isNotNull())
    sums = leaving.groupBy("table_id", "target", "object_id", "branch").agg(
        F.sum("bytes").alias("bytes"), F.when(known, F.sum("rows")).alias("rows")
    )
    return _map(sums, "branch", F.struct("bytes", "rows"), "leaves")


def kept_by_others(theirs: DataFrame) -> DataFrame:
    """Per partition that goes, the bytes that a branch, a tag, a staged snapshot or another dataset keeps."""
    kept = theirs.select("table_id", "target", "object_id", "bytes", F.explode("stay").alias("by"))
    sums = kept.groupBy("table_id", "target", "object_id", "by").agg(F.sum("bytes").alias("bytes"))
    return _map(sums, "by", F.col("bytes"), "kept_by")


def _map(sums: DataFrame, key: str, value: Column, name: str) -> DataFrame:
    # Sorted: a map is written in the order in which it was made.
    entries = F.sort_array(F.collect_list(F.struct(F.col(key).alias("key"), value.alias("value"))))
    return sums.groupBy("table_id", "target", "object_id").agg(F.map_from_entries(entries).alias(name))


def live_bytes(leaving: DataFrame, datasets: DataFrame, files: DataFrame) -> DataFrame:
    """What the heads have, of the datasets that something leaves."""
    some = datasets.select("table_id", "refs").join(leaving.select("table_id").distinct(), "table_id", "left_semi")
    theirs = files.where(F.col("live") & F.col("role").isin(*HELD_BY_HEAD)).join(some, "table_id")
    heads = F.filter(names_with_file(), lambda name: name.startswith(_BRANCH))
    named = theirs.select("table_id", "bytes", F.explode(heads).alias("head"))
    branch = F.substring("head", len(_BRANCH) + 1, 1 << 20).alias("branch")
    return named.groupBy("table_id", branch).agg(F.sum("bytes").alias("live_bytes"))
