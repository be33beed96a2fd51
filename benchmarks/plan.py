"""Plan 100,000 datasets with 5 million transactions and 50 policies, against planning them one by one.

The information schema is synthetic: made by Spark, kept as Parquet, read like the inventory's. Reasons, protections,
freed files and the digest are part of what is timed. The baseline is the same code on one dataset at a time, measured
on 50 random ones in the same session and extrapolated. EBBTIDE_BENCH_DATASETS makes it smaller; the line says so.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil
from pyspark.sql import functions as F

from benchmarks.results import Result
from benchmarks.scan import timed
from ebbtide.config.policies import PolicySet, load_policies
from ebbtide.plan.build import build_plan
from ebbtide.plan.world import ANY_ORDER, DROPS_FILES, HOLDS, World
from ebbtide.spark.session import session

DATASETS = int(os.environ.get("EBBTIDE_BENCH_DATASETS", "100000"))
COMMITS, POLICIES, BASELINE = 50, 50, 50
NOW = datetime(2026, 11, 15, tzinfo=UTC)
SECTIONS = ("tables", "columns", "partitions", "branches", "transactions", "files")


class PeakResident:
    """The most resident memory of this process and the JVM together.

    Sampled cheaply: reading exact shares of a JVM of several GiB five times a second would double what is timed.
    """

    def __enter__(self) -> PeakResident:
        self.bytes, self._stop = 0, Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        me = psutil.Process()
        while not self._stop.wait(0.5):
            with suppress(psutil.Error):
                self.bytes = max(self.bytes, sum(p.memory_info().rss for p in [me, *me.children(recursive=True)]))

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def write_world(spark: Any, root: Path, datasets: int) -> None:
    """Datasets of 50 commits, one a week: a reload every tenth, a side branch on every fifth, a tag on every third.

    Each commit adds a file; a reload takes the files of the view before. A tenth of the datasets share a file.
    """
    ids = spark.range(datasets).withColumn("table_id", F.format_string("lake.ns%d.t%d", F.col("id") % 50, "id"))
    ids = ids.repartition(8).withColumn("forked", F.col("id") % 5 == 0).withColumn("tagged", F.col("id") % 3 == 0)
    none = F.array().cast("array<string>")
    formats = F.element_at(
        F.array(*(F.lit(f) for f in ("iceberg", "delta", "paimon"))), (F.col("id") % 3 + 1).cast("int")
    )
    tables = ids.select(
        "table_id", formats.alias("format"), F.array(F.format_string("Class.c%d", F.col("id") % 60)).alias("labels"),
        F.lit(None).cast("string").alias("schedule"), F.lit(None).cast("string").alias("time_grain"),
        F.create_map(F.lit("team"), F.format_string("x%d", F.col("id") % 7)).alias("properties"),
        F.when(formats == "delta", F.create_map(F.lit("delta.deletedFileRetentionDuration"), F.lit("interval 7 days")))
        .otherwise(F.create_map().cast("map<string,string>")).alias("floors"),
        F.when(formats != "paimon", F.array(F.lit(ANY_ORDER), F.lit(DROPS_FILES))).otherwise(none)
        .alias("capabilities"), none.alias("unknown"), none.alias("locked_by"),
        F.lit(None).cast("string").alias("scan_error"),
    )  # fmt: skip
    commits = ids.withColumn("n", F.explode(F.sequence(F.lit(0), F.lit(COMMITS - 1))))
    # On forked datasets the last five commits are on the side branch, which left main five before.
    side = F.col("forked") & (F.col("n") >= COMMITS - 5)
    reach = F.col("forked") & (F.col("n") < COMMITS - 5)
    on = F.when(side, F.array(F.lit("side"))).when(reach, F.array(F.lit("main"), F.lit("side"))).otherwise(
        F.array(F.lit("main")))  # fmt: skip
    last_reload = F.lit((COMMITS - 1) // 10 * 10)
    head = F.when(F.col("forked"), COMMITS - 6).otherwise(COMMITS - 1)
    view = F.floor(F.col("n") / 10)
    in_latest = F.array_compact(F.array(
        F.when((view == F.floor(head / 10)) & (F.col("n") <= head), "branch:main"),
        F.when(F.col("forked") & (F.col("n") >= last_reload), "branch:side"),
        F.when(F.col("tagged") & (F.col("n") <= 3), "tag:keep"),
    ))  # fmt: skip
    transactions = commits.select(
        "table_id", F.col("n").cast("string").alias("transaction_id"),
        F.when(F.col("n") > 0, (F.col("n") - 1).cast("string")).alias("parent_id"), on.alias("branches"),
        F.when((F.col("n") % 10 == 0) & (F.col("n") > 0), "SNAPSHOT").otherwise("APPEND").alias("kind"),
        F.timestamp_seconds(F.lit(int(NOW.timestamp())) - (COMMITS - F.col("n")) * 7 * 86400).alias("committed_at"),
        F.lit(False).alias("staged"), F.lit(False).alias("expired"),
        ((F.col("n") % 10 == 0) & (F.col("n") > 0)).alias("starts_view"),
        in_latest.alias("in_views_of"), F.col("n").cast("long").alias("position"),
    )  # fmt: skip
    end = F.least((view + 1) * 10 - 1, F.lit(COMMITS - 1)).cast("long")
    path = F.when(
        (F.col("id") % 10 == 0) & (F.col("n") == 1),
        F.format_string("file:///shared/%d", (F.col("id") / 20).cast("long")),
    ).otherwise(F.format_string("file:///lake/%s/data/%d.parquet", "table_id", "n"))
    files = commits.select(
        "table_id", path.alias("path"), F.lit("data").alias("role"), F.lit(1 << 20).cast("long").alias("bytes"),
        F.col("n").cast("string").alias("first_transaction"), F.lit(None).cast("string").alias("partition"),
        F.lit(1000).cast("long").alias("rows"),
        F.array(F.struct(F.col("n").cast("long").alias("first"), end.alias("last"))).alias("versions"),
    )  # fmt: skip
    refs = [
        ids.select("table_id", F.lit("main").alias("name"), F.lit("branch").alias("kind"),
                   head.cast("string").alias("head"), F.lit(True).alias("main")),
        ids.where("forked").select("table_id", F.lit("side").alias("name"), F.lit("branch").alias("kind"),
                                   F.lit(str(COMMITS - 1)).alias("head"), F.lit(False).alias("main")),
        ids.where("tagged").select("table_id", F.lit("keep").alias("name"), F.lit("tag").alias("kind"),
                                   F.lit("3").alias("head"), F.lit(False).alias("main")),
    ]  # fmt: skip
    branches = refs[0].unionByName(refs[1]).unionByName(refs[2])
    partitions = spark.createDataFrame(
        [], "table_id string, partition string, first_day date, last_day date, rows long, files long, bytes long, "
        "last_transaction string",
    )  # fmt: skip
    columns = spark.createDataFrame([], "table_id string, column_id string, type string")
    frames = (tables, columns, partitions, branches, transactions, files)
    for name, frame in zip(SECTIONS, frames, strict=True):
        frame.write.parquet(f"{root}/{name}")


def read_world(spark: Any, root: Path) -> World:
    return World(**{name: spark.read.parquet(f"{root}/{name}") for name in SECTIONS})


def write_policies(root: Path) -> PolicySet:
    """Fifty policies of every selector: by name, label, property and format; with views, minima, limits, overrides."""
    targets = (
        "transactions: {older_than: 90d}",
        "transactions: {older_than: 60d, keep_views: 2}, versions: {older_than: 30d, keep_min: 3}",
        "versions: {older_than: 14d, keep_max: 30}",
        "transactions: {older_than: 1m, allow_latest_view: true}",
        "versions: {older_than: 7d, limit: 10}, branches: {unused_for: 2m}",
    )
    selects = (
        "{{any_labels: [Class.c{0}]}}",
        '{{tables: ["lake.ns{0}.*"]}}',
        '{{tables: ["**"], all_labels: [Class.c{0}], properties: {{team: x1}}}}',
        "{{formats: [iceberg], any_labels: [Class.c{0}], branches: [main]}}",
    )
    each = (f"  - {{name: p{n}, select: {selects[n % 4].format(n)}, {targets[n % 5]}}}" for n in range(POLICIES - 1))
    lines = ["policies:", *each]
    lines.append(
        '  - {name: rest, select: {tables: ["**"]}, transactions: {older_than: 1y}, versions: {older_than: 60d}}'
    )
    (root / "policies").mkdir(parents=True)
    (root / "policies" / "all.yml").write_text("\n".join(lines))
    return load_policies(root)


def main(root: Path) -> Iterator[Result]:
    shutil.rmtree(root, ignore_errors=True)
    policies = write_policies(root)
    spark = session(master="local[2]", conf={"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "8"})
    for name, datasets in (("warm", 500), ("quarter", DATASETS // 4), ("whole", DATASETS)):
        write_world(spark, root / name, datasets)
    holds = spark.createDataFrame([], HOLDS)

    def run(world: World) -> str:
        with build_plan(policies, world, None, None, holds, now=NOW) as made:
            assert made.counts["mark"] > 0
            return made.digest

    run(read_world(spark, root / "warm"))
    quarter, _ = timed(lambda: run(read_world(spark, root / "quarter")))
    with PeakResident() as memory:
        whole, _ = timed(lambda: run(read_world(spark, root / "whole")))
    # One by one: each dataset's rows as a world of its own, laid out as a loop would find them.
    everything = read_world(spark, root / "warm")
    names = [row[0] for row in everything.tables.select("table_id").collect()]
    seconds = []
    for name in random.Random(7).sample(names, BASELINE):
        mine = {s: getattr(everything, s).where(F.col("table_id") == name).localCheckpoint() for s in SECTIONS}
        seconds.append(timed(lambda mine=mine: run(World(**mine)))[0])  # type: ignore[misc]
    what = f"{DATASETS:,} datasets × {COMMITS} commits, {POLICIES} policies"
    yield Result(f"plan of {what}", whole, "dataset by dataset", statistics.fmean(seconds) * DATASETS, 500)
    yield Result.limit("4 times the input, per cent of the time", whole / quarter * 100, 450)
    yield Result.limit("memory of driver and Python together, MiB", memory.bytes / 2**20, 6144)
    spark.stop()
