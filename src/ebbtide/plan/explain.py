"""`explain`: one object, by the very steps of the plan: every policy, every protection, the decision (spec §2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ebbtide.config.policies import Policy, PolicySet
from ebbtide.config.project import Limits
from ebbtide.model.durations import Duration
from ebbtide.plan.build import build_plan
from ebbtide.plan.promises import derive_auto
from ebbtide.plan.proof import TICK
from ebbtide.plan.select import conditions, looks_at_branches
from ebbtide.plan.world import World


@dataclass(frozen=True, slots=True)
class Considered:
    """One policy and what it makes of the object."""

    policy: str
    outcome: str
    because: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The object as the plan has it (None where no policy owns it), and every policy in order."""

    dataset: str
    target: str
    object: str
    planned: dict[str, Any] | None
    considered: tuple[Considered, ...]


def explain(
    policies: PolicySet,
    world: World,
    marks: DataFrame | None,
    unmarks: DataFrame | None,
    holds: DataFrame,
    *,
    dataset: str,
    target: str,
    object_id: str,
    now: datetime,
    limits: Limits | None = None,
    tick: Duration = TICK,
) -> Explanation:
    """Plan the dataset, with the references of all others, and tell what was decided and why."""
    policies = derive_auto(policies, world, tick=tick)
    mine = F.col("table_id") == dataset
    tables = world.tables if world.former is None else world.tables.unionByName(world.former)
    asked = [conditions(policy.select) for policy in policies.policies]
    keys = [(n, key, condition) for n, of_policy in enumerate(asked) for key, condition in of_policy.items()]
    answers = tables.where(mine).select(F.lit(True), *(condition for _, _, condition in keys)).first()
    failed: dict[int, list[str]] = {n: [] for n in range(len(policies.policies))}
    for number, (n, key, _) in enumerate(keys, 1):
        if answers is not None and not answers[number]:
            failed[n].append(key)
    planned = None
    marks = None if marks is None else marks.where(mine)
    if policies.policies or (marks is not None and not marks.isEmpty()):
        with build_plan(
            policies,
            world.only(dataset),
            marks,
            None if unmarks is None else unmarks.where(mine),
            holds.where(mine),
            now=now,
            limits=limits,
        ) as made:
            chosen = (F.col("target") == target) & (F.col("object") == object_id)
            row = made.objects.where(chosen).first()
            planned = None if row is None else row.asDict(recursive=True)
    if answers is None:
        gone = tuple(Considered(p.name, "does not select", "no catalog lists the dataset") for p in policies.policies)
        return Explanation(dataset, target, object_id, planned, gone)
    considered: list[Considered] = []
    for n, policy in enumerate(policies.policies):
        is_late = any(before.outcome == "owns" for before in considered)
        considered.append(_considered(policy, target, failed[n], planned, is_late=is_late))
    return Explanation(dataset, target, object_id, planned, tuple(considered))


def _considered(
    policy: Policy, target: str, failed: list[str], planned: dict[str, Any] | None, *, is_late: bool
) -> Considered:
    """`is_late`: another policy owns the object already."""
    if failed:
        return Considered(policy.name, "does not select", f"select.{', select.'.join(failed)} does not match")
    if target not in policy.targets:
        return Considered(policy.name, "ignores", f"it has no target {target}")
    if planned is None:
        doubt = "select.branches does not match, or " if looks_at_branches(policy.select) else ""
        return Considered(policy.name, "ignores", f"{doubt}there is no such object")
    if planned["policy"] is None:
        return Considered(policy.name, "ignores", planned["because"])
    if policy.name == planned["policy"]:
        return Considered(policy.name, "owns", planned["because"])
    if is_late:
        return Considered(policy.name, "ignores", f"{planned['policy']} owns it")
    # The first that selects an object owns it, and the dataset's part of the selection matches.
    return Considered(policy.name, "does not select", "select.branches does not match")
