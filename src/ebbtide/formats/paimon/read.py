"""One Paimon table as a `Reading`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ebbtide.errors import UnreadableError
from ebbtide.formats.base import Depth
from ebbtide.formats.paimon.changes import walk
from ebbtide.formats.paimon.discover import metadata_files
from ebbtide.formats.paimon.files import references, wanted_of
from ebbtide.formats.paimon.identity import identity_at
from ebbtide.formats.paimon.java import Library, open_library
from ebbtide.formats.paimon.lines import MAIN, BranchLine, BranchLines, changelog_id, parse_lines
from ebbtide.formats.paimon.manifests import parse_manifests
from ebbtide.formats.paimon.partitions import Keys, partitions_of
from ebbtide.formats.warehouse import token_of
from ebbtide.model.dataset import Catalog, Column, Reading, TableHandle
from ebbtide.model.partition_dates import DateSource
from ebbtide.storage.files import Store, StoredObject, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_READ = "partitions and files were not read"
_TRIES = 3
# Settings that keep snapshots, changelogs, tags, consumers or partitions, or hold their removal back (spec §2).
_FLOORS = (
    *("snapshot.num-retained.", "snapshot.time-retained", "snapshot.expire."),
    *("changelog.num-retained.", "changelog.time-retained", "consumer.", "tag.", "partition.expiration-"),
)
_LEAST_LOGS, _LOGS_FOR = "changelog.num-retained.min", "changelog.time-retained"
# Newer versions of Paimon keep data outside the table's folder; 0.9 does not understand where.
_ELSEWHERE = ("data-file.external-paths", "data-file.path-directory")


def read(found: TableHandle, catalog: Catalog, depth: Depth, spark: SparkSession | None) -> Reading:
    """Read one table. A writer may expire snapshots between two looks: then it is read again, a few times."""
    library = open_library(found, catalog, spark)
    store = open_store(found.location, catalog.options)
    for _ in range(_TRIES - 1):
        entries = metadata_files(store, found.location)
        try:
            return _read(found, library, store, entries, depth)
        except UnreadableError:
            if token_of(entries) == token_of(metadata_files(store, found.location)):
                raise
    return _read(found, library, store, metadata_files(store, found.location), depth)


def _read(found: TableHandle, library: Library, store: Store, entries: list[StoredObject], depth: Depth) -> Reading:
    subject, files = str(found.id), depth is Depth.FILES
    # Folders are listed before references are read (hazard 21).
    listed = [e for folder in ("manifest", "statistics") for e in store.list(f"{found.location}/{folder}") if files]
    answer = library.history()
    schema: dict[str, Any] = json.loads(answer["schema"])
    types: dict[str, str] = dict(answer["columns"])
    properties: dict[str, str] = schema["options"]
    lines = parse_lines(subject, answer["branches"])
    wanted = wanted_of(lines, files=files)
    answered = library.manifests(wanted.lists, wanted.optional, wanted.opened, wanted.indexes)
    manifests = parse_manifests(subject, answered)
    tracks = walk(subject, lines, manifests, files=files)
    columns = tuple(schema["partitionKeys"])
    keys = Keys(columns, tuple(types[column] for column in columns), manifests.partitions)
    elsewhere = [f"{name} is set: files may lie outside the table" for name in _ELSEWHERE if name in properties]
    return Reading(
        id=found.id,
        format="paimon",
        location=found.location,
        properties=properties,
        columns=tuple(Column(name, type_, position) for position, (name, type_) in enumerate(answer["columns"])),
        refs=lines.refs(),
        transactions=tuple(tracks.ordered()),
        partitions=partitions_of(keys, tracks) if files else (),
        files=references(subject, found.location, lines, manifests, tracks, keys, entries, listed, answer["decoupled"])
        if files
        else (),
        floors=_floors(properties, answer["settings"], lines),
        unknown=(*lines.unknown, *elsewhere, *(() if files else (NOT_READ,))),
        date_source=keys.date_source() if files else DateSource(),
        partitioned=bool(columns),
        # Newer versions may keep files anywhere; those of 0.9 lie in the table's folder.
        doubt=next(iter((*elsewhere, *lines.newer)), None),
        identity=identity_at(found.location, store) or "",
    )


def _floors(properties: Mapping[str, str], own: Mapping[str, Mapping[str, str]], lines: BranchLines) -> dict[str, str]:
    """What limits cleanup: settings that somebody made, on a branch of its `own` too, consumers by the snapshot they
    read next, tags' own times.
    """
    floors = {name: value for name, value in properties.items() if name.startswith(_FLOORS)}
    for branch, settings in own.items():
        for name, value in settings.items():
            if name.startswith(_FLOORS) and properties.get(name) != value:
                floors[f"branch:{branch}.{name}"] = value
    for line in lines.lines:
        place = "" if line.name == MAIN else f"{line.name}/"
        for consumer, number in line.consumers.items():
            floors[f"consumer:{place}{consumer}"] = f"{line.name}/{number}"
        floors |= _floors_of_changelogs(line, place, own.get(line.name, properties), properties)
        for tag, kept in line.kept_for.items():
            floors[f"tag:{place}{tag}.time-retained"] = kept
    return floors


def _floors_of_changelogs(
    line: BranchLine, place: str, own: Mapping[str, str], mains: Mapping[str, str]
) -> dict[str, str]:
    """The first changelog of a line that each rule keeps: by consumers, by number, and the newest, as Paimon does."""
    if not line.changelogs:
        return {}
    first = {f"consumer:{place}{name} (changelogs)": number for name, number in line.consumers.items()}
    first[f"changelog:{place}newest"] = max(line.changelogs)
    if (least := own.get(_LEAST_LOGS)) is not None:
        # As many as that from the head on; what is no number keeps them all.
        first[f"changelog:{place}{_LEAST_LOGS}={least}"] = (line.head or 0) - int(least) + 1 if least.isdecimal() else 0
    if (kept := own.get(_LOGS_FOR)) != mains.get(_LOGS_FOR):
        first[f"changelog:{place}{_LOGS_FOR}={kept}"] = 0  # main's own time is measured by the plan
    return {name: changelog_id(line.name, max(number, 0)) for name, number in first.items()}
