"""The state that a checkpoint holds, read where log cleanup has taken the commits before it.

deltalake opens such tables, but does not say where a deletion vector lies, and it fails on locations with a percent
sign: so the checkpoint's own columns are read, classic (one file or several parts) and V2 (with sidecars).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ebbtide.errors import UnreadableError
from ebbtide.formats.delta.actions import Actions, data_file, metadata, protocol, resolve, tombstone
from ebbtide.formats.delta.log import FOLDER, corrupt
from ebbtide.storage.files import Store, StoredObject
from ebbtide.storage.unpack import most_unpacked, too_large

_ADD = ("path", "size", "partitionValues", "stats", "stats_parsed.numRecords", "deletionVector")
_REMOVE = ("path", "size", "deletionTimestamp", "deletionVector")
_WANTED = (
    *("metaData", "protocol", "sidecar"),
    *(f"add.{field}" for field in _ADD),
    *(f"remove.{field}" for field in _REMOVE),
)
_FEW_ROWS = 100_000


def read_checkpoint(store: Store, location: str, parts: Sequence[StoredObject], subject: str) -> Actions:
    """The live files, the tombstones, metadata and protocol of a complete checkpoint; whatever is missing raises
    `UnreadableError`.
    """
    rows = [row for part in parts for row in _rows(store, part.path, subject)]
    rows += [row for path in _sidecars(rows, location) for row in _rows(store, path, subject)]
    try:
        files = (data_file(row["add"], location) for row in rows if row.get("add") and row["add"].get("path"))
        adds = {file.path: file for file in files}
        return Actions(
            adds=adds,
            removes={},
            changes=(),
            metadata=next((metadata(row["metaData"]) for row in rows if row.get("metaData")), None),
            protocol=next((protocol(row["protocol"]) for row in rows if row.get("protocol")), None),
            tombstones=tuple(
                tombstone(row["remove"], location) for row in rows if row.get("remove") and row["remove"].get("path")
            ),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise corrupt(subject, parts[0].path, error) from error


def sidecars_of(store: Store, location: str, parts: Sequence[StoredObject], subject: str) -> frozenset[str]:
    """The files beside a checkpoint that are parts of it."""
    return frozenset(_sidecars([row for part in parts for row in _rows(store, part.path, subject)], location))


def _sidecars(rows: Iterable[Mapping[str, Any]], location: str) -> list[str]:
    folder = f"{location}/{FOLDER}/_sidecars"
    return [resolve(row["sidecar"]["path"], folder) for row in rows if row.get("sidecar")]


def _rows(store: Store, path: str, subject: str) -> Iterable[Mapping[str, Any]]:
    try:
        content = store.read(path)
        if path.endswith(".json"):
            return [json.loads(line) for line in content.split(b"\n") if line.strip()]
        file = pq.ParquetFile(pa.BufferReader(content))
        bomb = _bomb(file.metadata, len(content))
        # A map as a list of pairs is what dict() takes.
        rows: list[Mapping[str, Any]] = [] if bomb else file.read(columns=_present(file.schema_arrow)).to_pylist()
    except UnreadableError as error:
        raise UnreadableError(subject, error.message, hint="scan again; log cleanup may run") from error
    except (ValueError, OSError, pa.ArrowException) as error:
        raise corrupt(subject, path, error) from error
    if bomb:
        raise UnreadableError(subject, f"{path} is corrupt: {bomb}", hint="restore the file from a backup")
    return rows


def _bomb(footer: pq.FileMetaData, packed: int) -> str | None:
    """Why a file is not read that says of itself that it unpacks to too much, or has more rows than it can."""
    unpacked = sum(footer.row_group(n).total_byte_size for n in range(footer.num_row_groups))
    if unpacked > most_unpacked(packed):
        return str(too_large(packed))
    if footer.num_rows > max(_FEW_ROWS, packed):
        return f"it has {packed} bytes and {footer.num_rows} rows, each of which has a path of its own"
    return None


def _present(schema: pa.Schema) -> list[str]:
    return [name for name in _WANTED if name.split(".")[0] in schema.names]
