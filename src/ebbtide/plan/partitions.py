"""Partitions: the days that they cover, their age, and the files that go with them (spec §3).

The partitions of the inventory are those of the main branch's head. A marked partition that is no longer among them
was deleted by the sweep's commit, where an act was begun on it: what is left of it waits until no retained version
references its files. Where none was, somebody else removed it or gave it another name, and it is sent back.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ebbtide.config.policies import PolicySet
from ebbtide.model.dataset import BESIDE, CHANGELOG
from ebbtide.model.durations import Duration, as_interval
from ebbtide.plan.datasets import holds_on_days, under_floor
from ebbtide.plan.durations import add_text, days_of, interval_of_text, move_day
from ebbtide.plan.references import names_with_file
from ebbtide.plan.select import owner, setting
from ebbtide.plan.verdict import GOING, MARK_TYPE, READY, VERDICT, verdict
from ebbtide.plan.world import CONTENT, OF_PARTITIONS, World, joined, no_texts, only_if, texts


def covering() -> Column:
    """Whether a table's partition dates are the last day covered or the first; ad hoc tables count as daily."""
    schedule = F.coalesce("schedule", F.lit("1d"))
    longer = interval_of_text(F.col("time_grain")) > interval_of_text(schedule)
    return F.coalesce("covers", F.when(longer, "trailing").otherwise("leading"))


def covered_days(partitions: DataFrame) -> DataFrame:
    """`first_day` and `last_day` widened by the table's grain (spec §3, "Partitions' dates and time grain").

    Trailing: the date is the last day covered; leading: the first. A grain or schedule that cannot be read leaves the
    partition without a date: never due.
    """
    grain, schedule, covers = F.col("time_grain"), F.coalesce("schedule", F.lit("1d")), covering()
    first, last = F.col("first_day"), F.col("last_day")
    back = F.least(first, add_text(first, grain, backwards=True))
    ahead = F.greatest(last, F.date_sub(add_text(first, grain), 1))
    readable = interval_of_text(grain).isNotNull() & interval_of_text(schedule).isNotNull()
    return partitions.withColumns(
        {
            "first_day": F.when(grain.isNull(), first).when(
                readable, F.when(covers == "trailing", back).otherwise(first)
            ),
            "last_day": F.when(grain.isNull(), last).when(readable, F.when(covers == "leading", ahead).otherwise(last)),
        }
    )


def partition_objects(
    policies: PolicySet,
    world: World,
    datasets: DataFrame,
    marks: DataFrame | None,
    pinned: DataFrame | None,
    now: datetime,
) -> DataFrame:
    """Every partition of the datasets that a `partitions` policy or a mark concerns, with its decision."""
    present = world.partitions.select(
        "table_id", F.col("partition").alias("object_id"), "first_day", "last_day", "rows", "files", "bytes",
        "last_transaction", F.lit(True).alias("in_head"),
    )  # fmt: skip
    if marks is not None:
        present = present.join(marks, ["table_id", "object_id"], "full").withColumn(
            "in_head", F.coalesce("in_head", F.lit(False))
        )
    else:
        present = present.withColumn("mark_partitions", F.lit(None).cast(MARK_TYPE))
    if pinned is not None:
        present = present.join(pinned, ["table_id", "object_id"], "left")
    else:
        present = present.withColumn("pin", F.lit(None).cast("string"))
    rows = present.join(datasets, "table_id")
    main = F.lit("main")
    rows = rows.withColumn("owner", owner(policies, F.col("for_partitions"), F.array(main)))
    rows = covered_days(rows.where(F.col("owner").isNotNull() | F.col("mark_partitions").isNotNull()))
    return _decide(policies, _with_marked_days(rows, world, "object_id"), now)


def _with_marked_days(rows: DataFrame, world: World, partition: str) -> DataFrame:
    """Where a partition is not `in_head` any more, the days that its mark saw (widened by the grain already)."""
    if world.marked_days is None:
        return rows
    marked = world.marked_days.select(
        "table_id", F.col("partition").alias(partition), F.col("first_day").alias("_first"),
        F.col("last_day").alias("_last"),
    )  # fmt: skip
    days = {
        name: F.when(F.col("in_head"), F.col(name)).otherwise(F.col(seen))
        for name, seen in (("first_day", "_first"), ("last_day", "_last"))
    }
    return rows.join(F.broadcast(marked), ["table_id", partition], "left").withColumns(days).drop("_first", "_last")


def _decide(policies: PolicySet, rows: DataFrame, now: datetime) -> DataFrame:
    number = F.col("owner")
    each = [None if p.partitions is None else p.partitions for p in policies.policies]
    known = [None if p is None or not isinstance(p.older_than, Duration) else p.older_than for p in each]
    text = setting([None if d is None else str(d) for d in known], number, "string")
    months = setting([None if d is None else d.months for d in known], number, "int")
    days = setting([None if d is None else days_of(d) for d in known], number, "int")
    longest = setting([None if d is None else as_interval(d) for d in known], number, "int")
    oldest = setting([p is not None and p.age_of == "oldest" for p in each], number, "boolean")
    day = F.when(oldest, F.col("first_day")).otherwise(F.col("last_day"))
    too_short = F.coalesce(interval_of_text(F.col("time_grain")) >= longest, F.lit(False))
    past = F.coalesce(move_day(day, months, days) < F.lit(now.astimezone(UTC).date()), F.lit(False))
    fingerprint = F.sha2(
        F.concat_ws("|", "object_id", *(F.coalesce(F.col(c).cast("string"), F.lit("?")) for c in _CONTENTS)), 256
    )
    # The sweep's own commit took it out of the head: it did not change, it is half gone. An act that died counts.
    deleted = ~F.col("in_head") & F.col("mark_partitions.act").isNotNull()
    fingerprint = F.when(F.col("in_head"), fingerprint).otherwise(F.col("mark_partitions.fingerprint"))
    rows = rows.withColumns({"_short": too_short, "_past": past, "_day": day, "fingerprint": fingerprint})
    due = F.when(F.col("in_head"), F.col("_past") & ~F.col("_short")).otherwise(deleted)

    def age(_: Column) -> Column:
        which = F.when(oldest, "its first day ").otherwise("its last day ")
        guessed = F.when(
            F.col("date_by") == "text", F.concat(F.lit(", read from the text of "), "date_column", F.lit(","))
        )
        gone = F.concat(
            which, F.col("_day").cast("string"), F.coalesce(guessed, F.lit("")), F.lit(" is more than "), text,
            F.lit(" ago"),
        )  # fmt: skip
        hint = F.when(F.col("date_by").isNull(), "; declare partition_date in tables/*.yml").otherwise("")
        doubt = F.concat(F.lit(": "), "date_doubt", hint)
        return (
            F.when(deleted, F.lit("deleted from the head, its files remain"))
            .when(~F.col("in_head"), F.lit("it is gone: someone else removed it"))
            .when(
                F.col("_short"),
                F.concat(F.lit("grain: "), text, F.lit(" is not longer than the table's "), "time_grain"),
            )
            .when(F.col("_day").isNull(), F.concat(F.lit("no date"), F.coalesce(doubt, F.lit(": never due"))))
            .when(F.col("_past"), gone)
            .otherwise(F.concat(F.lit("not older than "), text))
        )

    rows = verdict(
        rows, policies, owner=number, due=due, age=age,
        protections=joined(
            under_floor(policies, F.col("last_day"), now, days=True), F.col("floor_gc"),
            F.when(F.col("in_head"), F.col("floor_append")),
        ),
        blocks=F.col("blocks"), held=holds_on_days(F.col("first_day"), F.col("last_day")),
        mark=F.col("mark_partitions"), fingerprint=F.col("fingerprint"), now=now,
    )  # fmt: skip
    then_versions = setting([p.versions is not None for p in policies.policies], number, "boolean")
    return rows.select(
        "table_id", F.lit("partitions").alias("target"), "object_id", F.array(F.lit("main")).alias("branches"),
        number.alias("policy"), "fingerprint", "in_head", "refs",
        F.coalesce(then_versions, F.lit(False)).alias("then_versions"), *VERDICT,
        only_if(F.col("in_head"), "main").alias("drops_from"),
    )  # fmt: skip


_NOBODY_EXPIRES = "versions that no policy expires"
_CONTENTS = ("files", "bytes", "rows", "last_transaction")


def files_of_partitions(objects: DataFrame, files: DataFrame, shared: DataFrame | None) -> DataFrame:
    """The files with each partition's rows: those that main's head has, and after the commit all that remain.

    What another branch, a tag, a staged snapshot or another dataset references stays, and `stay` says whose it is.
    Retained versions age out under the same mark.
    """
    going = objects.where(F.col("decision").isin(*GOING)).select(
        "table_id", F.col("object_id").alias("partition"), "in_head", "refs", "decision"
    )
    theirs = files.where(F.col("role").isin(*OF_PARTITIONS)).join(going, ["table_id", "partition"])
    theirs = theirs.withColumn("names", names_with_file())
    main = F.lit("branch:main")
    theirs = theirs.where(~F.col("in_head") | F.array_contains("names", main))
    others = no_texts()
    if shared is not None:
        theirs = theirs.join(F.broadcast(shared), "path", "left")
        others = F.when(
            F.col("datasets").isNotNull(),
            F.transform(F.array_except("datasets", F.array("table_id")), lambda o: F.concat(F.lit("reference:"), o)),
        )
    stay = joined(F.array_except("names", F.array(main)), others)
    return theirs.select(
        "table_id", F.lit("partitions").alias("target"), F.col("partition").alias("object_id"), "path", "bytes",
        F.when(F.col("role") == "data", F.col("rows")).alias("rows"), stay.alias("stay"), "versions", "in_head",
        "decision", "role",
    )  # fmt: skip


def taken_along(theirs: DataFrame, world: World) -> DataFrame:
    """Versions that reference files of a partition which the sweep has deleted from the head."""
    runs = (
        theirs.where(~F.col("in_head") & (F.col("decision") == READY))
        .select("table_id", F.explode("versions").alias("run"))
        .distinct()
    )
    return _versions_in(runs, world).withColumn("taken_along", F.lit(True))


def held_versions(world: World, datasets: DataFrame) -> DataFrame:
    """Versions and transactions that reference files of a partition that a hold covers; unknown days are covered."""
    ranged = datasets.where(F.exists("holds", lambda h: h["first"].isNotNull() | h["last"].isNotNull())).select(
        "table_id", "holds", "time_grain", "schedule", "covers"
    )
    days = world.partitions.select("table_id", "partition", "first_day", "last_day", F.lit(True).alias("in_head"))
    files = world.files.where(F.col("role").isin(*CONTENT, *OF_PARTITIONS)).join(ranged, "table_id")
    dated = covered_days(files.join(days, ["table_id", "partition"], "left"))
    dated = dated.withColumn("in_head", F.coalesce("in_head", F.lit(False)))
    held = _with_marked_days(dated, world, "partition").withColumn(
        "held_days", holds_on_days(F.col("first_day"), F.col("last_day"))
    )
    runs = (
        held.where(F.size("held_days") > 0)
        .select("table_id", F.explode("versions").alias("run"), "held_days")
        .distinct()
    )
    return (
        _versions_in(runs, world, "held_days")
        .groupBy("table_id", "object_id")
        .agg(F.sort_array(F.array_distinct(F.flatten(F.collect_set("held_days")))).alias("held_days"))
    )


def _versions_in(runs: DataFrame, world: World, *columns: str) -> DataFrame:
    """The versions whose position lies in a run. Only for the few datasets that such runs exist of."""
    versions = world.transactions.select("table_id", F.col("transaction_id").alias("object_id"), "position")
    inside = (F.col("run.first") <= F.col("position")) & (F.col("position") <= F.col("run.last"))
    return runs.join(versions, "table_id").where(inside).select("table_id", "object_id", *columns).distinct()


def waits_of_partitions(objects: DataFrame, theirs: DataFrame, kept: DataFrame | None) -> DataFrame:
    """What deleted partitions wait for: names that keep a file, and versions that are not yet old enough."""
    gone = theirs.where(~F.col("in_head") & (F.col("decision") == READY))
    runs = gone.select("table_id", "object_id", "stay", F.explode_outer("versions").alias("run"))
    by_version = only_if(F.col("run").isNotNull(), _NOBODY_EXPIRES)
    if kept is not None:
        known = kept.withColumn("known", F.lit(True))
        runs = runs.withColumn("position", F.col("run.first")).join(known, ["table_id", "position"], "left")
        blocked = F.col("kept_now.position") <= F.col("run.last")
        # A dataset whose versions no policy looks at is not in `kept`: nothing there frees a version.
        by_version = F.when(
            F.col("known"), only_if(F.coalesce(blocked, F.lit(False)), F.concat(F.lit("version:"), "kept_now.id"))
        ).otherwise(by_version)
    by_version = F.when(F.col("run.first") == BESIDE, texts(CHANGELOG)).otherwise(by_version)
    found = runs.groupBy("table_id", "object_id").agg(
        F.flatten(F.collect_set(joined(F.col("stay"), by_version))).alias("waits")
    )
    without = objects.where(~F.col("then_versions")).select("table_id", "object_id", F.lit(True).alias("no_versions"))
    return found.join(without, ["table_id", "object_id"], "left").select(
        "table_id",
        F.lit("partitions").alias("target"),
        "object_id",
        joined(
            F.col("waits"),
            F.when(
                F.coalesce("no_versions", F.lit(False)) & (F.size("waits") > 0),
                F.array(F.lit("a versions target in the policy")),
            ),
        ).alias("waits"),
    )
