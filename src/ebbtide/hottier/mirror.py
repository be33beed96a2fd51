"""The mirror of one table: the server's log into the cold table, in its order, exactly once (spec §6).

1. A batch is whole transactions. What it touches is written into the state before its commit: a chunk that changed is
   not proven any more, even where this process dies in between.
2. Rows and position are one commit of the cold table. Then the slot moves; it is never ahead of the cold table, but for
   a stretch of log in which the state says that nothing of this table was.
3. Whatever the lake could not follow stops it: `DEGRADED` needs `tier resync`, `STOPPED` a person's word.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Protocol

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import Connection

from ebbtide.config.hottier import HotTable
from ebbtide.errors import RefusedError
from ebbtide.formats.iceberg.cold import ColdRange, ColdTable
from ebbtide.formats.iceberg.position import Position
from ebbtide.hottier import adopt, drift, log
from ebbtide.hottier.changes import Effect, effect_of, fill_from, rows_with_keys
from ebbtide.hottier.pgoutput import ChangeBatch
from ebbtide.hottier.server import Identity, identity
from ebbtide.hottier.setup import altered, slot_state, unnamed
from ebbtide.hottier.stops import Limit, Stop, first_stop, is_of_lost_rows
from ebbtide.hottier.table import PartitionLeaf, ServerTable, find
from ebbtide.hottier.values import CannotFollowError
from ebbtide.run import RunContext
from ebbtide.state.hottier import ChunkRecord, ChunkState, HotRecord, MirrorState

_MOST_SPANS = 40
_LOGS_SNAPSHOT = 16


class Book(Protocol):
    """What the state knows of a table, written under the lease."""

    def record(self) -> HotRecord: ...

    def chunks(self) -> tuple[ChunkRecord, ...]: ...

    def chunk(self, name: str) -> ChunkRecord | None: ...

    def set_table(self, **values: Any) -> None: ...

    def set_chunk(self, name: str, **values: Any) -> None: ...


_logger = logging.getLogger(__name__)


class StoppedError(RefusedError):
    """The mirror does not go on. `state` says whether a person's word is enough."""

    def __init__(self, table: str, because: str, state: MirrorState, *, confirm: int | None = None) -> None:
        self.because, self.state, self.confirm = because, state, confirm
        if confirm is not None:
            again = f"`ebbtide tier sync {table} --confirm`"
        elif is_of_lost_rows(because):
            again = f"`ebbtide tier resync {table} --confirm`, which takes these rows from the lake, too"
        else:
            again = f"`ebbtide tier resync {table}`"
        super().__init__(f"{table}: {because}", hint=f"its gate is shut; look at it, then run {again}")


@dataclass(frozen=True, slots=True)
class Mirror:
    """One table's mirror during one run."""

    table: HotTable
    connection: Connection[tuple[Any, ...]]
    cold: ColdTable
    book: Book
    context: RunContext

    def drain(self, upto: int | None = None, *, newcomers: bool = True) -> ServerTable:
        """Bring the cold table up to a position of the log, or to what is on the server's disk by now. Who has writers
        wait, or did so a moment ago, looks at no `newcomers`: partitions that somebody else made.
        """
        upto = log.flushed(self.connection) if upto is None else upto
        found = find(self.connection, self.table)
        try:
            record = self._start(found)
            for leaf in unnamed(self.connection, found, record.publication or "") if newcomers else ():
                self._adopt(leaf, found)
            self._read(found, upto)
            self._measure(upto)
        except CannotFollowError as error:
            _logger.info("mirror of %s: degraded, %s", self.table.id, error.message)
            self.book.set_table(state=MirrorState.DEGRADED, because=error.message)
            raise self._degraded(error.message) from None
        except StoppedError as stopped:
            # What waits to be confirmed waits on, also where the mirror is past going on: a resync asks for it.
            waits = {"confirm": stopped.confirm} if stopped.state is MirrorState.STOPPED else {}
            _logger.info("mirror of %s: %s, %s", self.table.id, stopped.state, stopped.because)
            self.book.set_table(state=stopped.state, because=stopped.because, **waits)
            raise
        self.book.set_table(state=MirrorState.STREAMING, because="", confirm=None)
        return found

    def _read(self, found: ServerTable, upto: int) -> None:
        record: HotRecord | None = self.book.record()
        while record is not None:
            record = self._peek(record, found, upto)

    def _adopt(self, leaf: PartitionLeaf, found: ServerTable) -> None:
        """A partition that somebody else made: its name joins the publication where the lake has its rows."""
        newcomer = adopt.look(self.connection, found, leaf)
        if newcomer is None:  # the next run asks again; until then it is published by its table
            return
        if (
            find(self.connection, self.table).columns != found.columns
        ):  # read by these, rows before the marker lack some
            return
        self._read(found, newcomer.marker)
        publication = self.book.record().publication or ""
        if not adopt.join(self.connection, self.cold, found, newcomer, self.table.time, publication):
            raise self._degraded(
                f"its publication does not name {leaf.name}, and not every row there came through the log"
            )

    def _degraded(self, because: str) -> StoppedError:
        return StoppedError(self.table.id, because, MirrorState.DEGRADED)

    def _start(self, found: ServerTable) -> HotRecord:
        """Positions mean something only here: the same server, its timeline, a slot that is not ahead."""
        record, now, slot = self.book.record(), identity(self.connection), self._slot()
        if record.state is MirrorState.DEGRADED:
            raise self._degraded(record.because)
        if found.columns.problems:
            raise self._degraded("; ".join(found.columns.problems))
        self.cold.refresh()
        position = self.cold.position()
        if because := self._why_not(record, now, position):
            raise self._degraded(because)
        assert position is not None
        if slot is None or slot[2] == "lost":
            raise self._degraded("its slot is lost: the server no longer has the log")
        if gap := altered(self.connection, found, record.publication or ""):
            raise self._degraded(gap)
        self._refuse_detached(found)
        self._follow_columns(found, record.slot or "")
        record = replace(record, position=position.at)
        reached = record.reached
        assert reached is not None
        if slot[0] > reached:
            raise self._degraded("the server has forgotten log that the cold table does not have")
        self.cold.restate()
        self.book.set_table(position=position.at)
        if slot[0] < reached:
            log.advance(self.connection, record.slot or "", reached)
        if now.version >= _LOGS_SNAPSHOT:
            try:  # a slot can let go of older log only behind such a record
                self.connection.execute("SELECT pg_log_standby_snapshot()")
            except psycopg.errors.InsufficientPrivilege:
                self.context.logger.debug("no right to write a running-transactions record")
        return record

    def _follow_columns(self, found: ServerTable, slot: str) -> None:
        if drift.follow(self.cold, found.columns, slot):
            for chunk in self.book.chunks():
                if chunk.state is ChunkState.TIERED:
                    self.book.set_chunk(chunk.name, state=ChunkState.ACTIVE, sealed=None)

    def _why_not(self, record: HotRecord, now: Identity, position: Position | None) -> str | None:
        if (record.system, record.timeline) != (now.system, now.timeline):
            return "the server is another one, or was promoted or restored: positions of its log mean nothing here"
        if position is None:
            return "the cold table no longer says how far it is"
        if (position.system, position.timeline, position.source) != (record.system, record.timeline, record.slot):
            return "the cold table is the copy of another server's or mirror's table"
        if record.position is not None and position.at < record.position:
            return "the cold table was set back: rows of it are missing"
        if max(position.at, record.passed or 0) > now.flushed:
            return "the server's log ends before what the cold table has: it was restored from a copy"
        return None

    def _refuse_detached(self, found: ServerTable) -> None:
        there = {leaf.oid for leaf in found.chunks}
        for chunk in self.book.chunks():
            if chunk.state in (ChunkState.ACTIVE, ChunkState.TIERED) and chunk.oid not in there:
                row = self.connection.execute("SELECT 1 FROM pg_class WHERE oid = %s", [chunk.oid]).fetchone()
                if row is not None:
                    raise self._degraded(f"chunk {chunk.name} was detached: what is written into it is not followed")

    def _slot(self) -> tuple[int, int, str] | None:
        return slot_state(self.connection, self.book.record().slot or "")

    def _peek(self, record: HotRecord, found: ServerTable, upto: int) -> HotRecord | None:
        """Everything that one peek tells; None once nothing is left."""
        slot, publication = record.slot or "", record.publication or ""
        reached = record.reached or 0
        more = left = False
        with closing(log.peek(self.connection, slot, publication, upto=upto)) as parts:
            for part in parts:
                more = part.more
                batch = part.after(record.reached or 0)
                if (end := batch.end) is None:
                    continue
                record = self._batch(batch, record, found)
                self.context.cancellation.check()
                if left := record.reached != end:  # it is told again
                    break
        if left or (more and record.reached != reached):
            log.advance(self.connection, slot, record.reached or 0)
            return record
        if more:  # of what is known already: there may be more behind it
            raise CannotFollowError("the server tells older log again and again", hint="`ebbtide tier resync`")
        if upto > (record.reached or 0):
            self.book.set_table(passed=upto)
        if max(upto, record.reached or 0) > reached:
            log.advance(self.connection, slot, max(upto, record.reached or 0))
        return None

    def _batch(self, batch: ChangeBatch, record: HotRecord, found: ServerTable) -> HotRecord:
        """As much of it as may be replayed at once."""
        stop = self._stop(batch, record, found)
        if stop is not None:
            batch = batch.until(stop.at)
        batch = _one_at_a_time(batch)
        if (end := batch.end) is not None:
            return self._apply(batch, record, found, end)
        assert stop is not None, "a batch has an end"
        raise self._stopped(stop)

    def _stop(self, batch: ChangeBatch, record: HotRecord, found: ServerTable) -> Stop | None:
        """The first transaction that may not be replayed, if one of them may not."""
        spans = {chunk.oid: (chunk.name, chunk.first, chunk.last) for chunk in self.book.chunks()}
        spans |= {leaf.oid: (leaf.name, leaf.first, leaf.last) for leaf in found.chunks}

        def rows(oid: int) -> int:
            _, first, last = spans[oid]
            return self.cold.rows(ColdRange(self.table.time, first, last, found.time_kind))

        names = {oid: name for oid, (name, _, _) in spans.items()}
        return first_stop(
            batch, Limit(self.table.delete_share, record.confirmed, names, rows),
            rewritten={found.oid, *spans}, publication=self._publication_oids(record.publication or ""),
        )  # fmt: skip

    def _stopped(self, stop: Stop) -> StoppedError:
        if stop.degraded:
            return self._degraded(stop.because)
        return StoppedError(self.table.id, stop.because, MirrorState.STOPPED, confirm=stop.at)

    def _publication_oids(self, name: str) -> set[int]:
        return {
            row[0]
            for row in self.connection.execute(
                "SELECT oid::bigint FROM pg_publication WHERE pubname = %(p)s UNION ALL SELECT r.oid::bigint FROM"
                " pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE p.pubname = %(p)s",
                {"p": name},
            )
        }

    def _apply(self, batch: ChangeBatch, record: HotRecord, found: ServerTable, end: int) -> HotRecord:
        drift.refuse_renamed(self.cold, found.columns, (relation for _, relation in batch.relations))
        effect = effect_of(batch, found.columns)
        known = {chunk.oid: chunk for chunk in self.book.chunks()}
        for oid, changed in effect.touched.items():
            if (chunk := known.get(oid)) is not None:
                self.book.set_chunk(
                    chunk.name, changed=changed,
                    **({"state": ChunkState.ACTIVE, "tiered_at": None} if chunk.state is ChunkState.TIERED else {}),
                )  # fmt: skip
        truncated = [known[oid] for each in batch.truncated() for oid in each.oids if oid in known]
        if truncated or effect.appended.num_rows or effect.changes_rows:
            self._commit(effect, truncated, record, found, end)
            values: dict[str, Any] = {"position": end}
        else:
            values = {"passed": end}
        if (late := _lateness(effect, self.table.time, batch.committed_at)) is not None:
            values["lateness"] = max(late, record.lateness or 0)
        self.book.set_table(**values)
        said = "mirror of %s: up to %X, %d rows as they are now, %d chunks truncated"
        _logger.debug(said, self.table.id, end, effect.appended.num_rows + effect.merged.num_rows, len(truncated))
        return replace(record, **values)

    def _commit(
        self, effect: Effect, truncated: list[ChunkRecord], record: HotRecord, found: ServerTable, end: int
    ) -> None:
        position = Position(record.system, record.timeline, end, record.slot or "")
        if truncated and (effect.appended.num_rows or effect.changes_rows):
            raise self._degraded("a TRUNCATE and changes came together: they cannot be told apart any more")
        if truncated:
            spans = [ColdRange(self.table.time, chunk.first, chunk.last, found.time_kind) for chunk in truncated]
            self.cold.delete(spans, position)
            return
        if not effect.changes_rows:
            self.cold.commit(effect.appended, position)
            return
        spans = list(_spans(effect.gone[self.table.time], self.table.time, found.time_kind))
        self.cold.commit(
            effect.appended, position, lambda files: merge(files, effect, found.columns), spans
        )  # fmt: skip

    def _measure(self, upto: int) -> None:
        record, slot = self.book.record(), self._slot()
        lag = max(upto - (record.reached or 0), 0)
        self.book.set_table(lag_bytes=lag, retained_bytes=slot[1] if slot else 0)
        _logger.debug("mirror of %s: %d bytes of the log behind", self.table.id, lag)


def _one_at_a_time(batch: ChangeBatch) -> ChangeBatch:
    """What comes before the first TRUNCATE, or that transaction alone: it cuts, and the rest merges."""
    first = min((each.at for each in batch.truncated()), default=None)
    if first is None:
        return batch
    before = batch.until(first)
    return batch.until(first + 1) if before.end is None else before


def merge(files: Iterator[pa.Table], effect: Effect, columns: Any) -> tuple[list[int], list[pa.Table]]:
    """Which files hold rows that change, and what comes instead: their other rows, and the rows as they are now."""
    names = [key.name for key in columns.keys]
    going: list[int] = []
    kept: list[pa.Table] = []
    replaced: list[pa.Table] = []
    for n, rows in enumerate(files):
        plain = pa.table({key.name: rows[key.name].cast(key.arrow) for key in columns.keys})
        hit = rows_with_keys(plain, effect.gone, names)
        if hit.any():
            going.append(n)
            kept.append(rows.filter(pa.array(~hit)))
            replaced.append(rows.filter(pa.array(hit)))
    before = pa.concat_tables(replaced) if replaced else effect.merged.slice(0, 0)
    return going, [*kept, fill_from(effect.merged, effect.holes, before, columns), effect.appended]


def _spans(times: pa.ChunkedArray, column: str, kind: str) -> Iterator[ColdRange]:
    """Where the changed rows lie: day by day, or from the first to the last where there are many days."""
    instants = pc.unique(times.cast(pa.timestamp("us")))
    days = pc.unique(pc.floor_temporal(instants, unit="day"))
    try:
        found = sorted(_utc(day) for day in days.to_pylist())
    except (ValueError, OverflowError):  # beyond Python's calendar
        yield ColdRange(column, None, None, kind)
        return
    if len(found) > _MOST_SPANS:
        yield ColdRange(column, found[0], found[-1] + timedelta(days=1), kind)
        return
    for day in found:
        yield ColdRange(column, day, day + timedelta(days=1), kind)


def _utc(at: date) -> datetime:
    return datetime(at.year, at.month, at.day, tzinfo=UTC)


def _lateness(effect: Effect, time: str, committed_at: int) -> int | None:
    """How late the latest of the new rows came, in seconds."""
    if not effect.appended.num_rows:
        return None
    first = pc.min(effect.appended[time].cast(pa.timestamp("us")).cast(pa.int64())).as_py()
    return max(int((committed_at + 946_684_800_000_000 - first) // 1_000_000), 0)
