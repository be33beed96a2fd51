"""A dry run of `sweep`: the same batches and the same stages, and what each object would come to (invariant 3).

What only the run itself can tell is left out: whether a row matches, a file can be removed, a writer comes in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ebbtide.acts.abilities import forgets_versions, why_not_one_by_one
from ebbtide.acts.act import Act, ActResult
from ebbtide.acts.references import OUTSIDE, outside
from ebbtide.config.policies import Rows
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.reasons import Code, Reason
from ebbtide.model.removal import Freed
from ebbtide.sweep.act_planning import act_of
from ebbtide.sweep.outcomes import DatasetState, results_in
from ebbtide.sweep.values import Batch, Result

_WOULD = {"swept": "would go", "waiting": "waiting", "unmarked": "would be sent back", "failed": "would fail"}


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a sweep would do, and to which end."""

    results: tuple[Result, ...]
    files: Mapping[str, int]
    """What would go, with sizes."""
    stages: tuple[tuple[str, tuple[str, ...]], ...]
    """By dataset, what would be done, in order."""


def foresee(
    batches: Sequence[Batch], inventory: Inventory, asked: Mapping[str, Rows], in_doubt: Sequence[str]
) -> Foreseen:
    """What would become of these batches if nothing failed. `in_doubt` may reference anything."""
    results: list[Result] = []
    files: dict[str, int] = {}
    stages = []
    for batch in batches:
        act = act_of(batch, asked, None)
        ended = _as_if_done(act, next(iter(in_doubt), None))
        now = DatasetState(batch.dataset, inventory)
        results += [_would(act, each) for each in results_in(batch, ended, _after(now, batch, act), now)]
        files |= ended.removed
        stages.append((batch.dataset, tuple(str(stage) for stage in act.stages)))
    return Foreseen(tuple(results), files, tuple(stages))


def _would(act: Act, result: Result) -> Result:
    if act.removal is not None and result.key.object in {delete.object for delete in act.removal.rows}:
        # Only the delete tells whether a row matches; where one does, the version before it still holds the row.
        return Result(result.key, "waiting", "its rows leave the head; versions from before it still hold them")
    return replace(result, state=_WOULD[result.state])


def _as_if_done(act: Act, unread: str | None) -> ActResult:
    """Every stage done as well as it can be: what lies outside stays, and everything where somebody cannot be read."""
    stays = (
        dict.fromkeys(outside(act), OUTSIDE)
        if unread is None
        else dict.fromkeys(act.paths, Reason(unread, Code.UNREAD))
    )
    kept = Freed(because=unread or why_not_one_by_one(act))
    return ActResult(
        act=act, needed=stays, unread=unread, freed=kept, there=frozenset(act.paths if kept.because else stays)
    )


def _after(now: DatasetState, batch: Batch, act: Act) -> DatasetState:
    """The dataset as it would be: without what the format lets go of by a commit."""
    removal = act.removal
    if removal is None:
        return now
    partitions = {object_.key.object for object_ in batch.objects if object_.key.target == "partitions"}
    return now.without(removal, partitions, versions=not forgets_versions(act.catalog))
