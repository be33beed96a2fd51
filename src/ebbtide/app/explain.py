"""`ebbtide explain OBJECT`: every policy, every protection and the decision for one object."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import unquote

from ebbtide.app.datasets import known_owner
from ebbtide.app.world import listing_before, read_inputs, read_state, tick_of
from ebbtide.config import Project
from ebbtide.config.policies import TARGETS, load_policies
from ebbtide.config.yaml import nearest
from ebbtide.errors import InputError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.ids import DatasetId
from ebbtide.model.times import as_text


def parse_object(text: str) -> tuple[str, str, str]:
    """`dataset#target:native-id`, each part percent-encoded where it holds `@ # : %` or a dot of its own."""
    dataset, hash_, rest = text.partition("#")
    target, colon, object_id = rest.partition(":")
    if not (hash_ and colon and object_id):
        raise InputError(
            f"not an object: {text!r}", hint="write dataset#target:id, as in lake.raw.events#transactions:42"
        )
    if target not in TARGETS:
        raise InputError(f"unknown target {target!r}", hint=nearest(target, list(TARGETS)))
    return str(DatasetId.parse(dataset)), target, unquote(object_id)


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
