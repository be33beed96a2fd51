"""The registry of chunks, brought in step with the server: what is new, what another took away, what a crash left."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from psycopg import Connection

from ebbtide.hottier.mirror import Book
from ebbtide.hottier.table import ServerTable
from ebbtide.state.hottier import ChunkRecord, ChunkState, HotWriter

_GONE = "another tool dropped it: what was not proven durable may be lost"


def new_records(table_id: str, found: ServerTable, writer: HotWriter) -> tuple[ChunkRecord, ...]:
    """Chunks that the registry does not know, or that are there again under their name or with another range."""
    known = {chunk.name: (chunk.oid, chunk.first, chunk.last) for chunk in writer.chunks(table_id)}
    return tuple(
        ChunkRecord(
            hot_table=table_id, name=leaf.name, oid=leaf.oid, first=leaf.first, last=leaf.last, state=ChunkState.ACTIVE
        )
        for leaf in found.chunks
        if known.get(leaf.name) != (leaf.oid, leaf.first, leaf.last)
    )


def settle_vanished(
    connection: Connection[tuple[Any, ...]], found: ServerTable, book: Book, *, now: datetime
) -> tuple[str, ...]:
    """Chunks that are not on the server any more: dropped by an act of ours that died, or missing. Gives the latter.

    One that was only detached is still a table: that is for the mirror to stop at.
    """
    there = {leaf.oid for leaf in found.chunks}
    missing = []
    for chunk in book.chunks():
        if chunk.oid in there or chunk.state is ChunkState.DROPPED:
            continue
        if chunk.act is not None and covered(found, chunk):
            book.set_chunk(chunk.name, state=ChunkState.DROPPED, dropped_at=now, waits_for=())
            continue
        if connection.execute("SELECT 1 FROM pg_class WHERE oid = %s", [chunk.oid]).fetchone() is not None:
            continue
        book.set_chunk(chunk.name, state=ChunkState.MISSING, waits_for=(_GONE,))
        missing.append(chunk.name)
    return tuple(missing)


def covered(found: ServerTable, chunk: ChunkRecord) -> bool:
    """Whether a tombstone answers for its range: only a drop of ours leaves one, in the transaction of the drop."""
    return any(
        leaf.last is not None
        and chunk.last is not None
        and chunk.last <= leaf.last
        and (leaf.first is None or (chunk.first is not None and leaf.first <= chunk.first))
        for leaf in found.tombstones
    )
