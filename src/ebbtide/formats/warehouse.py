"""What formats that find their tables by listing have in common: the warehouse's folder, and tokens of listings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ebbtide.errors import UnreadableError
from ebbtide.model.dataset import Catalog
from ebbtide.storage.files import Entry, Store, open_store


def open_warehouse(catalog: Catalog) -> tuple[Store, list[Entry]]:
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


def token_of(entries: Iterable[Entry]) -> str:
    """Changes with every file that comes, goes, grows or is written again."""
    digest = hashlib.sha256()
    for entry in sorted((e for e in entries if not e.is_folder), key=lambda e: e.path):
        digest.update(f"{entry.path}\0{entry.bytes}\0{entry.modified}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
