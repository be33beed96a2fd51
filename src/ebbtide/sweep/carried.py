"""What a transaction brought in, and what is still there of it when its version has gone (hazard 35).

A file that comes back (`add_files`, a cherry-pick) belongs to whoever brought it back once nothing tells of the first.
Its rows can be read, so the first one's data was not deleted, whatever became of its version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import pyarrow.compute as pc

from ebbtide.acts.act import ActResult
from ebbtide.acts.evidence import still_there
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.history import CONTENT
from ebbtide.sweep.values import ELSEWHERE, ObjectBatch, ObjectOutcome

_HISTORY = ("transactions", "versions")
Added = Mapping[str, frozenset[str]]


def added_by(batch: ObjectBatch, inventory: Inventory) -> Added:
    """The files with rows that each of a batch's transactions brought in, as the plan's inventory has it."""
    ids = sorted({o.key.object for o in batch.objects if o.key.target in _HISTORY})
    if not ids:
        return {}
    rows = inventory.table("files", table_id=batch.dataset).select(["path", "role", "first_transaction"])
    rows = rows.filter(pc.field("first_transaction").isin(ids) & pc.field("role").isin(CONTENT))
    found: dict[str, set[str]] = {}
    for path, by in zip(rows["path"].to_pylist(), rows["first_transaction"].to_pylist(), strict=True):
        found.setdefault(by, set()).add(path)
    return {by: frozenset(paths) for by, paths in found.items()}


def with_carried(
    results: Iterable[ObjectOutcome], ended: ActResult, added: Added, after: Inventory
) -> list[ObjectOutcome]:
    """What was swept, with the transactions that have its files by now, or that somebody else has them."""
    results = list(results)
    swept = {r.key.object for r in results if r.state == "swept" and r.key.target in _HISTORY}
    gone = ended.removed.keys()
    there = {id_: paths - gone for id_, paths in added.items() if id_ in swept and paths - gone}
    if not there:
        return results
    owners = _owners(after, ended.act.dataset, frozenset[str]().union(*there.values()))
    strays = {path for paths in there.values() for path in paths if path not in owners}
    lost = still_there(strays, ended.act.catalog.options)
    into: dict[str, tuple[str, ...]] = {}
    for id_, paths in there.items():
        names = {owners[path] for path in paths if path in owners} | ({ELSEWHERE} if paths & lost else set())
        into[id_] = tuple(sorted(name for name in names if name and name != id_))
    return [
        replace(r, carried_into=into[r.key.object]) if r.key.object in into and r.key.target in _HISTORY else r
        for r in results
    ]


def _owners(after: Inventory, dataset: str, paths: Collection[str]) -> dict[str, str | None]:
    """Who brought these files in, of those that the dataset still references."""
    rows = after.table("files", table_id=dataset).select(["path", "first_transaction"])
    rows = rows.filter(pc.field("path").isin(sorted(paths)))
    return dict(zip(rows["path"].to_pylist(), rows["first_transaction"].to_pylist(), strict=True))
