"""Binary values of rows that are packed by themselves: applications put compressed documents into columns.

Two bytes that any value may have begin what zlib packs, so what looks like that counts as packed only where it unpacks
to its end. What is packed in other ways begins with more, and cannot be told where it does not unpack.
"""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_MOST = 16 << 20
"""The most that one value may unpack to; several times that for all values of an array."""
_MOST_TOGETHER = 64 << 20
_ZLIB = tuple(bytes((0x78, low)) for low in range(256) if (0x7800 + low) % 31 == 0)
_OTHERS: tuple[tuple[bytes, Callable[[bytes], bytes] | None], ...] = (
    (b"\x1f\x8b\x08", lambda packed: _whole(lambda: zlib.decompressobj(wbits=31), packed)),
    (b"BZh", lambda packed: _whole(bz2.BZ2Decompressor, packed)),
    (b"\xfd7zXZ\x00", lambda packed: _whole(lzma.LZMADecompressor, packed)),
    (b"\x28\xb5\x2f\xfd", lambda packed: _streamed("zstd", packed)),
    (b"\x04\x22\x4d\x18", lambda packed: _streamed("lz4", packed)),
    (b"\xff\x06\x00\x00sNaPpY", None),
    (b"PK\x03\x04", None),
)
_BZIP2 = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
_BEGINS = pa.array(sorted({*_ZLIB, *(magic[:2] for magic, _ in _OTHERS)}), pa.large_binary())


class _NotUnpackedError(Exception):
    """It is packed, and was not unpacked."""


def maybe_packed(values: pa.Array) -> bool:
    """Whether any value is packed as far as its first bytes tell, and those of zlib by more than that."""
    content, is_all = unpacked_cells(values)
    return bool(len(content)) or not is_all


def unpacked_cells(values: pa.Array) -> tuple[pa.Array, bool]:
    """What the packed ones of these values hold, and whether that is all of them."""
    begins = pc.binary_slice(values, 0, 2).cast(pa.large_binary())
    among = values.filter(pc.is_in(begins, _BEGINS))
    found: list[bytes] = []
    size = 0
    for each in among if len(among) else ():
        try:
            content = _unpacked(each.as_py())
        except _NotUnpackedError:
            return pa.array(found, pa.large_binary()), False
        if content is not None:
            found.append(content)
            size += len(content)
            if size > _MOST_TOGETHER:
                return pa.array(found, pa.large_binary()), False
    return pa.array(found, pa.large_binary()), True


def _unpacked(value: bytes) -> bytes | None:
    """What a value holds; None where it is not packed."""
    if value.startswith(_ZLIB):
        try:
            return _whole(zlib.decompressobj, value)
        except zlib.error:
            return None
    for magic, unpack in _OTHERS:
        if not value.startswith(magic) or (magic == b"BZh" and not _BZIP2.match(value)):
            continue
        if unpack is None:
            raise _NotUnpackedError
        try:
            return unpack(value)
        except Exception as error:
            raise _NotUnpackedError from error
    return None


def _whole(stream: Callable[[], Any], packed: bytes) -> bytes:
    """All of a stream, those of its kind that follow (`cat a.gz b.gz`), and what stands behind them."""
    parts: list[bytes] = []
    rest = packed
    while rest and (not parts or rest.startswith(packed[:2])):
        decompressor = stream()
        try:
            parts.append(decompressor.decompress(rest, _MOST))
        except Exception:
            if parts:
                raise _NotUnpackedError from None
            raise
        if sum(map(len, parts)) >= _MOST or (parts[1:] and not decompressor.eof):
            raise _NotUnpackedError
        if not decompressor.eof:
            raise zlib.error("it ends in the middle")
        rest = decompressor.unused_data
    content = b"".join(parts)
    return content + b"\0" + rest if rest else content


def _streamed(codec: str, packed: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(packed), codec) as stream:
        content: bytes = stream.read(_MOST + 1)
    if len(content) > _MOST:
        raise _NotUnpackedError
    return content
