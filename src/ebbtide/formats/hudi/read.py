"""One Hudi table as a `Reading`: its settings, schema, transactions, savepoints, partitions and files.

The storage is listed before the timeline is read: a file that a writer brings in between is then not in the listing,
instead of in the listing and not in the history (hazard 21).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ebbtide.errors import UnreadableError
from ebbtide.formats.base import Depth
from ebbtide.formats.hudi.discover import META_FOLDER
from ebbtide.formats.hudi.files import HudiFile, explain_listing, missing, older_than_timeline, references
from ebbtide.formats.hudi.identity import identity_of
from ebbtide.formats.hudi.partitions import Layout, partitions_of_head
from ebbtide.formats.hudi.replay import replay
from ebbtide.formats.hudi.timeline import Timeline, library, read_timeline, version_of
from ebbtide.model.dataset import Catalog, Column, Reading, TableHandle
from ebbtide.model.history import Ref, RefKind
from ebbtide.storage.files import StoredObject, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_PATTERN = re.compile(r"[*?\[\]{}]")
_FLOORS = ("hoodie.clean", "hoodie.keep.", "hoodie.archive.", "hoodie.commits.archival.")


def read(found: TableHandle, catalog: Catalog, depth: Depth, spark: SparkSession | None) -> Reading:
    """Read one table. Anything in it that cannot be read raises `UnreadableError`."""
    listed = _list(found, catalog) if depth is Depth.FILES else []
    _check_archive(found, catalog)
    timeline = read_timeline(found, spark)
    _check_version(found, timeline, spark)
    history = replay(timeline, older_than_timeline(listed, timeline))
    if depth is Depth.FILES:
        history.expire({item.path for item in listed})
    unknown = [*_pending(timeline), *_outside(timeline)]
    columns = _columns(timeline.schema)
    layout = Layout.of(timeline.properties, {column.name: column.type for column in columns})
    reading = Reading(
        id=found.id,
        format="hudi",
        location=found.location,
        properties=timeline.properties,
        columns=columns,
        refs=_refs(timeline),
        transactions=tuple(history.transactions),
        floors=_floors(timeline),
        unknown=(*unknown, "partitions and files were not read"),
        partitioned=bool(layout.fields),
        identity=identity_of(timeline),
    )
    if depth is not Depth.FILES:
        return reading
    if missing(listed, history):
        # A commit after the listing brings files that it could not show. The second listing has them, or they are gone.
        listed = _list(found, catalog)
        lost = len(missing(listed, history))
        unknown += [f"{lost} live files are not in the storage"] if lost else []
    files, live = references(found.location, listed, history, layout)
    by_id = {t.id: t for t in history.transactions}
    dates = layout.date_source({item.group[0] for item in listed if item.group is not None})
    partitions = partitions_of_head(layout, dates, live, history.last_touch, by_id)
    return Reading(
        reading.id, reading.format, reading.location, reading.properties, reading.columns, reading.refs,
        reading.transactions, partitions, tuple(files), reading.floors, tuple(unknown), dates,
        reading.partitioned, next(iter(_outside(timeline)), None), reading.identity,
    )  # fmt: skip


def _list(found: TableHandle, catalog: Catalog) -> list[HudiFile]:
    return explain_listing(found.location, _entries(found, catalog, found.location, recursive=True))


def _entries(found: TableHandle, catalog: Catalog, folder: str, *, recursive: bool) -> list[StoredObject]:
    try:
        return open_store(found.location, catalog.options).list(folder, recursive=recursive)
    except UnreadableError as error:
        raise UnreadableError(str(found.id), error.message, hint="check that the folder can be listed") from error


def _check_archive(found: TableHandle, catalog: Catalog) -> None:
    """Hudi takes an empty manifest of the archived timeline for an empty archive, and so does it with an archive of the
    layout before Hudi 1 whose path it reads as a pattern (hazard 31).
    """
    folder = f"{found.location}/{META_FOLDER}/timeline/history"
    for entry in _entries(found, catalog, folder, recursive=False):
        if entry.name.startswith("manifest_") and not entry.bytes:
            raise UnreadableError(str(found.id), f"{entry.path} is an empty file", hint="restore it from a copy")
    if _PATTERN.search(found.location):
        for entry in _entries(found, catalog, f"{found.location}/{META_FOLDER}/archived", recursive=False):
            if entry.name.startswith(".commits_.archive"):
                reason = "Hudi takes its folder for a pattern, and does not find its archived commits there"
                raise UnreadableError(str(found.id), reason, hint="use a folder without * ? [ ] { } in its path")


def _check_version(found: TableHandle, timeline: Timeline, spark: SparkSession | None) -> None:
    """Hudi itself opens tables of versions that it has never heard of, and reads what it takes them for (hazard 19)."""
    version = version_of(timeline.properties)
    newest = int(library(spark).common.table.HoodieTableVersion.current().versionCode())
    if version > newest:
        reason = f"its version {version} is newer than {newest}, the newest that this Hudi knows"
        raise UnreadableError(str(found.id), reason, hint="clean it with the Hudi that writes it")


def _refs(timeline: Timeline) -> tuple[Ref, ...]:
    head = timeline.commits[-1].id if timeline.commits else None
    tags = (Ref(savepoint, RefKind.TAG, savepoint) for savepoint in timeline.savepoints)
    return (Ref("main", RefKind.BRANCH, head, main=True), *tags)


def _pending(timeline: Timeline) -> list[str]:
    return [f"instant {id_} ({action}) is {state.lower()}, not completed" for id_, action, state in timeline.pending]


def _outside(timeline: Timeline) -> list[str]:
    source = timeline.properties.get("hoodie.bootstrap.base.path")
    return [f"the table was bootstrapped from {source}, and may read files there"] if source else []


def _floors(timeline: Timeline) -> Mapping[str, str]:
    """Savepoints, and the settings of cleaning and archiving where the table itself says them."""
    floors = {key: value for key, value in sorted(timeline.properties.items()) if key.startswith(_FLOORS)}
    if timeline.savepoints:
        floors["savepoints"] = ",".join(timeline.savepoints)
    return floors


def _columns(schema: Mapping[str, object] | None) -> tuple[Column, ...]:
    from pyspark.sql.types import StructType

    columns: list[Column] = []

    def walk(struct: StructType, prefix: str) -> None:
        for field in struct.fields:
            columns.append(Column(prefix + field.name, field.dataType.simpleString(), len(columns)))
            if isinstance(field.dataType, StructType):
                walk(field.dataType, f"{prefix}{field.name}.")

    if schema is not None:
        walk(StructType.fromJson(dict(schema)), "")
    return tuple(columns)
