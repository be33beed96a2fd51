"""What the verbs of the hot tier answer. The keys of their JSON are the fields here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ebbtide.app.results.shown import Shown


@dataclass(frozen=True, slots=True, repr=False)
class TierChange(Shown):
    """What was set up or taken down, with the statements that a server saw, or would see."""

    table: str | None
    state: str
    statements: tuple[str, ...]
    because: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Chunk(Shown):
    """A chunk on the time axis. `pinned` is one that a person brought back."""

    name: str
    first: datetime | None
    last: datetime | None
    state: str
    waits_for: tuple[str, ...]
    rows: int | None = None
    tiered_at: datetime | None = None
    dropped_at: datetime | None = None
    pinned: bool = False

    def whole(self) -> dict[str, object]:
        """With the words of the JSON shape, of which Python keeps one for itself: `from`, `to`."""
        return {
            "name": self.name, "from": self.first, "to": self.last, "state": self.state, "waits_for": self.waits_for,
            "rows": self.rows, "tiered_at": self.tiered_at, "dropped_at": self.dropped_at, "pinned": self.pinned,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class HotTableStatus(Shown):
    """A hot table: its mirror, how far that is, and its chunks. `gate_open`: nothing but digests is left to compare."""

    table: str
    cold: str | None
    mirror: str
    because: str
    lag_bytes: int | None
    retained_bytes: int | None
    gate_open: bool
    pending: int
    lateness_seconds: int | None
    chunks: tuple[Chunk, ...]
    how: str = "stream"
    """`stream`, from the log, or `batch`, chunk by chunk."""


@dataclass(frozen=True, slots=True, repr=False)
class TierResult(Shown):
    """What a run did to each table: what was tiered and dropped, what is missing, and what failed."""

    table: str
    mirror: str
    tiered: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    would_drop: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    refused: bool = False


def exit_code(results: Sequence[TierResult]) -> int:
    """What is missing or failed; a chunk that waits is no failure."""
    if any(result.errors and not result.refused for result in results):
        return 4
    return 3 if any(result.refused for result in results) else 4 if any(result.missing for result in results) else 0
