"""Limits of a run (spec §2): the lake's stops everything; a dataset's leaves it out, and the run ends with exit 3."""

from __future__ import annotations

from ebbtide.errors import OverLimitError
from ebbtide.plan.plan import Plan

_HINT = "look at the plan; if it is right, raise `limits: {lake_max_share: …}` in ebbtide.yml, or pass --max-objects"


def refuse_over(plan: Plan, verb: str) -> None:
    """Stop where the whole run would take too much."""
    for over in plan.over:
        if over.dataset is None and over.verb == verb:
            raise OverLimitError(over.text, hint=_HINT)


def left_out(plan: Plan, verb: str) -> tuple[str, ...]:
    """Datasets that the plan left out because too much of them would go."""
    return tuple(f"{over.dataset}: {over.text}" for over in plan.over if over.dataset is not None and over.verb == verb)
