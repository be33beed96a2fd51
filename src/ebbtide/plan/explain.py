"""`explain`: one object, by the very steps of the plan: every policy, every protection, the decision (spec §2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ebbtide.config.policies import Policy, PolicySet
from ebbtide.config.project import Limits
from ebbtide.errors import InputError
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
    table = world.tables.where(mine)
    asked = [conditions(policy.select) for policy in policies.policies]
    keys = [(n, key, condition) for n, of_policy in enumerate(asked) for key, condition in of_policy.items()]
    answers = table.select(F.lit(True), *(condition for _, _, condition in keys)).first()
    if answers is None:
        raise InputError(
            f"no dataset {dataset} in the inventory", hint="`ebbtide tables` lists them; scan if it is new"
        )
    failed: dict[int, list[str]] = {n: [] for n in range(len(policies.policies))}
    for (n, key, _), holds_ in zip(keys, answers[1:], strict=True):
        if not holds_:
            failed[n].append(key)
    planned = None
    if policies.policies or marks is not None:
        with build_plan(
            policies,
            world.only(dataset),
            None if marks is None else marks.where(mine),
            None if unmarks is None else unmarks.where(mine),
            holds.where(mine),
            now=now,
            limits=limits,
        ) as made:
            chosen = (F.col("target") == target) & (F.col("object") == object_id)
            row = made.objects.where(chosen).first()
            planned = None if row is None else row.asDict(recursive=True)
    owner = None if planned is None else planned["policy"]
    considered = tuple(
        _considered(policy, target, failed[n], owner, planned) for n, policy in enumerate(policies.policies)
    )
    return Explanation(dataset, target, object_id, planned, considered)


def _considered(
    policy: Policy, target: str, failed: list[str], owner: str | None, planned: dict[str, Any] | None
) -> Considered:
    if failed:
        return Considered(policy.name, "does not select", f"select.{', select.'.join(failed)} does not match")
    if target not in policy.targets:
        return Considered(policy.name, "ignores", f"it has no target {target}")
    if planned is not None and policy.name == owner:
        return Considered(policy.name, "owns", planned["because"])
    if looks_at_branches(policy.select) and (owner is None or planned is None):
        return Considered(policy.name, "does not select", "select.branches does not match")
    if owner is not None:
        return Considered(policy.name, "ignores", f"{owner} owns it")
    return Considered(policy.name, "ignores", "there is no such object")
