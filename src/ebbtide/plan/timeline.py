"""Transactions and versions: one row each, with both decisions (spec §1 "Protection", §2 `versions`).

A transaction is protected by views and by whoever references a file that it added; a version by heads, tags, staging,
`keep_min` and floors. Both share the native id, so what pins one pins the other.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ebbtide.config.policies import Policy, PolicySet
from ebbtide.model.durations import Duration
from ebbtide.plan import format_floors
from ebbtide.plan.datasets import under_floor, whole_holds
from ebbtide.plan.durations import micros_of, move_instant
from ebbtide.plan.references import lines, references_of_transactions, supersession
from ebbtide.plan.select import owner, selected_branches, setting
from ebbtide.plan.verdict import MARK_TYPE, READY, VERDICT, verdict
from ebbtide.plan.world import ANY_ORDER, DROPS_FILES, World, joined, no_texts, only_if, settled, settled_if_few

_PLACES = "array<struct<branch:string,rank:int,views_after:bigint>>"
_KEPT_ON_PAIMON, _KEPT_ELSEWHERE = 10, 1


def timeline(
    policies: PolicySet,
    world: World,
    datasets: DataFrame,
    marks: DataFrame | None,
    pinned: DataFrame | None,
    held: DataFrame | None,
    taken_along: DataFrame | None,
    shared: DataFrame | None,
    targets: Set[str],
    now: datetime,
) -> DataFrame:
    """All transactions of the datasets that a policy of either target, or a mark, concerns.

    What no policy and no mark has as a target (`targets`) is not looked at: there is no object of it.
    `marks` are those of the two targets; `held` names transactions that partition holds reach, `taken_along` versions
    that reference files of a partition which a sweep has deleted: they go under its mark (spec §2).
    `leaves` are the branches whose heads must give up the transaction's files first, because its policy lifts their
    protection; `expires` says whether the version goes with the transaction.
    """
    concerned = (F.size("for_transactions") > 0) | (F.size("for_versions") > 0)
    if marks is not None:
        with_mark = marks.select("table_id").distinct().withColumn("has_mark", F.lit(True))
        datasets = datasets.join(with_mark, "table_id", "left")
        concerned = concerned | F.coalesce(F.col("has_mark"), F.lit(False))
    datasets = settled(datasets.where(concerned))
    rows = world.transactions.select(
        "table_id", "transaction_id", "parent_id", "position", "kind", "committed_at", "starts_view",
        F.coalesce("staged", F.lit(False)).alias("staged"), F.coalesce("expired", F.lit(False)).alias("expired"),
        F.coalesce("branches", no_texts()).alias("branches"),
        F.coalesce("in_views_of", no_texts()).alias("in_views_of"),
    ).join(datasets.select("table_id"), "table_id", "left_semi")  # fmt: skip
    # Everything that is known of a single transaction first, on narrow rows; the dataset's columns come last.
    key = ["table_id", "transaction_id"]
    facts = rows.join(supersession(rows), key, "left").join(_replaced(rows), key, "left")
    facts = facts.join(_places(policies, rows, datasets), key, "left")
    facts = _with_state(facts, marks, None if pinned is None else _with_changelogs(pinned), held, taken_along)
    facts = facts.withColumn("places", F.coalesce("places", F.array().cast(_PLACES)))
    if "transactions" in targets:
        references = references_of_transactions(world, datasets.select("table_id", "refs"), shared)
        facts = facts.join(references, key, "left").withColumn("referenced_by", F.coalesce("referenced_by", no_texts()))
    rows = facts.drop("parent_id", "starts_view", "transaction_id").join(datasets, "table_id")
    # Each of the many steps below analyses the whole query anew.
    rows = settled_if_few(rows)
    rows = rows.withColumn("held", joined(whole_holds(), F.col("held_days")))
    rows = _with_supersession(_with_owners(policies, rows))
    return _decide(policies, rows, targets, now)


def _with_owners(policies: PolicySet, rows: DataFrame) -> DataFrame:
    return rows.withColumn("owner_t", owner(policies, F.col("for_transactions"), F.col("branches"))).withColumn(
        "owner_v", owner(policies, F.col("for_versions"), F.col("branches"))
    )


def _replaced(rows: DataFrame) -> DataFrame:
    """When the next commit of the dataset came, for transactions that no branch reaches."""
    unreached = rows.where(F.size("branches") == 0)
    by_time = Window.partitionBy("table_id").orderBy("committed_at", "position")
    some = rows.select("table_id", "transaction_id", "committed_at", "position", "branches").join(
        unreached.select("table_id").distinct(), "table_id", "left_semi"
    )
    return (
        some.withColumn("next_at", F.lead("committed_at").over(by_time))
        .where(F.size("branches") == 0)
        .select("table_id", "transaction_id", "next_at")
    )


def _with_supersession(rows: DataFrame) -> DataFrame:
    """`superseded_at`: by its child; where no branch reaches it and it has none, by the commit that came next.

    A head was not superseded. What nothing followed is as old as its commit.
    """
    is_head = F.exists("refs", lambda ref: (ref["head"] == F.col("object_id")) & ref["name"].startswith("branch:"))
    unreached = F.when(F.size("branches") == 0, F.coalesce("next_at", "committed_at"))
    return rows.withColumn("superseded_at", F.when(~is_head, F.coalesce("child_at", unreached))).drop(
        "next_at", "child_at"
    )


def _places(policies: PolicySet, rows: DataFrame, datasets: DataFrame) -> DataFrame:
    """Places on the branches, for the datasets whose policies or floors count versions or views."""
    counting = [n for n, policy in enumerate(policies.policies) if _counts(policy)]
    asked = format_floors.asks_for_lines() | ((F.col("format") == "paimon") & (F.size("for_versions") > 0))
    if counting:
        asked = asked | F.arrays_overlap("chosen", F.array(*(F.lit(n) for n in counting)))
    return lines(rows.join(datasets.where(asked).select("table_id"), "table_id", "left_semi"))


def _counts(policy: Policy) -> bool:
    views = policy.transactions is not None and policy.transactions.keep_views > 1
    versions = policy.versions
    return views or (versions is not None and (versions.keep_max is not None or (versions.keep_min or 1) > 1))


def _with_state(
    rows: DataFrame,
    marks: DataFrame | None,
    pinned: DataFrame | None,
    held: DataFrame | None,
    taken_along: DataFrame | None,
) -> DataFrame:
    rows = rows.withColumn("object_id", F.col("transaction_id"))
    for frame, columns in (
        (marks, {"mark_transactions": MARK_TYPE, "mark_versions": MARK_TYPE}),
        (pinned, {"pin": "string"}),
        (held, {"held_days": "array<string>"}),
        (taken_along, {"taken_along": "boolean"}),
    ):
        if frame is not None:
            rows = rows.join(frame, ["table_id", "object_id"], "left")
        else:
            rows = rows.withColumns({name: F.lit(None).cast(type_) for name, type_ in columns.items()})
    return rows.withColumn("taken_along", F.coalesce("taken_along", F.lit(False)))


def _with_changelogs(pinned: DataFrame) -> DataFrame:
    """What someone rescued is not removed as the changelog that a writer made of it."""
    changelog = F.regexp_replace("object_id", r"/([0-9]+)$", "/changelog/$1")
    both = F.explode(F.array_distinct(F.array(F.col("object_id"), changelog)))
    found = pinned.select("table_id", both.alias("object_id"), "pin")
    return found.groupBy("table_id", "object_id").agg(F.max("pin").alias("pin"))


def _decide(policies: PolicySet, rows: DataFrame, targets: Set[str], now: datetime) -> DataFrame:
    rows = rows.withColumns(
        {
            "kept_by_format": format_floors.kept_by(now),
            "fingerprint": F.sha2(F.concat_ws("|", "object_id", F.unix_micros("committed_at").cast("string")), 256),
            "any_order": F.array_contains("capabilities", ANY_ORDER),
            "lifted": _lifted(policies),
        }
    )
    rows = _transaction(policies, rows, now) if "transactions" in targets else _without(rows, "t_")
    rows = _version(policies, rows, now) if "versions" in targets else _without(rows, "v_")
    # What left the heads goes like any other transaction; but a version of the latest view, which people read until
    # then, goes by the versions target where a policy has one.
    by_versions = F.arrays_overlap("lifted", "in_views_of") & F.col("owner_v").isNotNull()
    leaves = F.array_intersect("lifted", "referenced_by") if "transactions" in targets else no_texts()
    rows = rows.withColumns({"leaves": leaves, "expires": (F.size(leaves) == 0) & ~by_versions})
    return rows.select(
        "table_id", "format", "object_id", "position", "branches", "committed_at", "superseded_at", "refs", "any_order",
        "leaves", "expires", "fingerprint", "owner_t", "owner_v", "expired",
        *(F.struct(*(F.col(f"{p}_{name}").alias(name) for name in (*VERDICT, "exists"))).alias(p) for p in "tv"),
    )  # fmt: skip


def _without(rows: DataFrame, part: str) -> DataFrame:
    nothing = {"decision": F.lit("keep"), "because": F.lit("no policy"), "exists": F.lit(False)}
    lists = {name: no_texts() for name in ("waits_for", "protected_by")}
    return rows.withColumns({f"{part}{name}": value for name, value in {**nothing, **lists}.items()})


def _lifted(policies: PolicySet) -> Column:
    """The branches whose view and head no longer protect the transaction, because its policy says so (spec §1)."""
    allowed = setting(
        [bool(p.transactions and p.transactions.allow_latest_view) for p in policies.policies],
        F.col("owner_t"),
        "boolean",
    )
    mine = F.transform(
        selected_branches(policies, F.col("owner_t"), F.col("branches")), lambda b: F.concat(F.lit("branch:"), b)
    )
    can = (F.col("kind") == "APPEND") & F.array_contains("capabilities", DROPS_FILES) & (F.size("floor_append") == 0)
    return F.when(allowed & can, mine).otherwise(no_texts())


def _transaction(policies: PolicySet, rows: DataFrame, now: datetime) -> DataFrame:
    number = F.col("owner_t")
    each = [p.transactions for p in policies.policies]
    months, micros, text = _ages([None if t is None else t.older_than for t in each], number)
    due = F.coalesce(move_instant(F.col("committed_at"), months, micros) < F.lit(now), F.lit(False))
    views = setting([1 if t is None else t.keep_views for t in each], number, "bigint")
    may_stage = F.coalesce(setting([bool(t and t.staged) for t in each], number, "boolean"), F.lit(False))
    own_staging = F.when(may_stage, F.array(F.concat(F.lit("staged:"), "object_id"))).otherwise(no_texts())
    kept_views = F.transform(
        F.filter("places", lambda p: (p["views_after"] < views) & (p["views_after"] > 0)),
        lambda p: F.concat(F.lit("views:"), p["branch"]),
    )
    by_refs = F.array_except(F.array_except(F.concat("in_views_of", "referenced_by"), F.col("lifted")), own_staging)
    latest = setting([bool(t and t.allow_latest_view) for t in each], number, "boolean") & (F.size("in_views_of") > 0)
    protections = joined(
        by_refs,
        F.when(latest, F.col("floor_append")),
        F.when(F.size("places") > 0, kept_views),
        only_if(F.col("staged") & ~may_stage, "staged"),
        F.col("kept_by_format"),
        under_floor(policies, F.col("committed_at"), now),
    )
    why_not = (
        F.when(~latest | (F.size("lifted") > 0), "")
        .when(F.col("kind") != "APPEND", ": rows of mixed age, use partitions or rows")
        .when(
            ~F.array_contains("capabilities", DROPS_FILES),
            F.concat(F.lit(": "), "format", F.lit(" cannot drop exactly its files from the head")),
        )
        .otherwise("")
    )
    rows = verdict(
        rows, policies, "t_", owner=number, due=due, protections=protections, blocks=F.col("blocks"),
        held=F.col("held"), mark=F.col("mark_transactions"), fingerprint=F.col("fingerprint"), now=now,
        age=lambda due: F.concat(
            F.when(due, F.concat(F.lit("committed more than "), text, F.lit(" ago"))).otherwise(
                F.concat(F.lit("not older than "), text)
            ),
            F.coalesce(why_not, F.lit("")),
        ),
    )  # fmt: skip
    return rows.withColumn("t_exists", _is_there(number, F.col("mark_transactions")))


def _version(policies: PolicySet, rows: DataFrame, now: datetime) -> DataFrame:
    number = F.col("owner_v")
    each = [p.versions for p in policies.policies]
    months, micros, text = _ages([None if v is None else v.older_than for v in each], number)
    superseded = F.col("superseded_at")
    old = F.coalesce(move_instant(superseded, months, micros) < F.lit(now), F.lit(False))
    least = F.coalesce(
        setting([None if v is None else v.keep_min for v in each], number, "bigint"),
        F.when(F.col("format") == "paimon", _KEPT_ON_PAIMON).otherwise(_KEPT_ELSEWHERE),
    )
    most = setting([None if v is None else v.keep_max for v in each], number, "bigint")
    least = F.when(
        setting([None if v is None else v.keep_min for v in each], number, "bigint").isNull(), F.least(least, most)
    ).otherwise(least)
    crowded = (
        superseded.isNotNull()
        & most.isNotNull()
        & (F.size("places") > 0)
        & F.forall("places", lambda p: p["rank"] > most)
    )
    due = old | F.coalesce(crowded, F.lit(False))
    named = F.transform(
        F.filter("refs", lambda ref: ref["head"] == F.col("object_id")),
        lambda ref: F.when(ref["name"].startswith("staged:"), F.lit("staged")).otherwise(ref["name"]),
    )
    newest = F.transform(
        F.filter("places", lambda p: p["rank"] <= least),
        lambda p: F.concat(F.lit("keep_min:"), p["branch"]),
    )
    protections = joined(
        named,
        # `keep_min` limits the versions target only, not what goes under a partition's mark.
        F.when((F.size("places") > 0) & ~F.col("taken_along"), newest),
        F.col("kept_by_format"),
        under_floor(policies, superseded, now),
    )
    rows = verdict(
        rows.withColumn("_old", old), policies, "v_", owner=number, due=due, protections=protections,
        blocks=F.col("blocks"), held=F.col("held"), mark=F.col("mark_versions"), fingerprint=F.col("fingerprint"),
        now=now,
        age=lambda due: (
            F.when(F.col("_old"), F.concat(F.lit("superseded more than "), text, F.lit(" ago")))
            .when(due, F.concat(F.lit("more than "), most.cast("string"), F.lit(" versions are kept")))
            .when(superseded.isNull(), F.lit("it is current"))
            .otherwise(F.coalesce(F.concat(F.lit("not superseded for "), text), F.lit("not more than keep_max")))
        ),
    )  # fmt: skip
    along = F.col("taken_along") & F.col("_old") & F.col("v_decision").isin("mark", "marked")
    said = F.concat(F.col("v_because"), F.lit(", under the mark of a deleted partition"))
    return rows.withColumn("_along", along).withColumns(
        {
            "v_decision": F.when(F.col("_along"), READY).otherwise(F.col("v_decision")),
            "v_because": F.when(F.col("_along"), said).otherwise(F.col("v_because")),
            "v_waits_for": F.when(F.col("_along"), no_texts()).otherwise(F.col("v_waits_for")),
            "v_exists": _is_there(number, F.col("mark_versions")),
        }
    )


def _is_there(owner: Column, mark: Column) -> Column:
    """Whether it is an object of the plan. An expired version is none: its mark waits for the proof."""
    return (owner.isNotNull() | mark.isNotNull()) & ~F.col("expired")


def _ages(values: list[Duration | str | None], number: Column) -> tuple[Column, Column, Column]:
    """The owner's retention: its months, its microseconds and its text. NULL where the owner has none."""
    known = [value if isinstance(value, Duration) else None for value in values]
    return (
        setting([None if d is None else d.months for d in known], number, "int"),
        setting([None if d is None else micros_of(d) for d in known], number, "bigint"),
        setting([None if d is None else str(d) for d in known], number, "string"),
    )
