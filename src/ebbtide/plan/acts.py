"""What a sweep is to do: the objects that go now, with their files and the heads that still have them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ebbtide.plan.plan import Plan
from ebbtide.plan.references import named_heads, names_with_file
from ebbtide.plan.world import HELD_BY_HEAD, World, no_texts


def files_to_sweep(plan: Plan, world: World, *, drops: bool) -> DataFrame:
    """A row per file and object with decision `sweep`.

    Where there are `drops`, `in_heads` are the branches whose head references the file, and `role` is what it is to
    them. `modified` is an orphan's modification time as it was listed, in microseconds since 1970.
    """
    key = ["table_id", "target", "object_id"]
    going = plan.objects.where(F.col("decision") == "sweep").select(
        F.col("dataset").alias("table_id"), "target", F.col("object").alias("object_id")
    )
    named = plan.files.select(*key, "path", "bytes").join(going, key, "left_semi")
    if not drops:
        nowhere = {"role": F.lit(None).cast("string"), "in_heads": no_texts()}
        return _with_times(named.withColumns(nowhere), world).select(*key, *_OF_FILE)
    known = _with_heads(world.files.select("table_id", "path", "role", "versions"), world)
    found = named.join(known, ["table_id", "path"], "left")
    found = found.withColumn("in_heads", F.coalesce("in_heads", no_texts()))
    return _with_times(found, world).select(*key, *_OF_FILE)


def files_of_drops(plan: Plan, world: World) -> DataFrame:
    """A row per file that main's head gives up with a partition that goes now, whoever else keeps the file."""
    going = plan.objects.where((F.col("decision") == "sweep") & (F.col("target") == "partitions")).select(
        F.col("dataset").alias("table_id"), F.col("object").alias("partition")
    )
    theirs = world.files.where(F.col("role").isin(*HELD_BY_HEAD)).join(going, ["table_id", "partition"])
    return (
        _with_heads(theirs, world)
        .where(F.array_contains("in_heads", "main"))
        .select("table_id", F.col("partition").alias("object_id"), "path", "bytes")
    )


def _with_heads(files: DataFrame, world: World) -> DataFrame:
    """With `in_heads`: the branches whose head references the file."""
    heads = F.filter(F.coalesce(names_with_file(), no_texts()), lambda name: name.startswith("branch:"))
    names = F.transform(heads, lambda name: F.substring(name, len("branch:") + 1, 1 << 20))
    return files.join(named_heads(world), "table_id", "left").withColumn("in_heads", names)


_OF_FILE = ("path", "bytes", "role", "in_heads", "modified")


def _with_times(named: DataFrame, world: World) -> DataFrame:
    named = named.withColumn("bytes", F.coalesce("bytes", F.lit(0)))
    if world.orphans is None:
        return named.withColumn("modified", F.lit(None).cast("bigint"))
    times = world.orphans.select("path", F.unix_micros("modified_at").alias("modified"))
    return named.join(times, "path", "left")
