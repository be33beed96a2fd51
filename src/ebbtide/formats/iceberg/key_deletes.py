"""Deletes by key as places of people: such a file says whom it deletes, also where no row of theirs is any more.

Its rows are read by Iceberg's own reader, as if it were a data file without the other columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ebbtide.formats.iceberg.avro import ManifestContent, Status
from ebbtide.formats.iceberg.edits import AvroRecords, EntryRecord, entries_of
from ebbtide.formats.iceberg.metadata import MetadataFiles
from ebbtide.formats.iceberg.staging import Staging
from ebbtide.formats.iceberg.traces import PATH, Traces
from ebbtide.formats.versions import PART, VersionRows
from ebbtide.model.paths import normalise
from ebbtide.spark.session import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FORMAT, _ROWS, _BYTES, _CONTENT, _EQUALITY_IDS = 101, 103, 104, 134, 135


def may_tell(files: MetadataFiles, traces: Traces) -> dict[str, EntryRecord]:
    """The live deletes by key of all versions that may be by the key of somebody, as far as bounds tell."""
    found, opened = dict[str, EntryRecord](), set[str]()
    for snapshot in files.table.snapshots:
        for manifest in files.manifests(snapshot):
            if manifest.holds_data or manifest.path in opened:
                continue
            opened.add(manifest.path)
            for entry in entries_of(AvroRecords.of(files.content(manifest.path))):
                by_key = entry.status != Status.DELETED and entry.get(_CONTENT) == ManifestContent.EQUALITY_DELETES
                if by_key and traces.in_deleting(entry):
                    found[normalise(entry.get(PATH))] = entry
    return found


def keys_in(staging: Staging, files: MetadataFiles, deletes: dict[str, EntryRecord]) -> Iterator[VersionRows]:
    """The keys in these deletes. No version counts them as rows: the data files that they are for say what is seen."""
    by_columns: dict[tuple[str, ...], dict[str, EntryRecord]] = {}
    for path, entry in sorted(deletes.items()):
        ids = set(entry.get(_EQUALITY_IDS) or ())
        found = {str(files.table.schema().find_column_name(id_) or "") for id_ in ids}
        tops = [field.name for field in files.table.schema().fields]
        names = {top for top in tops if any(name == top or name.startswith(f"{top}.") for name in found)}
        by_columns.setdefault(tuple(sorted(names)), {})[path] = entry
    for columns, some in by_columns.items():
        if columns:
            name = staging.stage([_task(staging, entry) for entry in some.values()])
            yield VersionRows(_only(staging.read(name), columns), dict.fromkeys(some, 0))


def _only(frame: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """The columns that these files have; all others are not asked for, and NULL."""
    from pyspark.sql import functions as F

    shown = [
        F.col(quote(field.name)) if field.name in columns else F.lit(None).cast(field.dataType).alias(field.name)
        for field in frame.schema.fields
    ]
    return frame.select(*shown, F.input_file_name().alias(PART))


def _task(staging: Staging, entry: EntryRecord) -> Any:
    iceberg = staging.jvm.org.apache.iceberg
    everywhere = iceberg.PartitionSpec.unpartitioned()
    file = iceberg.DataFiles.builder(everywhere).withPath(entry.get(PATH)).withFormat(entry.get(_FORMAT))
    file = file.withFileSizeInBytes(entry.get(_BYTES)).withRecordCount(entry.get(_ROWS)).build()
    return staging.bare_of(file, everywhere)
