"""A dataset that a person named, found in the inventory or in what is known of those that are gone."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from ebbtide.app.state import open_state
from ebbtide.config import Project
from ebbtide.errors import InputError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.ids import DatasetId


def known_dataset(inventory: Inventory, dataset: str) -> str:
    """Its id, or an `InputError` with the nearest names."""
    return _one_of(inventory.current.entries, str(DatasetId.parse(dataset)))


def known_owner(project: Project, inventory: Inventory, dataset: str) -> str:
    """The same, also for one that no catalog lists any more: what it left is marked, and must be held and rescued."""
    table_id = str(DatasetId.parse(dataset))
    known = set(inventory.current.entries) | {former.table_id for former in inventory.current.former}
    if table_id not in known:
        with open_state(project).reader() as state:
            known |= {folder.dataset for folder in state.condemned()} | {mark.key.dataset for mark in state.marks()}
    return _one_of(known, table_id)


def _one_of(known: Collection[str], table_id: str) -> str:
    if table_id not in known:
        close = difflib.get_close_matches(table_id, sorted(known), 3)
        raise InputError(
            f"no dataset {table_id} in the inventory",
            hint=f"did you mean {' or '.join(close)}?" if close else "`ebbtide tables` lists them; scan if it is new",
        )
    return table_id
