"""Datasets that a catalog listed before and does not list now: dropped, or only out of sight (spec §7, hazard 33).

Where a service keeps the catalog, it knows. Where tables are what lies in a warehouse, metadata that somebody moved for
a minute, or a warehouse that is not mounted, look like a drop: then what the tables borrowed from others would be free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ebbtide.errors import EbbtideError
from ebbtide.inventory.current import DatasetEntry
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.dataset import Catalog, NotFound, TableHandle
from ebbtide.model.paths import is_inside, local_path
from ebbtide.storage.files import open_store


@dataclass(frozen=True, slots=True)
class CatalogAnswer:
    """What one catalog said."""

    catalog: Catalog
    found: tuple[TableHandle, ...] = ()
    not_found: tuple[NotFound, ...] = ()
    error: EbbtideError | None = None

    def tells_of(self, table_id: str) -> bool:
        """Whether it names the dataset, or a namespace of it that could not be opened."""
        named = {str(found.id) for found in self.found} | {missing.name for missing in self.not_found}
        parts = table_id.split(".")
        return any(".".join(parts[:n]) in named for n in range(1, len(parts) + 1))


@dataclass(frozen=True, slots=True)
class Lost:
    """Looks for what catalogs of folders no longer list. `before` is the inventory of the last scan."""

    before: Inventory

    def looked_for(self, answer: CatalogAnswer) -> CatalogAnswer:
        """The answer with an error for every dataset that it leaves out and of which something still lies there."""
        if answer.error is not None or not answer.catalog.lists_folders:
            return answer
        missing = [
            entry
            for entry in self.before.current.entries.values()
            if entry.catalog == answer.catalog.name and not answer.tells_of(entry.table_id)
        ]
        if missing and _is_empty(answer.catalog):
            hint = "is it mounted? Where everything was dropped, leave any file in it"
            hidden = [NotFound(entry.table_id, f"{answer.catalog.warehouse} is empty", hint) for entry in missing]
        else:
            hint = "restore its metadata, or remove what is left of it"
            left = [(entry.table_id, self._left(entry, answer.catalog)) for entry in missing]
            hidden = [NotFound(table_id, said, hint) for table_id, said in left if said is not None]
        return replace(answer, not_found=(*answer.not_found, *hidden))

    def _left(self, entry: DatasetEntry, catalog: Catalog) -> str | None:
        """Why a dataset may still be there, although its catalog does not list it; None where it was dropped."""
        if not entry.location:
            return None
        try:
            store = open_store(entry.location, catalog.options)
            there = {each.path for each in store.list(entry.location, recursive=True) if not each.is_folder}
            is_folder = store.stat(entry.location) is not None
        except EbbtideError as error:
            return f"its catalog no longer lists it, and its folder cannot be listed: {error.message}"
        if is_folder and (entry.borrowed or entry.doubt):
            # A clone, or a table made by `add_files`, may have nothing but metadata of its own: no file that is known
            # is left where that was moved. A drop takes the folder, too.
            return "its catalog no longer lists it, it references files of others, and its folder is still there"
        if entry.segment:
            paths = self.before.table("files", table_id=entry.table_id)["path"].to_pylist()
            there &= {path for path in paths if is_inside(path, entry.location)}
        return f"its catalog no longer lists it, and {len(there)} files of it are still there" if there else None


def _is_empty(catalog: Catalog) -> bool:
    """Whether the warehouse is a local folder with nothing in it, as a place is where nothing is mounted."""
    if local_path(catalog.warehouse) is None:
        return False
    return not open_store(catalog.warehouse).list(catalog.warehouse)
