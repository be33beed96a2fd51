"""Unpacking what somebody else packed, within bounds: a small file may unpack to more than any memory holds.

Metadata packs by ten or twenty to one, and what packs by far more was made to. So a file may become `_TIMES` as large
as it is, and a small one `_FLOOR` bytes: the size on disk is what a bomb cannot fake.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

_DECOMPRESSORS: Mapping[str, Callable[[], Any]] = {
    "deflate": lambda: zlib.decompressobj(wbits=-15),
    "bzip2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
}
_CHECKSUM = 4
"""What some writers leave behind a block of deflate: that of zlib, or a part of it."""
_FLOOR = 64 << 20
_TIMES = 100


class DamagedError(ValueError):
    """A file is not what it must be, told in words of ours that quote nothing of it."""


def most_unpacked(packed: int) -> int:
    """How many bytes a file of this size may become."""
    return max(_FLOOR, _TIMES * packed)


def too_large(packed: int) -> DamagedError:
    """What is said of a file that becomes more."""
    most = most_unpacked(packed) >> 20
    return DamagedError(f"it has {packed} bytes and unpacks to more than {most} MiB, the most for a file of its size")


def gunzip(content: bytes) -> bytes:
    """A gzip file unpacked; one that was cut off, or is too large, raises `ValueError`."""
    most, plain, rest = most_unpacked(len(content)), bytearray(), content
    while rest:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            plain += unpacker.decompress(rest, most - len(plain) + 1)
        except zlib.error as error:
            raise DamagedError(f"it is no gzip file: {error}") from None
        if len(plain) > most:
            raise too_large(len(content))
        if not unpacker.eof:
            raise DamagedError("its gzip stream ends too early")
        rest = unpacker.unused_data
    return bytes(plain)


def unpack_block(codec: str, packed: bytes, most: int) -> bytes | None:
    """One block of an Avro file unpacked; None where it is more than `most` bytes. Other codecs raise `ValueError`."""
    try:
        if codec == "null":
            plain = packed
        elif codec in _DECOMPRESSORS:
            decompressor = _DECOMPRESSORS[codec]()
            plain = decompressor.decompress(packed, most + 1)
            if len(decompressor.unused_data) > _CHECKSUM:
                raise ValueError("a block has bytes behind what is packed")
        elif codec == "zstandard":
            plain = pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read(most + 1)
        elif codec == "snappy":
            return _unsnap(packed, most)
        else:
            raise ValueError(f"its codec {codec!r} is not known")
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"a block cannot be unpacked: {error}") from None
    return plain if len(plain) <= most else None


def _unsnap(packed: bytes, most: int) -> bytes | None:
    """Snappy says first how large it is, and unpacks to no more; Avro puts a checksum of four bytes behind it."""
    size = 0
    for n, byte in enumerate(packed[:5]):
        size |= (byte & 0x7F) << 7 * n
        if not byte & 0x80:
            break
    if size > most:
        return None
    plain: bytes = pa.decompress(packed[:-4], decompressed_size=size, codec="snappy", asbytes=True)
    if zlib.crc32(plain) != int.from_bytes(packed[-4:], "big"):
        raise ValueError("a block is not what its checksum says")
    return plain
