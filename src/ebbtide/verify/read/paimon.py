"""Paimon's manifests: rows in its binary layout, whose types stand in a schema file elsewhere.

Each field of such a row is given out as everything that its eight bytes can be: a number, the number of a decimal, a
text or bytes, in place or further back in the row (`BinaryRow`: a bit per field that is null, then a word per field).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from ebbtide.verify.read.avro import AvroHeader, Everything, fields_of
from ebbtide.verify.read.gather import Gathered, Unscaled

_CUT = 16
_SHORTEST = 6
_ROWS = {
    "_PARTITION": ("partition field", False, False),
    "_MIN_KEY": ("least key, field", False, False),
    "_MAX_KEY": ("greatest key, field", False, False),
    "_MIN_VALUES": ("bound of column", True, False),
    "_MAX_VALUES": ("bound of column", True, True),
}
"""Fields of manifests that hold a row: what its fields are, whether they may be cut, whether they are upper bounds."""
_VALUES = "_VALUE_STATS"
"""Statistics of all columns in their order, or of those that stand in a list beside them."""
_OTHERS = {"_KEY_STATS": "bound of key field", "_PARTITION_STATS": "bound of partition field"}
_WHOLE = ("_PARTITION_STATS",)
"""Statistics that are never cut."""
_MOST_FIELDS = 10_000


def is_paimon(head: AvroHeader) -> bool:
    names = set(fields_of(head.schema))
    return {"_PARTITION", "_FILE"} <= names or "_PARTITION_STATS" in names or {"_INDEX_TYPE", "_FILE_NAME"} <= names


class PaimonEntry:
    """Takes the entries of manifests, of their lists and of index manifests apart."""

    def __init__(self, head: AvroHeader) -> None:
        self._texts = Everything(head.schema, numbers=False)

    def __call__(self, into: Gathered, entry: Any) -> None:
        self._take(into, entry, self._file_of(entry))

    def _take(
        self, into: Gathered, entry: Mapping[str, Any], file: str | None, *, within: str = "", columns: Any = None
    ) -> None:
        for name, value in entry.items():
            if name in _ROWS and isinstance(value, bytes):
                self._row(into, name, value, file, within, columns)
            elif isinstance(value, Mapping):
                self._take(into, value, file, within=name, columns=entry.get("_VALUE_STATS_COLS"))
            else:
                self._texts(into, {name: value})

    @staticmethod
    def _file_of(entry: Mapping[str, Any]) -> str | None:
        inner = entry.get("_FILE")
        name = inner.get("_FILE_NAME") if isinstance(inner, Mapping) else entry.get("_FILE_NAME")
        return name if isinstance(name, str) else None

    @staticmethod
    def _row(into: Gathered, name: str, row: bytes, file: str | None, within: str, columns: Any) -> None:
        place, is_bound, upper = _ROWS[name]
        place = _OTHERS.get(within, place) if is_bound else place
        try:
            fields = list(fields_of_row(row))
        except (ValueError, struct.error):
            into.add(f"{place}, as bytes", row, "bound", describes=file)
            return
        for n, value in fields:
            # It keeps no bounds of binaries: what is no text is a number, and whole.
            short = is_bound and within not in _WHOLE and isinstance(value, str)
            cut = min(_CUT, max(_SHORTEST, len(value))) if short else None
            how = "path" if name == "_PARTITION" else "bound"
            named = columns[n] if within == _VALUES and isinstance(columns, list) and n < len(columns) else n
            into.add(f"{place} {named}", value, how, cut=cut, raised=upper and short, describes=file)  # type: ignore[arg-type]


def fields_of_row(content: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a serialized row, by number, each as every value that it can be."""
    count = int.from_bytes(content[:4], "big", signed=True)
    row = content[4:]
    fixed = (count + 63 + 8) // 64 * 8
    if not 0 <= count <= _MOST_FIELDS or fixed + 8 * count > len(row):
        raise ValueError("it is no row of so many fields")
    for n in range(count):
        if row[(n + 8) // 8] >> (n + 8) % 8 & 1:
            continue
        word = row[fixed + 8 * n : fixed + 8 * n + 8]
        for value in _values(word, row):
            yield n, value


def _values(word: bytes, row: bytes) -> Iterator[Any]:
    number, small = struct.unpack("<q", word)[0], struct.unpack("<i", word[:4])[0]
    yield Unscaled(number)
    yield number
    if small != number:
        yield small
    if word[7] & 0x80:
        if (size := word[7] & 0x7F) <= 7:
            yield from _text(word[:size])
        return
    size, offset = struct.unpack("<II", word)
    if offset > 0 and offset + size <= len(row):
        content = row[offset : offset + size]
        yield from _text(content)
        if 0 < size <= 16:
            yield Unscaled(int.from_bytes(content, "big", signed=True))
        yield from _nested(content)


def _nested(content: bytes) -> Iterator[Any]:
    """The values of an array or a row within the row cannot be told apart: its bytes are searched as they are."""
    if len(content) > 16 and b"\0" in content:
        yield content


def _text(content: bytes) -> Iterator[Any]:
    try:
        yield content.decode()
    except UnicodeDecodeError:
        yield content
