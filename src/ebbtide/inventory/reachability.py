"""Which of some files anything still references, over all datasets of all formats (design.md, invariant 1)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.orphans import referenced_at
from ebbtide.model.dataset import BESIDE, CHANGELOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAMED = "table_id string, path string"
_GOING = "table_id string, transaction_id string, going boolean"


def still_referenced(
    spark: SparkSession,
    inventory: Inventory,
    named: Iterable[tuple[str, str]],
    going: Mapping[str, Iterable[str]],
    dropped: Collection[str] = (),
) -> dict[str, str]:
    """Of files that were named with their dataset, those that must stay, and who needs them.

    A file may go when no other dataset references it, and its own dataset only through versions that are `going`: the
    formats that keep no version by itself (Delta, Hudi, Paimon) still list those. Expired versions need nothing, and a
    dataset that is `dropped` as a whole needs none of its own files.
    """
    from pyspark.sql import functions as F

    from ebbtide.spark.frames import small_frame

    asked = small_frame(spark, sorted(set(named)), _NAMED).withColumnRenamed("table_id", "owner")
    leaving = [(table_id, id_, True) for table_id, ids in going.items() for id_ in sorted(ids)]
    gone = F.coalesce("expired", F.lit(False)) | F.coalesce("going", F.lit(False))
    staying = (
        inventory.frame(spark, "transactions")
        .join(F.broadcast(small_frame(spark, leaving, _GOING)), ["table_id", "transaction_id"], "left")
        .where(~gone)
        .select("table_id", "transaction_id", "position")
    )
    assert inventory.current.scanned_at is not None
    files = inventory.frame(spark, "files").where(referenced_at(inventory.current.scanned_at))
    files = files.select("table_id", "path", "versions")
    found = files.join(F.broadcast(asked), "path")
    foreign = found.where(F.col("table_id") != F.col("owner")).select("path", F.col("table_id").alias("by"))
    own = found.where((F.col("table_id") == F.col("owner")) & ~F.col("owner").isin(*dropped))
    # A file without runs (a log, a catalog's own file) belongs to the dataset as a whole.
    whole = own.where(F.coalesce(F.size("versions"), F.lit(0)) <= 0).select("path", F.lit("its dataset").alias("by"))
    outlives = F.exists("versions", lambda run: run["first"] == BESIDE)
    whole = whole.unionByName(own.where(outlives).select("path", F.lit(CHANGELOG).alias("by")))
    runs = own.select("table_id", "path", F.explode("versions").alias("run"))
    inside = (F.col("run.first") <= F.col("position")) & (F.col("position") <= F.col("run.last"))
    by_version = (
        runs.join(staying, "table_id")
        .where(inside)
        .select("path", F.concat(F.lit("version:"), "transaction_id").alias("by"))
    )
    needed = foreign.unionByName(whole).unionByName(by_version).groupBy("path").agg(F.min("by").alias("by"))
    return {row["path"]: row["by"] for row in needed.collect()}
