"""From facts to a decision: one rule for every object of every target (spec §1, "Mark and sweep").

Highest first: a hold, a person's unmark, then what the mark says, then protection and age. An object past its grace is
`ready`; `measure` turns that into `sweep` or `wait` once it knows which files are free.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ebbtide.config.policies import PolicySet
from ebbtide.plan.select import setting
from ebbtide.plan.world import instant_text, joined, no_texts

_OF_MARK = ("policy", "fingerprint", "grace_until", "cutoff", "acted_at", "act")
MARK_TYPE = "struct<policy:string,fingerprint:string,grace_until:timestamp,cutoff:string,acted_at:timestamp,act:string>"
READY = "ready"
GOING = ("mark", "marked", READY)
"""The stages of an object that is to go, now or later."""


def open_marks(marks: DataFrame, *targets: str) -> DataFrame:
    """Per object of the targets its open mark, as one column per target."""
    of_target = {
        target: F.max(F.when(F.col("target") == target, F.struct(*_OF_MARK))).alias(f"mark_{target}")
        for target in targets
    }
    return marks.where(F.col("target").isin(*targets)).groupBy("table_id", "object_id").agg(*of_target.values())


def pins(unmarks: DataFrame, now: datetime) -> DataFrame:
    """Per native id what a person's unmark says; it pins the id for every target (spec §1)."""
    active = unmarks.where(F.col("until").isNull() | (F.col("until") > F.lit(now)))
    until = F.coalesce(F.concat(F.lit(" until "), instant_text(F.col("until"))), F.lit(" until released"))
    said = F.concat(F.lit("unmarked by a person"), until, F.coalesce(F.concat(F.lit(": "), "reason"), F.lit("")))
    return active.groupBy("table_id", "object_id").agg(F.max(said).alias("pin"))


VERDICT = ("decision", "because", "waits_for", "protected_by")


def verdict(
    rows: DataFrame,
    policies: PolicySet,
    part: str = "",
    *,
    owner: Column,
    due: Column,
    age: Callable[[Column], Column],
    protections: Column,
    blocks: Column,
    held: Column,
    mark: Column,
    fingerprint: Column,
    now: datetime,
) -> DataFrame:
    """Add `decision` (with `ready` for past grace), `because`, `waits_for` and `protected_by`, named after `part`.

    `age` says in words how an object that is due, or not, stands to its policy. A block (unknown references, a lock)
    keeps what is not marked, and lets what is marked wait: the mark is not lost by an error of one scan.
    """
    names = setting([policy.name for policy in policies.policies], owner, "string")
    # Step by step: an expression that is used twice would be copied twice, and again at the next step.
    rows = rows.withColumns(
        {"_due": due, "_kept": protections, "_held": held, "_print": fingerprint, "_owner": names, "_blocks": blocks}
    )
    rows = rows.withColumn("_age", F.coalesce(age(F.col("_due")), F.lit("no policy")))
    back = (
        F.when(F.col("_owner").isNull(), F.lit("no policy selects it any more"))
        .when(F.col("_owner") != mark["policy"], F.concat(F.lit("policy "), F.col("_owner"), F.lit(" owns it now")))
        .when(F.size("_kept") > 0, F.concat(F.lit("protected by "), F.array_join("_kept", ", ")))
        .when(mark["fingerprint"] != F.col("_print"), F.lit("it changed since it was marked"))
        .when(~F.col("_due"), F.col("_age"))
    )
    in_grace = mark["grace_until"] >= F.lit(now)
    blocked = F.size("_blocks") > 0
    rows = rows.withColumn("_back", F.when(mark.isNotNull(), back))
    rows = rows.withColumn(
        f"{part}decision",
        F.when(F.size("_held") > 0, "held")
        .when(F.col("pin").isNotNull(), "unmarked")
        .when(F.col("_back").isNotNull() & ~blocked, "unmarked")
        .when(mark.isNotNull() & (blocked | in_grace), "marked")
        .when(mark.isNotNull(), READY)
        .when((F.size("_kept") == 0) & ~blocked & F.col("_due"), "mark")
        .otherwise("keep"),
    )
    decision = F.col(f"{part}decision")
    because = (
        F.when(decision == "held", F.array_join("_held", ", "))
        .when(F.col("pin").isNotNull(), F.col("pin"))
        .when(decision == "unmarked", F.concat(F.lit("unmarked: "), "_back"))
        .when(F.col("_due") & (decision == "keep"), F.concat("_age", F.lit(", but protected")))
        .otherwise(F.col("_age"))
    )
    grace = F.when(in_grace, F.array(F.concat(F.lit("grace until "), instant_text(mark["grace_until"]))))
    return rows.withColumns(
        {
            f"{part}because": because,
            f"{part}waits_for": F.when(decision == "marked", joined(grace, F.col("_blocks"))).otherwise(no_texts()),
            f"{part}protected_by": joined(F.col("_kept"), F.col("_blocks"), F.col("_held")),
        }
    ).drop("_due", "_kept", "_held", "_print", "_owner", "_blocks", "_age", "_back")
