"""One hot table in a run: its registry, its mirror, the proof of its chunks. What fails is told in `TierOutcome`."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime

import psycopg

from ebbtide.app.tier_opened import HotRun, refuse_another
from ebbtide.config.hottier import HotTable
from ebbtide.errors import EbbtideError, LeaseError, RefusedError, UnreadableError, keep_trace, kind_of
from ebbtide.hottier import gate, partitions
from ebbtide.hottier.ceiling import enforce
from ebbtide.hottier.chunks import new_records, settle_vanished
from ebbtide.hottier.fence import seal, take_down_fences
from ebbtide.hottier.log import mark_own
from ebbtide.hottier.server import failed, identity
from ebbtide.hottier.setup import exists
from ebbtide.hottier.table import ServerTable, find
from ebbtide.model.durations import is_older
from ebbtide.state.hottier import ChunkState, HotWriter

_logger = logging.getLogger(__name__)

NOT_ADDED = "it was not added: its policy holds everything until `ebbtide tier add` has synced it"


@dataclass
class TierOutcome:
    """What came of one table so far."""

    table: HotTable
    tiered: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    would_drop: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    refused: bool = False


def guarded(told: TierOutcome, work: object) -> None:
    """What fails for one table is a row of the result, also where it is its storage or its cold table's catalog."""
    assert callable(work)
    try:
        work()
    except LeaseError:
        raise
    except Exception as error:
        keep_trace(error)
        tell(told, error)


def tell(told: TierOutcome, error: Exception) -> None:
    """What went wrong with a table, as a row of its result."""
    ours = _ours(told.table, error)
    told.errors.append(f"{ours.message} ({ours.hint})" if ours.hint else ours.message)
    told.refused = told.refused or isinstance(ours, RefusedError)


def _ours(table: HotTable, error: Exception) -> EbbtideError:
    """The error in our words: those of others may quote rows."""
    if isinstance(error, psycopg.Error):
        return failed(table.server, error)
    if isinstance(error, EbbtideError):
        return error
    hint = "look at its storage and its catalog; the next run goes on from there"
    return UnreadableError(f"{table.id} or {table.cold}" if table.cold else table.id, kind_of(error), hint=hint)


def bring_up(hot: HotRun, told: TierOutcome, now: datetime, *, seals: bool) -> None:
    found = look(hot, told, now, ahead=True)
    if told.table.cold is None:
        return
    found = mirrored(hot, told) or found
    if seals and told.table.tier_after is not None:
        _tier(hot, told, found, now)


def look(hot: HotRun, told: TierOutcome, now: datetime, *, ahead: bool) -> ServerTable:
    """The registry as the server is now, with chunks ahead of time."""
    table, connection, book = told.table, hot.session(told.table), hot.book(told.table)
    told.notices += [
        f"the fence of chunk {name} still stands: the next run takes it down"
        for name in take_down_fences(connection, table)
    ]
    refuse_another(table, book.record(), identity(connection))
    found = find(connection, table)
    if ahead:
        # Writers need their chunks, also where the mirror has lost its publication.
        publication = book.record().publication
        published = publication is not None and exists(connection, publication)
        statements = partitions.ahead(table, found, publication if published else None, now=now)
        if statements:
            with connection.transaction():
                mark_own(connection)
                for each in statements:
                    connection.execute(each)
            found = find(connection, table)
    with hot.ledger.database.sweeper(hot.lease) as state:
        writer = HotWriter(state.connection)
        new = new_records(table.id, found, writer)
        lost = {c.name for c in writer.chunks(table.id)} & {c.name for c in new}
        writer.add_chunks(new)
    told.notices += [f"chunk {name} is another table than before, or has another range" for name in sorted(lost)]
    told.missing += settle_vanished(connection, found, book, now=now)
    return found


def within_the_ceiling(hot: HotRun, told: TierOutcome) -> None:
    """Whatever failed before: where the server answered, no slot of it fills its disk."""
    if told.table.id in hot.sessions:
        enforce(hot.session(told.table), told.table, hot.book(told.table), hot.context.logger)


def mirrored(hot: HotRun, told: TierOutcome) -> ServerTable | None:
    mirror = hot.mirror(told.table)
    if mirror is None:
        told.notices.append(NOT_ADDED)
        return None
    hot.context.step(f"mirroring {told.table.name}")
    return mirror.drain()


def _tier(hot: HotRun, told: TierOutcome, found: ServerTable, now: datetime) -> None:
    """Seal what is past `tier_after`, let the mirror pass the seals, and compare."""
    table, book, connection = told.table, hot.book(told.table), hot.session(told.table)
    assert table.tier_after is not None
    due = [
        chunk
        for chunk in book.chunks()
        if chunk.state is ChunkState.ACTIVE and chunk.last is not None and is_older(chunk.last, table.tier_after, now)
    ]
    sealed = set()
    leaves = {leaf.oid: leaf for leaf in found.chunks}
    for chunk in due:
        leaf = leaves.get(chunk.oid)
        if leaf is None:
            continue
        try:
            if chunk.sealed is None or (chunk.changed or 0) > chunk.sealed:
                book.set_chunk(chunk.name, sealed=seal(connection, leaf))
            sealed.add(chunk.name)
        except EbbtideError as error:
            book.waits(chunk, error.message)
    mirror = hot.mirror(table)
    if not sealed or mirror is None:
        return
    found = mirror.drain(newcomers=False)
    hot.context.step(f"comparing {table.name}", len(sealed), unit="chunks")
    record, leaves = book.record(), {leaf.oid: leaf for leaf in found.chunks}
    for chunk in (each for each in book.chunks() if each.name in sealed):
        leaf = leaves.get(chunk.oid)
        because = gate.shut(record, chunk) if leaf is not None else "it is gone"
        proof = because or gate.compare(connection, mirror.cold, found, leaf, table.time)  # type: ignore[arg-type]
        if isinstance(proof, str):
            _logger.info("chunk %s of %s waits: %s", chunk.name, table.id, proof, extra={"run": hot.context.run})
            book.waits(chunk, proof)
        else:
            said = "chunk %s of %s is in the lake, proved by version %s"
            _logger.info(said, chunk.name, table.id, proof.version, extra={"run": hot.context.run})
            book.set_chunk(
                chunk.name, state=ChunkState.TIERED, waits_for=(), cold_version=proof.version, rows=proof.digest.rows,
                digest=str(proof.digest), tiered_at=now,
            )  # fmt: skip
            told.tiered.append(chunk.name)
        hot.context.advance()
