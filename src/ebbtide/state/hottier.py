"""Hot tables and their chunks in the state: frozen values, and what reads and writes them in a transaction of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from ebbtide.state.tables import hot_chunks, hot_tables


class MirrorState(StrEnum):
    """How a mirror is. Only `STREAMING` opens the gate."""

    OFF = "OFF"
    STARTING = "STARTING"
    STREAMING = "STREAMING"
    DEGRADED = "DEGRADED"
    STOPPED = "STOPPED"


class ChunkState(StrEnum):
    """Where a chunk is (spec §6); `missing` is one that somebody else took away."""

    ACTIVE = "active"
    TIERED = "tiered"
    DROPPED = "dropped"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class HotRecord:
    """A table that was added. Positions are bytes of the log of the server `system`, on its `timeline`.

    `position` is the cold table's; `passed` is how far the log was read beyond it without a change of this table.
    """

    id: str
    cold: str | None
    system: str
    timeline: int
    slot: str | None
    publication: str | None
    state: MirrorState
    because: str
    added_at: datetime
    position: int | None = None
    passed: int | None = None
    lag_bytes: int | None = None
    retained_bytes: int | None = None
    confirm: int | None = None
    """The end of the transaction that a person has to confirm before the mirror goes on."""
    confirmed: int | None = None
    """What a person confirmed: up to there, a TRUNCATE or a large DELETE is replayed."""
    lateness: int | None = None
    """The largest age of a row when it was written, in seconds, as the mirror saw it."""

    @property
    def reached(self) -> int | None:
        """Everything before this position of the log is in the cold table."""
        known = [at for at in (self.position, self.passed) if at is not None]
        return max(known) if self.position is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkRecord:
    """One chunk. `sealed` is the marker that it was sealed by, `changed` where the mirror last saw a change of it.

    What it was proven by, `rows` and `digest` at `cold_version`, is bound to that seal.
    """

    hot_table: str
    name: str
    oid: int
    first: datetime | None
    last: datetime | None
    state: ChunkState
    sealed: int | None = None
    changed: int | None = None
    cold_version: str | None = None
    rows: int | None = None
    digest: str | None = None
    tiered_at: datetime | None = None
    dropped_at: datetime | None = None
    forced_by: str | None = None
    pinned: int = 0
    """1 where a person brought it back from the lake: it stays until a person drops it."""
    act: str | None = None
    waits_for: tuple[str, ...] = ()

    @property
    def days(self) -> tuple[date, date] | None:
        """The first and the last day of its rows; None where an end is open."""
        if self.first is None or self.last is None:
            return None
        return self.first.date(), (self.last - timedelta(microseconds=1)).date()


class HotReader:
    """Hot tables as one transaction sees them."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def tables(self) -> tuple[HotRecord, ...]:
        rows = self.connection.execute(select(hot_tables).order_by(hot_tables.c.id)).mappings()
        return tuple(HotRecord(**_named(row, MirrorState)) for row in rows)

    def table(self, table_id: str) -> HotRecord | None:
        rows = self.connection.execute(select(hot_tables).where(hot_tables.c.id == table_id)).mappings()
        return next((HotRecord(**_named(row, MirrorState)) for row in rows), None)

    def chunks(self, table_id: str) -> tuple[ChunkRecord, ...]:
        """The chunks of a table, the oldest first."""
        query = select(hot_chunks).where(hot_chunks.c.hot_table == table_id)
        rows = self.connection.execute(query.order_by(hot_chunks.c.first.nulls_first(), hot_chunks.c.name)).mappings()
        return tuple(ChunkRecord(**_named(row, ChunkState)) for row in rows)

    def chunk(self, table_id: str, name: str) -> ChunkRecord | None:
        rows = self.connection.execute(select(hot_chunks).where(_is(table_id, name))).mappings()
        return next((ChunkRecord(**_named(row, ChunkState)) for row in rows), None)


class HotWriter(HotReader):
    """Whoever holds the lease changes them."""

    def add(self, record: HotRecord) -> None:
        """A table is tiered from now on; added again, it begins anew."""
        self.connection.execute(delete(hot_tables).where(hot_tables.c.id == record.id))
        self.connection.execute(insert(hot_tables), [asdict(record)])

    def set_table(self, table_id: str, **values: Any) -> None:
        self.connection.execute(update(hot_tables).where(hot_tables.c.id == table_id).values(values))

    def add_chunks(self, chunks: Iterable[ChunkRecord]) -> None:
        """Chunks that are new, or there again."""
        for chunk in chunks:
            self.connection.execute(delete(hot_chunks).where(_is(chunk.hot_table, chunk.name)))
            self.connection.execute(insert(hot_chunks), [asdict(chunk)])

    def set_chunk(self, table_id: str, name: str, **values: Any) -> None:
        self.connection.execute(update(hot_chunks).where(_is(table_id, name)).values(values))

    def remove(self, table_id: str) -> None:
        """A table is tiered no more: what is known of its chunks goes with it."""
        self.connection.execute(delete(hot_chunks).where(hot_chunks.c.hot_table == table_id))
        self.connection.execute(delete(hot_tables).where(hot_tables.c.id == table_id))


def _is(table_id: str, name: str) -> Any:
    return (hot_chunks.c.hot_table == table_id) & (hot_chunks.c.name == name)


def _named(row: Any, states: type[StrEnum]) -> dict[str, Any]:
    values = dict(row)
    return values | {"state": states(values["state"])}
