"""Which files go when what is to go has gone: reachability over the retained versions (spec §2, "A sweep removes").

A position is kept while its transaction is not to go, or a branch or tag names it. A run of positions is free when the
next kept position lies behind it; a file is free when all of its runs are, and no other dataset references it. Twice:
`later`, with everything that is marked or will be, and `now`, with what is past its grace.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ebbtide.model.dataset import BESIDE, CHANGELOG
from ebbtide.plan.verdict import GOING, READY
from ebbtide.plan.world import CONTENT, joined, no_texts, texts


def version_goes() -> Column:
    """Whether a version of the timeline goes now, as a transaction's or in its own right.

    What is to leave a head first still has its version afterwards, and so has what another target expires.
    """
    by_transaction = F.col("t.exists") & (F.col("t.decision") == READY) & F.col("expires")
    return by_transaction | (F.col("v.exists") & (F.col("v.decision") == READY))


def next_kept(timeline: DataFrame) -> DataFrame:
    """Per position the first kept one from there on: with all that goes (`later`), and with what is ready (`now`)."""
    is_named = F.exists("refs", lambda ref: (ref["head"] == F.col("object_id")) & ~ref["name"].startswith("staged:"))
    # An expired version keeps nothing: what it referenced is gone in part already.
    there = ~F.col("expired")
    going = F.col("t.decision").isin(*GOING) & F.col("t.exists") | F.col("v.decision").isin(*GOING) & F.col("v.exists")
    ready = version_goes()
    at = F.struct("position", F.col("object_id").alias("id"))
    # From the newest down, so that the frame grows by one row at a time; a frame that ends at the newest would be
    # computed anew for each row.
    down = Window.partitionBy("table_id").orderBy(F.col("position").desc())
    return timeline.select(
        "table_id",
        "position",
        F.last(F.when((~going & there) | is_named, F.col("position")), ignorenulls=True).over(down).alias("kept_later"),
        F.last(F.when((~ready & there) | is_named, at), ignorenulls=True).over(down).alias("kept_now"),
    )


def free_files(files: DataFrame, kept: DataFrame, shared: DataFrame | None) -> DataFrame:
    """Files that nothing but what goes references: with `now` where that holds for what is ready alone.

    `versions` are the runs of versions that reference the file, `last_version` is the last of their positions.
    """
    runs = files.select(
        "table_id", "path", "role", "bytes", "rows", "first_transaction", "versions",
        F.size("versions").alias("runs"), F.array_max("versions.last").alias("last_version"),
        F.explode("versions").alias("run"),
    )  # fmt: skip
    open_runs = (
        runs.withColumn("position", F.col("run.first"))
        .join(kept, ["table_id", "position"])
        .where(F.col("kept_later").isNull() | (F.col("kept_later") > F.col("run.last")))
    )
    now = F.col("kept_now").isNull() | (F.col("kept_now.position") > F.col("run.last"))
    free = (
        open_runs.withColumn("now", now)
        .groupBy("table_id", "path")
        .agg(
            F.count("*").alias("open"),
            F.max("runs").alias("runs"),
            F.min("now").alias("now"),
            *(F.first(name).alias(name) for name in _OF_FILE),
        )
        .where("open = runs")
        .drop("open", "runs")
    )
    return free if shared is None else free.join(F.broadcast(shared.select("path")), "path", "left_anti")


_OF_FILE = ("role", "bytes", "rows", "first_transaction", "versions", "last_version")


def files_of_history(timeline: DataFrame, free: DataFrame) -> DataFrame:
    """Free files under the transaction that added them and under the last version that references them.

    Where neither of them goes as such, the file is named by the transaction whose version is the last to reference it:
    no file goes that no object names, and none that is free now is left behind because who names it waits. An expired
    version is no object, so the last one before it stands in for it.
    """
    going = {name: F.when(F.col(f"{name}.exists") & F.col(f"{name}.decision").isin(*GOING), F.col(f"{name}.decision"))
             for name in ("t", "v")}  # fmt: skip
    adders = timeline.where(F.size("leaves") == 0).select(
        "table_id", F.col("object_id").alias("first_transaction"), going["t"].alias("as_adder"),
        going["v"].alias("adders_version"),
    )  # fmt: skip
    found = free.join(adders.where("as_adder IS NOT NULL"), ["table_id", "first_transaction"], "left")
    holders = _holders(
        timeline.select("table_id", "position", "expired", F.col("object_id").alias("last_id"),
                        going["t"].alias("as_last"), going["v"].alias("as_version")), free
    )  # fmt: skip
    found = found.join(holders, ["table_id", "path"], "left")

    def named(target: str, id_: str, decision: str, when: Column) -> Column:
        ready = (F.col(decision) != READY) | F.col("now")
        whole = F.struct(
            F.lit(target).alias("target"), F.col(id_).alias("object_id"), F.col(decision).alias("decision")
        )
        return F.when(when & ready, whole)

    adder, version = F.col("as_adder").isNotNull(), F.col("as_version").isNotNull()

    def is_ready(name: str) -> Column:
        return F.coalesce(F.col(name) == READY, F.lit(False))

    # Its adder may be in its grace, or wait for another file of its own, while the versions target takes its version.
    alone = F.col("now") & is_ready("as_last") & ~is_ready("as_version")
    alone = alone & (~is_ready("as_adder") | is_ready("adders_version"))
    last = (~adder & ~version & F.col("as_last").isNotNull()) | alone
    by = F.array(
        named("transactions", "first_transaction", "as_adder", adder),
        named("versions", "last_id", "as_version", version),
        named("transactions", "last_id", "as_last", last & ~(adder & F.col("first_transaction").eqNullSafe("last_id"))),
    )
    return found.withColumn("by", F.explode(F.array_compact(by))).select(
        "table_id", "by.target", "by.object_id", "path", "bytes",
        F.when(F.col("role") == "data", F.col("rows")).alias("rows"), "by.decision",
    )  # fmt: skip


def _holders(versions: DataFrame, free: DataFrame) -> DataFrame:
    """The last version that is there and references the file, with what becomes of it, per file."""
    of_version = F.struct("position", "last_id", "as_last", "as_version")
    up = Window.partitionBy("table_id").orderBy("position")
    there = versions.select(
        "table_id",
        F.col("position").alias("last_version"),
        F.last(F.when(~F.col("expired"), of_version), ignorenulls=True).over(up).alias("holder"),
    )
    # In the last run nearly always; where all of that one expired, in one before it.
    runs = free.select("table_id", "path", F.explode("versions").alias("run")).select(
        "table_id", "path", "run.first", F.col("run.last").alias("last_version")
    )
    reads_it = F.col("holder.position") >= F.col("first")
    found = runs.join(there, ["table_id", "last_version"]).where(reads_it).groupBy("table_id", "path")
    return found.agg(F.max_by("holder", "holder.position").alias("holder")).select("table_id", "path", "holder.*")


def files_of_leaving(timeline: DataFrame, files: DataFrame, shared: DataFrame | None) -> DataFrame:
    """The files that leave the heads with transactions of the latest view whose policy allows it.

    Versions between still reference them: the object waits for those after its commit, and they do not make it smaller.
    """
    leaving = timeline.where((F.size("leaves") > 0) & F.col("t.exists") & F.col("t.decision").isin(*GOING)).select(
        "table_id", F.col("object_id").alias("first_transaction"), F.col("t.decision").alias("decision")
    )
    theirs = files.where(F.col("role").isin(*CONTENT)).join(leaving, ["table_id", "first_transaction"])
    if shared is not None:
        theirs = theirs.join(F.broadcast(shared.select("path")), "path", "left_anti")
    return theirs.select(
        "table_id",
        F.lit("transactions").alias("target"),
        F.col("first_transaction").alias("object_id"),
        "path",
        "bytes",
        F.when(F.col("role") == "data", F.col("rows")).alias("rows"),
        "decision",
    )


def waits(timeline: DataFrame, files: DataFrame, kept: DataFrame, shared: DataFrame | None) -> DataFrame:
    """What ready transactions wait for: versions, changelogs and datasets that reference a file that they added."""
    ready = timeline.where(F.col("t.exists") & (F.col("t.decision") == READY)).select(
        "table_id", F.col("object_id").alias("first_transaction"), "leaves", "expires"
    )
    runs = (
        files.where(F.col("role").isin(*CONTENT))
        .join(ready, ["table_id", "first_transaction"])
        .select("table_id", "path", "first_transaction", "leaves", "expires", F.explode("versions").alias("run"))
        .withColumn("position", F.col("run.first"))
        .join(kept, ["table_id", "position"], "left")
    )
    blocked = F.coalesce(F.col("kept_now.position") <= F.col("run.last"), F.lit(False))
    by_version = F.when(blocked, F.array(F.concat(F.lit("version:"), "kept_now.id"))).otherwise(no_texts())
    # The changelog that is to keep a file comes from the expiry of its version, and is an object of its own then.
    to_come = F.when(F.col("expires"), no_texts()).otherwise(texts(CHANGELOG))
    by_version = F.when(F.col("run.first") == BESIDE, to_come).otherwise(by_version)
    by_dataset = no_texts()
    if shared is not None:
        runs = runs.join(F.broadcast(shared), "path", "left")
        others = F.array_except("datasets", F.array("table_id"))
        by_dataset = F.when(
            F.col("datasets").isNotNull(), F.transform(others, lambda o: F.concat(F.lit("reference:"), o))
        ).otherwise(no_texts())
    return (
        runs.withColumn("waits", joined(by_version, by_dataset))
        .groupBy("table_id", F.col("first_transaction").alias("object_id"))
        .agg(F.flatten(F.collect_set("waits")).alias("file_waits"), F.max(F.size("leaves") > 0).alias("in_head"))
        # While a head still has to give them up there is a commit to make: nothing to wait for yet.
        .select(
            "table_id",
            F.lit("transactions").alias("target"),
            "object_id",
            F.when(F.col("in_head"), no_texts()).otherwise(F.sort_array(F.array_distinct("file_waits"))).alias("waits"),
        )
    )


def own_versions(timeline: DataFrame) -> DataFrame:
    """What left the heads and is to be expired by another target waits for that, also where it added no file itself."""
    by_versions = F.col("v.exists") & (F.col("v.decision") == READY)
    stays = (F.size("leaves") == 0) & ~F.col("expires") & ~by_versions
    return timeline.where(F.col("t.exists") & (F.col("t.decision") == READY) & stays).select(
        "table_id",
        F.lit("transactions").alias("target"),
        "object_id",
        F.array(F.concat(F.lit("version:"), "object_id")).alias("waits"),
    )


def oldest_first(timeline: DataFrame) -> DataFrame:
    """Where removal is oldest first: what ready objects wait for is the oldest kept version before them (spec §2).

    A version that only tags keep is passed: Paimon's tags hold its content themselves, and Hudi's cleaner leaves the
    files of savepoints where they are. Where no policy looks at versions, its transaction says what keeps it, which
    may also be a tag after it, or one in another branch's folder: Paimon passes only what a tag of the line names. A
    savepoint cannot be read after a clean (formats.md), so without a policy on versions Hudi's are not passed.
    """
    line = F.regexp_extract("object_id", "^(.*)/", 1)
    ready = (F.col("t.exists") & (F.col("t.decision") == READY)) | (F.col("v.exists") & (F.col("v.decision") == READY))
    up = Window.partitionBy("table_id", line).orderBy("position")

    def by_tags(part: str) -> Column:
        kept = F.col(f"{part}.protected_by")
        by_any = F.col(f"{part}.exists") & (F.col(f"{part}.decision") == "keep") & (F.size(kept) > 0)
        return by_any & F.forall(kept, lambda name: name.startswith("tag:"))

    def of_line(name: Column) -> Column:
        of_main = name.startswith("tag:") & ~name.contains("/")
        return F.when(line == "main", of_main).otherwise(name.startswith(F.concat(F.lit("tag:"), line, F.lit("/"))))

    tagged = F.exists("refs", lambda ref: (ref["head"] == F.col("object_id")) & of_line(ref["name"]))
    passed = by_tags("t") & tagged & (F.col("format") == "paimon")
    only_tags = F.when(F.col("v.exists"), by_tags("v")).otherwise(passed)
    blocks = ~ready & ~F.col("expired") & ~only_tags
    oldest = F.first(F.when(blocks, F.col("object_id")), ignorenulls=True).over(up)
    rows = timeline.where(~F.col("any_order")).withColumn("oldest", oldest).where(ready & F.col("oldest").isNotNull())
    return rows.select(
        "table_id",
        F.explode(texts("transactions", "versions")).alias("target"),
        "object_id",
        F.array(F.concat(F.lit("oldest first:"), "oldest")).alias("waits"),
    )
