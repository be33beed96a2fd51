"""A dataset that a person named, found in the inventory."""

from __future__ import annotations

import difflib

from ebbtide.errors import InputError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.ids import DatasetId


def known_dataset(inventory: Inventory, dataset: str) -> str:
    """Its id, or an `InputError` with the nearest names."""
    table_id = str(DatasetId.parse(dataset))
    if table_id not in inventory.current.entries:
        close = difflib.get_close_matches(table_id, list(inventory.current.entries), 3)
        raise InputError(
            f"no dataset {table_id} in the inventory",
            hint=f"did you mean {' or '.join(close)}?" if close else "`ebbtide tables` lists them; scan if it is new",
        )
    return table_id
