"""Targets that concern a dataset as a whole: rows, branches, tables (spec §2)."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ebbtide.config.policies import PolicySet
from ebbtide.model.durations import Duration, first_kept_day, first_kept_instant
from ebbtide.model.times import as_text
from ebbtide.plan.datasets import any_holds, under_floor
from ebbtide.plan.durations import micros_of, move_instant
from ebbtide.plan.freed import version_goes
from ebbtide.plan.select import owner, setting
from ebbtide.plan.verdict import MARK_TYPE, VERDICT, verdict
from ebbtide.plan.world import World, joined, no_texts, only_if, texts

OBJECTS = (
    "table_id string, target string, object_id string, branches array<string>, policy int, fingerprint string, "
    "cutoff string, decision string, because string, waits_for array<string>, protected_by array<string>, "
    "drops_from array<string>"
)
COLUMNS = tuple(column.split()[0] for column in OBJECTS.split(", "))
"""`drops_from`: the branches whose heads lose the object's data files before the files go."""


def with_state(rows: DataFrame, target: str, marks: DataFrame | None, pinned: DataFrame | None) -> DataFrame:
    for frame, name, type_ in ((marks, f"mark_{target}", MARK_TYPE), (pinned, "pin", "string")):
        if frame is None:
            rows = rows.withColumn(name, F.lit(None).cast(type_))
        else:
            rows = rows.join(frame.select("table_id", "object_id", name), ["table_id", "object_id"], "left")
    return rows


def as_objects(rows: DataFrame, target: str, branches: Column) -> DataFrame:
    return rows.select(
        "table_id", F.lit(target).alias("target"), "object_id", branches.alias("branches"),
        F.col("owner").alias("policy"), "fingerprint", F.col("cutoff").cast("string").alias("cutoff"), *VERDICT,
        no_texts().alias("drops_from"),
    ).select(*COLUMNS)  # fmt: skip


def row_objects(
    policies: PolicySet,
    world: World,
    datasets: DataFrame,
    marks: DataFrame | None,
    pinned: DataFrame | None,
    now: datetime,
) -> DataFrame:
    """One object per dataset and owning policy; its cutoff is frozen by the mark (spec §2)."""
    number = F.col("owner")
    each = [p.rows for p in policies.policies]
    ages = [r.older_than if r is not None and isinstance(r.older_than, Duration) else None for r in each]
    names = [p.name for p in policies.policies]
    rows = datasets.withColumn("owner", owner(policies, F.col("for_rows"), texts("main"))).where("owner IS NOT NULL")
    rows = rows.withColumn("object_id", setting(names, number, "string")).withColumn(
        "wanted", setting([None if r is None else r.column for r in each], number, "string")
    )
    types = world.columns.select("table_id", F.col("column_id").alias("wanted"), F.lower("type").alias("type"))
    rows = with_state(rows.join(types, ["table_id", "wanted"], "left"), "rows", marks, pinned)
    is_day, is_instant = F.col("type") == "date", F.col("type").startswith("timestamp")
    day = setting([None if d is None else first_kept_day(d, now).isoformat() for d in ages], number, "string")
    instant = setting([None if d is None else as_text(first_kept_instant(d, now)) for d in ages], number, "string")
    where = setting([None if r is None else r.where for r in each], number, "string")
    fresh = F.coalesce(F.when(is_day, day).when(is_instant, instant))
    said = setting([None if d is None else str(d) for d in ages], number, "string")
    rows = rows.withColumns(
        {
            "cutoff": F.coalesce(F.col("mark_rows.cutoff"), fresh),
            "where": where,
            # The policy as it was marked; the rows themselves change every day.
            "fingerprint": F.sha2(
                F.concat_ws("|", "object_id", F.coalesce(where, F.concat_ws(":", "wanted", said))), 256
            ),
        }
    )
    cutoff, where = F.col("cutoff"), F.col("where")

    def age(_: Column) -> Column:
        return (
            F.when(F.col("mark_rows.acted_at").isNotNull(), F.lit("deleted from the head, versions before it remain"))
            .when(where.isNotNull(), F.concat(F.lit("rows where "), where))
            .when(F.col("type").isNull(), F.concat(F.lit("the table has no column "), "wanted"))
            .when(cutoff.isNull(), F.concat("wanted", F.lit(" is "), "type", F.lit(", neither a date nor a timestamp")))
            .otherwise(F.concat(F.lit("rows with "), "wanted", F.lit(" before "), cutoff, F.lit(", older than "), said))
        )

    floors = joined(
        *(
            only_if(F.array_contains("floor_numbers", n) & ~_reaches(ages, floor.keep_at_least, now, number),
                    f"floor:{floor.label}")
            for n, floor in enumerate(policies.floors)
        ),
        no_texts(),
    )  # fmt: skip
    in_head = F.when(F.col("mark_rows.acted_at").isNull(), F.col("floor_append"))
    rows = verdict(
        rows, policies, owner=number, due=where.isNotNull() | cutoff.isNotNull(), age=age,
        protections=joined(floors, F.col("floor_gc"), in_head), blocks=F.col("blocks"), held=any_holds(),
        mark=F.col("mark_rows"), fingerprint=F.col("fingerprint"), now=now,
    )  # fmt: skip
    return as_objects(rows, "rows", texts("main"))


def versions_before_delete(marks: DataFrame, world: World) -> DataFrame:
    """Versions that still hold rows which a sweep has deleted under a mark: they go under that mark (spec §2)."""
    acted = marks.where((F.col("target") == "rows") & F.col("acted_at").isNotNull())
    acted = acted.groupBy("table_id").agg(F.max("acted_at").alias("acted_at"))
    found = world.transactions.join(F.broadcast(acted), "table_id").where(F.col("committed_at") < F.col("acted_at"))
    return found.select("table_id", F.col("transaction_id").alias("object_id"), F.lit(True).alias("taken_along"))


def _forks(world: World) -> DataFrame:
    """Per dataset, for each branch the time of the newest version that it shares with main."""
    both = world.transactions.where(F.array_contains("branches", "main")).select(
        "table_id", F.explode("branches").alias("branch"), "committed_at"
    )
    left = both.where("branch <> 'main'").groupBy("table_id", "branch").agg(F.max("committed_at").alias("at"))
    pairs = F.map_from_entries(F.collect_list(F.struct("branch", "at")))
    return left.groupBy("table_id").agg(pairs.alias("forks"))


def waits_of_rows(marks: DataFrame, timeline: DataFrame | None, world: World) -> DataFrame:
    """What deleted rows wait for: versions that do not go now and are from before the delete, or of a branch that left
    main before it, whatever was written there since.
    """
    acted = marks.where((F.col("target") == "rows") & F.col("acted_at").isNotNull())
    acted = F.broadcast(acted.select("table_id", "target", F.col("object_id").alias("row_object"), "acted_at"))
    there = world.transactions.select(
        "table_id",
        F.col("transaction_id").alias("object_id"),
        "committed_at",
        F.coalesce("branches", no_texts()).alias("branches"),
        F.coalesce("expired", F.lit(False)).alias("gone"),
    ).join(_forks(world), "table_id", "left")
    going, looked_at = F.lit(False), F.lit(False)
    if timeline is not None:
        known = timeline.select(
            "table_id", "object_id", version_goes().alias("going"), (F.col("owner_v").isNotNull()).alias("owned")
        )
        there = there.join(known, ["table_id", "object_id"], "left")
        going, looked_at = F.coalesce("going", F.lit(False)), F.coalesce("owned", F.lit(False))
    # Where nobody knows when a branch left main, it may have been before.
    aside = ~F.array_contains("branches", "main") & ~F.exists(
        "branches", lambda name: F.coalesce(F.col("forks")[name] >= F.col("acted_at"), F.lit(False))
    )
    before = (F.col("committed_at") < F.col("acted_at")) | aside
    held = there.join(acted, "table_id").where(before & ~F.col("gone") & ~going)
    name = F.when(looked_at, F.concat(F.lit("version:"), "object_id")).otherwise(
        F.lit("a versions target in the policy")
    )
    names = F.sort_array(F.collect_set(name))
    return held.groupBy("table_id", "target", F.col("row_object").alias("object_id")).agg(names.alias("waits"))


def _reaches(ages: list[Duration | None], floor: Duration, now: datetime, number: Column) -> Column:
    """Whether all that the owner takes is older than a floor too; what goes by predicate has no age."""
    border = first_kept_day(floor, now)
    return setting([d is not None and first_kept_day(d, now) <= border for d in ages], number, "boolean")


def branch_objects(
    policies: PolicySet,
    world: World,
    datasets: DataFrame,
    marks: DataFrame | None,
    pinned: DataFrame | None,
    now: datetime,
) -> DataFrame:
    """Branches that nobody wrote to for `unused_for`, counted from the head's commit. Never main.

    What would go with the branch keeps it: a tag that lies in it and a consumer that reads it (Paimon), and a version
    that a person unmarked and main does not reach (spec §1).
    """
    number = F.col("owner")
    heads = world.transactions.select("table_id", F.col("transaction_id").alias("head"), "committed_at")
    rows = world.branches.where(F.col("kind") == "branch").join(datasets, "table_id")
    rows = rows.withColumn("owner", owner(policies, F.col("for_branches"), F.array("name"))).where("owner IS NOT NULL")
    rows = rows.join(heads, ["table_id", "head"], "left").withColumn("object_id", F.col("name"))
    rows = with_state(rows, "branches", marks, None if pinned is None else _of_whole_branches(pinned, world))
    ages = [None if p.branches is None else p.branches.unused_for for p in policies.policies]
    text = setting([None if d is None else str(d) for d in ages], number, "string")
    moved = move_instant(
        F.col("committed_at"),
        setting([None if d is None else d.months for d in ages], number, "int"),
        setting([None if d is None else micros_of(d) for d in ages], number, "bigint"),
    )
    due = F.coalesce(moved < F.lit(now), F.lit(False))

    def age(due: Column) -> Column:
        return (
            F.when(due, F.concat(F.lit("last written more than "), text, F.lit(" ago")))
            .when(F.col("committed_at").isNull(), F.lit("no commit: never due"))
            .otherwise(F.concat(F.lit("written in the last "), text))
        )

    fingerprint = F.sha2(F.concat_ws("|", "name", F.coalesce("head", F.lit(""))), 256)
    rows = rows.withColumn("fingerprint", fingerprint).withColumn("cutoff", F.lit(None))
    # Paimon keeps a branch's own tags in its folder and calls them `branch/tag`; elsewhere tags outlive branches.
    inside = F.filter(
        "refs",
        lambda r: (F.col("format") == "paimon") & r["name"].startswith(F.concat(F.lit("tag:"), "name", F.lit("/"))),
    )
    readers = F.filter("floor_consumers", lambda rule: rule["line"] == F.col("name"))
    protections = joined(
        only_if(F.coalesce("main", F.lit(True)), "main branch"),
        F.transform(inside, lambda ref: ref["name"]),
        F.transform(readers, lambda rule: rule["text"]),
        under_floor(policies, F.col("committed_at"), now),
        F.col("floor_gc"),
    )
    rows = verdict(
        rows, policies, owner=number, due=due, age=age, protections=protections, blocks=F.col("blocks"),
        held=any_holds(), mark=F.col("mark_branches"), fingerprint=F.col("fingerprint"), now=now,
    )  # fmt: skip
    return as_objects(rows, "branches", F.array("name"))


def _of_whole_branches(pinned: DataFrame, world: World) -> DataFrame:
    """What was unmarked as a branch, or as a version of one that main does not reach."""
    aside = world.transactions.where(~F.array_contains("branches", "main")).select(
        "table_id", F.col("transaction_id").alias("object_id"), F.explode("branches").alias("branch")
    )
    inside = pinned.join(aside, ["table_id", "object_id"]).select(
        "table_id", F.col("branch").alias("object_id"), F.concat("object_id", F.lit(" was "), "pin").alias("pin")
    )
    return pinned.unionByName(inside).groupBy("table_id", "object_id").agg(F.max("pin").alias("pin"))


def last_writes(transactions: DataFrame) -> DataFrame:
    """Per table when data was last written to it at the latest; None where nothing ever was.

    What changed no data is no write, unless the commit before it is gone from the history: that may have been one.
    """
    after_a_gap = F.col("starts_view") & F.col("parent_id").isNotNull()
    wrote = F.when((F.col("kind") != "METADATA") | after_a_gap, F.col("committed_at"))
    return transactions.groupBy("table_id").agg(F.max(wrote).alias("committed_at"))


def _asked_labels(policies: PolicySet, number: Column) -> Column:
    """The labels that the owner selects by."""
    asked = [[*(p.select.any_labels or ()), *(p.select.all_labels or ())] for p in policies.policies]
    return F.coalesce(F.get(F.array(*(texts(*labels) for labels in asked)), number), no_texts())


def _of_whole_tables(pinned: DataFrame) -> DataFrame:
    said = F.when(F.col("object_id") == F.col("table_id"), F.col("pin")).otherwise(
        F.concat("object_id", F.lit(" was "), "pin")
    )
    return pinned.groupBy("table_id").agg(F.max(said).alias("pin")).withColumn("object_id", F.col("table_id"))


def _of_this_table(seen: Column, mark: Column) -> Column:
    """What a mark saw, bound to the table that it saw it in.

    On Delta and Paimon a head is a number, and the same in another table that took the name since. A mark that was made
    before identities were known has what it saw alone.
    """
    identity = F.coalesce("identity", F.lit(""))
    is_older = F.coalesce(mark["fingerprint"] == seen, F.lit(False))
    return F.when((identity == "") | is_older, seen).otherwise(F.sha2(F.concat_ws("|", seen, identity), 256))


def table_objects(
    policies: PolicySet,
    world: World,
    datasets: DataFrame,
    marks: DataFrame | None,
    pinned: DataFrame | None,
    shared: DataFrame | None,
    now: datetime,
) -> DataFrame:
    """Ad hoc tables (without a schedule) whose last write on any branch is past retention. Tags and consumers keep it.

    So does whatever of it a person unmarked: a rescued transaction does not go with its table either (spec §1). A
    sweep of versions leaves commits behind that are no writes (Delta's VACUUM).
    """
    number = F.col("owner")
    rows = datasets.withColumn("owner", F.get("for_tables", F.lit(0))).where("owner IS NOT NULL")
    rows = rows.join(last_writes(world.transactions), "table_id", "left").withColumn("object_id", F.col("table_id"))
    if shared is not None:
        others = (
            shared.select(F.explode("datasets").alias("table_id"), "datasets")
            .groupBy("table_id")
            .agg(F.array_distinct(F.flatten(F.collect_set("datasets"))).alias("sharing"))
        )
        rows = rows.join(others, "table_id", "left")
    else:
        rows = rows.withColumn("sharing", no_texts())
    rows = with_state(rows, "tables", marks, None if pinned is None else _of_whole_tables(pinned))
    ages = [p.tables.older_than if p.tables and isinstance(p.tables.older_than, Duration) else None
            for p in policies.policies]  # fmt: skip
    text = setting([None if d is None else str(d) for d in ages], number, "string")
    moved = move_instant(
        F.col("committed_at"),
        setting([None if d is None else d.months for d in ages], number, "int"),
        setting([None if d is None else micros_of(d) for d in ages], number, "bigint"),
    )
    past = F.coalesce(moved < F.lit(now), F.lit(False))
    each = [p.tables for p in policies.policies]
    apart = setting([t is not None and t.unpartitioned for t in each], number, "boolean") & F.coalesce(
        "partitioned", F.lit(True)
    )
    labelled = F.arrays_overlap(F.coalesce("own_labels", no_texts()), _asked_labels(policies, number))
    nameless = setting([t is not None and t.own_label for t in each], number, "boolean") & ~labelled
    due = past & F.col("schedule").isNull() & ~apart & ~nameless

    def age(due: Column) -> Column:
        return (
            F.when(F.col("schedule").isNotNull(), F.concat(F.lit("not ad hoc: its schedule is "), "schedule"))
            .when(apart, F.lit("it is partitioned: its partitions go by their dates"))
            .when(nameless, F.lit("nobody gave the table itself such a label"))
            .when(F.col("committed_at").isNull(), F.lit("never written to: never due"))
            .when(due, F.concat(F.lit("last written more than "), text, F.lit(" ago")))
            .otherwise(F.concat(F.lit("written in the last "), text))
        )

    kept = F.filter("refs", lambda ref: ~ref["name"].startswith("branch:"))
    sharing = F.array_except(F.coalesce("sharing", no_texts()), F.array("table_id"))
    heads = F.sha2(F.array_join(F.transform("refs", lambda r: F.concat_ws("|", r["name"], r["head"])), "\n"), 256)
    fingerprint = _of_this_table(heads, F.col("mark_tables"))
    protections = joined(
        F.transform(kept, lambda ref: ref["name"]),
        F.transform(sharing, lambda other: F.concat(F.lit("reference:"), other)),
        F.transform("floor_consumers", lambda rule: rule["text"]),
        under_floor(policies, F.col("committed_at"), now),
        F.col("floor_gc"),
    )
    rows = rows.withColumn("fingerprint", fingerprint).withColumn("cutoff", F.lit(None))
    rows = verdict(
        rows, policies, owner=number, due=due, age=age, protections=protections, blocks=F.col("blocks"),
        held=any_holds(), mark=F.col("mark_tables"), fingerprint=F.col("fingerprint"), now=now,
    )  # fmt: skip
    branches = F.sort_array(
        F.transform(
            F.filter("refs", lambda ref: ref["name"].startswith("branch:")),
            lambda ref: F.substring(ref["name"], len("branch:") + 1, 1 << 20),
        )
    )
    return as_objects(rows, "tables", branches)
