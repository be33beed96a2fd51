"""What a Parquet file's footer says, read by itself: where columns lie, and which bounds stand beside them.

pyarrow reads the rows. It shows neither page indexes nor what of a chunk is dictionary-encoded, so that the footer is
read here by its own structure (parquet-format, `parquet.thrift`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ebbtide.verify.read.stored import HELD, ObjectSource, UnknownContentError, exactly
from ebbtide.verify.read.thrift import Compact, Fields

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
_DICTIONARY_PAGE = 2
_DICTIONARY_ENCODINGS = (2, 8)
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """One leaf column. `element` is the schema's own entry, with the types' parameters."""

    path: tuple[str, ...]
    physical: int
    width: int
    field_id: int | None
    element: Fields

    @property
    def name(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """One column of one row group: `meta` is its `ColumnMetaData`, `outer` its `ColumnChunk`."""

    meta: Fields
    outer: Fields

    @property
    def start(self) -> int:
        # Where a chunk has no rows, pyarrow says that its data begin at 0.
        return int(min((at for at in (self.meta.get(9, 0), self.meta.get(11) or 0) if at > 0), default=0))

    @property
    def packed(self) -> int:
        return int(self.meta.get(7, 0))

    @property
    def unpacked(self) -> int:
        """What is decoded of it at the least: its pages, and a value takes room that its encoding may not take."""
        return max(int(self.meta.get(6, 0)), 8 * int(self.meta.get(5, 0)))

    @property
    def decoded(self) -> int | None:
        """What its texts or bytes take in all, each as often as rows have it, where the writer says so."""
        size = (self.meta.get(16) or {}).get(1)
        return size if isinstance(size, int) and size >= 0 else None

    @property
    def has_dictionary(self) -> bool:
        return (self.meta.get(11) or 0) > 0 or any(each in _DICTIONARY_ENCODINGS for each in self.meta.get(2, ()))

    @property
    def all_dictionary(self) -> bool:
        """Whether every value of it stands in its dictionary, by what the writer says of its pages."""
        pages = [page for page in self.meta.get(13, ()) if page.get(1) != _DICTIONARY_PAGE]
        return bool(pages) and all(page.get(2) in _DICTIONARY_ENCODINGS for page in pages)


@dataclass(frozen=True, slots=True)
class Footer:
    """`groups` are the row groups, each with a chunk per leaf; the footer lies between `start` and `end` in the file.
    `facts` are the key-values of the file and of its chunks.
    """

    leaves: tuple[LeafColumn, ...]
    groups: tuple[tuple[int, tuple[ColumnChunk, ...]], ...]
    facts: tuple[tuple[bytes, bytes], ...]
    encrypted: bool
    writer: bytes
    start: int
    end: int


def read_footer(stored: ObjectSource) -> Footer:
    with stored.open() as file:
        file.seek(max(0, stored.size - 8))
        tail = exactly(file, 8, "its footer")
        if tail[4:] == b"PARE":
            raise UnknownContentError("it is encrypted")
        size = int.from_bytes(tail[:4], "little")
        if tail[4:] != b"PAR1" or size + 12 > stored.size or size > HELD:
            raise UnknownContentError("it has no Parquet footer")
        file.seek(stored.size - 8 - size)
        content = Compact(exactly(file, size, "its footer"))
        fields = content.struct()
    try:
        return _footer(fields, stored.size - 8 - size, content.at)
    except (AttributeError, TypeError, LookupError, ValueError) as error:
        raise UnknownContentError(f"its footer is damaged ({type(error).__name__})") from error


def _footer(fields: Fields, start: int, size: int) -> Footer:
    leaves = _leaves(fields[2])
    groups = []
    for group in fields.get(4, []):
        chunks = tuple(ColumnChunk(chunk.get(3) or {}, chunk) for chunk in group[1])
        if len(chunks) != len(leaves):
            raise UnknownContentError("a row group has not all of the columns")
        groups.append((int(group[3]), chunks))
    said = [*fields.get(5, []), *(fact for _, chunks in groups for chunk in chunks for fact in chunk.meta.get(8, []))]
    facts = tuple(dict.fromkeys((bytes(fact[1]), bytes(fact.get(2, b""))) for fact in said))
    hidden = any(chunk.outer.get(8) or chunk.outer.get(9) for _, chunks in groups for chunk in chunks)
    encrypted = bool(fields.get(8)) or hidden
    return Footer(leaves, tuple(groups), facts, encrypted, bytes(fields.get(6, b"")), start, start + size)


def _leaves(elements: Sequence[dict[int, Any]]) -> tuple[LeafColumn, ...]:
    """The leaves of the schema, which lists its tree from the root, every node before its children."""
    found: list[LeafColumn] = []
    open_: list[tuple[str, int]] = [("", elements[0].get(5, 0))]
    for element in elements[1:]:
        while open_ and open_[-1][1] == 0:
            open_.pop()
        if not open_ or len(open_) > _DEEPEST:
            raise UnknownContentError("its schema is no tree, or a very deep one")
        name, left = open_[-1]
        open_[-1] = (name, left - 1)
        own = element[4].decode("utf-8", "replace")
        if children := element.get(5):
            open_.append((own, children))
        else:
            path = (*(each for each, _ in open_[1:]), own)
            found.append(LeafColumn(path, element.get(1, -1), element.get(2, 0), element.get(9), element))
    return tuple(found)
