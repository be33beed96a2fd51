"""A table format that is one file, `table.json`, and takes no session: small enough to be killed at every step.

    {"versions": {"v1": ["d1", "s1"], …}, "tags": ["v2"]}

The last version is the head. Files are named relative to the table's folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from ebbtide.errors import RefusedError
from ebbtide.formats.base import Depth
from ebbtide.model.capabilities import YES, Capability
from ebbtide.model.dataset import Catalog, FileRef, Reading, Role, TableHandle
from ebbtide.model.history import Ref, RefKind, Transaction, TransactionKind
from ebbtide.model.ids import DatasetId
from ebbtide.model.removal import Committed, FileDeletion, Removal
from ebbtide.storage.remove import remove_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Content(TypedDict):
    versions: dict[str, list[str]]
    tags: list[str]


def load(table: Path) -> Content:
    content: Content = json.loads((table / "table.json").read_text())
    return content


def save(table: Path, content: Content) -> None:
    """In one step, as every format commits."""
    partial = table / ".table.json"
    partial.write_text(json.dumps(content))
    partial.replace(table / "table.json")


def tag(table: Path, version: str) -> None:
    """What a writer does meanwhile."""
    content = load(table)
    if version in content["versions"] and version not in content["tags"]:
        save(table, {**content, "tags": [*content["tags"], version]})


class Folder:
    name = "folder"
    reads_in_tasks = True
    capabilities = dict.fromkeys(
        (Capability.TAGS, Capability.EXPIRES, Capability.ANY_ORDER, Capability.SINGLE_FILES), YES
    )

    def discover(self, catalog: Catalog) -> Iterator[TableHandle]:
        for file in sorted(Path(catalog.warehouse).glob("*/table.json")):
            token = hashlib.sha256(file.read_bytes()).hexdigest()
            yield TableHandle(DatasetId(catalog.name, ("db",), file.parent.name), f"file://{file.parent}", token)

    def read(self, found: TableHandle, catalog: Catalog, depth: Depth, spark: SparkSession | None) -> Reading:  # noqa: ARG002
        table = _place(found)
        content = load(table)
        ids = list(content["versions"])
        masks: dict[str, int] = {}
        for number, id_ in enumerate(ids):
            for name in content["versions"][id_]:
                masks[name] = masks.get(name, 0) | 1 << number
        return Reading(
            id=found.id,
            format=self.name,
            location=found.location,
            properties={},
            columns=(),
            refs=(
                Ref("main", RefKind.BRANCH, ids[-1], main=True),
                *(Ref(f"keep-{id_}", RefKind.TAG, id_) for id_ in content["tags"]),
            ),
            transactions=tuple(
                Transaction(
                    id_,
                    ids[n - 1] if n else None,
                    TransactionKind.SNAPSHOT,
                    _BEGAN + timedelta(days=n),
                    starts_view=True,
                )
                for n, id_ in enumerate(ids)
            ),
            files=tuple(
                FileRef(f"{found.location}/{name}", Role.DATA, 1, None, bool(mask >> (len(ids) - 1)), versions=mask)
                for name, mask in sorted(masks.items())
            ),
            identity=f"folder {table}",
        )

    def commit(self, removal: Removal, catalog: Catalog, spark: SparkSession) -> Committed:  # noqa: ARG002
        table = _place(removal.found)
        content = load(table)
        head = list(content["versions"])[-1]
        sent_back = {id_: "a tag names it" for id_ in removal.versions if id_ in content["tags"]}
        going = [id_ for id_ in removal.versions if id_ != head and id_ not in sent_back]
        kept = {id_: names for id_, names in content["versions"].items() if id_ not in going}
        save(table, {**content, "versions": kept})
        return Committed(version=head, done=tuple(going), sent_back=sent_back)

    def delete_files(
        self,
        removal: Removal,
        paths: Collection[str],
        catalog: Catalog,
        spark: SparkSession,  # noqa: ARG002
        before_batch: Callable[[], None],
    ) -> FileDeletion:
        if set(paths) - removal.files.keys():
            raise RefusedError("the plan did not name all of the files")
        return FileDeletion(failed=remove_files(paths, catalog.options, before_batch, removal.places))

    def identity(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> str | None:  # noqa: ARG002
        table = Path(catalog.warehouse, id_.table)
        return f"folder {table}" if table.exists() else None


def _place(found: TableHandle) -> Path:
    return Path(found.location.removeprefix("file://"))


FORMAT = Folder()
