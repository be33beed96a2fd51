"""Files that hold places and checksums by their format: deletion vectors, Puffin, Hadoop's checksums.

They can hold no value of a person as long as they are what they say: magic numbers, lengths and checksums are looked
at, and whatever does not fit comes as bytes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

import pyarrow as pa

from ebbtide.verify.read.gather import Gathered
from ebbtide.verify.read.pieces import CannotTell, Cells, Pieces
from ebbtide.verify.read.repeated import all_values
from ebbtide.verify.read.stored import HELD, ObjectSource, UnknownContentError, as_bytes, exactly, whole

CRC = b"crc\0"
CHECKSUMS = "checksums of a file"
PUFFIN = b"PFA1"
_DELTA_VECTOR = (1681511377).to_bytes(4, "little")
_PAIMON_VECTOR = (1581511376).to_bytes(4, "big")
_BLOB_COUNTS = ("cardinality", "ndv")
"""Of places in a vector, and of values in a sketch, written as texts."""
_SKETCHES = ("apache-datasketches-theta-v1",)


def read_crc(stored: ObjectSource) -> Pieces:
    """Checksums of a file beside this one, four bytes for each so many bytes of it."""
    content = whole(stored)
    if not 0 < int.from_bytes(content[4:8], "big") <= 1 << 30 or len(content) % 4:
        raise UnknownContentError("it is no file of checksums")
    yield Cells(CHECKSUMS, "bytes", pa.array([content], pa.large_binary()))


def read_vectors(stored: ObjectSource) -> Pieces:
    """Deletion vectors one after another, behind a version, as Delta and Paimon write them."""
    with stored.open() as file:
        if exactly(file, 1) != b"\x01":
            raise UnknownContentError("it is no file of deletion vectors")
        while file.tell() < stored.size:
            _vector(file)
    yield from ()


def _vector(file: BinaryIO) -> None:
    size = int.from_bytes(exactly(file, 4, "a deletion vector"), "big")
    content = exactly(file, size, "a deletion vector")
    if content[:4] not in (_DELTA_VECTOR, _PAIMON_VECTOR):
        raise UnknownContentError("it is no file of deletion vectors")
    if int.from_bytes(exactly(file, 4, "a deletion vector"), "big") != zlib.crc32(content):
        raise UnknownContentError("a deletion vector is not what its checksum says")


def read_puffin(stored: ObjectSource) -> Pieces:
    """Blobs by their types: vectors are places, sketches are hashes, and of others nothing is known."""
    footer, start = _puffin_footer(stored)
    gathered = Gathered()
    _words(gathered, footer)
    at = 4
    for blob in sorted(footer.get("blobs", ()), key=lambda each: int(each["offset"])):
        begin, size = int(blob["offset"]), int(blob["length"])
        if begin < at or size < 0 or begin + size > start:
            raise UnknownContentError("its blobs are not where it says")
        yield from _between(stored, at, begin)
        at = begin + size
        yield from _blob(stored, blob, begin, size)
    yield from _between(stored, at, start)
    yield from gathered.take()


def _words(into: Gathered, footer: Mapping[str, Any]) -> None:
    """All texts of a footer, whatever it says by them. Its numbers are ids, places and counts."""
    todo: list[tuple[str, Any]] = [("footer of a Puffin file", footer)]
    while todo:
        place, value = todo.pop()
        if isinstance(value, Mapping):
            for key, each in value.items():
                into.add(place, key)
                if key in _BLOB_COUNTS and isinstance(each, str) and each.isdigit():
                    continue
                todo.append(("properties of a blob" if key == "blobs" else place, each))
        elif isinstance(value, list):
            todo += [(place, each) for each in value]
        elif isinstance(value, str):
            into.add(place, value)


def _blob(stored: ObjectSource, blob: Mapping[str, Any], start: int, size: int) -> Pieces:
    kind = blob.get("type")
    if kind == "deletion-vector-v1":
        with stored.part(start, size).open() as file:
            _vector(file)
            if file.tell() == size:
                return
        raise UnknownContentError("a deletion vector has something behind it")
    if kind in _SKETCHES:
        yield CannotTell(f"a sketch holds hashes, which cannot be searched ({kind})")
        return
    yield CannotTell("a blob of a kind that is not known")
    yield from as_bytes(stored, "blob", start, start + size)


def _between(stored: ObjectSource, start: int, end: int) -> Pieces:
    for piece in as_bytes(stored, "bytes between the blobs", start, end):
        if piece.data.strip(b"\0"):
            yield piece


def _puffin_footer(stored: ObjectSource) -> tuple[dict[str, Any], int]:
    with stored.open() as file:
        file.seek(max(0, stored.size - 12))
        tail = exactly(file, 12, "its footer")
        size = int.from_bytes(tail[:4], "little", signed=True)
        start = stored.size - 12 - size - 4
        if tail[8:] != PUFFIN or size < 0 or start < 4 or size > HELD:
            raise UnknownContentError("it has no Puffin footer")
        file.seek(start)
        if exactly(file, 4, "its footer") != PUFFIN:
            raise UnknownContentError("it has no Puffin footer")
        content = exactly(file, size, "its footer")
    if tail[4] & 1:
        with pa.CompressedInputStream(pa.BufferReader(content), "lz4") as stream:
            content = stream.read(HELD)
    footer = json.loads(content, object_pairs_hook=all_values)
    if not isinstance(footer, dict):
        raise UnknownContentError("its footer is damaged")
    return footer, start
