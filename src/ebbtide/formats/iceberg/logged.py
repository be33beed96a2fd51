"""Older metadata files of an Iceberg table, by its log: they go where a version's summary names partitions of people.

A log keeps the last hundred, and the oldest of these knows those before. So with one that goes all that came after it
go, too: they would name it.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from ebbtide.formats.iceberg.java import Base
from ebbtide.formats.iceberg.metadata import MetadataFiles
from ebbtide.formats.iceberg.traces import Traces
from ebbtide.model.paths import normalise

_MOST, _MOST_BY_DEFAULT = "write.metadata.previous-versions-max", 100


def naming_people(files: MetadataFiles, traces: Traces) -> list[str]:
    """The first metadata file that may name one of them, and all after it, the one of now among them."""
    if not traces.by_partition:
        return []
    known = [*_before(files), files.location]
    for n, location in enumerate(known):
        summaries = (s.summary.additional_properties if s.summary else {} for s in files.open(location).snapshots)
        if traces.names_partitions(summaries):
            return [normalise(each) for each in known[n:]]
    return []


def with_log(document: dict[str, Any], base: Base, going: Collection[str]) -> dict[str, Any]:
    """A document with the log that it has once it follows `base`, and with its time."""
    now = {"timestamp-ms": document["last-updated-ms"], "metadata-file": base.java.metadataFileLocation()}
    log = [e for e in (*document.get("metadata-log", ()), now) if normalise(e["metadata-file"]) not in going]
    most = int(document.get("properties", {}).get(_MOST, _MOST_BY_DEFAULT))
    return {
        **document,
        "metadata-log": log[-most:] if most > 0 else [],
        "last-updated-ms": max(int(time.time() * 1000), document["last-updated-ms"]),
    }


def _before(files: MetadataFiles) -> list[str]:
    """Those that are there, oldest first."""
    found: list[str] = []
    log = files.table.metadata_log
    while log:
        there = [e.metadata_file for e in log if e.metadata_file not in found and files.is_there(e.metadata_file)]
        found = [*there, *found]
        log = files.open(there[0]).metadata_log if there else []
    return found
