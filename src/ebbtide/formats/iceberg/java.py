"""An Iceberg table in the session's JVM, whatever its catalog: what pyiceberg cannot change, or not by the same commit.

What is proved is proved in Python, on the very metadata file that the commit is then made against.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyiceberg.table.metadata import TableMetadata

from ebbtide.errors import RefusedError, UnreadableError
from ebbtide.formats.iceberg.metadata import MetadataFiles
from ebbtide.formats.iceberg.position import PREFIX
from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.model.ids import DatasetId
from ebbtide.model.paths import normalise
from ebbtide.spark.session import parts_of, quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFLICTS = frozenset({"CommitFailedException", "CommitStateUnknownException", "ValidationException"})
_GONE = frozenset({"NoSuchTableException", "NotFoundException", "NoSuchIcebergTableException"})


@dataclass(frozen=True, slots=True)
class Base:
    """The table as it stands now: Iceberg's own object, which a commit is made against, and the same file read here."""

    java: Any
    files: MetadataFiles

    @property
    def location(self) -> str:
        return self.files.location

    @property
    def branches(self) -> dict[str, int]:
        """The heads of branches; that of `main` in a table whose metadata names none."""
        table = self.files.table
        found = {name: ref.snapshot_id for name, ref in table.refs.items() if ref.snapshot_ref_type == "branch"}
        if table.current_snapshot_id not in (None, -1):
            found.setdefault("main", int(table.current_snapshot_id or 0))
        return found


class IcebergJavaTable:
    def __init__(self, found: TableHandle, catalog: Catalog, table: Any, jvm: Any) -> None:
        self.found, self._catalog = found, catalog
        self._table, self._jvm = table, jvm
        self._then = MetadataFiles(found, catalog)

    @property
    def java(self) -> Any:
        """Iceberg's own table, as it was refreshed last."""
        return self._table

    def refresh(self) -> Base:
        """Read the table's state anew. Refuses where `gc.enabled=false` says that its files may belong to others."""
        java = self._table.operations().refresh()
        base = Base(java, MetadataFiles(replace(self.found, handle=java.metadataFileLocation()), self._catalog))
        if not self._is_planned(base.files.table):
            raise RefusedError(
                f"{self.found.id}: the session's catalog has another table of that name; nothing was removed",
                hint="scan again; if it stays, the session knows another catalog by the name of this one",
            )
        if base.files.table.properties.get("gc.enabled", "true").lower() == "false":
            raise RefusedError(
                f"{self.found.id}: gc.enabled=false, its files may belong to others; nothing was removed",
                hint="set gc.enabled=true if no other table has its files",
            )
        return base

    def _is_planned(self, now: TableMetadata) -> bool:
        """Whether it is the table that the plan saw, and not another one by its name.

        Its metadata of then may be cleaned away by now: then its place tells. Everything that is removed is proved
        against `now` beside this.
        """
        try:
            then = self._then.table
        except UnreadableError:
            return normalise(now.location) == normalise(self.found.location)
        if "table_uuid" not in then.model_fields_set:
            # pyiceberg makes one up, another one with every reading; and cannot read what Java then commits.
            raise RefusedError(
                f"{self.found.id}: the table has no id; nothing was removed",
                hint="upgrade it to format version 2, which gives it one",
            )
        return then.table_uuid == now.table_uuid

    def remove_snapshots(self, base: Base, ids: Collection[str]) -> None:
        """Exactly these, with their statistics; refused when the table changed since `base`.

        A branch or tag that names one of them would silently go along: who calls this has looked for them in `base`.
        """
        snapshots = self._jvm.java.util.ArrayList()
        for id_ in ids:
            snapshot = base.java.snapshot(int(id_))
            if snapshot is not None:
                # Snapshots, not ids: a list of numbers binds to this same method, and removes nothing.
                snapshots.add(snapshot)
        builder = self._jvm.org.apache.iceberg.TableMetadata.buildFrom(base.java)
        self._table.operations().commit(base.java, builder.removeSnapshots(snapshots).build())

    def remove_branch(self, base: Base, name: str) -> None:
        """Refused when the table changed since `base`: Iceberg's own `removeBranch` would try again on what is new."""
        builder = self._jvm.org.apache.iceberg.TableMetadata.buildFrom(base.java)
        self._table.operations().commit(base.java, builder.removeRef(name).build())

    def set_branch(self, base: Base, name: str, id_: int) -> None:
        """A branch on a version; refused when the table changed since `base`."""
        iceberg = self._jvm.org.apache.iceberg
        builder = iceberg.TableMetadata.buildFrom(base.java)
        ref = iceberg.SnapshotRef.branchBuilder(id_).build()
        self._table.operations().commit(base.java, builder.setRef(name, ref).build())

    def move_tag(self, base: Base, name: str, id_: int, *, without: str) -> None:
        """A tag on another version, and a branch gone; refused when the table changed since `base`."""
        iceberg = self._jvm.org.apache.iceberg
        builder = iceberg.TableMetadata.buildFrom(base.java)
        ref = iceberg.SnapshotRef.builderFrom(base.java.ref(name), id_).build()
        self._table.operations().commit(base.java, builder.setRef(name, ref).removeRef(without).build())

    def delete_files(self, base: Base, branch: str, head: int, manifests: Collection[str], paths: set[str]) -> None:
        """One commit on a branch that takes exactly these live data files out of it.

        Fails when one of them is gone, or when anything was written to the branch since `head`. Takes `DataFile`
        objects only: a text would bind to the method that deletes the file on the spot (formats.md).
        """
        if not paths:
            raise ValueError("an empty delete commits an empty snapshot")
        overwrite = self._table.newOverwrite()
        overwrite.toBranch(branch)
        overwrite.validateFromSnapshot(head)
        overwrite.validateNoConflictingData()
        overwrite.validateNoConflictingDeletes()
        found: set[str] = set()
        for manifest in base.java.snapshot(head).dataManifests(self._table.io()):
            if manifest.path() not in manifests:
                continue
            reader = self._jvm.org.apache.iceberg.ManifestFiles.read(manifest, self._table.io(), base.java.specsById())
            try:
                entries = reader.iterator()
                while entries.hasNext():
                    file = entries.next()
                    if (path := file.location()) in paths:
                        overwrite.deleteFile(file)
                        found.add(path)
            finally:
                reader.close()
        if found != paths:
            raise UnreadableError(str(self.found.id), f"{len(paths - found)} live files are in no manifest of {branch}")
        overwrite.commit()

    def overwrite(
        self, branch: str, head: int, files: Collection[Any], deletes: Collection[Any], new: Collection[Any]
    ) -> None:
        """One commit on a branch that takes these files and deletes out of it and these in: objects of Iceberg's own.

        Fails when one of the files is gone, or had rows deleted, since `head`; what was appended since stays.
        """
        overwrite = self._table.newOverwrite()
        overwrite.toBranch(branch)
        overwrite.validateFromSnapshot(head)
        overwrite.validateNoConflictingDeletes()
        sets = self._jvm.org.apache.iceberg.util
        out, gone = sets.DataFileSet.create(), sets.DeleteFileSet.create()
        for file in files:
            out.add(file)
        for delete in deletes:
            gone.add(delete)
        overwrite.deleteFiles(out, gone)
        for file in new:
            overwrite.addFile(file)
        for key, value in self._mirrored(head).items():
            overwrite.set(key, value)
        overwrite.commit()

    def _mirrored(self, head: int) -> dict[str, str]:
        """How far the mirror of a hot table is in this one: who lets versions end that say it, says it again."""
        if self._table.properties().get(f"{PREFIX}source") is None:
            return {}
        snapshot = self._table.snapshot(head)
        while snapshot is not None:
            said = dict(snapshot.summary())
            if f"{PREFIX}position" in said:
                return {key: value for key, value in said.items() if key.startswith(PREFIX)}
            parent = snapshot.parentId()
            snapshot = None if parent is None else self._table.snapshot(parent)
        return {}

    def delete_files_of(self, base: Base, head: int) -> list[Any]:
        """Every live delete file of a version, those that apply to nothing any more, too."""
        found = []
        iceberg, io = self._jvm.org.apache.iceberg, self._table.io()
        for manifest in base.java.snapshot(head).deleteManifests(io):
            reader = iceberg.ManifestFiles.readDeleteManifest(manifest, io, base.java.specsById())
            try:
                entries = reader.iterator()
                while entries.hasNext():
                    found.append(entries.next().copy())
            finally:
                reader.close()
        return found

    def replace_metadata(self, base: Base, document: str) -> None:
        """Metadata as a text, instead of `base`: what Iceberg's builder offers no change for. Refused when the table
        changed since `base`.
        """
        parser = self._jvm.org.apache.iceberg.TableMetadataParser
        self._table.operations().commit(base.java, parser.fromJson(document))

    def document(self, base: Base) -> str:
        return str(self._jvm.org.apache.iceberg.TableMetadataParser.toJson(base.java))

    def place_of(self, name: str) -> str:
        """Where a new metadata file of this name belongs."""
        return str(self._table.operations().metadataFileLocation(name))

    def described(self, spec_id: int, files: Collection[Any]) -> bytes:
        """A manifest that adds these files, in memory: how Iceberg describes them."""
        iceberg = self._jvm.org.apache.iceberg
        now = self._table.operations().current()
        out = iceberg.inmemory.InMemoryOutputFile("described.avro")
        writer = iceberg.ManifestFiles.write(now.formatVersion(), now.spec(spec_id), out, None)
        try:
            for file in files:
                writer.add(file)
        finally:
            writer.close()
        return bytes(out.toByteArray())


def open_table(found: TableHandle, catalog: Catalog, spark: SparkSession) -> IcebergJavaTable | None:
    """The table as its catalog has it now, nothing cached; None where it has none of that name."""
    table = load_table(found.id, spark)
    return None if table is None else IcebergJavaTable(found, catalog, table, spark._jvm)


def load_table(id_: DatasetId, spark: SparkSession) -> Any:
    """Iceberg's own table as its catalog has it now; None where it has none of that name."""
    java, name = _catalog_and_name(id_, spark)
    java.invalidateTable(name)
    try:
        return java.loadTable(name)
    except Py4JJavaError as error:
        if str(error.java_exception.getClass().getSimpleName()) in _GONE:
            return None
        raise


def identity_of(id_: DatasetId, spark: SparkSession) -> str | None:
    """The uuid of the table that the session finds by the name which statements use; None where it finds none."""
    catalog, *namespace, table = parts_of(spark, quote(id_.catalog, *id_.namespace, id_.table))
    java = load_table(DatasetId(catalog, tuple(namespace), table), spark)
    return None if java is None else str(java.operations().current().uuid() or "")


def drop_from_catalog(id_: DatasetId, spark: SparkSession) -> None:
    """Let the catalog forget the table, and leave every file where it is."""
    java, name = _catalog_and_name(id_, spark)
    java.dropTable(name, False)


def _catalog_and_name(id_: DatasetId, spark: SparkSession) -> tuple[Any, Any]:
    jvm: Any = spark._jvm
    catalog = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(spark._jsparkSession, id_.catalog)
    parts = (*id_.namespace, id_.table)
    names = spark.sparkContext._gateway.new_array(jvm.java.lang.String, len(parts))  # type: ignore[union-attr]
    for n, part in enumerate(parts):
        names[n] = part
    return catalog, jvm.org.apache.iceberg.catalog.TableIdentifier.of(names)
