"""What checks and reports see of policies and time grains: outputs of the plan's own steps (spec §3)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from ebbtide.config.policies import PolicySet
from ebbtide.kernel.engine import connection, hand_in
from ebbtide.kernel.steps import run_steps
from ebbtide.model.durations import Duration, as_hours, as_interval
from ebbtide.plan.promises import PromiseProof, prove
from ebbtide.plan.sections import load_facts
from ebbtide.plan.world import Orders, World

_INT, _LONG, _TEXT = pa.int32(), pa.int64(), pa.string()
_TERMS = pa.schema(
    {
        "number": _INT, "target": _TEXT, "policy": _TEXT, "older_than": _TEXT, "older_than_days": _INT, "age_of": _TEXT,
        "grace": _TEXT, "grace_days": _INT, "tick": _TEXT, "tick_days": _INT, "window_hours": _LONG,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Views:
    """`tables` with why nothing of one may go (`blocked`); `partitions` with the days that they cover; `retention`, a
    row per table and target that a policy owns on main. `proofs` has every promise for every table that it selects.
    """

    tables: pa.Table
    partitions: pa.Table
    retention: pa.Table
    proofs: tuple[PromiseProof, ...]


def plan_views(policies: PolicySet, world: World, orders: Orders, *, tick: Duration, now: datetime) -> Views:
    """All of it from the same facts, which are loaded once. Every `auto` of the policies is settled."""
    with connection() as engine:
        load_facts(engine, policies, world, orders, now=now)
        hand_in(engine, "terms", pa.Table.from_pylist(_terms(policies, tick), _TERMS))
        run_steps(engine, "ebbtide.plan", "sql/views")
        names = ("tables_view", "partitions_view", "retention_view")
        tables, partitions, retention = (engine.sql(f"SELECT * FROM {name}").to_arrow_table() for name in names)
        return Views(tables, partitions, retention, tuple(prove(engine, policies, tick=tick)))


def _terms(policies: PolicySet, tick: Duration) -> list[dict[str, object]]:
    """What each policy says of each of its targets. Lengths are the longest, for comparing only: days are whole ones,
    each term for itself; `window_hours` is older_than + grace + tick, not rounded.
    """
    found: list[dict[str, object]] = []
    for number, policy in enumerate(policies.policies):
        for target in policy.targets:
            settings = getattr(policy, target)
            kept = getattr(settings, "older_than", None) or getattr(settings, "unused_for", None)
            days = as_interval(kept) if isinstance(kept, Duration) else None
            window = sum(map(as_hours, (kept, policy.grace, tick))) if isinstance(kept, Duration) else None
            found.append(
                {
                    "number": number, "target": target, "policy": policy.name,
                    "older_than": None if kept is None else str(kept), "older_than_days": days,
                    "age_of": getattr(settings, "age_of", None), "grace": str(policy.grace),
                    "grace_days": as_interval(policy.grace), "tick": str(tick), "tick_days": as_interval(tick),
                    "window_hours": window,
                }
            )  # fmt: skip
    return found
