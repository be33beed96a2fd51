"""Thrift's compact protocol, read without a schema: structs as numbers of fields with values, within bounds."""

from __future__ import annotations

import struct
from typing import Any

from ebbtide.verify.read.stored import UnknownContentError

_DEEPEST = 32
Fields = dict[int, Any]


class Compact:
    """Reads values from bytes, from a place on. What does not fit the bytes raises `UnknownContentError`."""

    def __init__(self, content: bytes, at: int = 0) -> None:
        self._content, self.at = content, at

    def struct(self, depth: int = 0) -> Fields:
        """A struct by the numbers of its fields; lists are lists, binaries are bytes."""
        if depth > _DEEPEST:
            raise UnknownContentError("its footer is nested too deep")
        fields: Fields = {}
        last = 0
        while (head := self._byte()) & 0x0F:
            last = last + (head >> 4) if head >> 4 else self._zigzag()
            fields[last] = self._value(head & 0x0F, depth, in_list=False)
        return fields

    def _value(self, kind: int, depth: int, *, in_list: bool) -> Any:
        if kind in (1, 2):
            return self._byte() == 1 if in_list else kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._zigzag()
        if kind == 7:
            return struct.unpack("<d", self._take(8))[0]
        if kind == 8:
            return self._take(self._varint())
        if kind in (9, 10):
            return self._list(depth)
        if kind == 11:
            return self._map(depth)
        if kind == 12:
            return self.struct(depth + 1)
        raise UnknownContentError("its footer has a field of no known type")

    def _list(self, depth: int) -> list[Any]:
        if depth > _DEEPEST:
            raise UnknownContentError("its footer is nested too deep")
        head = self._byte()
        count, kind = head >> 4, head & 0x0F
        if count == 15:
            count = self._varint()
        self._fits(count)
        return [self._value(kind, depth + 1, in_list=True) for _ in range(count)]

    def _map(self, depth: int) -> list[tuple[Any, Any]]:
        count = self._varint()
        self._fits(count)
        if not count or depth > _DEEPEST:
            return []
        kinds = self._byte()
        return [
            (self._value(kinds >> 4, depth + 1, in_list=True), self._value(kinds & 0x0F, depth + 1, in_list=True))
            for _ in range(count)
        ]

    def _fits(self, count: int) -> None:
        if count > len(self._content) - self.at:
            raise UnknownContentError("its footer counts more than it holds")

    def _byte(self) -> int:
        if self.at >= len(self._content):
            raise UnknownContentError("its footer ends too early")
        self.at += 1
        return self._content[self.at - 1]

    def _take(self, size: int) -> bytes:
        self._fits(size)
        self.at += size
        return self._content[self.at - size : self.at]

    def _varint(self) -> int:
        value = 0
        for n in range(10):
            byte = self._byte()
            value |= (byte & 0x7F) << 7 * n
            if not byte & 0x80:
                return value
        raise UnknownContentError("its footer has a number without an end")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
