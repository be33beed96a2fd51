"""Chunks of a hot table on the axis of time, in one line that a narrow terminal has room for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ebbtide.app.results.tier import Chunk

WIDTH = 76
LETTERS = {"missing": "!", "active": "a", "tiered": "t", "dropped": "."}
"""What asks most of a person first: it is what a place says that several chunks share."""
LEGEND = ". dropped, t tiered, a active, ! missing"


def axis(chunks: Sequence[Chunk], width: int = WIDTH) -> str:
    """A letter a chunk, the oldest first; where there are more chunks than places, each place is for some."""
    places = min(len(chunks), width)
    shared = (chunks[n * len(chunks) // places : (n + 1) * len(chunks) // places] for n in range(places))
    return "".join(_letter({chunk.state for chunk in some}) for some in shared)


def ends(chunks: Sequence[Chunk], width: int = WIDTH) -> str:
    """When the axis begins and ends, below it; an open end is `…`."""
    begin, end = chunks[0].first, chunks[-1].last
    told = [f"{at:%Y-%m-%d %H:%M}" if at is not None else "…" for at in (begin, end)]
    return f"{told[0]}{told[1]:>{max(min(len(chunks), width) - len(told[0]), len(told[1]) + 1)}}"


def _letter(states: set[str]) -> str:
    return next((letter for state, letter in LETTERS.items() if state in states), "?")
