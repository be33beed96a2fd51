"""What leaves which head, and what stays all the same: rows and bytes that nobody reads there any more (hazard 36).

Where a branch or a tag keeps the files nothing is freed, and the rows leave main none the less: limits count both
(spec §2). A row of the frames here is a file that leaves the head of a branch with an object. `counts` says whether
that is a loss of its own: what goes with a dropped branch and another head has can still be read there.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ebbtide.plan.references import names_with_file
from ebbtide.plan.verdict import GOING, READY
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
    found = _files_of_heads(objects, datasets, files)
    is_branch = F.col("target") == "branches"
    own = F.array(F.concat(F.lit(_BRANCH), "object_id"))
    found = found.withColumn(
        "head", F.explode(F.when(is_branch, F.array_intersect("heads", own)).otherwise(F.col("heads")))
    )
    # Branches that go together lose together what only they have. A table that goes whole is counted by what is freed.
    lost = F.forall("heads", lambda head: F.array_contains("gone", head))
    return _shaped(found.withColumn("counts", is_branch & lost))


def kept_by_other_names(branches: DataFrame, datasets: DataFrame, files: DataFrame) -> DataFrame:
    """Per branch that is dropped, the bytes of its head that another branch, a tag or a staged snapshot keeps."""
    own = F.concat(F.lit(_BRANCH), "object_id")
    theirs = _files_of_heads(branches, datasets, files).where(F.array_contains("heads", own))
    return kept_by_others(theirs.withColumn("stay", F.array_except("names", F.array(own))))


def _files_of_heads(objects: DataFrame, datasets: DataFrame, files: DataFrame) -> DataFrame:
    """Files that heads hold of datasets of which a branch goes, or all: with the `names` and `heads` that have each,
    and in `gone` the heads that go at the same time: for a mark all that are to go, for a sweep those that go now.
    """
    going = objects.where(F.col("decision").isin(*GOING)).select("table_id", "target", "object_id", "decision")
    name = F.concat(F.lit(_BRANCH), "object_id")
    together = going.groupBy("table_id").agg(
        F.collect_set(name).alias("later"), F.collect_set(F.when(F.col("decision") == READY, name)).alias("now")
    )
    going = going.join(together, "table_id").join(datasets.select("table_id", "refs"), "table_id")
    theirs = files.where(F.col("live") & F.col("role").isin(*HELD_BY_HEAD)).join(going, "table_id")
    return theirs.withColumn("names", names_with_file()).withColumns(
        {
            "heads": F.filter("names", lambda name: name.startswith(_BRANCH)),
            "gone": F.when(F.col("decision") == READY, F.col("now")).otherwise(F.col("later")),
        }
    )


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
    """Per object that goes, the bytes that a branch, a tag, a staged snapshot or another dataset keeps."""
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
