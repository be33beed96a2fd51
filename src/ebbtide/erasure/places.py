"""Where a person can be: columns that carry identities, the versions of their datasets, and what cannot be followed.

All of it is read from the last scan and from lineage; no row is looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.config.subjects import Identities
from ebbtide.errors import InputError
from ebbtide.formats.versions import Retained
from ebbtide.governance.carriers import carriers
from ebbtide.inventory.information_schema import Inventory
from ebbtide.lineage.labelled import Labelled
from ebbtide.lineage.values import ProblemKind
from ebbtide.model.dataset import Role

_HIDING = (Role.DELETE_FILE, Role.DELETION_VECTOR)
_GAPS = (ProblemKind.UNREADABLE, ProblemKind.UNMATCHED, ProblemKind.FALLBACK)


@dataclass(frozen=True, slots=True, order=True)
class NotReachable:
    """A place that was not looked at. `failed` means: try again; `elsewhere` that no catalog of ours has it."""

    place: str
    because: str
    failed: bool = False
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Places:
    """The columns of each dataset that carry an identity, with its name, and what cannot be followed."""

    columns: Mapping[str, Mapping[str, tuple[str, ...]]]
    not_reachable: tuple[NotReachable, ...]


def places_of(names: Iterable[str], identities: Identities, labelled: Labelled, inventory: Inventory) -> Places:
    """Follow these identities along column lineage to every dataset."""
    columns: dict[str, dict[str, tuple[str, ...]]] = {}
    missed: set[NotReachable] = set()
    for name in sorted(set(names)):
        if name not in identities.subjects:
            raise InputError(
                f"subjects.yml has no identity {name!r} any more", hint="put it back: somebody asked by it"
            )
        found = carriers(identities.subjects[name], labelled, inventory)
        for place in found.columns:
            by_name = columns.setdefault(place.table_id, {})
            by_name[place.column] = (*by_name.get(place.column, ()), name)
        missed |= {NotReachable(one.place, one.because, one.failed) for one in found.unread}
        missed |= {
            NotReachable(place, "no catalog lists it: a view, or a table of others", elsewhere=True)
            for place in found.elsewhere
        }
    missed |= _unread(inventory)
    missed |= {
        NotReachable(problem.subject or problem.where, f"lineage: {problem.message}")
        for problem in labelled.lineage.problems
        if problem.kind in _GAPS
    }
    return Places(columns, tuple(sorted(missed)))


def _unread(inventory: Inventory) -> set[NotReachable]:
    """What the last scan could not read may hold anybody, whatever lineage says."""
    return {
        NotReachable(error["table_id"] or error["catalog"], "the last scan could not read it", failed=True)
        for error in inventory.errors()
    }


def retained_versions(inventory: Inventory, tables: Collection[str]) -> dict[str, Retained]:
    """Every version of these datasets that the last scan found, and which data files each of them holds."""
    wanted = pa.array(sorted(tables), pa.string())
    transactions = _of(inventory, "transactions", wanted, ["table_id", "transaction_id", "position", "expired"])
    branches = _of(inventory, "branches", wanted, ["table_id", "name", "kind", "head"])
    files = _of(inventory, "files", wanted, ["table_id", "path", "role", "versions"])
    ids: dict[str, dict[int, str]] = {table_id: {} for table_id in tables}
    readable: dict[str, int] = dict.fromkeys(tables, 0)
    for row in transactions.to_pylist():
        ids[row["table_id"]][row["position"]] = row["transaction_id"]
        if not row["expired"]:
            readable[row["table_id"]] |= 1 << row["position"]
    at = {table_id: {id_: n for n, id_ in found.items()} for table_id, found in ids.items()}
    heads: dict[str, dict[str, int]] = {table_id: {} for table_id in tables}
    for row in branches.to_pylist():
        position = at[row["table_id"]].get(row["head"])
        if position is not None:
            heads[row["table_id"]][f"{row['kind']}:{row['name']}"] = 1 << position
    data: dict[str, dict[str, int]] = {table_id: {} for table_id in tables}
    hiding: dict[str, int] = dict.fromkeys(tables, 0)
    masks: dict[tuple[tuple[int, int], ...], int] = {}
    for row in files.to_pylist():
        if row["role"] == Role.DATA:
            data[row["table_id"]][row["path"]] = _mask(row["versions"], len(ids[row["table_id"]]), masks)
        elif row["role"] in _HIDING:
            hiding[row["table_id"]] |= _mask(row["versions"], len(ids[row["table_id"]]), masks)
    found: dict[str, Retained] = {}
    for table_id in sorted(tables):
        handle = inventory.found(table_id)
        assert handle is not None  # it is one of the inventory's
        in_order = [ids[table_id][n] for n in range(len(ids[table_id]))]
        found[table_id] = Retained(
            handle, in_order, readable[table_id], heads[table_id], data[table_id], hiding[table_id]
        )
    return found


def _mask(runs: list[dict[str, int]] | None, count: int, known: dict[tuple[tuple[int, int], ...], int]) -> int:
    """The bits of runs of positions. What something beside the versions keeps lies behind all of them."""
    key = tuple((run["first"], min(run["last"], count - 1)) for run in runs or () if run["first"] < count)
    if key not in known:
        bits = 0
        for first, last in key:
            bits |= (1 << last + 1) - (1 << first)
        known[key] = bits
    return known[key]


def _of(inventory: Inventory, section: str, tables: pa.Array, columns: list[str]) -> pa.Table:
    rows = inventory.table(section).select(columns)
    return rows.filter(pc.is_in(rows["table_id"], tables))
