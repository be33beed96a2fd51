"""`ebbtide explain OBJECT`: every policy, every protection and the decision for one object."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ebbtide.app.datasets import known_owner, parse_object
from ebbtide.app.world import listing_before, read_inputs, read_state, tick_of
from ebbtide.config import Project
from ebbtide.config.policies import load_policies
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.times import as_text


def explain_object(project: Project, text: str, *, now: datetime) -> dict[str, Any]:
    """What the plan makes of one object."""
    from ebbtide.plan.explain import explain

    dataset, target, object_id = parse_object(text)
    policies = load_policies(project.root, unsafe=True)
    inventory = Inventory.open(project.inventory)
    known_owner(project, inventory, dataset)
    listing = listing_before(project, inventory) if target == "orphans" else None
    inputs = read_inputs(project, policies, read_state(project), inventory, listing, now=now)
    found = explain(
        inputs.policies, inputs.world, inputs.orders(),
        dataset=dataset, target=target, object_id=object_id, now=now, limits=project.limits, tick=tick_of(project),
    )  # fmt: skip
    return {
        "as_of": as_text(now),
        "dataset": dataset,
        "target": target,
        "object": object_id,
        "planned": found.planned,
        "policies": [{"policy": c.policy, "outcome": c.outcome, "because": c.because} for c in found.considered],
    }
