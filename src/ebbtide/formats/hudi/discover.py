"""Which Hudi tables lie at `<warehouse>/<namespace>/<table>`, known by their `.hoodie` folder.

The token is a digest over one listing of `.hoodie`: whatever `read` reports goes through a file in there. Every commit,
savepoint, clean, inflight instant and archived instant is a file of the timeline, settings are `hoodie.properties`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ebbtide.errors import UnreadableError
from ebbtide.formats.warehouse import open_warehouse, token_of
from ebbtide.model.dataset import Catalog, NotFound, TableHandle
from ebbtide.model.ids import DatasetId, encode_part
from ebbtide.storage.files import Store, StoredObject

META_FOLDER = ".hoodie"
# Hudi falls back to the second one while the first is being replaced.
_PROPERTIES = ("hoodie.properties", "hoodie.properties.backup")


def discover(catalog: Catalog) -> Iterator[TableHandle | NotFound]:
    """The tables of a warehouse. What lies there and is no Hudi table is passed over."""
    store, entries = open_warehouse(catalog)
    if any(entry.name == META_FOLDER for entry in entries):
        raise UnreadableError(
            catalog.name,
            f"the warehouse {catalog.warehouse} is itself a Hudi table",
            hint="name the folder two levels above the tables: <warehouse>/<namespace>/<table>",
        )
    return _tables(catalog, store, entries)


def _tables(catalog: Catalog, store: Store, namespaces: list[StoredObject]) -> Iterator[TableHandle | NotFound]:
    for namespace in namespaces:
        name = f"{encode_part(catalog.name)}.{encode_part(namespace.name)}"
        try:
            entries = store.list(namespace.path)
        except UnreadableError as error:
            yield NotFound(name, error.message, hint=error.hint or f"check the permissions of {namespace.path}")
            continue
        if any(entry.name == META_FOLDER for entry in entries):
            yield NotFound(
                name,
                f"a Hudi table lies at {namespace.path}, where a namespace should be",
                hint="move it to <warehouse>/<namespace>/<table>",
            )
        for entry in entries:
            if entry.is_folder and (table := _table(catalog, store, namespace.name, entry)) is not None:
                yield table


def _table(catalog: Catalog, store: Store, namespace: str, folder: StoredObject) -> TableHandle | NotFound | None:
    id_ = DatasetId(catalog.name, (namespace,), folder.name)
    meta = f"{folder.path}/{META_FOLDER}"
    try:
        entries = store.list(meta, recursive=True)
        if not entries and store.stat(meta) is None:
            return None
    except (OSError, UnreadableError) as error:
        return NotFound(str(id_), f"{meta} cannot be listed: {error}")
    if not any(entry.path == f"{meta}/{name}" for entry in entries for name in _PROPERTIES):
        return NotFound(
            str(id_),
            f"{meta}/hoodie.properties is missing",
            hint="restore the file, or remove the folder if the table was dropped",
        )
    return TableHandle(id_, folder.path, token_of(entries))
