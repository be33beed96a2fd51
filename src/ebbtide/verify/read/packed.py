"""Containers of other content: gzip, zstd, lz4, bzip2, xz, snappy and zip, nested to a bounded depth and size.

What unpacks to no more than may be held is read as the object that it is; what is larger as text, where it is text,
or as bytes. What becomes more than `most_unpacked` allows was made to: it is not unpacked to its end.
"""

from __future__ import annotations

import bz2
import lzma
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, BinaryIO

import pyarrow as pa

from ebbtide.storage.unpack import most_unpacked
from ebbtide.verify.read import beside
from ebbtide.verify.read.documents import read_json_stream
from ebbtide.verify.read.gather import decoded
from ebbtide.verify.read.pieces import CannotTell, Cells, Pieces, Raw
from ebbtide.verify.read.stored import (
    CHUNK,
    DEEPEST,
    HELD,
    ObjectSource,
    Reader,
    UnknownContentError,
    as_bytes,
    bytes_of,
    exactly,
)
from ebbtide.verify.read.text import is_text, read_text

_MOST_ENTRIES = 100_000
_SNAPPY = b"\xff\x06\x00\x00sNaPpY"
_STREAMS = (
    (b"\x1f\x8b", "gzip", (".gz", ".gzip")),
    (b"\x28\xb5\x2f\xfd", "zstd", (".zst", ".zstd")),
    (b"\x04\x22\x4d\x18", "lz4", (".lz4",)),
    (b"BZh", "bz2", (".bz2",)),
    (b"\xfd7zXZ\x00", "xz", (".xz",)),
    (_SNAPPY, "snappy", (".sz", ".snappy")),
)
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


def is_packed(head: bytes, name: str) -> bool:
    return head.startswith(_ZIP) or _codec(head, name) is not None


def read_packed(stored: ObjectSource, inner: Reader) -> Pieces:
    """Reads what is in a container by `inner`, which takes anything."""
    if stored.depth >= DEEPEST:
        yield CannotTell(f"containers lie in each other more than {DEEPEST} deep")
        yield from as_bytes(stored)
        return
    with stored.open() as file:
        head = file.read(4096)
    if head.startswith(_ZIP):
        yield from _zip(stored, inner)
        return
    codec = _codec(head, stored.name)
    if codec is None:
        raise UnknownContentError("it is no container")
    endings = next((ends for _, name, ends in _STREAMS if name == codec[0]), ())
    name = next((stored.name.removesuffix(end) for end in endings if stored.name.endswith(end)), stored.name)
    if name == stored.name:  # 00001-….gz.metadata.json
        name = name.replace(".gz.", ".")
    if codec[0] == "gzip":
        yield from beside.gzip_names(stored)
    elif codec[0] in ("zstd", "lz4"):
        yield from beside.skippable_frames(stored)
    yield from _stream(stored, lambda: codec[1](stored), name, most_unpacked(stored.size), inner)


def _stream(stored: ObjectSource, open_: Callable[[], Any], name: str, most: int, inner: Reader) -> Pieces:
    """What a stream unpacks to: as an object where it can be held, else part by part."""
    with closing(open_()) as stream:
        content = _read(stream, min(most, HELD) + 1)
    if len(content) <= min(most, HELD):
        yield from inner(stored.inner(content, name))
        return
    with closing(open_()) as stream:
        counted = _Counted(stream, most)
        if is_text(content[:4096]):
            large = ObjectSource(name, most, lambda: counted, stored.depth + 1)  # type: ignore[arg-type, return-value]
            yield from (read_json_stream if content.lstrip()[:1] in (b"{", b"[") else read_text)(large)
        else:
            yield CannotTell(f"it unpacks to more than {HELD >> 20} MiB, and cannot be read in parts")
            at = 0
            while chunk := counted.read(CHUNK):
                yield Raw("unpacked content", chunk, at)
                at += len(chunk)
        if counted.too_much:
            yield CannotTell(f"it has {stored.size} bytes and unpacks to more than {most >> 20} MiB")


class _Counted:
    """A stream that ends where it has become more than it may. It can go back to its start as long as it is there."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream, self._left, self._head, self.too_much = stream, most, b"", False

    def read(self, size: int) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        content: bytes = self._stream.read(min(size, self._left + 1))
        if len(content) > self._left:
            self.too_much = True
        content = content[: self._left]
        self._left -= len(content)
        self._first = content
        return content

    def seek(self, at: int) -> None:
        if at:
            raise UnknownContentError("a stream cannot be read again")
        self._head = self._first

    def __enter__(self) -> _Counted:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _read(stream: Any, most: int) -> bytes:
    content = bytearray()
    while len(content) < most and (chunk := stream.read(min(CHUNK, most - len(content)))):
        content += chunk
    return bytes(content)


def _codec(head: bytes, name: str) -> tuple[str, Callable[[ObjectSource], Any]] | None:
    for magic, codec, _ in _STREAMS:
        if head.startswith(magic):
            return codec, _OPEN[codec]
    if name.endswith((".snappy", ".lz4")) and _is_blocks(head):
        codec = "snappy" if name.endswith(".snappy") else "lz4_raw"
        return ("snappy" if codec == "snappy" else "lz4"), lambda stored: _PartStream(
            hadoop_blocks(stored.open(), codec)
        )
    return None


def _arrow(codec: str) -> Callable[[ObjectSource], Any]:
    return lambda stored: pa.CompressedInputStream(stored.open(), codec)


class _PartStream:
    """Parts that come one after another, as a stream."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._rest = parts, b""

    def read(self, size: int) -> bytes:
        while not self._rest:
            part = next(self._parts, None)
            if part is None:
                return b""
            self._rest = part
        content, self._rest = self._rest[:size], self._rest[size:]
        return content

    def close(self) -> None:
        self._rest = b""


def _frames(file: BinaryIO) -> Iterator[bytes]:
    """Snappy's own frames: a kind, a length, and a checksum before what is packed."""
    while head := file.read(4):
        size = int.from_bytes(head[1:], "little")
        content = exactly(file, size, "a frame")
        if head[0] == 0:
            yield _unpacked(content[4:], snappy_size(content[4:]), "snappy")
        elif head[0] == 1:
            yield content[4:]
        elif content.strip(b"\0") and content != _SNAPPY[4:]:
            raise UnknownContentError("it has a frame that is passed over, or is of a kind that is not known")


def is_hadoop(packed: bytes, size: int) -> bool:
    """Whether bytes that unpack to so many were packed by Hadoop, which says so first."""
    return len(packed) > 8 and int.from_bytes(packed[:4], "big") == size


def _is_blocks(head: bytes) -> bool:
    """Whether something may be packed as Hadoop does it: how large it is, how much is packed, and that."""
    whole, packed = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:8], "big")
    return len(head) > 8 and 0 < whole <= HELD and 0 < packed <= HELD


def hadoop_blocks(file: BinaryIO, codec: str) -> Iterator[bytes]:
    """What Hadoop packed, block by block."""
    while head := file.read(4):
        left = int.from_bytes(head, "big")
        while left > 0:
            packed = exactly(file, int.from_bytes(exactly(file, 4, "a block"), "big"), "a block")
            part = _unpacked(packed, snappy_size(packed) if codec == "snappy" else left, codec)
            if not part:
                raise UnknownContentError("a block of it is empty")
            left -= len(part)
            yield part


def snappy_size(packed: bytes) -> int:
    """What a block of snappy unpacks to, as it says first."""
    size = 0
    for n, byte in enumerate(packed[:5]):
        size |= (byte & 0x7F) << 7 * n
        if not byte & 0x80:
            break
    return size


def _unpacked(packed: bytes, size: int, codec: str) -> bytes:
    if size > HELD:
        raise UnknownContentError("a block of it is too large")
    return bytes(pa.decompress(packed, decompressed_size=size, codec=codec, asbytes=True))


_OPEN: dict[str, Callable[[ObjectSource], Any]] = {
    "gzip": _arrow("gzip"),
    "zstd": _arrow("zstd"),
    "lz4": _arrow("lz4"),
    "bz2": lambda stored: _PartStream(beside.streams(stored.open(), bz2.BZ2Decompressor)),
    "xz": lambda stored: _PartStream(beside.streams(stored.open(), lzma.LZMADecompressor)),
    "snappy": lambda stored: _PartStream(_frames(stored.open())),
}


def _zip(stored: ObjectSource, inner: Reader) -> Pieces:
    with stored.open() as file, zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        if len(entries) > _MOST_ENTRIES:
            raise UnknownContentError("it has too many entries")
        if archive.comment:
            yield from bytes_of("comment of an archive", archive.comment)
        yield from beside.between_entries(stored, archive)
        left = most_unpacked(stored.size)
        for entry in entries:
            yield Cells("name in an archive", "path", pa.array(list(decoded(entry.filename)), pa.string()))
            if entry.flag_bits & 1:
                yield CannotTell("an entry of an archive is encrypted")
                continue
            if entry.comment or entry.extra:
                yield from bytes_of("comment in an archive", entry.comment + entry.extra)
            if left <= 0:
                yield CannotTell("an archive unpacks to more than it may")
                return
            yield from _stream(stored, lambda entry=entry: archive.open(entry), entry.filename, left, inner)  # type: ignore[misc]
            left -= max(entry.file_size, 0)
