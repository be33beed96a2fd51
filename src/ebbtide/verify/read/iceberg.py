"""Iceberg's manifests and manifest lists: bounds decoded by the type of their column, and no counts, ids or times."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from ebbtide.verify.read.avro import AvroHeader, Everything, fields_of
from ebbtide.verify.read.gather import Gathered, Unscaled

_CUT = 16
_SHORTEST = 6
"""A prefix of fewer characters says nothing of a person."""
_EPOCH = date(1970, 1, 1)
_ENTRY = frozenset({"status", "snapshot_id", "sequence_number", "file_sequence_number", "data_file"})
_FILE = frozenset(
    """
    content file_path file_format spec_id partition record_count file_size_in_bytes block_size_in_bytes file_ordinal
    sort_columns column_sizes value_counts null_value_counts nan_value_counts distinct_counts lower_bounds upper_bounds
    key_metadata split_offsets equality_ids sort_order_id first_row_id referenced_data_file content_offset
    content_size_in_bytes
    """.split()  # noqa: SIM905 - so many words are a text
)
_MANIFEST = frozenset(
    """
    manifest_path manifest_length partition_spec_id content sequence_number min_sequence_number added_snapshot_id
    added_files_count added_data_files_count existing_files_count existing_data_files_count deleted_files_count
    deleted_data_files_count added_rows_count existing_rows_count deleted_rows_count partitions key_metadata
    first_row_id
    """.split()  # noqa: SIM905 - so many words are a text
)
"""What the format defines: there numbers are counts, ids and times. In a field of any other name they are values."""
_NUMBERS = {"int": "<i", "long": "<q", "float": "<f", "double": "<d"}


def is_manifest(head: AvroHeader) -> bool:
    return {"status", "data_file"} <= set(fields_of(head.schema))


def is_manifest_list(head: AvroHeader) -> bool:
    return {"manifest_path", "partition_spec_id"} <= set(fields_of(head.schema))


class ManifestDecoder:
    """Takes the entries of one manifest apart."""

    def __init__(self, head: AvroHeader) -> None:
        self._texts, self._values = Everything(head.schema, numbers=False), Everything(head.schema)
        self._columns: dict[int, tuple[str, str]] = {}
        _columns(json.loads(head.facts.get("schema", b"{}")), "", self._columns)
        self._cuts = {
            str(field.get("name")): int(str(field["transform"])[9:-1])
            for field in json.loads(head.facts.get("partition-spec", b"[]"))
            if str(field.get("transform", "")).startswith("truncate[") and str(field["transform"])[9:-1].isdigit()
        }

    def __call__(self, into: Gathered, entry: Any) -> None:
        file = dict(entry["data_file"])
        path = file.get("file_path")
        into.add("path of a data file", path, "path")
        for column, value in (file.get("partition") or {}).items():
            into.add(f"partition of column {column}", value, "path", cut=self._cuts.get(column), describes=path)
        for side, upper in (("lower_bounds", False), ("upper_bounds", True)):
            for column_id, value in _pairs(file.get(side)):
                self._bound(into, column_id, value, upper=upper, path=path)
        told = {"partition", "lower_bounds", "upper_bounds", "file_path"}
        self._texts(into, {name: value for name, value in file.items() if name in _FILE - told})
        self._values(into, {name: value for name, value in file.items() if name not in _FILE})
        self._values(into, {name: value for name, value in entry.items() if name not in _ENTRY})

    def _bound(self, into: Gathered, column_id: int, value: bytes, *, upper: bool, path: str | None) -> None:
        name, kind = self._columns.get(column_id, (f"with id {column_id}", "unknown"))
        place = f"bound of column {name}"
        for plain in decode(kind, value):
            short = isinstance(plain, str | bytes) and kind != "uuid"
            cut = min(_CUT, max(_SHORTEST, len(plain))) if short else None
            into.add(place, plain, "bound", cut=cut, raised=upper and short, describes=path)


class ManifestList:
    """Takes the entries of one list apart. Which type a partition field has, only the table's metadata says."""

    def __init__(self, head: AvroHeader) -> None:
        self._texts, self._values = Everything(head.schema, numbers=False), Everything(head.schema)

    def __call__(self, into: Gathered, entry: Any) -> None:
        into.add("path of a manifest", entry.get("manifest_path"), "path")
        for field in entry.get("partitions") or ():
            for side in ("lower_bound", "upper_bound"):
                if (value := field.get(side)) is not None:
                    for plain in decode("unknown", value):
                        into.add("bound of a partition field", plain, "bound", describes=entry.get("manifest_path"))
        told = {"manifest_path", "partitions"}
        self._texts(into, {name: each for name, each in entry.items() if name in _MANIFEST - told})
        self._values(into, {name: each for name, each in entry.items() if name not in _MANIFEST})


def decode(kind: str, value: bytes) -> list[Any]:
    """A bound as the value that it is, or as each that it could be (Iceberg, "Binary single-value serialization")."""
    try:
        if kind == "string":
            return [value.decode()]
        if kind in _NUMBERS:  # a column that was widened has bounds of its older type
            width = {4: "<i", 8: "<q"} if kind in ("int", "long") else {4: "<f", 8: "<d"}
            return [struct.unpack(width[len(value)], value)[0]]
        if kind == "date":
            return [_EPOCH + timedelta(days=struct.unpack("<i", value)[0])]
        if kind == "uuid":
            return [str(uuid.UUID(bytes=value)), value]
        if kind.startswith("decimal"):
            scale = int(kind.rstrip(")").rpartition(",")[2])
            return [Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale)]
        if kind == "boolean":
            return []
        if kind.startswith("timestamp") or kind == "time":
            return [struct.unpack("<q", value)[0]]
    except (ValueError, LookupError, struct.error, OverflowError, ArithmeticError):
        return [value]
    return _any_of(value) if kind == "unknown" else [value]


def _any_of(value: bytes) -> list[Any]:
    found: list[Any] = [value]
    if len(value) in (4, 8):
        found.append(struct.unpack("<i" if len(value) == 4 else "<q", value)[0])
    if len(value) == 16:
        found.append(str(uuid.UUID(bytes=value)))
    if 0 < len(value) <= 16:
        found.append(Unscaled(int.from_bytes(value, "big", signed=True)))
    with suppress(UnicodeDecodeError):
        found.append(value.decode())
    return found


def _pairs(bounds: Any) -> list[tuple[int, bytes]]:
    """A map with numbers as keys, which Avro writes as an array of pairs."""
    if isinstance(bounds, Mapping):
        return [(int(key), value) for key, value in bounds.items()]
    return [(pair["key"], pair["value"]) for pair in bounds or ()]


def _columns(field: Mapping[str, Any], path: str, into: dict[int, tuple[str, str]]) -> None:
    """The leaf columns of an Iceberg schema by id, with their types."""
    for n, inner in enumerate(field.get("fields", ())):
        name = f"{path}.{inner['name']}" if path else str(inner["name"])
        _column(inner.get("id", -n - 1), name, inner.get("type"), into)


def _column(id_: int, name: str, kind: Any, into: dict[int, tuple[str, str]]) -> None:
    if isinstance(kind, str):
        into[id_] = (name, kind.split("[", 1)[0])
    elif isinstance(kind, Mapping) and kind.get("type") == "struct":
        _columns(kind, name, into)
    elif isinstance(kind, Mapping) and kind.get("type") == "list":
        _column(kind.get("element-id", -1), f"{name}.element", kind.get("element"), into)
    elif isinstance(kind, Mapping) and kind.get("type") == "map":
        _column(kind.get("key-id", -1), f"{name}.key", kind.get("key"), into)
        _column(kind.get("value-id", -1), f"{name}.value", kind.get("value"), into)
