"""`ebbtide tier sync|run|drop`: mirror, prove, and drop what is proven (spec §6).

1. The registry is brought in step with the server; fences of runs that died come down; chunks ahead are made.
2. The mirror reads the log. Chunks past `tier_after` are sealed, and it reads on, past their seals.
3. Where the gate is open and digests are equal, a chunk is `tiered`.
4. Chunks past `drop_after` are dropped by acts: intent, fence, everything proven once more, drop, outcome.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import psycopg

from ebbtide.acts.act import Act
from ebbtide.acts.engine import Engine, Lake
from ebbtide.acts.recovery import close_unfinished
from ebbtide.app.ledger import open_for_writing
from ebbtide.app.results.tier import TierResult
from ebbtide.app.round import sweeper
from ebbtide.app.runs import recorded
from ebbtide.app.tier_cold import refuse_outlived
from ebbtide.app.tier_opened import HotRun, added, hot_run, hot_table, hot_tables, refuse_another
from ebbtide.config import Project
from ebbtide.config.hottier import HotTable
from ebbtide.errors import (
    ConflictError,
    EbbtideError,
    InputError,
    LeaseError,
    RefusedError,
    UnreadableError,
    keep_trace,
    kind_of,
)
from ebbtide.hottier import gate, partitions
from ebbtide.hottier.chunks import leaf_of, new_records, settle_vanished
from ebbtide.hottier.fence import seal, take_down_fences
from ebbtide.hottier.mirror import mark_own
from ebbtide.hottier.owner import KIND, ChunkDropper, ChunkOwner, act_of, why_kept
from ebbtide.hottier.server import failed, identity
from ebbtide.hottier.setup import exists
from ebbtide.hottier.table import Found, find
from ebbtide.inventory.current import Current
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.durations import is_older
from ebbtide.run import RunContext, quiet
from ebbtide.state.hottier import ChunkRecord, ChunkState, HotReader, HotWriter, MirrorState
from ebbtide.state.values import Hold
from ebbtide.state.writer import new_id

_NOT_ADDED = "it was not added: its policy holds everything until `ebbtide tier add` has synced it"


@dataclass
class _Told:
    """What came of one table so far."""

    table: HotTable
    tiered: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    would_drop: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    refused: bool = False


def run_tier(
    project: Project,
    *,
    only: str | None = None,
    sync_only: bool = False,
    as_of: datetime | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> tuple[TierResult, ...]:
    """Everything that is due, table by table. What fails for one table does not stop the others."""
    context = quiet(context, as_of=as_of)
    tables = hot_tables(project, only)
    ledger, now = open_for_writing(project, context)
    known = added(ledger)
    if dry_run:
        with ledger.database.reader() as state:
            holds, reader = state.holds(), HotReader(state.connection)
            return tuple(_would(table, reader.chunks(name), holds, now) for name, table in tables.items())
    with (
        sweeper(ledger, context) as lease,
        recorded(context, ledger, "tier sync" if sync_only else "tier run", lease) as run,
        hot_run(project, ledger, lease, run.context) as hot,
    ):
        close_unfinished(ledger, lease)
        told = {name: _Told(table) for name, table in tables.items()}
        for name, each in told.items():
            if name not in known:
                each.notices.append(_NOT_ADDED)
                continue
            _guarded(each, lambda each=each: _bring_up(hot, each, now, seals=not sync_only))
            if not sync_only:  # what goes wrong there stops no mirror
                _guarded(each, lambda each=each: refuse_outlived(project, each.table))
        if not sync_only:
            _drop_due(hot, {n: t for n, t in told.items() if n in known and not t.errors}, now)
        results = tuple(_result(hot, name, each) for name, each in told.items())
        run.ended(exit_code(results), f"{sum(len(r.tiered) for r in results)} tiered")
        return results


def exit_code(results: Sequence[TierResult]) -> int:
    """What is missing or failed; a chunk that waits is no failure."""
    if any(result.errors and not result.refused for result in results):
        return 4
    return 3 if any(result.refused for result in results) else 4 if any(result.missing for result in results) else 0


def confirm(project: Project, name: str, *, context: RunContext | None = None) -> None:
    """A person says that what stopped a mirror is meant: it is replayed by the next sync."""
    context = quiet(context)
    name = hot_table(project, name).id
    ledger, _ = open_for_writing(project, context)
    record = added(ledger).get(name)
    if record is None or record.state is not MirrorState.STOPPED or record.confirm is None:
        raise InputError(
            f"nothing of {name} waits to be confirmed", hint="`ebbtide tier status` says what it waits for"
        )
    with sweeper(ledger, context) as lease, ledger.database.sweeper(lease) as state:
        writer = HotWriter(state.connection)
        if (now := writer.table(name)) is None or now.confirm != record.confirm:
            raise ConflictError(f"{name} waits for something else by now: nothing was confirmed", hint="look again")
        writer.set_table(name, confirmed=record.confirm, confirm=None)


def drop_chunks(
    project: Project,
    name: str,
    chunk: str | None = None,
    *,
    force: bool = False,
    as_of: datetime | None = None,
    context: RunContext | None = None,
) -> TierResult:
    """Drop what is past `drop_after`: one chunk, or all of a table. `force` passes the gate, never a hold."""
    context = quiet(context, as_of=as_of)
    table = hot_table(project, name)
    name = table.id
    ledger, now = open_for_writing(project, context)
    if name not in added(ledger):
        raise InputError(f"{name} was not added", hint=f"run `ebbtide tier add {name}`")
    with (
        sweeper(ledger, context) as lease,
        recorded(context, ledger, "tier drop", lease) as run,
        hot_run(project, ledger, lease, run.context) as hot,
    ):
        close_unfinished(ledger, lease)
        told = _Told(table)
        if chunk is not None:
            _refuse_unknown(hot, table, chunk)
            hot.book(table).set_chunk(chunk, pinned=0)
        _guarded(told, lambda: _look(hot, told, now, ahead=False))
        if table.cold is not None and not force:
            _guarded(told, lambda: _mirror(hot, told))
            _guarded(told, lambda: refuse_outlived(project, table))
        if not told.errors or (force and not told.refused):
            _drop_due(hot, {name: told}, now, only=chunk, force=force)
        result = _result(hot, name, told)
        run.ended(exit_code([result]), f"{len(result.dropped)} dropped")
        return result


def _refuse_unknown(hot: HotRun, table: HotTable, chunk: str) -> None:
    names = [each.name for each in hot.book(table).chunks()]
    if chunk not in names:
        from ebbtide.config.yaml import nearest

        raise InputError(f"no chunk {chunk!r} of {table.name}", hint=nearest(chunk, names))


def _guarded(told: _Told, work: object) -> None:
    """What fails for one table is a row of the result, also where it is its storage or its cold table's catalog."""
    assert callable(work)
    try:
        work()
    except LeaseError:
        raise
    except Exception as error:
        keep_trace(error)
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


def _bring_up(hot: HotRun, told: _Told, now: datetime, *, seals: bool) -> None:
    found = _look(hot, told, now, ahead=True)
    if told.table.cold is None:
        return
    found = _mirror(hot, told) or found
    if seals and told.table.tier_after is not None:
        _tier(hot, told, found, now)


def _look(hot: HotRun, told: _Told, now: datetime, *, ahead: bool) -> Found:
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


def _mirror(hot: HotRun, told: _Told) -> Found | None:
    mirror = hot.mirror(told.table)
    if mirror is None:
        told.notices.append(_NOT_ADDED)
        return None
    hot.context.step(f"mirroring {told.table.name}")
    return mirror.drain()


def _tier(hot: HotRun, told: _Told, found: Found, now: datetime) -> None:
    """Seal what is past `tier_after`, let the mirror pass the seals, and compare."""
    table, book, connection = told.table, hot.book(told.table), hot.session(told.table)
    assert table.tier_after is not None
    due = [
        chunk
        for chunk in book.chunks()
        if chunk.state is ChunkState.ACTIVE and chunk.last is not None and is_older(chunk.last, table.tier_after, now)
    ]
    sealed = []
    for chunk in due:
        leaf = leaf_of(found, chunk)
        if leaf is None:
            continue
        try:
            if chunk.sealed is None or (chunk.changed or 0) > chunk.sealed:
                book.set_chunk(chunk.name, sealed=seal(connection, leaf))
            sealed.append(chunk.name)
        except EbbtideError as error:
            book.set_chunk(chunk.name, waits_for=(error.message,))
    mirror = hot.mirror(table)
    if not sealed or mirror is None:
        return
    found = mirror.drain()
    hot.context.step(f"comparing {table.name}", len(sealed), unit="chunks")
    record = book.record()
    for chunk in (each for each in book.chunks() if each.name in sealed):
        leaf = leaf_of(found, chunk)
        because = gate.shut(record, chunk) if leaf is not None else "it is gone"
        proof = because or gate.compare(connection, mirror.cold, found, leaf, table.time)  # type: ignore[arg-type]
        if isinstance(proof, str):
            book.set_chunk(chunk.name, waits_for=(proof,))
        else:
            book.set_chunk(
                chunk.name, state=ChunkState.TIERED, waits_for=(), cold_version=proof.version, rows=proof.digest.rows,
                digest=str(proof.digest), tiered_at=now,
            )  # fmt: skip
            told.tiered.append(chunk.name)
        hot.context.advance()


def due_to_drop(
    table: HotTable, chunks: Sequence[ChunkRecord], holds: Collection[Hold], now: datetime, *, force: bool = False
) -> tuple[list[ChunkRecord], dict[str, str]]:
    """The chunks that go now, and why others that are past `drop_after` do not."""
    going: list[ChunkRecord] = []
    kept: dict[str, str] = {}
    gated = table.gated and not force
    for chunk in chunks:
        if table.drop_after is None or chunk.last is None or chunk.state in (ChunkState.DROPPED, ChunkState.MISSING):
            continue
        if not is_older(chunk.last, table.drop_after, now):
            continue
        if held := why_kept(table, chunk, holds, gated=gated):
            kept[chunk.name] = held
        elif chunk.pinned:
            kept[chunk.name] = "a person brought it back: `ebbtide tier drop` with its name drops it"
        elif gated and chunk.state is not ChunkState.TIERED:
            kept[chunk.name] = next(iter(chunk.waits_for), "it is not proven durable in the lake")
        else:
            going.append(chunk)
    return going, kept


def _drop_due(
    hot: HotRun, told: dict[str, _Told], now: datetime, *, only: str | None = None, force: bool = False
) -> None:
    acts: list[Act] = []
    with hot.ledger.database.reader() as state:
        holds = state.holds()
    for each in told.values():
        table, book = each.table, hot.book(each.table)
        going, kept = due_to_drop(table, book.chunks(), holds, now, force=force)
        for name, because in kept.items():
            book.set_chunk(name, waits_for=(because,))
            if only == name:
                each.errors.append(f"chunk {name} stays: {because}")
                each.refused = True
        forced_by = hot.context.actor if force and table.gated else None
        acts += [
            act_of(table, chunk, new_id(), gated=table.gated and not force, forced_by=forced_by)
            for chunk in going
            if only in (None, chunk.name)
        ]
        if only is not None and only not in kept and not any(act.object == only for act in acts):
            each.errors.append(f"chunk {only} stays: it is not past drop_after, or it is gone already")
            each.refused = True
    if acts:
        _carry_out(hot, told, acts, forced=force)


def _carry_out(hot: HotRun, told: dict[str, _Told], acts: Sequence[Act], *, forced: bool) -> None:
    owner = ChunkOwner(
        {name: each.table for name, each in told.items()}, lambda table: find(hot.session(table), table), forced
    )
    for table in owner.tables.values():  # opened here: acts of several tables run side by side
        hot.session(table)
        hot.mirror(table)
    nothing = Inventory(hot.project.inventory, Current())
    lake = Lake(None, lambda: nothing, lambda _: {}, lambda _: ())
    dropper = ChunkDropper(hot.session, hot.mirror, hot.lease.check)
    engine = Engine(lake, hot.ledger, hot.lease, hot.context, {KIND: dropper})
    carried = engine.carry_out(owner, acts)
    for result in carried.results:
        each, name = told[result.act.dataset], result.act.object or ""
        after = next(chunk for chunk in hot.book(each.table).chunks() if chunk.name == name)
        if after.state is ChunkState.DROPPED:
            each.dropped.append(name)
        elif result.error is not None:
            each.notices.append(result.error)


def _would(table: HotTable, chunks: Sequence[ChunkRecord], holds: Collection[Hold], now: datetime) -> TierResult:
    going, kept = due_to_drop(table, chunks, holds, now)
    return TierResult(
        table.id, str(MirrorState.OFF), would_drop=tuple(chunk.name for chunk in going),
        notices=tuple(f"{name} stays: {why}" for name, why in kept.items()),
    )  # fmt: skip


def _result(hot: HotRun, name: str, told: _Told) -> TierResult:
    with hot.ledger.database.reader() as state:
        record = HotReader(state.connection).table(name)
    mirror = str(record.state if record else MirrorState.OFF)
    return TierResult(
        name, mirror, tuple(told.tiered), tuple(told.dropped), tuple(told.would_drop), tuple(told.missing),
        tuple(told.errors), tuple(told.notices), told.refused,
    )  # fmt: skip
