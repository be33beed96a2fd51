"""Finds Delta tables at `<warehouse>/<namespace>/<table>` by listing alone (design.md, "The project")."""

from __future__ import annotations

from ebbtide.errors import UnreadableError
from ebbtide.formats.delta.log import FOLDER, in_parallel, list_log
from ebbtide.formats.warehouse import open_warehouse, token_of
from ebbtide.model.dataset import Catalog, NotFound, TableHandle
from ebbtide.model.ids import DatasetId, encode_part
from ebbtide.model.paths import normalise
from ebbtide.storage.files import Store, StoredObject


def discover_tables(catalog: Catalog) -> list[TableHandle | NotFound]:
    """Every table of the warehouse, sorted by place: one listing per namespace, and one per folder in it."""
    warehouse = normalise(catalog.warehouse)
    store, namespaces = open_warehouse(catalog)
    if any(entry.name == FOLDER for entry in namespaces):
        return [_misplaced(catalog, "")]
    listed = in_parallel(warehouse, lambda entry: _tables_of(store, catalog, entry), namespaces)
    return [found for tables in listed for found in tables]


def _tables_of(store: Store, catalog: Catalog, namespace: StoredObject) -> list[TableHandle | NotFound]:
    try:
        entries = [entry for entry in store.list(namespace.path) if entry.is_folder]
    except UnreadableError as error:
        name = f"{encode_part(catalog.name)}.{encode_part(namespace.name)}"
        return [NotFound(name, error.message, error.hint or f"check the permissions of {namespace.path}")]
    found = [_table(store, DatasetId(catalog.name, (namespace.name,), entry.name), entry) for entry in entries]
    if any(entry.name == FOLDER for entry in entries):  # an error of its own, that hides no table
        found.append(_misplaced(catalog, namespace.name))
    return [table for table in found if table is not None]


def _table(store: Store, id_: DatasetId, folder: StoredObject) -> TableHandle | NotFound | None:
    try:
        log = list_log(store, folder.path)
        if not log.entries and store.stat(f"{folder.path}/{FOLDER}") is None:
            return None
    except (UnreadableError, OSError) as error:
        return NotFound(str(id_), f"{folder.path} cannot be listed: {error}", "check the permissions of the folder")
    if log.head is None:
        reason = f"{folder.path}/{FOLDER} holds neither a commit nor a complete checkpoint"
        return NotFound(str(id_), reason, "restore the log from a backup, or remove the folder")
    return TableHandle(id_, folder.path, token_of(log.entries))


def _misplaced(catalog: Catalog, folder: str) -> NotFound:
    name = f"{encode_part(catalog.name)}.{encode_part(folder)}" if folder else encode_part(catalog.name)
    return NotFound(
        name,
        f"a Delta table lies at {normalise(f'{catalog.warehouse}/{folder}')}, not two folders deep",
        "tables are looked for at <warehouse>/<namespace>/<table>: move it, or set `warehouse` one folder higher",
    )
