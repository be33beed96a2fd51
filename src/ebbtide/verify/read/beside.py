"""What containers hold beside the content that they unpack to: names, frames that are passed over, and bytes behind."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from ebbtide.verify.read.pieces import Pieces
from ebbtide.verify.read.stored import CHUNK, ObjectSource, UnknownContentError, as_bytes, bytes_of

_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18(?s:....)")
"""Both of zstd and lz4: a magic number and a size, and so many bytes of anybody's."""
_EXTRA, _NAME, _COMMENT = 4, 8, 16
_ZIP_END, _ZIP_END_BYTES = b"PK\x05\x06", 22
_MOST_BEHIND = (1 << 16) + _ZIP_END_BYTES
"""No farther from the end is the record looked for."""
_DESCRIPTOR = 24
"""What may stand behind an entry of a zip that was written as a stream: sizes and a checksum."""


def gzip_names(head: bytes) -> Pieces:
    """The name and the comment in the head of a gzip file, as `gzip` writes the name of what it packs."""
    flags, at = head[3:4], 10
    if not flags or not flags[0] & (_EXTRA | _NAME | _COMMENT):
        return
    if flags[0] & _EXTRA:
        at += 2 + int.from_bytes(head[10:12], "little")
    end = at
    for flag in (_NAME, _COMMENT):
        if flags[0] & flag:
            end = head.find(b"\0", end) + 1 or len(head)
    yield from bytes_of("head of a gzip file", head[10:end])


def skippable_frames(stored: ObjectSource) -> Pieces:
    """Frames that whoever unpacks passes over."""
    with stored.open() as file:
        at, rest = 0, b""
        while chunk := file.read(CHUNK):
            data = rest + chunk
            for found in _SKIPPABLE.finditer(data):
                start = at - len(rest) + found.end()
                size = int.from_bytes(found[0][4:], "little")
                # Among packed bytes the number may stand by chance, and says a size by chance.
                if 0 < size <= stored.size - start:
                    yield from as_bytes(stored, "skippable frame", start, start + size)
            at += len(chunk)
            rest = data[-7:]


def streams(file: BinaryIO, new: Callable[[], Any]) -> Iterator[bytes]:
    """What streams one after another unpack to; what is behind the last one and is none is an error."""
    decompressor, rest, is_first = new(), b"", True
    while True:
        packed = rest or file.read(CHUNK)
        rest = b""
        if decompressor.eof:
            packed = packed.lstrip(b"\0")
            if not packed:
                if file.read(1):
                    raise UnknownContentError("it has bytes behind what is packed")
                return
            decompressor, is_first = new(), False
        elif not packed and decompressor.needs_input:
            raise UnknownContentError("it ends in the middle of what is packed")
        try:
            content = decompressor.decompress(packed, CHUNK)
        except Exception as error:
            if is_first:
                raise
            raise UnknownContentError("it has bytes behind what is packed") from error
        if content:
            yield content
        rest = decompressor.unused_data if decompressor.eof else b""


def between_entries(stored: ObjectSource, archive: zipfile.ZipFile) -> Pieces:
    """Bytes of a zip that belong to no entry of its directory, such as entries that were taken out of it."""
    at = 0
    entries = sorted(archive.infolist(), key=lambda each: each.header_offset)
    with stored.open() as file:
        for entry in entries:
            yield from _gap(stored, at, entry.header_offset)
            file.seek(entry.header_offset + 26)
            names = file.read(4)
            at = entry.header_offset + 30 + int.from_bytes(names[:2], "little") + int.from_bytes(names[2:], "little")
            at += entry.compress_size + (_DESCRIPTOR if entry.flag_bits & 8 else 0)
    yield from _gap(stored, at, archive.start_dir)
    yield from as_bytes(stored, "bytes behind an archive", _end_of_zip(stored, len(archive.comment)))


def _end_of_zip(stored: ObjectSource, comment: int) -> int:
    """Where the record ends that ends an archive: the last one is meant."""
    start = max(0, stored.size - _MOST_BEHIND)
    with stored.open() as file:
        file.seek(start)
        at = file.read(_MOST_BEHIND).rfind(_ZIP_END)
    return stored.size if at < 0 else start + at + _ZIP_END_BYTES + comment


def _gap(stored: ObjectSource, start: int, end: int) -> Pieces:
    if start < end:
        yield from as_bytes(stored, "bytes between the entries of an archive", start, end)
