"""Many people in one pass: what of their values stands in the pieces of an object (`read/pieces.py`).

In a text cell a value counts as a whole and inside of other text, where what stands beside it makes no other value of
it (`neighbours.py`). Inside of other text a value of fewer than six characters may stand by chance: nobody can tell. In
binary cells and in bytes of no known structure its byte forms count. Numbers, dates, fixed bytes are compared whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ebbtide.verify.bounds import CutBounds, Suspicion
from ebbtide.verify.fixed import FixedSet, fixed_set
from ebbtide.verify.needles import (
    LEAST_BYTES,
    Form,
    Needle,
    binary_forms,
    digits_of,
    is_short,
    number_of,
    other_byte_forms,
    text_forms,
)
from ebbtide.verify.neighbours import AROUND, Verdict, is_word, judge
from ebbtide.verify.read.broken import unbroken
from ebbtide.verify.read.packed_cells import maybe_packed, unpacked_cells
from ebbtide.verify.read.pieces import CannotTell, Cells, Piece, Raw, Unsearched
from ebbtide.verify.read.positions import CHECKSUMS
from ebbtide.verify.scanner import Pattern, Scanner

_LEAST_INSIDE = 4
"""A value of fewer characters is not looked for inside of other text: it stands in all of it."""
_MOST_TEXT = 1 << 20
CHANCE = "a value as short as this may stand inside of other text by chance"
_COUNTED = ("file info", "index or bloom filter of an HFile", "trailer of an HFile", CHECKSUMS)
"""Bytes whose structure is known: places, counts and times, hashes, and keys that stand in data blocks once more."""
BESIDE = "a value beside what may make another one of it, or may not"
UNKNOWN_BYTES = "bytes of no known structure, in which a value as short as this means nothing"
BESIDE_IN_BYTES = "in bytes of no known structure, beside what would make another value of it in a text"
PACKED = "binary values that are packed, and not unpacked here"

_ANY = re.compile(rb"[^\x00]")
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


@dataclass(slots=True)
class ObjectFindings:
    """What one object holds, needles by their numbers. `untold` has None for all of them; `unknown_bytes` says that
    there were bytes of no known structure, from which no short value can be told.
    """

    found: set[tuple[int, str, str]] = field(default_factory=set)
    """Needle, how it stands there, and where."""
    untold: set[tuple[int | None, str]] = field(default_factory=set)
    suspicions: set[Suspicion] = field(default_factory=set)
    unknown_bytes: bool = False


class _Known:
    """The forms of all needles that one scanner looks for. It is made when it is first needed."""

    def __init__(self, forms: Sequence[tuple[int, Form]]) -> None:
        self.forms = forms

    @cached_property
    def scanner(self) -> Scanner:
        return Scanner([Pattern(form.content, form.fold) for _, form in self.forms])


class Matcher:
    """Looks for these needles. Not for several threads at once (`Scanner`): each has a copy of its own, by pickle."""

    def __init__(self, needles: Sequence[Needle]) -> None:
        self.needles = tuple(needles)
        text, raw = list[tuple[int, Form]](), list[tuple[int, Form]]()
        self._binary: dict[bytes, list[int]] = {}
        for n, needle in enumerate(needles):
            forms = list(dict.fromkeys(text_forms(needle)))
            text += [(n, form) for form in forms]
            raw += [(n, form) for form in dict.fromkeys((*forms, *other_byte_forms(needle)))]
            for each in (*binary_forms(needle), *(form.content for form in forms)):
                self._binary.setdefault(each, []).append(n)
        self._text = _Known([each for each in text if len(each[1].content) >= _LEAST_INSIDE])
        self._tiny = [(n, form) for n, form in text if len(form.content) < _LEAST_INSIDE]
        self._raw = _Known([each for each in raw if not is_short(each[1].content)])
        self.short = frozenset(n for n, form in raw if is_short(form.content))
        """The needles that cannot be told from bytes of no known structure."""
        self._longest = max((len(form.content) for _, form in self._raw.forms), default=0)
        self._fixed: dict[tuple[pa.DataType, bool], FixedSet | None] = {}
        self._cut = CutBounds(needles)

    def compiled(self) -> Matcher:
        """Ready to be handed over: what every object needs is compiled, what few need is where it is needed."""
        _ = self._text.scanner
        return self

    def search(self, pieces: Iterator[Piece]) -> ObjectFindings:
        """All that the pieces of one object hold."""
        findings, ends = ObjectFindings(), _Ends(self._longest)
        for piece in pieces:
            if isinstance(piece, CannotTell):
                findings.untold.add((None, piece.because))
            elif isinstance(piece, Raw):
                findings.unknown_bytes |= _ANY.search(piece.data) is not None
                for data, begin, until in ends.with_last(piece):
                    self._search_bytes(data, begin, until, piece.where, findings)
            else:
                self._search_cells(piece, findings)
        for where, data, begin in ends.left():
            self._search_bytes(data, begin, len(data), where, findings)
        return findings

    def holds(self, text: str) -> bool:
        """Whether a text, such as a path, may hold a value of anybody: then it is not to be shown."""
        findings = ObjectFindings()
        values = pa.array([text.encode("utf-8", "replace").decode()])  # a name on disk need not be UTF-8
        self._search_text(Cells("", "path", values), values, findings)
        return bool(findings.found) or any(
            n is not None for n, because in findings.untold if because is not Unsearched.TOO_SHORT
        )

    def _search_cells(self, cells: Cells, findings: ObjectFindings) -> None:
        values = _plain(cells.values)
        if cells.cut is not None:
            findings.suspicions.update(self._cut.suspicions(cells, values))
        if pt.is_string(values.type) or pt.is_large_string(values.type):
            self._search_text(cells, values, findings)
        elif pt.is_binary(values.type) or pt.is_large_binary(values.type):
            self._search_binary(cells, values, findings)
        else:
            # What is left over in a page is tried as every number: digits of a text stand there by chance.
            key = (values.type, cells.how == "bytes")
            if key not in self._fixed:
                self._fixed[key] = fixed_set(self.needles, values.type, number_of if key[1] else digits_of)
            known = self._fixed[key]
            if known is not None:
                findings.found.update((n, cells.how, cells.where) for n in known.found(values))
            if pt.is_fixed_size_binary(values.type):
                whole = values.cast(pa.binary(values.type.byte_width)).cast(pa.binary())
                self._scan(self._raw, whole, lambda: _PieceHits(cells, findings, self.needles, is_text=False))

    def _search_text(self, cells: Cells, values: pa.Array, findings: ObjectFindings) -> None:
        self._scan(self._text, values, lambda: _PieceHits(cells, findings, self.needles, is_text=True))
        if not self._tiny or not len(values):
            return
        lowered = pc.utf8_lower(values) if any(form.fold for _, form in self._tiny) else values
        for n, form in self._tiny:
            text = form.content.decode()
            among = lowered if form.fold else values
            if pc.any(pc.equal(among, text.lower() if form.fold else text)).as_py():
                if cells.how == "path":
                    findings.untold.add((n, CHANCE))
                else:
                    findings.found.add((n, cells.how, cells.where))
            elif pc.any(pc.greater(pc.binary_length(values), len(form.content))).as_py():
                findings.untold.add((n, Unsearched.TOO_SHORT))

    def _search_binary(
        self, cells: Cells, values: pa.Array, findings: ObjectFindings, *, is_unpacked: bool = False
    ) -> None:
        if is_unpacked and cells.how == "row" and maybe_packed(values):
            findings.untold.add((None, PACKED))
        if _is_text(values):
            self._search_text(cells, values.cast(pa.large_string()), findings)
            return
        if cells.how == "row" and not is_unpacked:
            content, is_all = unpacked_cells(values)
            if not is_all:
                findings.untold.add((None, PACKED))
            if len(content):
                self._search_binary(cells, content, findings, is_unpacked=True)
        wanted = pa.array(list(self._binary), values.type)
        for each in pc.unique(values.filter(pc.is_in(values, wanted))).to_pylist():
            findings.found.update((n, cells.how, cells.where) for n in self._binary.get(each, ()))
        self._scan(self._raw, values, lambda: _PieceHits(cells, findings, self.needles, is_text=False))
        # A bound is one value, and was compared as a whole.
        findings.unknown_bytes |= cells.how != "bound" and cells.where not in _COUNTED

    def _search_bytes(self, data: bytes, begin: int, until: int, where: str, findings: ObjectFindings) -> None:
        """What ends in this range: what ends before it was judged, what ends behind it is, once it is known whole."""
        seen = _PieceHits(Cells(where, "bytes", pa.nulls(0)), findings, self.needles, is_text=False)
        for number, start in self._raw.scanner.hits(data):
            n, form = self._raw.forms[number]
            if begin < start + len(form.content) <= until:
                seen.hit(n, form, memoryview(data), start, (0, len(data)), is_cell=False)
        self._search_broken(self._raw, data, lambda: seen, None)

    def _scan(self, known: _Known, values: pa.Array, seen: Callable[[], _PieceHits]) -> None:
        """Look through the buffer that all values of the array stand in, one after the other."""
        offsets, data = _buffers(values)
        if not len(data):
            return
        look: _PieceHits | None = None
        for number, start in known.scanner.hits(data):
            look = look or seen()
            n, form = known.forms[number]
            if look.is_done(n):
                continue
            cell = int(np.searchsorted(offsets, start, side="right")) - 1
            end = int(offsets[cell + 1])
            # Across the border of two cells nothing stands.
            if start + len(form.content) <= end and values[cell].is_valid:
                look.hit(n, form, data, start, (int(offsets[cell]), end))
        self._search_broken(known, data, seen, offsets)

    @staticmethod
    def _search_broken(
        known: _Known, data: bytes | memoryview, seen: Callable[[], _PieceHits], borders: npt.ArrayLike | None
    ) -> None:
        """What stands across the lines of base64, hex or a mail: in pieces it is found nowhere else."""
        for run in unbroken(data, borders):
            for number, start in known.scanner.hits(run):
                seen().hit(*known.forms[number], memoryview(run), start, (0, len(run)), is_cell=False)


@dataclass(slots=True)
class _PieceHits:
    """What hits in one piece come to."""

    cells: Cells
    findings: ObjectFindings
    needles: Sequence[Needle]
    is_text: bool

    @property
    def is_row(self) -> bool:
        """Whether whole cells mean what they hold: among the parts of a path a short one is a bucket or a day."""
        return self.cells.how != "path"

    def is_done(self, n: int) -> bool:
        return (n, self.cells.how, self.cells.where) in self.findings.found

    def hit(
        self, n: int, form: Form, data: memoryview, start: int, cell: tuple[int, int], *, is_cell: bool = True
    ) -> None:
        end = start + len(form.content)
        whole = is_cell and (start, end) == cell
        if whole and self.cells.cut is not None and _length(data[start:end], self.is_text) >= self.cells.cut:
            return  # as long as a prefix is cut: `CutBounds` tells whose it may be
        before = bytes(data[max(cell[0], start - AROUND) : start])
        after = bytes(data[end : min(cell[1], end + AROUND)])
        verdict = Verdict.IT if whole else judge(form.rule, before, form.content, after, is_path=not self.is_row)
        because = BESIDE
        if not self.is_text and verdict is not Verdict.IT:
            verdict, because = Verdict.UNKNOWN, BESIDE_IN_BYTES
        elif len(form.content) < LEAST_BYTES and verdict is Verdict.IT and not (whole and self.is_row):
            verdict = Verdict.UNKNOWN if whole or is_word(before, after) else Verdict.ANOTHER
            because = CHANCE
        if verdict is Verdict.IT:
            self.findings.found.add((n, self.cells.how, self.cells.where))
        elif verdict is Verdict.UNKNOWN:
            self.findings.untold.add((n, because))


class _Ends:
    """Chunks of raw bytes with the end of the chunk before: a value may lie across both, and so may what tells it."""

    def __init__(self, longest: int) -> None:
        self._keep = longest + 2 * AROUND
        self._last: dict[str, bytes] = {}
        self._ended: list[tuple[str, bytes]] = []

    def with_last(self, piece: Raw) -> Iterator[tuple[bytes, int, int]]:
        """The bytes to be searched, and between which places a value must end to be told now."""
        last, data = self._last.pop(piece.where, b""), piece.data
        if last and not piece.offset:
            self._ended.append((piece.where, last))
            last = b""
        begin = 0
        if last and len(data) > self._keep:  # the border of both by itself: all of it together would be a copy
            border, begin = last + data[: self._keep], self._keep - AROUND
            yield border, _told(last), _told(border)
        elif last:
            data, begin = last + data, _told(last)
        self._last[piece.where] = bytes(data[-self._keep :])
        yield data, begin, _told(data)

    def left(self) -> Iterator[tuple[str, bytes, int]]:
        """The ends of all that came, and behind which of their bytes a value was not told yet."""
        for where, last in (*self._ended, *self._last.items()):
            yield where, last, _told(last)


def _told(data: bytes) -> int:
    """Up to where it is known what stands beside a value."""
    return max(0, len(data) - AROUND)


def _plain(values: pa.Array) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pt.is_string_view(values.type):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if pt.is_binary_view(values.type) else values


def _buffers(values: pa.Array) -> tuple[np.ndarray, memoryview]:
    """Where each value of a text or binary array begins and ends in its bytes."""
    _, offsets, data = values.buffers()
    large = pt.is_large_string(values.type) or pt.is_large_binary(values.type)
    if data is None or not len(values):
        return np.zeros(1, np.int64), memoryview(b"")
    all_ = np.frombuffer(offsets, np.int64 if large else np.int32)[values.offset : values.offset + len(values) + 1]
    return all_ - all_[0], memoryview(data)[int(all_[0]) : int(all_[-1])]


def _is_text(values: pa.Array) -> bool:
    """Whether binary values are texts, as older writers left them: all of them, and no control characters in them."""
    _, data = _buffers(values)
    if _NOT_TEXT.search(data[:_MOST_TEXT]) or _NOT_TEXT.search(data[_MOST_TEXT:]):
        return False
    try:
        values.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _length(value: memoryview, is_text: bool) -> int:
    return len(bytes(value).decode(errors="replace")) if is_text else len(value)
