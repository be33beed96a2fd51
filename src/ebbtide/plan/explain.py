"""`explain`: one object, by the very steps of the plan: every policy, every protection, the decision (spec §2)."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide.config.policies import CHUNKS, Policy, PolicySet
from ebbtide.config.project import Limits
from ebbtide.kernel.engine import beside, connection
from ebbtide.model.durations import Duration
from ebbtide.plan.build import plan_part
from ebbtide.plan.parts import one_dataset
from ebbtide.plan.plan import rows_of_objects
from ebbtide.plan.promise_bound import TICK
from ebbtide.plan.promises import derive_auto
from ebbtide.plan.sections import load_tables
from ebbtide.plan.select import conditions, looks_at_branches
from ebbtide.plan.world import Orders, World

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class PolicyOpinion:
    """One policy and what it makes of the object."""

    policy: str
    outcome: str
    because: str


@dataclass(frozen=True, slots=True)
class ObjectExplanation:
    """The object as the plan has it (None where no policy owns it), and every policy in order."""

    dataset: str
    target: str
    object: str
    planned: dict[str, Any] | None
    considered: tuple[PolicyOpinion, ...]


def explain(
    policies: PolicySet,
    world: World,
    orders: Orders,
    *,
    dataset: str,
    target: str,
    object_id: str,
    now: datetime,
    limits: Limits | None = None,
    tick: Duration = TICK,
) -> ObjectExplanation:
    """Plan the dataset, with the references of all others, and tell what was decided and why."""
    policies = derive_auto(policies, world, tick=tick)
    with connection() as engine, tempfile.TemporaryDirectory(prefix="plan-") as folder:
        part = one_dataset(engine, world, orders, dataset)
        plan_part(engine, policies, part, now=now, limits=limits or Limits(), folder=Path(folder))
        rows = rows_of_objects(Path(folder), "WHERE target = ? AND object = ?", (target, object_id))
        planned = next(iter(rows), None)
        failed = _failed(engine, policies, part.world)
    if failed is None:
        gone = tuple(
            PolicyOpinion(p.name, "does not select", "no catalog lists the dataset") for p in policies.policies
        )
        return ObjectExplanation(dataset, target, object_id, planned, gone)
    considered: list[PolicyOpinion] = []
    for policy, keys in zip(policies.policies, failed, strict=True):
        is_late = any(before.outcome == "owns" for before in considered)
        considered.append(_considered(policy, target, keys, planned, is_late=is_late))
    return ObjectExplanation(dataset, target, object_id, planned, tuple(considered))


def explain_chunk(
    policies: PolicySet, world: World, orders: Orders, *, table: str, chunk: str, now: datetime
) -> ObjectExplanation:
    """Plan a hot table. Its own file is the policy of its chunks: those of the lake have no say there."""
    with connection() as engine, tempfile.TemporaryDirectory(prefix="plan-") as folder:
        part = one_dataset(engine, world, orders, table)
        plan_part(engine, policies, part, now=now, limits=Limits(), folder=Path(folder))
        rows = rows_of_objects(Path(folder), "WHERE target = ? AND object = ?", (CHUNKS, chunk))
        planned = next(iter(rows), None)
    considered = [PolicyOpinion(policy.name, "ignores", f"it has no target {CHUNKS}") for policy in policies.policies]
    if planned is not None and planned["policy"] is not None:
        considered.insert(0, PolicyOpinion(planned["policy"], "owns", planned["because"]))
    return ObjectExplanation(table, CHUNKS, chunk, planned, tuple(considered))


def _failed(among: DuckDBPyConnection, policies: PolicySet, world: World) -> list[list[str]] | None:
    """Per policy the keys of its selection that do not match the one dataset; None where there is no such dataset."""
    asked = [conditions(policy.select) for policy in policies.policies]
    terms = [term for of_policy in asked for term in of_policy.values()]
    with beside(among) as engine:
        load_tables(engine, world)
        columns = ", ".join(["true", *(sql for sql, _ in terms)])
        bound = [value for _, values in terms for value in values]
        rows = engine.execute(f"SELECT {columns} FROM in_tables", bound).fetchall()
    if not rows:
        return None
    answers = iter(rows[0][1:])
    return [[key for key in of_policy if not next(answers)] for of_policy in asked]


def _considered(
    policy: Policy, target: str, failed: list[str], planned: dict[str, Any] | None, *, is_late: bool
) -> PolicyOpinion:
    """`is_late`: another policy owns the object already."""
    if failed:
        return PolicyOpinion(policy.name, "does not select", f"select.{', select.'.join(failed)} does not match")
    if target not in policy.targets:
        return PolicyOpinion(policy.name, "ignores", f"it has no target {target}")
    if planned is None:
        doubt = "select.branches does not match, or " if looks_at_branches(policy.select) else ""
        return PolicyOpinion(policy.name, "ignores", f"{doubt}there is no such object")
    if planned["policy"] is None:
        return PolicyOpinion(policy.name, "ignores", planned["because"])
    if policy.name == planned["policy"]:
        return PolicyOpinion(policy.name, "owns", planned["because"])
    if is_late:
        return PolicyOpinion(policy.name, "ignores", f"{planned['policy']} owns it")
    # The first that selects an object owns it, and the dataset's part of the selection matches.
    return PolicyOpinion(policy.name, "does not select", "select.branches does not match")
