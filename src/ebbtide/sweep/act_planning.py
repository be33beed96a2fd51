"""From the plan to acts: what goes now, dataset by dataset, with the exact files (spec §2)."""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ebbtide.acts.abilities import removes_in_any_order
from ebbtide.acts.act import Act, CommitRemoval, DeleteFiles, NamedFile, ReadReferences, Stage, WatchFiles
from ebbtide.config.policies import CHUNKS, Rows
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.ownership import options_near
from ebbtide.inventory.renames import called_before
from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.model.ids import DatasetId
from ebbtide.model.removal import Drop, Removal, RowDelete
from ebbtide.model.times import as_text
from ebbtide.plan.plan import Plan
from ebbtide.state.values import Mark, ObjectKey
from ebbtide.sweep.values import ExpiringObject, ObjectBatch

OBJECTS_PER_ACT = 500
"""An intent names its marks, and a leaf of the ledger holds at most 60,000 bytes."""
_OWN_TARGETS = ("branches", "partitions", "rows", "transactions", "versions")


def decided(plan: Plan, *decisions: str) -> dict[ObjectKey, dict[str, Any]]:
    """The plan's objects with one of these decisions, but for chunks: these only the hot tier drops."""
    return {
        ObjectKey(row["dataset"], row["target"], row["object"]): row
        for row in plan.rows(*decisions, codes=True)
        if row["target"] != CHUNKS
    }


def going_now(plan: Plan, marks: Mapping[ObjectKey, Mark]) -> list[ExpiringObject]:
    """The objects with decision `sweep`, with their marks and files."""
    rows = decided(plan, "sweep")
    # Who has a mark has its facts in it.
    facts = facts_of(plan, "sweep") if rows.keys() - marks.keys() else {}
    files: dict[ObjectKey, list[NamedFile]] = defaultdict(list)
    for row in plan.read("sweeps") if rows else ():
        named = NamedFile(row["path"], row["bytes"], row["role"], tuple(row["in_heads"]), row["modified"])
        files[ObjectKey(row["table_id"], row["target"], row["object_id"])].append(named)
    in_head: dict[ObjectKey, dict[str, int]] = defaultdict(dict)
    for row in plan.read("drops") if rows else ():
        in_head[ObjectKey(row["table_id"], "partitions", row["object_id"])][row["path"]] = row["bytes"]
    return [
        ExpiringObject(
            key, row, marks.get(key), tuple(sorted(files[key], key=lambda file: file.path)),
            facts.get((key.dataset, key.object)), in_head[key],
        )
        for key, row in rows.items()
    ]  # fmt: skip


def facts_of(plan: Plan, decision: str) -> dict[tuple[str, str], str]:
    """What history tells of each transaction with this decision, once it is no longer there."""
    columns = ("parent_id", "branches", "kind", "committed_at", "operation", "staged", "rows_added", "rows_removed",
               "files_added", "files_removed", "bytes_added", "bytes_removed")  # fmt: skip
    return {
        (row["table_id"], row["transaction_id"]): _fact(row, columns)
        for row in plan.read("facts")
        if decision in row["decisions"]
    }


def _fact(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    facts = {name: row[name] for name in columns}
    facts["committed_at"] = as_text(row["committed_at"])
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))


def homes_of(inventory: Inventory, dataset: str) -> tuple[str, ...]:
    """The folders of a dataset that is there, or was; the one where it is now first."""
    if (entry := inventory.current.entries.get(dataset)) is not None:
        return entry.places
    return tuple(former.location for former in inventory.current.former if former.table_id == dataset)


def catalog_of(dataset: str, catalogs: Mapping[str, Catalog]) -> Catalog | None:
    """The catalog of a dataset, where the project still names it."""
    return catalogs.get(DatasetId.parse(dataset).catalog)


def _outside(orphans: ObjectKey, catalogs: Mapping[str, Catalog]) -> Catalog:
    """For orphans around which there is no catalog: the way to their store, and nothing else."""
    options = options_near(orphans.object, catalogs.values())
    return Catalog(DatasetId.parse(orphans.dataset).catalog, "", orphans.object, options=options)


def batches_of(
    objects: Iterable[ExpiringObject],
    catalogs: Mapping[str, Catalog],
    inventory: Inventory,
) -> Iterator[ObjectBatch]:
    """An act per dataset and some hundred objects, the oldest versions first; orphans and whole tables apart.

    Where a table goes whole, everything else of it goes along.
    """
    by_dataset: dict[str, list[ExpiringObject]] = defaultdict(list)
    for going in objects:
        by_dataset[going.key.dataset].append(going)
    names = called_before(inventory.current)
    for dataset, all_of_it in sorted(by_dataset.items()):
        found = inventory.found(dataset)
        apart = [going for going in all_of_it if going.key.target not in _OWN_TARGETS]
        history = {row["transaction_id"]: row for row in inventory.rows("transactions", table_id=dataset)}
        main = next((row["head"] for row in inventory.rows("branches", table_id=dataset) if row["main"]), None)
        head = None if main is None or main not in history else (main, history[main]["committed_at"])
        together = sorted(
            (going for going in all_of_it if going.key.target in _OWN_TARGETS),
            key=lambda going: (
                history[going.key.object]["position"] if going.key.object in history else -1,
                going.key.target,
                going.key.object,
            ),
        )
        whole = any(going.key.target == "tables" for going in apart)
        groups = [[going] for going in apart]
        parts = [together[n : n + OBJECTS_PER_ACT] for n in range(0, len(together), OBJECTS_PER_ACT)]
        known = catalog_of(dataset, catalogs)
        if known is not None and not removes_in_any_order(known):
            # Oldest first: younger versions can go once the older ones have, which is in the next run.
            parts = parts[:1]
        homes = homes_of(inventory, dataset)
        home = homes[0] if homes else None
        root = home if found is not None else _around(home, [going.key.object for going in apart])
        for group in (*groups, *parts):
            yield ObjectBatch(
                id=new_act(), dataset=dataset, catalog=known or _outside(group[0].key, catalogs), objects=tuple(group),
                found=found, homes=homes, head=head, root=root, along=whole and group[0].key.target in _OWN_TARGETS,
                called_before=names.get(dataset, ()),
            )  # fmt: skip


def _around(home: str | None, folders: Iterable[str]) -> str:
    """Around a table that is no more, the folder that it lay in."""
    return min((*([home] if home else ()), *folders), key=len, default="").rpartition("/")[0]


def new_act() -> str:
    """An id for an act; nothing that it is made of."""
    return f"act-{secrets.token_hex(12)}"


def act_of(batch: ObjectBatch, rows: Mapping[str, Rows], most_rows: float | None) -> Act:
    """The stages that these objects take. `rows` are the policies' rows targets by policy, `most_rows` the largest
    share of rows that may go.
    """
    objects = batch.objects
    files = tuple(file for object_ in objects for file in object_.files)
    orphans = all(object_.key.target == "orphans" for object_ in objects)
    stages: list[Stage] = [ReadReferences(), WatchFiles(files=files) if batch.along else DeleteFiles(files=files)]
    if batch.found is not None and not orphans and not batch.along:
        removal = removal_of(batch.found, objects, rows)
        stages.insert(0, CommitRemoval(removal=removal, most_rows=most_rows))
    tried = [object_.tried_at[0] for object_ in objects if object_.tried_at is not None]
    return Act(
        id=batch.id, dataset=batch.dataset, catalog=batch.catalog, stages=tuple(stages), found=batch.found,
        marks=tuple(object_.mark.id for object_ in objects if object_.mark),
        keeps={path: size for object_ in objects for path, size in object_.in_head.items()},
        homes=batch.homes, root=batch.root,
        head=tried[0] if tried else batch.head and batch.head[0], leftover=batch.leftover, anywhere=orphans,
        forgotten=batch.leftover and bool(batch.homes) and all(o.key.target == "tables" for o in objects),
    )  # fmt: skip


def removal_of(found: TableHandle, objects: Iterable[ExpiringObject], rows: Mapping[str, Rows]) -> Removal:
    """What is asked of the format for these objects; `rows` are the policies' rows targets by policy."""
    drops: list[Drop] = []
    deletes: list[RowDelete] = []
    versions: dict[str, None] = {}
    branches: list[str] = []
    table = False
    files: dict[str, int] = {}
    for going in objects:
        key, row = going.key, going.row
        files |= {file.path: file.bytes for file in going.files}
        if key.target in ("transactions", "versions"):
            if row["drops_from"]:
                drops += _leaving(going)
            else:
                versions[key.object] = None
        elif key.target == "partitions":
            # All that the head has of it, whoever else keeps a file: the partition leaves, its files may wait.
            heads = row["drops_from"] if going.in_head else ()
            drops += [Drop(branch, key.object, tuple(sorted(going.in_head)), key.object) for branch in heads]
        elif key.target == "rows" and (going.mark is None or going.mark.acted_at is None):
            deletes.append(row_delete(going, rows))
        elif key.target == "branches":
            branches.append(key.object)
        elif key.target == "tables":
            table = True
    return Removal(
        found=found, branches=tuple(branches), drops=tuple(drops), rows=tuple(deletes), versions=tuple(versions),
        files=files, table=table,
    )  # fmt: skip


def _leaving(going: ExpiringObject) -> Iterator[Drop]:
    for branch in going.row["drops_from"]:
        paths = tuple(file.path for file in going.files if file.role == "data" and branch in file.in_heads)
        if paths:
            yield Drop(branch, going.key.object, paths)


def row_delete(going: ExpiringObject, rows: Mapping[str, Rows]) -> RowDelete:
    """What the mark of a row object froze."""
    # The object of a rows target is its policy; the mark's fingerprint says that the policy is still the same.
    asked = rows[going.key.object]
    return RowDelete(going.key.object, asked.column, going.row["cutoff"], asked.where)
