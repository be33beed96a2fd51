"""One Iceberg table as a `Reading`."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import VoidTransform
from pyiceberg.types import StructType

from ebbtide.formats.base import Depth
from ebbtide.formats.iceberg.files import files_of
from ebbtide.formats.iceberg.metadata import MetadataFiles
from ebbtide.formats.iceberg.partitions import IcebergPartitionNames, partitions_of
from ebbtide.formats.iceberg.position import POSITION, needed_for_position
from ebbtide.formats.iceberg.transactions import refs_of, transactions_of
from ebbtide.model.dataset import Catalog, Column, FileRef, Reading, Role, TableHandle
from ebbtide.model.history import Ref, Transaction
from ebbtide.model.paths import is_inside, normalise
from ebbtide.storage.files import open_store

_FLOORS = (
    "gc.enabled",
    "history.expire.min-snapshots-to-keep",
    "history.expire.max-snapshot-age-ms",
    "history.expire.max-ref-age-ms",
)
_PATHS = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")


def read(found: TableHandle, catalog: Catalog, depth: Depth) -> Reading:
    files = MetadataFiles(found, catalog)
    table = files.table
    refs = refs_of(files)
    transactions = transactions_of(files, refs)
    location = normalise(table.location)
    unknown = list(_unknown(location, table.properties))
    if depth is Depth.HISTORY:
        return Reading(
            found.id, "iceberg", location, table.properties, _columns(table.schema()), refs, transactions,
            floors=_floors(files), unknown=(*unknown, "partitions and files were not read"),
            partitioned=_is_partitioned(table), identity=_identity(table),
        )  # fmt: skip
    short = list(_short_lists(files))
    unknown += short
    names = IcebergPartitionNames(table)
    referenced = files_of(files, refs, transactions, names, open_store(files.location, catalog.options))
    partitions = partitions_of(referenced, names, transactions, _of_main(referenced, refs, transactions))
    return Reading(
        found.id, "iceberg", location, table.properties, _columns(table.schema()), refs, transactions,
        partitions, referenced, _floors(files), tuple(unknown), names.date_source(),
        _is_partitioned(table), short[0] if short else None, _identity(table), _was_at(files, location, referenced),
    )  # fmt: skip


def _was_at(files: MetadataFiles, location: str, referenced: tuple[FileRef, ...]) -> tuple[str, ...]:
    """Where the table lay before, by its metadata files that are left; only asked where it has files elsewhere."""
    if all(is_inside(file.path, location) for file in referenced):
        return ()
    logged = {normalise(entry.metadata_file): entry.metadata_file for entry in files.table.metadata_log}
    there = {file.path for file in referenced if file.role is Role.METADATA}
    left = [raw for path, raw in logged.items() if path in there and files.is_there(raw)]
    return tuple(sorted({normalise(files.open(raw).location) for raw in left} - {location}))


def _identity(table: TableMetadata) -> str:
    """The table's uuid. Where an old table has none pyiceberg makes one up, another one with every reading."""
    return str(table.table_uuid) if "table_uuid" in table.model_fields_set else ""


def _is_partitioned(table: TableMetadata) -> bool:
    fields = (field for spec in table.partition_specs for field in spec.fields)
    return any(not isinstance(field.transform, VoidTransform) for field in fields)


def _columns(schema: Schema) -> tuple[Column, ...]:
    columns: list[Column] = []

    def walk(struct: StructType, prefix: str) -> None:
        for field in struct.fields:
            columns.append(Column(prefix + field.name, str(field.field_type), len(columns)))
            if isinstance(field.field_type, StructType):
                walk(field.field_type, f"{prefix}{field.name}.")

    walk(schema.as_struct(), "")
    return tuple(columns)


def _floors(files: MetadataFiles) -> dict[str, str]:
    """Settings of people that no cleanup may go below, and the versions by which a mirror knows its place."""
    table = files.table
    floors = {key: table.properties[key] for key in _FLOORS if key in table.properties}
    for name, ref in sorted(table.refs.items()):
        settings = {
            "min-snapshots-to-keep": ref.min_snapshots_to_keep,
            "max-snapshot-age-ms": ref.max_snapshot_age_ms,
            "max-ref-age-ms": ref.max_ref_age_ms,
        }
        floors |= {f"ref.{name}.{key}": str(value) for key, value in settings.items() if value is not None}
    if needed := needed_for_position(table):
        floors[f"versions:{POSITION}"] = ",".join(map(str, needed))
    return floors


def _unknown(location: str, properties: dict[str, str]) -> Iterator[str]:
    """Why a listing of the table's folder could miss, or hold, what the metadata does not tell."""
    if properties.get("gc.enabled", "true").lower() == "false":
        yield "gc.enabled=false: its files may belong to others"
    for key in _PATHS:
        if key in properties and not is_inside(normalise(properties[key]), location):
            yield f"{key} lies outside the table's location"


def _short_lists(files: MetadataFiles) -> Iterator[str]:
    """A manifest list cut between two blocks looks whole; the snapshot's summary counts what should be in it."""
    for snapshot in files.table.snapshots:
        total = snapshot.summary.additional_properties.get("total-data-files") if snapshot.summary else None
        data = [m for m in files.manifests(snapshot) if m.holds_data]
        counts = [count for m in data for count in (m.added, m.existing)]
        if total is None or None in counts:
            continue
        listed = sum(count or 0 for count in counts)
        if listed < int(total):
            yield f"snapshot {snapshot.snapshot_id} counts {total} data files and its manifest list names {listed}"


def _of_main(referenced: tuple[FileRef, ...], refs: tuple[Ref, ...], transactions: tuple[Transaction, ...]) -> set[str]:
    """The files that the main branch's head references."""
    head = next(ref.head for ref in refs if ref.main)
    bit = next((1 << n for n, t in enumerate(transactions) if t.id == head), 0)
    return {file.path for file in referenced if (file.versions or 0) & bit}
