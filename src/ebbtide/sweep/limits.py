"""Limits of a run (spec §2): the lake's stops everything; a dataset's leaves it out, and the run ends with exit 3."""

from __future__ import annotations

import pyarrow.compute as pc

from ebbtide.config.project import Limits
from ebbtide.errors import RefusedError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.plan.plan import Plan

_HINT = "look at the plan; if it is right, raise `limits: {lake_max_share: …}` in ebbtide.yml, or pass --max-objects"


def most_rows(inventory: Inventory, dataset: str, limits: Limits) -> float | None:
    """The largest share of a head's rows that a run may delete; None where all of them may go.

    The limits speak of bytes: each row is taken for as large as the others.
    """
    files = inventory.table("files", table_id=dataset).select(["live", "role", "bytes"])
    live = pc.sum(files.filter(pc.field("live") & pc.field("role").isin(["data", "log"]))["bytes"]).as_py() or 0
    share = limits.max_share if live == 0 else max(limits.max_share, limits.min_bytes / live)
    return None if share >= 1 else share


def refuse_over(plan: Plan, verb: str) -> None:
    """Stop where the whole run would take too much."""
    for over in plan.over:
        if over.dataset is None and over.verb == verb:
            raise RefusedError(over.text, hint=_HINT)


def left_out(plan: Plan, verb: str) -> tuple[str, ...]:
    """Datasets that the plan left out because too much of them would go."""
    return tuple(f"{over.dataset}: {over.text}" for over in plan.over if over.dataset is not None and over.verb == verb)
