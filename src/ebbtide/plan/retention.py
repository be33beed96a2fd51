"""Which policy owns the objects of a table, target by target: what checks compare tables with (spec §3)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ebbtide.config.policies import TARGETS, PolicySet
from ebbtide.model.durations import Duration, as_hours, as_interval
from ebbtide.plan.select import choose, owner
from ebbtide.plan.world import texts

_FACTS = (
    "number int, target string, policy string, older_than string, older_than_days int, age_of string, grace string, "
    "grace_days int, tick string, tick_days int, window_hours long"
)


def retention(policies: PolicySet, tables: DataFrame, *, tick: Duration) -> DataFrame:
    """A row per table and target that a policy owns on the main branch. Lengths are the longest, for comparing only.

    Days are whole ones, each term for itself; `window_hours` is older_than + grace + tick, not rounded.
    """
    numbers = [
        F.struct(F.lit(target).alias("target"), owner(policies, F.col(f"for_{target}"), texts("main")).alias("number"))
        for target in TARGETS
    ]
    owned = choose(policies, tables).select("table_id", F.explode(F.array(*numbers)).alias("owned"))
    owned = owned.select("table_id", "owned.target", "owned.number").where("number IS NOT NULL")
    facts = tables.sparkSession.createDataFrame(_facts(policies, tick), _FACTS)
    return owned.join(F.broadcast(facts), ["number", "target"]).drop("number")


def _facts(policies: PolicySet, tick: Duration) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for number, policy in enumerate(policies.policies):
        for target in policy.targets:
            settings = getattr(policy, target)
            kept = getattr(settings, "older_than", None) or getattr(settings, "unused_for", None)
            days = as_interval(kept) if isinstance(kept, Duration) else None
            window = sum(map(as_hours, (kept, policy.grace, tick))) if isinstance(kept, Duration) else None
            found.append(
                (
                    number, target, policy.name, None if kept is None else str(kept), days,
                    getattr(settings, "age_of", None), str(policy.grace), as_interval(policy.grace), str(tick),
                    as_interval(tick), window,
                )
            )  # fmt: skip
    return found
