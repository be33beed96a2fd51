"""The actions of a Delta commit as values, with every path resolved to where the file lies.

Paths in the log are percent-encoded once more than on disk and are decoded exactly once (formats.md, hazard 5); a
relative one is under the table, an absolute one may lie in another table (shallow clones). The same holds for rows of
a checkpoint, which have the shape of the JSON actions.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from ebbtide.formats.delta.schema import columns_of, logical_names
from ebbtide.model.dataset import Column
from ebbtide.model.paths import normalise

Values = tuple[tuple[str, str | None], ...]
"""Partition values by the column's physical name."""

_ABSOLUTE = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*:)?/")
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85_TO_B85 = str.maketrans(_Z85, _B85)
_UUID_CHARS = 20
_GENERATED = ('"delta.generationExpression"', '"delta.identity.')


@dataclass(frozen=True, slots=True)
class Vector:
    """A deletion vector. `path` is None where it stands in the log itself; `end` is where it ends in its file, and
    `bytes` are its own.
    """

    path: str | None
    key: str
    cardinality: int
    end: int
    bytes: int


@dataclass(frozen=True, slots=True)
class DeltaDataFile:
    """A data file as one commit or checkpoint names it. `rows` counts what the file holds, deleted ones included."""

    path: str
    bytes: int | None
    rows: int | None
    values: Values
    vector: Vector | None
    data_change: bool

    @property
    def live_rows(self) -> int | None:
        return None if self.rows is None else self.rows - (self.vector.cardinality if self.vector else 0)


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A file whose removal a checkpoint remembers. `at` is in milliseconds since 1970, None where nothing says it."""

    file: DeltaDataFile
    at: int | None


@dataclass(frozen=True, slots=True)
class Metadata:
    """The table's metadata in force from some version on. `names` gives top columns by their physical names."""

    id: str
    columns: tuple[Column, ...]
    names: Mapping[str, str]
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]
    generated: bool = False
    """Whether some column has values that Delta makes: generated ones, identities."""


@dataclass(frozen=True, slots=True)
class Protocol:
    reader_version: int
    writer_version: int
    reader_features: frozenset[str]
    writer_features: frozenset[str]


@dataclass(frozen=True, slots=True)
class Actions:
    """What one commit says, or what a checkpoint holds (then `removes` and `changes` are empty, and `tombstones` are
    what was removed before it).

    `changes` are the change-data files; `in_commit_time` is in milliseconds since 1970.
    """

    adds: Mapping[str, DeltaDataFile]
    removes: Mapping[str, DeltaDataFile]
    changes: tuple[DeltaDataFile, ...]
    metadata: Metadata | None
    protocol: Protocol | None
    operation: str = ""
    in_commit_time: int | None = None
    tombstones: tuple[Tombstone, ...] = ()


def parse_commit(content: bytes, location: str) -> Actions:
    """The actions of one commit file. Raises ValueError, KeyError or TypeError where it is not one."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for line in content.split(b"\n"):
        if line.strip():
            for name, body in json.loads(line).items():
                found.setdefault(name, []).append(body)
    if not found:
        raise ValueError("it holds no action")
    info = found.get("commitInfo", [{}])[-1]
    return Actions(
        adds=_by_path(found.get("add", ()), location),
        removes=_by_path(found.get("remove", ()), location),
        changes=tuple(data_file(body, location) for body in found.get("cdc", ())),
        metadata=metadata(found["metaData"][-1]) if "metaData" in found else None,
        protocol=protocol(found["protocol"][-1]) if "protocol" in found else None,
        operation=str(info.get("operation") or ""),
        in_commit_time=_whole(info.get("inCommitTimestamp")),
    )


def _by_path(bodies: Any, location: str) -> dict[str, DeltaDataFile]:
    return {file.path: file for file in (data_file(body, location) for body in bodies)}


def data_file(body: Mapping[str, Any], location: str) -> DeltaDataFile:
    """An add, remove or cdc action as a value."""
    return DeltaDataFile(
        path=resolve(body["path"], location),
        bytes=_whole(body.get("size")),
        rows=_rows(body),
        values=tuple(dict(body.get("partitionValues") or ()).items()),
        vector=_vector(body.get("deletionVector"), location),
        data_change=bool(body.get("dataChange", True)),
    )


def tombstone(body: Mapping[str, Any], location: str) -> Tombstone:
    """A remove action of a checkpoint."""
    return Tombstone(data_file(body, location), _whole(body.get("deletionTimestamp")))


def _rows(body: Mapping[str, Any]) -> int | None:
    # Checkpoints may carry statistics as text, as a struct, or both.
    stats = json.loads(body["stats"]) if body.get("stats") else body.get("stats_parsed")
    return _whole(stats.get("numRecords")) if stats else None


def _whole(number: Any) -> int | None:
    return None if number is None else int(number)


def metadata(body: Mapping[str, Any]) -> Metadata:
    schema = json.loads(body["schemaString"])
    return Metadata(
        id=str(body["id"]),
        columns=columns_of(schema),
        names=logical_names(schema),
        partition_columns=tuple(body.get("partitionColumns") or ()),
        configuration=dict(body.get("configuration") or ()),
        generated=any(name in body["schemaString"] for name in _GENERATED),
    )


def protocol(body: Mapping[str, Any]) -> Protocol:
    return Protocol(
        reader_version=int(body["minReaderVersion"]),
        writer_version=int(body["minWriterVersion"]),
        reader_features=frozenset(body.get("readerFeatures") or ()),
        writer_features=frozenset(body.get("writerFeatures") or ()),
    )


def resolve(path: str, location: str) -> str:
    """Where a path of the log lies, normalised."""
    # Bytes that are no UTF-8 must not become another name: a path that cannot be decoded is an error.
    decoded = unquote(path, errors="strict")
    return normalise(decoded if _ABSOLUTE.match(path) else f"{location}/{decoded}")


def _vector(body: Mapping[str, Any] | None, location: str) -> Vector | None:
    if not body:
        return None
    kind, text, offset = body["storageType"], body["pathOrInlineDv"], body.get("offset") or 0
    if kind == "u":
        prefix, encoded = text[:-_UUID_CHARS], text[-_UUID_CHARS:]
        name = uuid.UUID(bytes=base64.b85decode(encoded.translate(_Z85_TO_B85)))
        path = normalise("/".join(part for part in (location, prefix, f"deletion_vector_{name}.bin") if part))
    elif kind == "p":
        path = resolve(text, location)
    elif kind == "i":
        return Vector(None, f"i{text}", body["cardinality"], 0, body["sizeInBytes"])
    else:
        raise ValueError(f"unknown storage type {kind!r} of a deletion vector")
    # In its file a vector stands between its length and a checksum, four bytes each.
    size = body["sizeInBytes"]
    return Vector(path, f"{path}@{offset}", body["cardinality"], offset + size + 8, size)
