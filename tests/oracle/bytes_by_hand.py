"""Which files under a folder hold a value: every file is read, whoever wrote it, and whatever is packed in it.

It shares nothing with `ebbtide`: bytes are looked for in the file as it lies there, in its name, and in every piece of
it that Avro, Parquet, gzip or zstd decode, nested. `layer` says in which: `raw`, `name`, `avro`, `parquet/avro`, …
"""

from __future__ import annotations

import io
import json
import os
import re
import zlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import unquote_to_bytes
from uuid import UUID

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

_NESTED = 4
Key = TypeVar("Key", bound=Hashable)


def where_values_are(root: Path, values: Mapping[Key, list[bytes]]) -> dict[Key, set[tuple[str, str]]]:
    """(path below `root`, layer) of every place that holds one of the forms of each value."""
    looked_for = _Forms(values)
    found: dict[Key, set[tuple[str, str]]] = {key: set() for key in values}
    for path in sorted(_files(root)):
        name = str(path.relative_to(root))
        for layer, data in _layers(name, path.read_bytes()):
            for key in looked_for.in_(data):
                found[key].add((name, layer))
    return found


class _Forms(Generic[Key]):
    """All forms at once: where one may begin is seen by its first three bytes, then by its first eight."""

    def __init__(self, values: Mapping[Key, list[bytes]]) -> None:
        self._by_start: dict[bytes, list[tuple[bytes, Key]]] = {}
        self._may_begin = np.zeros(1 << 24, dtype=bool)
        for key, listed in values.items():
            for form in listed:
                self._by_start.setdefault(form[:8], []).append((form, key))
                self._may_begin[int.from_bytes(form[:3], "little")] = True

    def in_(self, data: bytes) -> Iterator[Key]:
        if len(data) < 8:
            return
        each = np.frombuffer(data, np.uint8).astype(np.uint32)
        for at in np.flatnonzero(self._may_begin[each[:-2] | each[1:-1] << 8 | each[2:] << 16]).tolist():
            for form, key in self._by_start.get(data[at : at + 8], ()):
                if data.startswith(form, at):
                    yield key


def forms(value: object) -> list[bytes]:
    """How a value may be written: as text, and as the bytes that its type has."""
    texts = [str(value).encode()]
    match value:
        case int():
            return [
                *texts,
                value.to_bytes(8, "little", signed=True),
                value.to_bytes(8, "big", signed=True),
                _zigzag(value),
            ]
        case Decimal():
            unscaled = int(value.scaleb(-int(value.as_tuple().exponent)))
            return [*texts, unscaled.to_bytes((unscaled.bit_length() + 8) // 8, "big", signed=True)]
        case UUID():
            return [*texts, value.bytes, value.hex.encode(), value.hex.upper().encode()]
    return texts


def cut(value: object, length: int) -> list[bytes]:
    """The same where a text or binary is cut after so many characters, as bounds are; the last one may be raised."""
    match value:
        case str():
            return [value[: length - 1].encode()]
        case UUID():
            return [str(value)[: length - 1].encode(), value.bytes]
    return forms(value)


def _files(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        yield from (Path(folder, name) for name in names)


def _layers(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    decoded = unquote_to_bytes(name)
    yield "name", name.encode() + b"\0" + decoded + b"\0" + unquote_to_bytes(decoded)
    yield "raw", data
    yield from _unquoted("raw", data)
    yield from _inside(data, _NESTED)


def _unquoted(layer: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Paths in texts are percent-encoded, in a Delta log twice, and Java's properties have backslashes."""
    if b"%" in data and (once := unquote_to_bytes(data)) != data:
        yield layer, once + b"\0" + unquote_to_bytes(once)
    if b"\\" in data:
        yield layer, data.replace(b"\\", b"")


def _inside(data: bytes, depth: int) -> Iterator[tuple[str, bytes]]:
    if not depth:
        return
    for kind, piece in _pieces(data):
        yield kind, piece
        yield from _unquoted(kind, piece)
        for inner, deeper in _inside(piece, depth - 1):
            yield f"{kind}/{inner}", deeper


def _pieces(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Every piece that begins anywhere in the bytes."""
    for kind, magic in _PACKED.items():
        for match in re.finditer(magic, data):
            if piece := _unpacked(kind, data[match.start() :]):
                yield kind, piece
    for match in re.finditer(rb"Obj\x01", data):
        yield "avro", _flat(avro_records(data[match.start() :]))
    marks = [match.start() for match in re.finditer(rb"PAR1", data)]
    for start, end in zip(marks[::2], marks[1::2], strict=False):
        yield from _parquet(data[start : end + 4])


_PACKED = {"gzip": rb"\x1f\x8b\x08", "zstd": rb"\x28\xb5\x2f\xfd"}


def _unpacked(kind: str, data: bytes) -> bytes:
    """Nothing, where the bytes only look like the beginning of one."""
    try:
        if kind == "gzip":
            return zlib.decompressobj(31).decompress(data)
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    except (zlib.error, zstandard.ZstdError):
        return b""


def _parquet(data: bytes) -> Iterator[tuple[str, bytes]]:
    file = pq.ParquetFile(pa.BufferReader(data))
    yield "parquet", _flat(file.read().to_pylist())
    meta = file.metadata
    columns = [meta.row_group(g).column(c) for g in range(meta.num_row_groups) for c in range(meta.num_columns)]
    statistics = [column.statistics for column in columns if column.statistics is not None]
    bounds = [[each.min, each.max] for each in statistics if each.has_min_max]
    yield "footer", _flat([bounds, [[*pair] for pair in (meta.metadata or {}).items()]])


_HEADER = {
    "type": "record", "name": "Header", "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": 16}},
    ],
}  # fmt: skip


def avro_records(data: bytes) -> list[Any]:
    """The records of an Avro file. Its blocks are unpacked here: fastavro wants another package for zstd."""
    source = io.BytesIO(data)
    header: Any = fastavro.schemaless_reader(source, _HEADER, None)
    schema = fastavro.parse_schema(json.loads(header["meta"]["avro.schema"]))
    codec, records = header["meta"].get("avro.codec", b"null").decode(), []
    while source.tell() < len(data):
        try:
            count: Any = fastavro.schemaless_reader(source, "long", None)
            packed: Any = fastavro.schemaless_reader(source, "bytes", None)
        except (EOFError, IndexError):
            break
        if source.read(16) != header["sync"]:
            break  # what follows is no part of this file: it lay in something else
        block = io.BytesIO(_UNPACK[codec](packed))
        records += [fastavro.schemaless_reader(block, schema, None) for _ in range(count)]
    return [header["meta"], *records]


def _snappy(packed: bytes) -> bytes:
    size, shift, at = 0, 0, 0
    while True:  # the size is a varint in front, and a checksum of four bytes ends the block
        size |= (packed[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if packed[at - 1] < 128:
            return bytes(pa.Codec("snappy").decompress(packed[:-4], size))


_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda packed: packed,
    "deflate": lambda packed: zlib.decompress(packed, -15),
    "snappy": _snappy,
    "zstandard": lambda packed: _unpacked("zstd", packed),
}


def _flat(value: Any) -> bytes:
    """All values of a nested one, keys included: texts and binaries as they are, numbers in digits."""
    out = bytearray()
    todo = [value]
    while todo:
        match todo.pop():
            case dict() as pairs:
                todo += [each for pair in pairs.items() for each in pair]
            case list() | tuple() as several:
                todo += several
            case bytes() as raw:
                out += raw + b"\0"
            case other:
                out += str(other).encode(errors="surrogateescape") + b"\0"
    return bytes(out)


def _zigzag(number: int) -> bytes:
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    return bytes([*out, left])
