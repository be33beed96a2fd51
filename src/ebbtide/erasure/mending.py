"""What an erasure that died left changed of a table's settings is put back when the next one begins, of whomever."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ebbtide.errors import told
from ebbtide.formats.erasing import WAS
from ebbtide.formats.registry import load_erasing
from ebbtide.inventory import current as currents
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.ledger import Ledger
from ebbtide.model.dataset import Catalog
from ebbtide.model.ids import DatasetId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)


def mend_tables(inventory: Inventory, catalogs: Mapping[str, Catalog], session: Callable[[], SparkSession]) -> bool:
    """Whether a table was mended, by what the last scan saw: then its settings are others by now."""
    mended = False
    for name in _broken(inventory):
        catalog, found = catalogs.get(DatasetId.parse(name).catalog), inventory.found(name)
        if catalog is None or found is None:  # whoever removed its catalog from the project keeps it as it is
            continue
        try:
            load_erasing(catalog.format).mend(found, catalog, session())
            mended = True
        except Exception as error:  # a table that cannot be written to now keeps nobody in another one
            _LOG.warning("%s: a setting that an erasure changed is not put back: %s", name, told(error))
    return mended


def left_behind(ledger: Ledger, inventory: Path) -> bool:
    """Whether an erasure died, or left a table's setting changed, though nobody is due: who was may ask no more."""
    with ledger.database.reader() as state:
        if any(each.verb == "erase" for each in state.runs(only_unfinished=True)):
            return True
    known = currents.load(inventory)
    return known is not None and not known.outdated and bool(_broken(Inventory(inventory, known)))


def _broken(inventory: Inventory) -> list[str]:
    """The tables of which the last scan saw that a setting is still another one."""
    rows = inventory.table("tables").select(["table_id", "properties"]).to_pylist(maps_as_pydicts="lossy")
    return [row["table_id"] for row in rows if any(key.startswith(WAS) for key in row["properties"] or {})]
