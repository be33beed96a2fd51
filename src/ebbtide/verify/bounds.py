"""Bounds that were cut: statistics keep the first characters of a value, and may raise the last one of an upper bound.

Such a bound may be of a person who is looked for, or of a neighbour who shares those characters. It is *explained*
where the file that it describes is there and holds another value that begins like it; otherwise it is found. A bound
that is shorter than where bounds are cut is a whole value, and found where it is one that is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ebbtide.verify.needles import Needle, binary_forms, text_forms
from ebbtide.verify.read.pieces import COLUMN_NAMES, Cells, Piece

_COUNTED = re.compile(r"(column|key field) ([0-9]{1,5})")
_RAISED_BY_APPENDING = "\x7f\U0010ffff\ufffd"
"""What Delta appends to a cut upper bound."""


@dataclass(frozen=True, slots=True, repr=False)
class Suspicion:
    """A bound that may be of this needle: `start` is what of its value such a bound has left."""

    needle: int
    where: str
    describes: str | None
    start: str | bytes


class CutBounds:
    """Whose bounds a cut one may be."""

    def __init__(self, needles: Sequence[Needle]) -> None:
        self._needles = needles
        self._starts: dict[tuple[int, bool, bool], dict[str | bytes, list[tuple[int, str | bytes]]]] = {}

    def suspicions(self, cells: Cells, values: pa.Array) -> Iterator[Suspicion]:
        """The bounds of these that are as long as one that was cut, and begin like a value that is looked for."""
        is_text = pt.is_string(values.type) or pt.is_large_string(values.type)
        if not is_text and not (pt.is_binary(values.type) or pt.is_large_binary(values.type)):
            return
        assert cells.cut is not None
        starts = self._known(cells.cut, is_text=is_text, raised=cells.raised)
        for row, bound in enumerate(values.to_pylist()):
            if bound is None:
                continue
            known = starts.get(bound, ())
            if not known and is_text:
                plain = bound.rstrip(_RAISED_BY_APPENDING) if cells.raised else bound
                known = starts.get(plain, starts.get(plain.casefold(), ()))
            for n, start in known or self._longer(bound, starts, cells.cut, is_text=is_text):
                yield Suspicion(n, cells.where, cells.described_by(row), start)

    def _longer(
        self,
        bound: str | bytes,
        starts: Mapping[str | bytes, Sequence[tuple[int, str | bytes]]],
        cut: int,
        *,
        is_text: bool,
    ) -> Iterator[tuple[int, str | bytes]]:
        """Whose values begin with a bound that is longer than bounds are cut at least: all of it counts."""
        for n, _ in starts.get(bound[:cut], ()) if len(bound) > cut else ():
            values = _texts(self._needles[n]) if is_text else _binaries(self._needles[n])
            if any(value[: len(bound)] == bound for value in values):
                yield n, bound

    def _known(self, cut: int, *, is_text: bool, raised: bool) -> dict[str | bytes, list[tuple[int, str | bytes]]]:
        key = (cut, is_text, raised)
        if key not in self._starts:
            made: dict[str | bytes, list[tuple[int, str | bytes]]] = {}
            for n, needle in enumerate(self._needles):
                for value in _texts(needle) if is_text else _binaries(needle):
                    if len(value) < cut:
                        continue
                    for bound in {value[:cut], *(_raised(value[:cut]) if raised else ())}:
                        made.setdefault(bound, []).append((n, value[:cut]))
            self._starts[key] = made
        return self._starts[key]


def _texts(needle: Needle) -> Iterator[str]:
    for form in text_forms(needle):
        text = form.content.decode()
        yield text
        if form.fold and text.casefold() != text:
            yield text.casefold()


def _binaries(needle: Needle) -> Iterator[bytes]:
    yield from {*binary_forms(needle), *(form.content for form in text_forms(needle))}


def _raised(start: str | bytes) -> Iterator[str | bytes]:
    """The start with its last character raised; where that one is the highest, the one before it, and so on."""
    for end in range(len(start), 0, -1):
        if isinstance(start, bytes):
            if start[end - 1] < 0xFF:
                yield start[: end - 1] + bytes([start[end - 1] + 1])
                return
        else:
            raised = ord(start[end - 1]) + 1
            raised = 0xE000 if raised == 0xD800 else raised
            if raised <= 0x10FFFF:
                yield start[: end - 1] + chr(raised)
                return


def explains(needle: Needle, suspicion: Suspicion, pieces: Iterator[Piece]) -> bool | None:
    """Whether the column that the bound is of holds another value that begins so; None where it was not read."""
    column: str | None = suspicion.where.partition(" of ")[2]  # "bound of column email", "partition of column email"
    own = set(_texts(needle)) if isinstance(suspicion.start, str) else set(_binaries(needle))
    was_read = False
    for piece in pieces:
        if isinstance(piece, Cells) and piece.where == COLUMN_NAMES:
            column = _named(column, piece.values.to_pylist())
        if not isinstance(piece, Cells) or piece.how != "row" or piece.where != column:
            continue
        values = piece.values
        if isinstance(suspicion.start, str) != bool(pt.is_string(values.type) or pt.is_large_string(values.type)):
            continue
        was_read = True
        alike = values.filter(pc.starts_with(values, suspicion.start, ignore_case=needle.match != "exact"))
        if any(_folded(each, needle) not in own and each not in own for each in pc.unique(alike).to_pylist()):
            return True
    return False if was_read else None


def _named(column: str | None, names: Sequence[str]) -> str | None:
    """Paimon counts columns where others name them: those of a row, and those of its key."""
    counted = _COUNTED.fullmatch(column or "")
    if not counted:
        return column
    there = list(dict.fromkeys(name.partition(".")[0] for name in names))
    if counted[1] == "key field":
        there = [name for name in there if name.startswith("_KEY_")]
    elif {"_SEQUENCE_NUMBER", "_VALUE_KIND"} <= set(there):
        there = there[there.index("_VALUE_KIND") + 1 :]
    return f"column {there[int(counted[2])]}" if int(counted[2]) < len(there) else None


def _folded(value: str | bytes, needle: Needle) -> str | bytes:
    return value.casefold() if isinstance(value, str) and needle.match != "exact" else value
