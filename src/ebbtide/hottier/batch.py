"""`mirror: batch`: chunks are copied whole once they are sealed, for servers without logical decoding (spec §6).

It stands where a mirror that reads the log does, behind the same seal, gate, digest and fence.

1. A sealed chunk that the lake does not have as it is here is copied: one snapshot of it, one commit, which replaces
   the chunk's rows there. Who dies before the commit has written nothing; who copies again doubles nothing.
2. The gate compares digests of another snapshot: a change that came between shows there.
3. A change after that shows behind the fence of a drop: the chunk is sealed, copied and proven anew.
4. A copy takes no more than `delete_share` of a chunk's rows from the lake, unless a person confirms.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from psycopg import Connection

from ebbtide.config.hottier import HotTable
from ebbtide.formats.iceberg.cold import ColdRange, ColdTable, outside
from ebbtide.formats.iceberg.position import Position
from ebbtide.hottier import gate
from ebbtide.hottier.copy import rows_of
from ebbtide.hottier.drift import begin_with
from ebbtide.hottier.mirror import Book, Mirror, StoppedError
from ebbtide.hottier.server import Identity, identity
from ebbtide.hottier.statements import build
from ebbtide.hottier.stops import rows_lost
from ebbtide.hottier.table import PartitionLeaf, ServerTable, find
from ebbtide.hottier.values import CannotFollowError
from ebbtide.run import RunContext
from ebbtide.state.hottier import ChunkState, HotRecord, MirrorState

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchMirror:
    """One table's copies during one run. `source` says in the cold table whose rows these are."""

    table: HotTable
    connection: Connection[tuple[Any, ...]]
    cold: ColdTable
    book: Book
    context: RunContext
    source: str

    def drain(self, *, newcomers: bool = True) -> ServerTable:  # noqa: ARG002 - as a mirror that reads the log has it
        """Copy every sealed chunk that is not proven: what was sealed before is in the lake then, or differs there."""
        found = find(self.connection, self.table)
        try:
            record, now = self._start(found)
            leaves = {leaf.oid: leaf for leaf in found.chunks}
            for chunk in self.book.chunks():
                leaf = leaves.get(chunk.oid)
                if leaf is None or chunk.state is not ChunkState.ACTIVE or chunk.sealed is None:
                    continue
                if isinstance(gate.compare(self.connection, self.cold, found, leaf, self.table.time), str):
                    self.copy(found, leaf, Position(record.system, record.timeline, now.flushed, self.source))
                self.context.cancellation.check()
        except (CannotFollowError, StoppedError) as error:
            stopped = error if isinstance(error, StoppedError) else self._degraded(error.message)
            _logger.info("copies of %s: %s, %s", self.table.id, stopped.state, stopped.because)
            self.book.set_table(state=stopped.state, because=stopped.because)
            raise stopped from None
        self.book.set_table(state=MirrorState.STREAMING, because="", passed=now.flushed)
        return found

    def copy(self, found: ServerTable, leaf: PartitionLeaf, position: Position, *, may_lose: bool = False) -> None:
        """The chunk as it is now takes the place of what the lake has of it."""
        span = ColdRange(self.table.time, leaf.first, leaf.last, found.time_kind)
        begin_with(self.cold, found.columns, self.source)
        with self.connection.transaction():
            self.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            if not may_lose:
                self._refuse_loss(leaf, span)
            rows = rows_of(self.connection, leaf.path, found.columns, self.context.advance, whole=False)
            if self.cold.version is None:
                self.cold.begin(rows, position)
                return

            def replace(files: Iterator[pa.Table]) -> tuple[list[int], Iterable[pa.Table]]:
                going, kept = outside(files, [span])
                return going, (part for parts in (kept, rows) for part in parts)

            self.cold.commit(found.columns.schema.empty_table(), position, replace, [span])

    def _start(self, found: ServerTable) -> tuple[HotRecord, Identity]:
        record, now = self.book.record(), identity(self.connection)
        self.cold.refresh()
        if record.state is MirrorState.DEGRADED:
            raise self._degraded(record.because)
        because = "; ".join(found.columns.problems) or self._why_not(record, now)
        if because:
            raise self._degraded(because)
        return record, now

    def _degraded(self, because: str) -> StoppedError:
        return StoppedError(self.table.id, because, MirrorState.DEGRADED)

    def _why_not(self, record: HotRecord, now: Identity) -> str | None:
        """A copy of a server's disk may be older than the lake: what it has is not written over what is there."""
        if (record.system, record.timeline) != (now.system, now.timeline):
            return "the server is another one, or was promoted or restored"
        if self.cold.source not in (None, self.source):
            return "the cold table is the copy of another table"
        position = self.cold.position()
        # Of another server, which a resync has left: its log has other positions.
        there = 0
        if position is not None and (position.system, position.timeline) == (now.system, now.timeline):
            there = position.at
        if max(there, record.reached or 0) > now.flushed:
            return "the server's log ends before what the cold table has: it was restored from a copy"
        return None

    def _refuse_loss(self, leaf: PartitionLeaf, span: ColdRange) -> None:
        row = self.connection.execute(build("SELECT count(*) FROM ONLY {leaf}", leaf=leaf.path)).fetchone()
        here, there = 0 if row is None else int(row[0]), self.cold.rows(span)
        if there - here > there * self.table.delete_share:
            raise self._degraded(rows_lost(leaf.name, here, there))


AnyMirror: TypeAlias = Mirror | BatchMirror
