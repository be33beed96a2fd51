"""Many patterns in one pass over a buffer: Vectorscan finds where each may end, and what it says is compared.

It hashes the last eight bytes of every pattern. Where many patterns end alike (`…@example.com`) it would stop at each
of them, a hundred times slower. So what it is given of a pattern ends with the bytes that tell it best from the others,
and the rest is compared here. Patterns that begin alike and are told from all others by that (one address, escaped in
a dozen ways) are one to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import hyperscan

_TELLING = 8
_MOST_HITS = 1 << 17
Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True, repr=False)
class Pattern:
    """Bytes to be found; with `fold` in either case of each letter."""

    content: bytes
    fold: bool = False


class Scanner:
    """All places where patterns stand in a buffer, overlapping ones too. One per thread: it holds scratch space."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._patterns = patterns
        self._folded = [_fold(each.content) if each.fold else each.content for each in patterns]
        self._longest = max((len(each.content) for each in patterns), default=0)
        self._ends = _telling_ends(self._folded)
        together: dict[bytes, list[int]] = {}
        for n, (pattern, end) in enumerate(zip(patterns, self._ends, strict=True)):
            together.setdefault(_expression(pattern, end), []).append(n)
        self._together = list(together.values())
        self._database: Any = self._compiled() if patterns else None

    def __getstate__(self) -> dict[str, Any]:
        """As it is handed to other threads and processes: compiled, which takes a second for a thousand people."""
        packed = None if self._database is None else hyperscan.dumpb(self._database)
        return {**self.__dict__, "_database": packed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._database is not None:
            self._database = self._unpacked(self._database)

    def _unpacked(self, packed: bytes) -> Any:
        try:
            database = hyperscan.loadb(packed, hyperscan.HS_MODE_BLOCK)
            database.scratch = hyperscan.Scratch(database)
        except hyperscan.HyperscanError:  # it was compiled for another kind of processor
            return self._compiled()
        return database

    def _compiled(self) -> Any:
        wanted = [_expression(self._patterns[first], self._ends[first]) for first, *_ in self._together]
        database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        database.compile(
            expressions=wanted,
            ids=list(range(len(wanted))),
            elements=len(wanted),
            flags=[hyperscan.HS_FLAG_DOTALL] * len(wanted),
        )
        return database

    def hits(self, data: Buffer) -> Iterator[tuple[int, int]]:
        """Which pattern stands where, some hundred thousand at a time whatever the buffer holds."""
        view, begin = memoryview(data), 0
        while self._database is not None and begin < len(view):
            said: list[tuple[int, int]] = []

            def take(*hit: Any, said: list[tuple[int, int]] = said) -> bool:
                said.append((hit[0], hit[2]))
                return len(said) >= _MOST_HITS

            try:
                self._database.scan(view[begin:], match_event_handler=take)
                again = len(view)
            except hyperscan.ScanTerminated:
                again = max(begin + 1, begin + said[-1][1] - self._longest)
            for which, end in said:
                for number in self._together[which]:
                    start = begin + end - self._ends[number]
                    # What ends behind the place where the next round begins is found again in that round.
                    if start < again and self._stands(view, number, start):
                        yield number, start
            begin = again

    def _stands(self, view: memoryview, number: int, start: int) -> bool:
        content = self._folded[number]
        if start < 0 or start + len(content) > len(view):
            return False
        found = bytes(view[start : start + len(content)])
        return (_fold(found) if self._patterns[number].fold else found) == content


def _telling_ends(contents: Sequence[bytes]) -> list[int]:
    """For each pattern, where the eight bytes end that fewest others have, and that differ most among themselves.

    What several patterns begin with counts once: in their order, what one has in common with the one before it.
    """
    ordered, shared = sorted(set(contents)), Counter[bytes]()
    alike = [0, *(_in_common(*pair) for pair in pairwise(ordered)), 0]
    for content, known in zip(ordered, alike, strict=False):
        shared.update({content[end - _TELLING : end] for end in _window_ends(content) if end > known})
    beside = map(max, pairwise(alike))
    best = {each: _best_end(each, shared, common) for each, common in zip(ordered, beside, strict=False)}
    return [best[content] for content in contents]


def _in_common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    both = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(both) if a != b), min(len(one), len(other)))


def _best_end(content: bytes, shared: Counter[bytes], common: int) -> int:
    """Of equal ones that before an `@` (domains are everybody's), then what others begin with, too, then the last
    (numbers count up at their end).
    """
    domain = content.find(b"@")
    best, chosen = None, len(content)
    for end in _window_ends(content):
        window = content[end - _TELLING : end]
        rank = (shared[window], end > domain + 1 > _TELLING // 2, end > common, -len(set(window)), -end)
        if best is None or rank < best:
            best, chosen = rank, end
    return chosen


def _window_ends(content: bytes) -> Iterator[int]:
    """Where a window may end: never inside of a character, whose cases may differ in any of its bytes."""
    for end in range(min(_TELLING, len(content)), len(content) + 1):
        if end == len(content) or content[end] & 0xC0 != 0x80:
            yield end


def _expression(pattern: Pattern, end: int) -> bytes:
    """The pattern up to there. It is spelled byte by byte: nothing in it has a meaning of its own, and 0 is no end."""
    if not pattern.fold:
        return _spelled(pattern.content[:end])
    return b"".join(map(_either, pattern.content[:end].decode("utf-8", "surrogateescape")))


@cache
def _either(letter: str) -> bytes:
    cases = sorted({_encoded(letter), *map(_encoded, _cases(letter))})
    return _spelled(cases[0]) if len(cases) == 1 else b"(?:" + b"|".join(map(_spelled, cases)) + b")"


def _cases(letter: str) -> Iterator[str]:
    """Both cases of a letter, where they are one letter of as many bytes: others are told apart."""
    size = len(_encoded(letter))
    return (each for each in (letter.lower(), letter.upper()) if len(each) == 1 and len(_encoded(each)) == size)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _spelled(content: bytes) -> bytes:
    return b"".join(b"\\x%02x" % byte for byte in content)


def _fold(content: bytes) -> bytes:
    if content.isascii():
        return content.lower()
    text = content.decode("utf-8", "surrogateescape")
    return _encoded("".join(next(_cases(letter), letter) for letter in text))
