"""A dataset that a person named, found in the inventory or in what is known of those that are gone."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ebbtide.config import Project
from ebbtide.config.policies import CHUNKS, EVERY_TARGET
from ebbtide.config.yaml import nearest
from ebbtide.errors import InputError
from ebbtide.model.ids import DatasetId, encode_part, written

if TYPE_CHECKING:
    from ebbtide.inventory.information_schema import Inventory


def parse_object(text: str) -> tuple[str, str, str]:
    """`dataset#target:native-id`, each part percent-encoded where it holds `@ # : %` or a dot of its own."""
    dataset, hash_, rest = text.partition("#")
    target, colon, object_id = rest.partition(":")
    if not (hash_ and colon and object_id):
        raise InputError(
            f"not an object: {text!r}", hint="write dataset#target:id, as in lake.raw.events#transactions:42"
        )
    if target not in EVERY_TARGET:
        raise InputError(f"unknown target {target!r}", hint=nearest(target, list(EVERY_TARGET)))
    if target == CHUNKS:
        return written(dataset), target, unquote(object_id)
    return str(DatasetId.parse(dataset)), target, unquote(object_id)


def known_dataset(inventory: Inventory, dataset: str) -> str:
    """Its id, or an `InputError` with the nearest names."""
    return _one_of(inventory.current.entries, str(DatasetId.parse(dataset)))


def known_owner(project: Project, inventory: Inventory, dataset: str) -> str:
    """The same, also for one that no catalog lists any more: what it left is marked, and must be held and rescued."""
    table_id = str(DatasetId.parse(dataset))
    known = _listed(inventory)
    if table_id not in known:
        known |= _ordered(project)
    return _one_of(known, table_id)


def known_names(project: Project, inventory: Inventory) -> set[str]:
    """Every dataset that a plan or the state may speak of: those that catalogs list, and those that are gone."""
    return _listed(inventory) | _ordered(project) | {written(name) for name in _hot(project)}


def _hot(project: Project) -> tuple[str, ...]:
    from ebbtide.config.hottier import names_of_hot_tables

    try:
        return names_of_hot_tables(project.root)
    except InputError:  # the plan warns of the file
        return ()


def _listed(inventory: Inventory) -> set[str]:
    return set(inventory.current.entries) | {former.table_id for former in inventory.current.former}


def _ordered(project: Project) -> set[str]:
    """What the state names, whether or not a catalog still does."""
    from ebbtide.app.state import open_state

    with open_state(project).reader() as state:
        return {folder.dataset for folder in state.condemned()} | {mark.key.dataset for mark in state.marks()}


_SECTIONS = {
    "transactions": ("transactions", "transaction_id"),
    "versions": ("transactions", "transaction_id"),
    "partitions": ("partitions", "partition"),
    "branches": ("branches", "name"),
}
"""Where the inventory has the objects of a target, and what it calls them."""


_OTHERWISE = "`ebbtide plan --json` and `history` have them; scan if it is new; write %25 for a %"


def known_object(inventory: Inventory, dataset: str, target: str, object_id: str) -> None:
    """Refuse an object that the inventory should list and does not: who mistypes an id believes it is safe."""
    if target not in _SECTIONS or dataset not in inventory.current.entries:
        return
    section, column = _SECTIONS[target]
    # As they are written on a command line: a NULL's `col=%00` is `col=%2500` there.
    known = {encode_part(str(row[column])) for row in inventory.rows(section, table_id=dataset)}
    asked = encode_part(object_id)
    shown = asked if asked.isprintable() else repr(asked)
    _check(known, asked, f"{dataset} has no {target} {shown}", _OTHERWISE)


def _one_of(known: Collection[str], table_id: str) -> str:
    _check(known, table_id, f"no dataset {table_id} in the inventory", "`ebbtide tables` lists them; scan if it is new")
    return table_id


def _check(known: Collection[str], name: str, message: str, otherwise: str) -> None:
    """An `InputError` with the nearest names, or with what to do `otherwise`, where the name is none of the known."""
    if name not in known:
        close = difflib.get_close_matches(name, sorted(known), 3)
        raise InputError(message, hint=f"did you mean {' or '.join(close)}?" if close else otherwise)
