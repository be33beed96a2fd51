"""Manifest lists and manifests, decoded so that a damaged file is an error: never a crash, never a shorter list.

pyiceberg reads everything else of Iceberg here, but its Avro reader takes a file that was cut off for one that ends,
and its compiled decoder reads past the end of its buffer (docs/decisions/0005-manifests-with-fastavro.md). Fields are
found by their Iceberg field id, as writers of different ages name some of them differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from io import BytesIO
from typing import Any

import fastavro

from ebbtide.formats.iceberg.container import without_compression
from ebbtide.model.paths import normalise
from ebbtide.storage.unpack import DamagedError

_COUNTED = ("date", "time-micros", "timestamp-micros", "local-timestamp-micros")


class Status(IntEnum):
    EXISTING = 0
    ADDED = 1
    DELETED = 2


class ManifestContent(IntEnum):
    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


@dataclass(frozen=True, slots=True)
class Manifest:
    """One manifest as a manifest list names it. Counts are None where an old writer left them out."""

    path: str
    length: int
    spec_id: int
    holds_data: bool
    added_by: int | None
    added: int | None
    existing: int | None
    deleted: int | None


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One file in a manifest. `by` added it, or for a deleted entry removed it; `values` are its partition tuple.

    Writers spell a place in their own ways (`file:/`, `file:///`, `s3a://`), and it is one file: `path` is the one
    spelling of it, `raw` is what the manifest has. Dates are counted in days and times in microseconds, as Iceberg
    counts them.
    """

    status: Status
    by: int | None
    content: ManifestContent
    path: str
    raw: str
    format: str
    values: tuple[Any, ...]
    rows: int
    bytes: int


def manifests(content: bytes) -> list[Manifest]:
    """The manifests that a manifest list names."""
    found = []
    for record, ids in _records(content):
        get = _Fields(record, ids)
        found.append(
            Manifest(
                path=get(500),
                length=get(501),
                spec_id=get(502),
                holds_data=get(517, 0) == 0,
                added_by=get(503, None),
                added=_count(get(504, None)),
                existing=_count(get(505, None)),
                deleted=_count(get(506, None)),
            )
        )
    return found


def entries(content: bytes, manifest: Manifest) -> list[ManifestEntry]:
    """The entries of a manifest, deleted ones included; an error where they are not all that its list counted."""
    if len(content) != manifest.length:
        raise DamagedError(f"it has {len(content)} bytes, its manifest list says {manifest.length}")
    found = []
    for record, ids in _records(content):
        get = _Fields(record, ids)
        file = _Fields(get(2), ids)
        by = get(1, None)
        found.append(
            ManifestEntry(
                status=Status(get(0)),
                by=manifest.added_by if by is None else by,
                content=ManifestContent(file(134, 0)),
                path=normalise(file(100)),
                raw=file(100),
                format=str(file(101)).upper(),
                values=tuple(file(102).values()),
                rows=file(103),
                bytes=file(104),
            )
        )
    counts = {Status.ADDED: manifest.added, Status.EXISTING: manifest.existing, Status.DELETED: manifest.deleted}
    for status, expected in counts.items():
        actual = sum(1 for entry in found if entry.status is status)
        if expected is not None and expected != actual:
            raise DamagedError(f"it has {actual} {status.name.lower()} entries, its manifest list says {expected}")
    return found


def _count(value: int | None) -> int | None:
    return None if value is None or value < 0 else value


class _Fields:
    """The fields of one record by Iceberg field id."""

    def __init__(self, record: Mapping[str, Any], ids: Mapping[int, str]) -> None:
        self._record, self._ids = record, ids

    def __call__(self, id_: int, *default: Any) -> Any:
        value = self._record.get(self._ids.get(id_, ""))
        if value is None:
            if not default:
                raise DamagedError(f"field {id_} is missing")
            return default[0]
        return value


def _records(content: bytes) -> Iterator[tuple[Mapping[str, Any], Mapping[int, str]]]:
    content = without_compression(content)
    stream = BytesIO(content)
    reader = fastavro.reader(stream)
    ids = dict(_field_ids(reader.writer_schema))
    _as_counted(reader.writer_schema)
    for record in reader:
        if not isinstance(record, Mapping):
            raise DamagedError("its records are no records")
        yield record, ids
    if stream.tell() != len(content):
        raise DamagedError(f"it ends at byte {stream.tell()} of {len(content)}")


def _field_ids(schema: Any) -> Iterator[tuple[int, str]]:
    """Field ids with their names, of a record and of the records inside it (ids are unique in a manifest's schema)."""
    if isinstance(schema, list):
        for part in schema:
            yield from _field_ids(part)
    elif isinstance(schema, dict) and schema.get("type") == "record":
        for field in schema["fields"]:
            if "field-id" in field:
                yield int(field["field-id"]), field["name"]
            if field.get("field-id") in (2, None):
                yield from _field_ids(field["type"])


def _as_counted(schema: Any) -> None:
    """Let dates and times be read as Iceberg counts them, in days and microseconds: Python's end with the year 9999."""
    if isinstance(schema, list):
        for part in schema:
            _as_counted(part)
    elif isinstance(schema, dict):
        if schema.get("logicalType") in _COUNTED:
            del schema["logicalType"]
        for field in schema.get("fields", ()):
            _as_counted(field["type"])
