"""Where the stripes of an ORC file lie, and the streams in them, by the file's own structure (ORC 1, "File Tail").

pyarrow reads the rows, and does not show where. Only places are read here, and what is outside of them is told.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ebbtide.verify.read.packed import snappy_size
from ebbtide.verify.read.stored import HELD, ObjectSource, UnknownContentError, exactly

Message = dict[int, list[Any]]
_LETTERS = len(b"ORC")
_NONE, _ZLIB, _SNAPPY, _LZ4, _ZSTD = 0, 1, 2, 4, 5
_LZ4_FRAME = b"\x04\x22\x4d\x18\x60\x70\x73"
"""The head of a frame whose blocks stand by themselves, and have no checksums."""
_BLOCK = 256 << 10
"""What a block unpacks to at the most where the file does not say it."""


def gaps(stored: ObjectSource) -> Iterator[tuple[int, int]]:
    """The ranges before, between and within the stripes that belong to nothing."""
    with stored.open() as file:
        file.seek(max(0, stored.size - 256))
        tail = file.read(256)
        size = tail[-1]
        post = _message(tail[-1 - size : -1])
        file.seek(max(0, stored.size - 1 - size - _one(post, 1)))
        footer = _message(_unpacked(exactly(file, _one(post, 1), "its footer"), post))
        at = _LETTERS
        for each in footer.get(3, []):
            stripe = _message(each)
            start, streams = _one(stripe, 1), _one(stripe, 2) + _one(stripe, 3)
            if start > at:
                yield at, start
            file.seek(start + streams)
            listed = _message(_unpacked(exactly(file, _one(stripe, 4), "a stripe"), post))
            known = sum(_one(_message(stream), 3) for stream in listed.get(1, []))
            if known < streams:
                yield start + known, start + streams
            at = max(at, start + streams + _one(stripe, 4))
        last = stored.size - 1 - size - _one(post, 1) - _one(post, 5)
        if last > at:
            yield at, last


def _one(message: Message, field: int) -> int:
    value = message.get(field, [0])[-1]
    if not isinstance(value, int):
        raise UnknownContentError("its places are no numbers")
    return value


def _message(content: bytes) -> Message:
    """Protobuf without a schema: numbers and bytes by the numbers of their fields."""
    found: Message = {}
    at = 0
    while at < len(content):
        tag, at = _varint(content, at)
        said = found.setdefault(tag >> 3, [])
        if tag & 7 == 0:
            number, at = _varint(content, at)
            said.append(number)
            continue
        size, at = _varint(content, at) if tag & 7 == 2 else ({1: 8, 5: 4}.get(tag & 7, -1), at)
        if size < 0 or at + size > len(content):
            raise UnknownContentError("its places cannot be read")
        said.append(content[at : at + size])
        at += size
    return found


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for n in range(10):
        if at + n >= len(content):
            break
        value |= (content[at + n] & 0x7F) << 7 * n
        if not content[at + n] & 0x80:
            return value, at + n + 1
    raise UnknownContentError("its places cannot be read")


def _unpacked(content: bytes, post: Message) -> bytes:
    """What blocks unpack to, each behind three bytes that say how long it is, and whether it is packed."""
    kind, parts, at, size = _one(post, 2), list[bytes](), 0, 0
    if kind == _NONE:
        return content
    while at < len(content):
        head = int.from_bytes(content[at : at + 3], "little")
        block, at = content[at + 3 : at + 3 + (head >> 1)], at + 3 + (head >> 1)
        parts.append(block if head & 1 else _block(block, kind, _one(post, 3) or _BLOCK))
        size += len(parts[-1])
        if size > HELD:
            raise UnknownContentError("its footer is too large")
    return b"".join(parts)


def _block(block: bytes, kind: int, most: int) -> bytes:
    if kind == _ZLIB:
        return zlib.decompressobj(-15).decompress(block, most)
    if kind == _SNAPPY:
        size = min(snappy_size(block), most)
        return bytes(pa.decompress(block, decompressed_size=size, codec="snappy", asbytes=True))
    if kind == _LZ4:
        return _streamed("lz4", _LZ4_FRAME + len(block).to_bytes(4, "little") + block + bytes(4), most)
    if kind == _ZSTD:
        return _streamed("zstd", block, most)
    raise UnknownContentError("its footer is packed in a way that is not known")


def _streamed(codec: str, packed: bytes, most: int) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(packed), codec) as stream:
        return bytes(stream.read(most))
