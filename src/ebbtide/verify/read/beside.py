"""What containers hold beside the content that they unpack to: names, frames that are passed over, and bytes behind."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from ebbtide.storage.unpack import most_unpacked
from ebbtide.verify.read.pieces import Pieces
from ebbtide.verify.read.stored import CHUNK, ObjectSource, UnknownContentError, as_bytes, bytes_of, exactly

_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18(?s:....)")
"""Both of zstd and lz4: a magic number and a size, and so many bytes of anybody's."""
_EXTRA, _NAME, _COMMENT = 4, 8, 16
_GZIP_HEAD = re.compile(rb"\x1f\x8b\x08[\x04-\x1f](?s:.{4})[\x00\x02\x04][\x00-\x0d\xff]")
"""With a name, a comment or more; what else stands there has few values, so that it is not found by chance."""
_GZIP_FIXED = 10
_LONGEST = 10
_MOST_NAMES = 1 << 16
_ZIP_END, _ZIP_END_BYTES = b"PK\x05\x06", 22
_MOST_BEHIND = (1 << 16) + _ZIP_END_BYTES
"""No farther from the end is the record looked for."""
_STREAMED, _DESCRIPTOR = 8, 24
"""What may stand behind an entry of a zip that was written as a stream: sizes and a checksum."""


def gzip_names(stored: ObjectSource) -> Pieces:
    """Names, comments and what else stands in the heads of a gzip file, as `gzip` writes the name of what it packs.

    Any number of streams may follow each other, and each has a head.
    """
    for start, head in _matches(stored, _GZIP_HEAD):
        yield from as_bytes(stored, "head of a gzip file", start + len(head), _end_of_head(stored, start, head[3]))


def _end_of_head(stored: ObjectSource, start: int, flags: int) -> int:
    with stored.open() as file:
        file.seek(start + _GZIP_FIXED)
        size = 2 + int.from_bytes(file.read(2), "little") if flags & _EXTRA else 0
        file.seek(start + _GZIP_FIXED + size)
        texts, end = file.read(_MOST_NAMES), 0
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            end = texts.find(b"\0", end) + 1 or len(texts)
    return start + _GZIP_FIXED + size + end


def skippable_frames(stored: ObjectSource) -> Pieces:
    """Frames that whoever unpacks passes over."""
    for at, found in _matches(stored, _SKIPPABLE):
        start, size = at + len(found), int.from_bytes(found[4:], "little")
        # Among packed bytes the number may stand by chance, and says a size by chance.
        if 0 < size <= stored.size - start:
            yield from as_bytes(stored, "skippable frame", start, start + size)


def _matches(stored: ObjectSource, pattern: re.Pattern[bytes]) -> Iterator[tuple[int, bytes]]:
    """Where something stands that is no longer than `_LONGEST`, also across two chunks."""
    with stored.open() as file:
        at, rest, told = 0, b"", -1
        while chunk := file.read(CHUNK):
            data = rest + chunk
            for found in pattern.finditer(data):
                if (start := at - len(rest) + found.start()) > told:
                    told = start
                    yield start, found[0]
            at += len(chunk)
            rest = data[1 - _LONGEST :]


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
            name, extra = struct.unpack("<HH", exactly(file, 4, "an entry"))
            own = exactly(file, name + extra, "an entry")[name:]
            if own != entry.extra:  # zipfile reads that of the directory
                yield from bytes_of("head of an entry", own)
            at = entry.header_offset + 30 + len(own) + name + entry.compress_size
            if entry.compress_type == zipfile.ZIP_DEFLATED:
                yield from _behind_packed(stored, at - entry.compress_size, at)
            if entry.flag_bits & _STREAMED:
                file.seek(at)
                at += _descriptor(file.read(_DESCRIPTOR), entry)
    yield from _gap(stored, at, archive.start_dir)
    yield from as_bytes(stored, "bytes behind an archive", _end_of_zip(stored, len(archive.comment)))


def _behind_packed(stored: ObjectSource, start: int, end: int) -> Pieces:
    """Bytes of an entry that is packed by deflate behind the end of what is packed: zipfile passes over them."""
    decompressor, made, at = zlib.decompressobj(wbits=-15), 0, start
    with stored.open() as file:
        file.seek(start)
        while not decompressor.eof and made <= most_unpacked(stored.size):
            packed = decompressor.unconsumed_tail or file.read(min(CHUNK, end - at))
            at += 0 if decompressor.unconsumed_tail else len(packed)
            if not packed:
                return
            try:
                made += len(decompressor.decompress(packed, CHUNK))
            except zlib.error:  # whoever reads the entry says so
                return
    if decompressor.eof:
        yield from as_bytes(stored, "bytes behind an entry", at - len(decompressor.unused_data), end)


def _descriptor(found: bytes, entry: zipfile.ZipInfo) -> int:
    """How long it is: the checksum and both sizes, in four bytes or in eight, and maybe four letters before them."""
    for sizes in ("<IQQ", "<III"):
        with suppress(struct.error):
            said = struct.pack(sizes, entry.CRC, entry.compress_size, entry.file_size)
            for each in (b"PK\x07\x08" + said, said):
                if found.startswith(each):
                    return len(each)
    return 0


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
