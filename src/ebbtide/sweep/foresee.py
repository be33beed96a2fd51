"""A dry run of `sweep`: the same batches and the same stages, and what each object would come to (invariant 3).

What only the run itself can tell is left out: whether a row matches, a file can be removed, a writer comes in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ebbtide.acts.abilities import forgets_versions, why_not_one_by_one
from ebbtide.acts.act import Act, ActResult
from ebbtide.acts.references import OUTSIDE, outside, with_needed
from ebbtide.config.policies import Rows
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.reasons import Code, Reason
from ebbtide.model.removal import FileDeletion
from ebbtide.sweep.act_planning import act_of
from ebbtide.sweep.outcomes import DatasetState, results_in
from ebbtide.sweep.values import ObjectBatch, ObjectOutcome, freed_by

_WOULD = {"swept": "would go", "waiting": "waiting", "unmarked": "would be sent back", "failed": "would fail"}


@dataclass(frozen=True, slots=True)
class ForeseenSweep:
    """What a sweep would do, and to which end."""

    results: tuple[ObjectOutcome, ...]
    files: Mapping[str, int]
    """What would go, with sizes."""
    stages: tuple[tuple[str, tuple[str, ...]], ...]
    """By dataset, what would be done, in order."""
    freed: Mapping[str, tuple[int, int]]
    """By dataset, how many files would go, and how many bytes."""


def foresee(
    batches: Sequence[ObjectBatch], inventory: Inventory, asked: Mapping[str, Rows], in_doubt: Sequence[str]
) -> ForeseenSweep:
    """What would become of these batches if nothing failed. `in_doubt` may reference anything."""
    unread = next(iter(in_doubt), None)
    ended = {batch.id: _as_if_done(batch, act_of(batch, asked, None), unread) for batch in batches}
    # No commit comes before what earlier acts left: what the sweep will read of references is what is there now.
    left = [ActResult(act=ended[batch.id].act) for batch in batches if batch.leftover]
    ended |= {result.act.id: _as_if_deleted(result) for result in with_needed(left, inventory, in_doubt)}
    files = {path: size for result in ended.values() for path, size in result.removed.items()}
    by_dataset: dict[str, list[ActResult]] = {}
    for each in ended.values():
        by_dataset.setdefault(each.act.dataset, []).append(each)
    results: list[ObjectOutcome] = []
    for batch in batches:
        now, result = DatasetState(batch.dataset, inventory), ended[batch.id]
        after = _after(now, batch, by_dataset[batch.dataset], files)
        results += [_would(result.act, each) for each in results_in(batch, result, after, now)]
    stages = [(each.act.dataset, tuple(str(stage) for stage in each.act.stages)) for each in ended.values()]
    return ForeseenSweep(tuple(results), files, tuple(stages), freed_by(ended.values()))


def _would(act: Act, result: ObjectOutcome) -> ObjectOutcome:
    if act.removal is not None and result.key.object in {delete.object for delete in act.removal.rows}:
        # Only the delete tells whether a row matches; where one does, the version before it still holds the row.
        return ObjectOutcome(result.key, "waiting", "its rows leave the head; versions from before it still hold them")
    return replace(result, state=_WOULD[result.state])


def _as_if_done(batch: ObjectBatch, act: Act, unread: str | None) -> ActResult:
    """Every stage done as well as it can be: what others need stays, and everything where somebody cannot be read."""
    if unread is not None:
        stays = dict.fromkeys(act.paths, Reason(unread, Code.UNREAD))
    else:
        stays = dict.fromkeys(outside(act), OUTSIDE)
        if batch.head is not None:  # which is a version like others then, and still has what leaves it
            stays |= dict.fromkeys(_leaving(batch), Reason(f"version:{batch.head[0]}", Code.REFERENCED))
    return _as_if_deleted(ActResult(act=act, needed=stays, unread=unread))


def _as_if_deleted(result: ActResult) -> ActResult:
    """Everything gone that nothing needs, unless the format keeps it."""
    kept = FileDeletion(because=result.unread or why_not_one_by_one(result.act))
    paths = result.act.paths
    there = paths if kept.because else [path for path in paths if path in result.needed]
    return replace(result, deletion=kept, there=frozenset(there))


def _leaving(batch: ObjectBatch) -> set[str]:
    """The files that leave a head by a commit of this batch."""
    if any(object_.key.target == "tables" for object_ in batch.objects):
        return set()
    return {
        file.path
        for object_ in batch.objects
        for file in object_.files
        if file.path in object_.in_head or {*file.in_heads} & {*object_.row["drops_from"]}
    }


def _after(
    now: DatasetState, batch: ObjectBatch, of_dataset: Iterable[ActResult], files: Mapping[str, int]
) -> DatasetState:
    """The dataset as it would be: without its table, or without what the format lets go of."""
    removals = [result.act.removal for result in of_dataset if result.act.removal is not None]
    if batch.leftover or not removals:
        return now
    partitions = {object_.key.object for object_ in batch.objects if object_.key.target == "partitions"}
    gone = {version for removal in removals for version in removal.versions}
    if not forgets_versions(batch.catalog):
        # Listed until a log is cleaned; but one that lost a file can no longer be read, and counts as gone.
        gone &= now.versions_of(files)
    return now.without(
        table=any(removal.table for removal in removals), versions=gone, partitions=partitions,
        branches={name for removal in removals for name in removal.branches},
    )  # fmt: skip
