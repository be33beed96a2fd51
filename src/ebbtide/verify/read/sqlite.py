"""SQLite databases and their write-ahead logs, page by page: live, free, or left over ("Database File Format").

No tree is followed, so that pages count which no table has any more. Of each page its records are decoded. What of it
belongs to no record may hold what was a record (even with `secure_delete`, where SQLite moved records to other pages):
it comes as one binary, and as every number that a record could have had there. Numbers below 32,768 are left out of
that: they take two bytes and would be found in any page.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from ebbtide.verify.read.gather import Gathered
from ebbtide.verify.read.pieces import CannotTell, Cells, Pieces, Unsearched
from ebbtide.verify.read.stored import HELD, ObjectSource, UnknownContentError, exactly

MAGIC = b"SQLite format 3\0"
LOGS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_LEAF, _INDEX_LEAF, _INDEX, _INNER = 0x0D, 0x0A, 0x02, 0x05
_SIZES = tuple(1 << n for n in range(9, 17))
_CODES = {1: "utf-8", 2: "utf-16-le", 3: "utf-16-be"}
_WIDTHS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8}
_FRAGMENT = 3
_LEFT = "left over in a database page"
_LEFT_WIDTHS = (3, 4, 6, 8)
Follow = Callable[[int, int], bytes]
"""What stands in a chain of overflow pages, from the first of them on."""


@dataclass(slots=True)
class _Database:
    """What the head says, and the overflow pages that were seen to be some record's."""

    file: BinaryIO
    page: int
    reserved: int
    encoding: str
    followed: set[int] = field(default_factory=set)

    @property
    def usable(self) -> int:
        return self.page - self.reserved

    def overflow(self, first: int, size: int) -> bytes:
        content, number = bytearray(), first
        while number and len(content) < size:
            if number in self.followed:
                raise UnknownContentError("its overflow pages go in a circle")
            self.followed.add(number)
            self.file.seek((number - 1) * self.page)
            page = exactly(self.file, self.page, "a page")
            number = int.from_bytes(page[:4], "big")
            content += page[4 : self.usable]
        return bytes(content[:size])


def read_sqlite(stored: ObjectSource) -> Pieces:
    with stored.open() as file:
        head = exactly(file, 100, "its head")
        page = int.from_bytes(head[16:18], "big")
        page = 65536 if page == 1 else page
        if page not in _SIZES or stored.size % page or head[20] > page - 480:
            raise UnknownContentError("it has no whole pages")
        base = _Database(file, page, head[20], _CODES.get(int.from_bytes(head[56:60], "big"), "utf-8"))
        gathered, unknown = Gathered(), []
        free = dict(_free_pages(base, int.from_bytes(head[32:36], "big"), stored.size // page))
        for number in range(1, stored.size // page + 1):
            file.seek((number - 1) * page)
            content = exactly(file, page, "a page")
            known = free.get(number)
            if known is None and content[100 if number == 1 else 0] not in (_LEAF, _INDEX_LEAF, _INDEX, _INNER):
                unknown.append(number)
                continue
            yield from _page(base, content, number, gathered, base.overflow, known or 0)
            if gathered.full:
                yield from gathered.take()
        yield from gathered.take()
        pointers = int.from_bytes(head[52:56], "big") != 0
        for number in unknown:
            if number in base.followed or (pointers and _is_map(number, base.usable)):
                continue
            file.seek((number - 1) * page)
            yield from _left(exactly(file, page, "a page"), [])


def read_log(stored: ObjectSource) -> Pieces:
    """A write-ahead log: frames with a page each, valid or from before. Chains of overflow pages are not followed."""
    with stored.open() as file:
        head = exactly(file, 32, "its head")
        page = int.from_bytes(head[8:12], "big")
        page = 65536 if page == 1 else page
        if page not in _SIZES:
            raise UnknownContentError("it has no whole pages")
        base, gathered, overflows = _Database(file, page, 0, "utf-8"), Gathered(), False

        def passed_over(_: int, __: int) -> bytes:
            nonlocal overflows
            overflows = True
            return b""

        while stored.size - file.tell() >= 24 + page:
            number = int.from_bytes(exactly(file, 24, "a frame")[:4], "big")
            content = exactly(file, page, "a frame")
            if content[100 if number == 1 else 0] in (_LEAF, _INDEX_LEAF, _INDEX, _INNER):
                yield from _page(base, content, number, gathered, passed_over, 0)
            else:
                yield from _left(content, [])
            if gathered.full:
                yield from gathered.take()
        yield from gathered.take()
        yield from _left(file.read(page + 24), [])
        if overflows:
            yield CannotTell(Unsearched.GOES_ON)


def _free_pages(base: _Database, trunk: int, pages: int) -> Iterator[tuple[int, int]]:
    """The pages of the free list; with a trunk so many of its bytes that are numbers of others."""
    seen: set[int] = set()
    while trunk and trunk <= pages and trunk not in seen:
        seen.add(trunk)
        base.file.seek((trunk - 1) * base.page)
        content = exactly(base.file, base.page, "a page")
        count = min(int.from_bytes(content[4:8], "big"), base.usable // 4 - 2)
        yield trunk, 8 + 4 * count
        yield from ((number, 0) for number in struct.unpack(f">{count}I", content[8 : 8 + 4 * count]))
        trunk = int.from_bytes(content[:4], "big")


def _is_map(number: int, usable: int) -> bool:
    """Whether a page of a database that shrinks holds numbers of other pages."""
    return number >= 2 and (number - 2) % (usable // 5 + 1) == 0


def _page(base: _Database, content: bytes, number: int, into: Gathered, follow: Follow, known: int) -> Pieces:
    """Records of a page, and what of it is none. A page that does not hold together comes as bytes."""
    used = [(0, known)]
    offset = 100 if number == 1 else 0
    if not known and content[offset] in (_LEAF, _INDEX_LEAF, _INDEX, _INNER):
        try:
            used = list(_cells(base, content, offset, into, follow))
        except (ValueError, struct.error, LookupError):
            used = []
    yield from _left(content, used)


def _left(content: bytes, used: list[tuple[int, int]]) -> Iterator[Cells]:
    """The bytes of a page that belong to nothing, but for the few that are too small to be given away again."""
    at = 0
    for start, end in [*sorted(used), (len(content), len(content))]:
        if start - at > _FRAGMENT and (left := content[at:start]).strip(b"\0"):
            yield Cells(_LEFT, "bytes", pa.array([left], pa.large_binary()))
            for width in _LEFT_WIDTHS:
                if len(left) >= width:
                    yield Cells(_LEFT, "bytes", pa.array(_numbers(left, width)))
        at = max(at, end)


def _numbers(content: bytes, width: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The number of so many bytes at each place, the highest byte first."""
    bytes_ = np.frombuffer(content, np.uint8).astype(np.int64)
    places = len(content) - width + 1
    numbers = np.frombuffer(content, np.int8)[:places].astype(np.int64)
    for n in range(1, width):
        numbers = numbers * 256 + bytes_[n : n + places]
    return numbers


def _cells(base: _Database, page: bytes, offset: int, into: Gathered, follow: Follow) -> Iterator[tuple[int, int]]:
    """Decodes the records of a page, and says which of its bytes they are."""
    kind, free, count = struct.unpack(">BHH", page[offset : offset + 5])
    head = 12 if kind in (_INDEX, _INNER) else 8
    yield 0, offset + head + 2 * count
    yield base.usable, base.page
    while free:
        following, _ = struct.unpack(">HH", page[free : free + 4])
        yield free, free + 4
        if following and following <= free:
            raise UnknownContentError("its free blocks go in a circle")
        free = following
    for n in range(count):
        at = start = int.from_bytes(page[offset + head + 2 * n : offset + head + 2 * n + 2], "big")
        at += 4 if kind in (_INDEX, _INNER) else 0
        size = 0
        if kind != _INNER:
            size, at = _varint(page, at)
        if kind in (_LEAF, _INNER):
            row, at = _varint(page, at)
            into.add("row id of a database", row)
        if kind != _INNER:
            local = _local(base.usable, kind, size)
            payload = page[at : at + local]
            at += local
            if local < size:
                if size > HELD:
                    raise UnknownContentError("a record of it is too large")
                payload += follow(int.from_bytes(page[at : at + 4], "big"), size - local)
                at += 4
            _record(payload, base.encoding, into)
        if at > base.page:
            raise UnknownContentError("a record of it lies outside of its page")
        yield start, max(at, start + 4)


def _local(usable: int, kind: int, size: int) -> int:
    """How much of a record stands on its page, the rest being in overflow pages."""
    most = usable - 35 if kind == _LEAF else (usable - 12) * 64 // 255 - 23
    if size <= most:
        return size
    least = (usable - 12) * 32 // 255 - 23
    fits = least + (size - least) % (usable - 4)
    return fits if fits <= most else least


def _record(payload: bytes, encoding: str, into: Gathered) -> None:
    end, at = _varint(payload, 0)
    value = end
    while at < end:
        kind, at = _varint(payload, at)
        width = _WIDTHS.get(kind, 0) if kind < 12 else (kind - 12) // 2
        into.add("cell of a database", _value(kind, payload[value : value + width], encoding))
        value += width


def _value(kind: int, content: bytes, encoding: str) -> Any:
    if kind in (8, 9):
        return kind - 8
    if kind == 7 and len(content) == 8:
        return struct.unpack(">d", content)[0]
    if kind in _WIDTHS and len(content) == _WIDTHS[kind]:
        return int.from_bytes(content, "big", signed=True)
    if kind >= 13 and kind % 2:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            return content
        return content if "\0" in text else text  # a log does not say that it is of UTF-16
    return content if kind >= 12 else None


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for n in range(9):
        byte = content[at + n]
        if n == 8:
            value = value << 8 | byte
            return (value - (1 << 64) if value >> 63 else value), at + 9
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            return value, at + n + 1
    raise UnknownContentError("it has a number without an end")
