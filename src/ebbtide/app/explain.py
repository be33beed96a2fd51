"""`ebbtide explain OBJECT`: every policy, every protection and the decision for one object."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from ebbtide.app.datasets import known_names, known_object, known_owner, parse_object
from ebbtide.app.hot_chunks import refuse_unknown_chunk
from ebbtide.app.state import open_state
from ebbtide.app.world import listing_before, read_inputs, read_state, tick_of
from ebbtide.config import Project
from ebbtide.config.policies import CHUNKS, PolicySet, load_policies
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.ids import object_name
from ebbtide.model.times import as_text
from ebbtide.state.hottier import ChunkState

if TYPE_CHECKING:
    from ebbtide.plan.explain import ObjectExplanation

MOST = 20
"""As many objects of a selection are explained: each is planned again, and nobody reads more."""


def explain_selected(
    project: Project, select: Sequence[str], *, now: datetime, most: int = MOST
) -> tuple[list[dict[str, Any]], int]:
    """The first objects that `--select` takes, each explained, and how many more there are."""
    from ebbtide.app.plan import choice_of, make_plan

    tables = known_names(project, Inventory.open(project.inventory))
    with make_plan(project, now=now) as plan:
        taken = filter(choice_of(select, plan.graces, tables).takes(), plan.rows())
        first = [object_name(row["dataset"], row["target"], row["object"]) for row in islice(taken, most)]
        more = sum(1 for _ in taken)
    return [explain_object(project, name, now=now) for name in first], more


def explain_object(project: Project, text: str, *, now: datetime) -> dict[str, Any]:
    """What the plan makes of one object."""
    from ebbtide.plan.explain import explain

    dataset, target, object_id = parse_object(text)
    policies = load_policies(project.root, unsafe=True)
    inventory = Inventory.open(project.inventory)
    if target == CHUNKS:
        return _explain_chunk(project, inventory, policies, dataset, object_id, now=now)
    known_owner(project, inventory, dataset)
    with open_state(project).reader() as state:
        marked = {mark.key.object for mark in state.marks(datasets=[dataset], only_open=False)}
    if object_id not in marked:
        known_object(inventory, dataset, target, object_id)
    listing = listing_before(project, inventory) if target == "orphans" else None
    inputs = read_inputs(project, policies, read_state(project), inventory, listing, now=now)
    found = explain(
        inputs.policies, inputs.world, inputs.orders(),
        dataset=dataset, target=target, object_id=object_id, now=now, limits=project.limits, tick=tick_of(project),
    )  # fmt: skip
    return _told(found, now)


def _explain_chunk(
    project: Project, inventory: Inventory, policies: PolicySet, table: str, name: str, *, now: datetime
) -> dict[str, Any]:
    """A chunk goes by the file of its table alone; what was dropped says where its rows are."""
    from ebbtide.plan.explain import ObjectExplanation, PolicyOpinion, explain_chunk

    chunk = refuse_unknown_chunk(project, table, name)
    if chunk.state is ChunkState.DROPPED:
        at = as_text(chunk.dropped_at) if chunk.dropped_at else "some time"
        gone = PolicyOpinion(f"the hot table {table}", "dropped it", f"at {at}: `ebbtide tier untier` brings it back")
        return _told(ObjectExplanation(table, CHUNKS, name, None, (gone,)), now)
    inputs = read_inputs(project, policies, read_state(project), inventory, None, now=now)
    return _told(explain_chunk(inputs.policies, inputs.world, inputs.orders(), table=table, chunk=name, now=now), now)


def _told(found: ObjectExplanation, now: datetime) -> dict[str, Any]:
    dataset, target, object_id = found.dataset, found.target, found.object
    return {
        "as_of": as_text(now),
        "dataset": dataset,
        "target": target,
        "object": object_id,
        "planned": found.planned,
        "policies": [{"policy": c.policy, "outcome": c.outcome, "because": c.because} for c in found.considered],
    }
