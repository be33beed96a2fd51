"""Where a sweep can die: around every entry that it writes into the ledger, and at every step between two of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ebbtide.acts import evidence
from ebbtide.acts.engine import Engine
from ebbtide.acts.evidence import still_there
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.ledger import Ledger
from ebbtide.ledger.log import LedgerLog

Point = Callable[[str], None]


def watch(point: Point) -> None:
    """In a child: call `point` with the name of every boundary that the sweep passes, in order."""
    _entries(point)
    _steps(point)


def _entries(point: Point) -> None:
    append, sign = LedgerLog.append, Ledger.sign
    pending: list[str] = []

    def appending(self: LedgerLog, entries: Sequence[Entry]) -> range:
        kinds = [entry.KIND for entry in entries]
        for kind in kinds:
            point(f"{kind}: before it is written")
        indexes = append(self, entries)
        for kind in kinds:
            point(f"{kind}: written, not committed")
        pending.extend(kinds)
        return indexes

    def signing(self: Ledger) -> Any:
        kinds = list(dict.fromkeys(pending))
        pending.clear()
        for kind in kinds:
            point(f"{kind}: committed, not signed")
        note = sign(self)
        for kind in kinds:
            point(f"{kind}: signed")
        return note

    patched: Any = LedgerLog
    patched.append = appending
    patched = Ledger
    patched.sign = signing


_STEPS = {"commit": "commit", "read_references": "mark needed", "delete": "free"}
"""Steps of the engine, and what the boundaries around them are called."""


def _steps(point: Point) -> None:
    """Between an intent and its outcome: around each step, and after every batch of files."""
    from ebbtide.storage import remove

    patched: Any = Engine
    for step, name in _STEPS.items():
        setattr(patched, step, _around(getattr(Engine, step), name, point))
    unlink = remove._unlink

    one_at_a_time = threading.Lock()

    def unlinking(paths: Sequence[str], places: Collection[Any]) -> dict[str, str]:
        with one_at_a_time:
            failed = unlink(paths, places)
            point("a batch of files: gone")
        return failed

    patched = remove
    patched._unlink = unlinking
    patched = evidence
    patched.still_there = _around(still_there, "listing", point)


def _around(step: Callable[..., Any], name: str, point: Point) -> Callable[..., Any]:
    def around(*args: Any) -> Any:
        point(f"{name}: before")
        result = step(*args)
        point(f"{name}: after")
        return result

    return around
