"""Which Paimon tables a warehouse has (`<warehouse>/<namespace>.db/<table>`), and whether each one changed.

Everything that can change what a reading says is a small file in one of six folders, so their listing is the token. It
also says where each branch stood: a branch is dropped only while it stands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

from ebbtide.errors import UnreadableError
from ebbtide.formats.warehouse import open_warehouse, token_of
from ebbtide.model.dataset import Catalog, NotFound, TableHandle
from ebbtide.model.ids import DatasetId
from ebbtide.model.paths import normalise
from ebbtide.storage.files import Store, StoredObject

FOLDERS = ("schema", "snapshot", "tag", "branch", "changelog", "consumer")
"""What Paimon keeps by name: nothing in these folders is ever an orphan (formats.md)."""

_SCHEMA = re.compile(r"^schema-\d+$")
_SNAPSHOT = re.compile(r"^snapshot-(\d+)$")
# Only Paimon makes folders of these names; a table of another format, or a foreign folder, has none of them.
_TRACES = ("schema", "snapshot", "manifest", "bucket-0")


def discover(catalog: Catalog) -> Iterator[TableHandle | NotFound]:
    """The tables of the warehouse. Paimon's other catalogs (Hive, JDBC) keep tables elsewhere and are refused."""
    kind = catalog.options.get("metastore", catalog.type or "filesystem")
    if kind != "filesystem":
        raise UnreadableError(
            catalog.name, f"Paimon catalogs of type {kind!r} cannot be listed", hint="use a filesystem catalog"
        )
    store, databases = open_warehouse(catalog)
    try:
        places = [
            (database.name.removesuffix(".db"), table)
            for database in databases
            if database.name.endswith(".db") and database.name != ".db"
            for table in store.list(database.path)
            if table.is_folder
        ]
    except UnreadableError as error:
        raise UnreadableError(catalog.name, error.message, hint=_HINT) from error
    return _look(catalog, store, places)


_HINT = "check the catalog's warehouse"


def _look(catalog: Catalog, store: Store, places: list[tuple[str, StoredObject]]) -> Iterator[TableHandle | NotFound]:
    # A listing waits for the store, not for this machine: many at once.
    with ThreadPoolExecutor(16) as pool:
        for answer in pool.map(lambda place: _look_at(catalog, store, *place), places):
            if answer is not None:
                yield answer


def _look_at(catalog: Catalog, store: Store, namespace: str, folder: StoredObject) -> TableHandle | NotFound | None:
    id_ = DatasetId(catalog.name, (namespace,), folder.name)
    try:
        entries = metadata_files(store, folder.path)
        if any(_SCHEMA.match(entry.name) for entry in entries if entry.path == f"{folder.path}/schema/{entry.name}"):
            # The library must be given the warehouse as its owner spells it (s3a://, say).
            handle = f"{catalog.warehouse.rstrip('/')}/{namespace}.db/{folder.name}"
            return TableHandle(id_, normalise(folder.path), _token(entries, folder.path), handle)
        if any(entry.is_folder and entry.name in _TRACES for entry in store.list(folder.path)):
            return NotFound(
                str(id_), "the folder has parts of a Paimon table and no schema", hint=f"look at {folder.path}"
            )
    except UnreadableError as error:
        return NotFound(str(id_), error.message, hint=error.hint)
    return None


def _token(entries: list[StoredObject], location: str) -> str:
    by_branch: dict[str, list[StoredObject]] = {}
    for entry in entries:
        branch, slash, _ = entry.path.removeprefix(f"{location}/branch/branch-").partition("/")
        if slash and entry.path.startswith(f"{location}/branch/branch-"):
            by_branch.setdefault(branch, []).append(entry)
    return " ".join((token_of(entries), *(_stand(name, inside) for name, inside in sorted(by_branch.items()))))


def stands_as_found(found: TableHandle, branch: str, store: Store) -> bool:
    """Whether the newest snapshot of a branch is the one that it had when the table was found."""
    inside = store.list(f"{found.location}/branch/branch-{branch}", recursive=True)
    return _stand(branch, inside) in found.token.split(" ")


def _stand(branch: str, inside: Iterable[StoredObject]) -> str:
    """A branch with its newest snapshot. One that is made anew has a file of its own for it, which is younger."""
    numbered = [(int(found.group(1)), entry) for entry in inside if (found := _SNAPSHOT.match(entry.name))]
    newest = max(numbered, key=lambda pair: pair[0], default=None)
    return f"{quote(branch, safe='')}={token_of([newest[1]] if newest else [])}"


def metadata_files(store: Store, location: str) -> list[StoredObject]:
    """The small files that say everything about a table, except what manifests say; branches' own included."""
    return [
        entry
        for folder in FOLDERS
        for entry in store.list(f"{location}/{folder}", recursive=folder == "branch")
        if not entry.is_folder
    ]
