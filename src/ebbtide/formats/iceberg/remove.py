"""Removing from Iceberg tables: metadata by exact ids and exact files, then the files themselves.

None of Iceberg's own cleanups is called: each of them also takes what nobody asked for (formats.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.table.metadata import TableMetadata

from ebbtide.errors import RefusedError
from ebbtide.formats.conflicts import retry_on_conflict
from ebbtide.formats.iceberg.drops import drop_files
from ebbtide.formats.iceberg.java import CONFLICTS, IcebergJavaTable, drop_from_catalog, open_table
from ebbtide.formats.iceberg.metadata import MetadataFiles
from ebbtide.formats.iceberg.named_since import kept_now
from ebbtide.formats.row_deletes import delete_rows
from ebbtide.model.dataset import Catalog
from ebbtide.model.paths import normalise
from ebbtide.model.removal import Committed, FileDeletion, Removal
from ebbtide.spark.session import quote
from ebbtide.storage.remove import remove_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MAIN = "main"


def commit(removal: Removal, catalog: Catalog, spark: SparkSession) -> Committed:
    """Branches, then files of heads, then rows, then versions: each only goes when what comes before it has gone."""
    table = open_table(removal.found, catalog, spark)
    if removal.table:
        return _drop_table(removal, table, catalog, spark)
    if table is None:
        raise RefusedError(f"{removal.found.id}: the catalog has no such table any more", hint="scan again")
    table.refresh()
    work = _TableRemoval(removal, table, MetadataFiles(removal.found, catalog).table, spark)
    sent_back = work.drop_branches()
    sent_back |= drop_files(table, removal.drops)
    sent_back |= work.delete_rows()
    sent_back |= work.remove_versions()
    asked = (
        *removal.branches,
        *(drop.object for drop in removal.drops),
        *(rows.object for rows in removal.rows),
        *removal.versions,
    )
    head = table.refresh().files.table.current_snapshot_id
    return Committed(
        version=None if head in (None, -1) else str(head),
        done=tuple(dict.fromkeys(object_ for object_ in asked if object_ not in sent_back)),
        sent_back=sent_back,
    )


@dataclass(frozen=True, slots=True)
class _TableRemoval:
    """One removal on one table. `planned` is the metadata that the plan looked at."""

    removal: Removal
    table: IcebergJavaTable
    planned: TableMetadata
    spark: SparkSession

    def drop_branches(self) -> dict[str, str]:
        sent_back: dict[str, str] = {}
        for name in self.removal.branches:
            subject = f"{self.removal.found.id} branch {name}"
            why = retry_on_conflict(subject, CONFLICTS, lambda name=name: self._drop(name))  # type: ignore[misc]
            if why is not None:
                sent_back[name] = why
        return sent_back

    def _drop(self, name: str) -> str | None:
        if name == _MAIN:
            return "the main branch is never dropped"
        base = self.table.refresh()
        ref, before = base.files.table.refs.get(name), self.planned.refs.get(name)
        if ref is None:
            return None
        if before is None or (ref.snapshot_ref_type, ref.snapshot_id) != (before.snapshot_ref_type, before.snapshot_id):
            return "it was written to, or made anew, since the plan"
        if ref.snapshot_ref_type != "branch":
            return "it is a tag"
        self.table.remove_branch(base, name)
        return None

    def delete_rows(self) -> dict[str, str]:
        id_ = self.removal.found.id
        name = quote(id_.catalog, *id_.namespace, id_.table)
        sent_back: dict[str, str] = {}
        for rows in self.removal.rows:
            why = retry_on_conflict(f"{id_} rows", CONFLICTS, lambda rows=rows: delete_rows(self.spark, name, rows))  # type: ignore[misc]
            if why is not None:
                sent_back[rows.object] = why
        return sent_back

    def remove_versions(self) -> dict[str, str]:
        if not self.removal.versions:
            return {}
        return retry_on_conflict(f"{self.removal.found.id} versions", CONFLICTS, self._remove_versions)

    def _remove_versions(self) -> dict[str, str]:
        base = self.table.refresh()
        now = base.files.table
        kept = kept_now(self.planned, now)
        sent_back = {id_: kept[id_] for id_ in self.removal.versions if id_ in kept}
        there = {str(snapshot.snapshot_id) for snapshot in now.snapshots}
        going = [id_ for id_ in self.removal.versions if id_ in there and id_ not in sent_back]
        if going:
            self.table.remove_snapshots(base, going)
        return sent_back


def _drop_table(removal: Removal, table: IcebergJavaTable | None, catalog: Catalog, spark: SparkSession) -> Committed:
    """Let the catalog forget the table. In a Hadoop catalog the folder is the table: it goes with its last files.

    Never with PURGE, which follows references into files of other tables; and a Hadoop catalog's own drop removes the
    whole folder, whoever else has files in it.
    """
    name = str(removal.found.id)
    if table is not None:
        if normalise(table.refresh().location) != normalise(removal.found.handle):
            return Committed(sent_back={name: "it was written to since the plan"})
        if not _in_folder(catalog):
            drop_from_catalog(removal.found.id, spark)
    return Committed(done=(name,))


def delete_files(
    removal: Removal, paths: Collection[str], catalog: Catalog, spark: SparkSession, before_batch: Callable[[], None]
) -> FileDeletion:
    if unnamed := set(paths) - removal.files.keys():
        raise RefusedError(f"{removal.found.id}: the plan did not name {len(unnamed)} of the files")
    table = open_table(removal.found, catalog, spark)
    now = None if table is None else normalise(table.refresh().location)
    if not removal.table:
        if now is None:
            return FileDeletion(because="the catalog has no such table any more")
        return FileDeletion(failed=remove_files(paths, catalog.options, before_batch, removal.places))
    if now is not None and (not _in_folder(catalog) or now != normalise(removal.found.handle)):
        return FileDeletion(because="the table is in use again")
    # While its last metadata file is there a table can be found, and the rest of it be removed: that goes last.
    last = {p for p in paths if p == normalise(removal.found.handle) or p.endswith("/metadata/version-hint.text")}
    failed = remove_files(set(paths) - last, catalog.options, before_batch, removal.places)
    return FileDeletion(failed=failed or remove_files(last, catalog.options, before_batch, removal.places))


def _in_folder(catalog: Catalog) -> bool:
    return (catalog.type or "hadoop") == "hadoop"
