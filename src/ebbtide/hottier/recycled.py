"""When a server lets go of its log: the rows that a transaction took out stand in it until then.

A file of the log goes at a checkpoint that began behind it, once no slot and no setting keeps it. It is taken for a
later part of the log, which is written over what was in it. Where the log is archived, copies of it are elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from psycopg import Connection

from ebbtide.hottier.statements import statement

_HEX_DIGITS = 8
_CHECKPOINTS = 2
ARCHIVED = "its server archives its log, and nobody says here how long: declare the archive in copies/*.yml"
GONE = "its server has let go of the log that held them"
KEPT = "its server keeps the log that holds them until a checkpoint behind every slot; asked again then"


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What a server says of its log. `oldest` is where its oldest file begins; None where the role may not know."""

    oldest: int | None
    archived: bool
    checkpoint: timedelta
    grant: str


@dataclass(frozen=True, slots=True)
class LogFate:
    """What becomes of a part of the log: gone, or kept until about a day; None where nobody says."""

    because: str
    until: date | None = None
    gone: bool = False


def log_facts(connection: Connection[tuple[Any, ...]]) -> LogFacts:
    """Ask the server."""
    row = connection.execute(statement("log_facts")).fetchone()
    assert row is not None
    may, archived, checkpoint, segment, grant = row
    oldest = None
    if may:
        name = connection.execute(
            "SELECT min(name) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'"
        ).fetchone()  # fmt: skip
        assert name is not None
        oldest = None if name[0] is None else _begins(name[0], segment)
    return LogFacts(oldest, archived, timedelta(seconds=checkpoint), grant)


def _begins(name: str, segment: int) -> int:
    """Where a file of the log begins: its name is a timeline, and a number in two parts."""
    high, low = (int(name[n : n + _HEX_DIGITS], 16) for n in (_HEX_DIGITS, 2 * _HEX_DIGITS))
    return (high << 32) + low * segment


def fate_of(facts: LogFacts, position: int | None, *, now: datetime) -> LogFate:
    """What becomes of the log before a position; of what is to be written yet, where there is none."""
    if facts.archived:
        return LogFate(ARCHIVED)
    if facts.oldest is None:
        return LogFate(f"nobody can tell when its server lets go of the log that holds them: {facts.grant}")
    if position is not None and facts.oldest >= position:
        return LogFate(GONE, gone=True)
    return LogFate(KEPT, until=(now + _CHECKPOINTS * facts.checkpoint).date())
