"""`ebbtide tier sync|run|drop`: mirror, prove, and drop what is proven (spec §6).

1. The registry is brought in step with the server; fences of runs that died come down; chunks ahead are made.
2. The mirror reads the log. Chunks past `tier_after` are sealed, and it reads on, past their seals.
3. Where the gate is open and digests are equal, a chunk is `tiered`.
4. Chunks past `drop_after` are dropped by acts: intent, fence, everything proven once more, drop, outcome.
5. The cold table's small files are joined where that is due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ebbtide.acts.recovery import close_unfinished
from ebbtide.app.ledger import open_for_writing
from ebbtide.app.results.tier import TierResult, exit_code
from ebbtide.app.round import sweeper
from ebbtide.app.runs import recorded
from ebbtide.app.tier_cold import refuse_outlived
from ebbtide.app.tier_compact import compact_if_due
from ebbtide.app.tier_drop import drop_due, foresee, foresee_one
from ebbtide.app.tier_opened import HotRun, added, hot_run, hot_table, hot_tables
from ebbtide.app.tier_table import NOT_ADDED, TierOutcome, bring_up, guarded, look, mirrored, within_the_ceiling
from ebbtide.config import Project
from ebbtide.config.hottier import HotTable
from ebbtide.errors import ConflictError, InputError
from ebbtide.ledger.ledger import Ledger
from ebbtide.run import RunContext, quiet
from ebbtide.state.hottier import ChunkRecord, HotReader, HotRecord, HotWriter, MirrorState


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
            foreseen = {name: TierOutcome(table) for name, table in tables.items()}
            for name, each in foreseen.items():
                foresee(project, each, known.get(name), reader.chunks(name), holds, now, proves=True)
        would = tuple(_as_told(known.get(name), each) for name, each in foreseen.items())
        return would if only is not None else would + _forgotten(project, known)
    with (
        sweeper(ledger, context) as lease,
        recorded(context, ledger, "tier sync" if sync_only else "tier run", lease) as run,
        hot_run(project, ledger, lease, run.context) as hot,
    ):
        close_unfinished(ledger, lease)
        told = {name: TierOutcome(table) for name, table in tables.items()}
        for name, each in told.items():
            if name not in known:
                each.notices.append(NOT_ADDED)
                continue
            guarded(each, lambda each=each: bring_up(hot, each, now, seals=not sync_only))
            guarded(each, lambda each=each: within_the_ceiling(hot, each))
            if not sync_only:  # what goes wrong there stops no mirror
                guarded(each, lambda each=each: refuse_outlived(project, each.table))
        if not sync_only:
            drop_due(hot, {n: t for n, t in told.items() if n in known and not t.errors}, now)
            for name, each in told.items():
                if name in known:
                    guarded(each, lambda each=each: compact_if_due(hot, each, now))
        results = tuple(_result(hot, name, each) for name, each in told.items())
        if only is None:
            results += _forgotten(project, known)
        run.ended(exit_code(results), f"{sum(len(r.tiered) for r in results)} tiered")
        return results


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
    dry_run: bool = False,
    context: RunContext | None = None,
) -> TierResult:
    """Drop what is past `drop_after`: one chunk, or all of a table. `force` passes the gate, never a hold."""
    context = quiet(context, as_of=as_of)
    table = hot_table(project, name)
    name = table.id
    ledger, now = open_for_writing(project, context)
    record = added(ledger).get(name)
    if record is None:
        raise InputError(f"{name} was not added", hint=f"run `ebbtide tier add {name}`")
    if dry_run:
        return _would_drop(project, ledger, table, record, chunk, now, force=force)
    with (
        sweeper(ledger, context) as lease,
        recorded(context, ledger, "tier drop", lease) as run,
        hot_run(project, ledger, lease, run.context) as hot,
    ):
        close_unfinished(ledger, lease)
        told = TierOutcome(table)
        if chunk is not None:
            _refuse_unknown(hot.book(table).chunks(), table, chunk)
            hot.book(table).set_chunk(chunk, pinned=0)
        guarded(told, lambda: look(hot, told, now, ahead=False))
        if table.cold is not None and not force:
            guarded(told, lambda: mirrored(hot, told))
            guarded(told, lambda: refuse_outlived(project, table))
        if not told.errors or (force and not told.refused):
            drop_due(hot, {name: told}, now, only=chunk, force=force)
        result = _result(hot, name, told)
        run.ended(exit_code([result]), f"{len(result.dropped)} dropped")
        return result


def _refuse_unknown(chunks: Sequence[ChunkRecord], table: HotTable, chunk: str) -> None:
    names = [each.name for each in chunks]
    if chunk not in names:
        from ebbtide.config.yaml import nearest

        raise InputError(f"no chunk {chunk!r} of {table.name}", hint=nearest(chunk, names))


def _would_drop(
    project: Project,
    ledger: Ledger,
    table: HotTable,
    record: HotRecord,
    only: str | None,
    now: datetime,
    *,
    force: bool,
) -> TierResult:
    with ledger.database.reader() as state:
        chunks, holds = HotReader(state.connection).chunks(table.id), state.holds()
    told = TierOutcome(table)
    if only is not None:
        _refuse_unknown(chunks, table, only)
        chunks = tuple(replace(each, pinned=0) if each.name == only else each for each in chunks)
    kept = foresee(project, told, record, chunks, holds, now, force=force)
    if only is not None:
        foresee_one(told, kept, only)
    return _as_told(record, told)


def _forgotten(project: Project, known: Mapping[str, HotRecord]) -> tuple[TierResult, ...]:
    """Tables that were added, and that no file names any more: nobody mirrors them, and a slot keeps the log."""
    tables = hot_tables(project)
    return tuple(
        TierResult(
            name, str(record.state),
            errors=(
                f"{name} was added, and no file of hottier/ names it any more: its server keeps its log for it"
                f" (put it back, or run `ebbtide tier remove {name}`)",
            ),
        )
        for name, record in known.items()
        if name not in tables
    )  # fmt: skip


def _result(hot: HotRun, name: str, told: TierOutcome) -> TierResult:
    with hot.ledger.database.reader() as state:
        return _as_told(HotReader(state.connection).table(name), told)


def _as_told(record: HotRecord | None, told: TierOutcome) -> TierResult:
    mirror = str(record.state if record else MirrorState.OFF)
    return TierResult(
        told.table.id, mirror, tuple(told.tiered), tuple(told.dropped), tuple(told.would_drop), tuple(told.missing),
        tuple(told.errors), tuple(told.notices), told.refused,
    )  # fmt: skip
