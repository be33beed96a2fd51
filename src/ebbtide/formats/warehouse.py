"""What formats that find their tables by listing have in common: the warehouse's folder, and tokens of listings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ebbtide.errors import RefusedError, UnreadableError
from ebbtide.model.dataset import Catalog
from ebbtide.model.ids import DatasetId
from ebbtide.storage.files import Store, StoredObject, open_store


def open_warehouse(catalog: Catalog) -> tuple[Store, list[StoredObject]]:
    """The store of a catalog's warehouse and the folders in it; an error where it is missing or does not answer."""
    hint = f"check `warehouse` of catalog {catalog.name}"
    try:
        store = open_store(catalog.warehouse, catalog.options)
        root = store.stat(catalog.warehouse)
        folders = [e for e in store.list(catalog.warehouse) if e.is_folder] if root and root.is_folder else None
    except (UnreadableError, OSError) as error:
        reason = f"the warehouse {catalog.warehouse} does not answer: {error}"
        raise UnreadableError(catalog.name, reason, hint=hint) from error
    if folders is None:
        raise UnreadableError(catalog.name, f"no warehouse at {catalog.warehouse}", hint=hint)
    return store, folders


def place_of(id_: DatasetId, catalog: Catalog) -> str:
    """Where a table of a catalog without a service lies, as the warehouse's owner spells it."""
    return "/".join((catalog.warehouse.rstrip("/"), *id_.namespace, id_.table))


def refuse_existing(place: str, catalog: Catalog) -> None:
    """A table is only made where nothing lies: some formats would write over what is there."""
    if open_store(place, catalog.options).stat(place) is not None:
        raise RefusedError(f"something lies at {place} already", hint="scan again, or choose another name")


def token_of(entries: Iterable[StoredObject]) -> str:
    """Changes with every file that comes, goes, grows or is written again."""
    digest = hashlib.sha256()
    for entry in sorted((e for e in entries if not e.is_folder), key=lambda e: e.path):
        digest.update(f"{entry.path}\0{entry.bytes}\0{entry.modified}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
