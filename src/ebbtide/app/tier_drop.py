"""The chunks of a run that go: what is due, and the acts that drop it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from ebbtide.acts.act import Act
from ebbtide.acts.engine import Engine, Lake
from ebbtide.app.hot_chunks import NOT_PROVEN, why_not_proven
from ebbtide.app.tier_cold import refuse_outlived
from ebbtide.app.tier_opened import HotRun, refuse_otherwise
from ebbtide.app.tier_table import NOT_ADDED, TierOutcome, guarded, tell
from ebbtide.config import Project
from ebbtide.config.hottier import HotTable
from ebbtide.errors import LeaseError, keep_trace
from ebbtide.hottier.owner import KIND, ChunkDropper, ChunkOwner, act_of, why_kept
from ebbtide.hottier.table import find
from ebbtide.inventory.current import Current
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.durations import is_older
from ebbtide.state.hottier import ChunkRecord, ChunkState, HotRecord, MirrorState
from ebbtide.state.values import Hold
from ebbtide.state.writer import new_id


def due_to_drop(
    table: HotTable, chunks: Sequence[ChunkRecord], holds: Collection[Hold], now: datetime, *, force: bool = False,
    shut: str | None = None,
) -> tuple[list[ChunkRecord], dict[str, str]]:  # fmt: skip
    """The chunks that go now, and why others that are past `drop_after` do not. `shut`: why the table's gate is."""
    going: list[ChunkRecord] = []
    kept: dict[str, str] = {}
    gated = table.gated and not force
    for chunk in chunks:
        if table.drop_after is None or chunk.last is None or chunk.state in (ChunkState.DROPPED, ChunkState.MISSING):
            continue
        if not is_older(chunk.last, table.drop_after, now):
            continue
        if held := why_kept(table, chunk, holds):
            kept[chunk.name] = held
        elif chunk.pinned:
            kept[chunk.name] = "a person brought it back: `ebbtide tier drop` with its name drops it"
        elif gated and shut is not None:
            kept[chunk.name] = shut
        elif gated and chunk.state is not ChunkState.TIERED:
            kept[chunk.name] = why_not_proven(chunk)[0]
        else:
            going.append(chunk)
    return going, kept


def foresee(
    project: Project, told: TierOutcome, record: HotRecord | None, chunks: Sequence[ChunkRecord],
    holds: Collection[Hold], now: datetime, *, force: bool = False, proves: bool = False,
) -> dict[str, str]:  # fmt: skip
    """What a drop would take, into `told`, and why it would not take the others; no server is asked.

    `proves`: it comes after a proof of what is past `tier_after`.
    """
    table = told.table
    if record is None:
        told.notices.append(NOT_ADDED)
        return {}
    guarded(told, lambda: refuse_otherwise(table, record))
    if not force:
        guarded(told, lambda: refuse_outlived(project, table))
    if told.errors:
        return {}
    shut = None
    if record.state is not MirrorState.STREAMING:
        shut = f"the mirror is {record.state}{f': {record.because}' if record.because else ''}"
    going, kept = due_to_drop(table, chunks, holds, now, force=force, shut=shut)
    told.would_drop += [chunk.name for chunk in going]
    for chunk in chunks:
        if (why := kept.get(chunk.name)) is None:
            continue
        if why == NOT_PROVEN and proves and table.tier_after is not None:
            told.notices.append(f"{chunk.name} is due: a run drops it once it has proven that it is in the lake")
        else:
            told.notices.append(f"{chunk.name} stays: {why.removeprefix(f'chunk {chunk.name} stays: ')}")
    return kept


def foresee_one(told: TierOutcome, kept: dict[str, str], only: str) -> None:
    """Of what a drop would take only the chunk that was named."""
    going, told.would_drop = told.would_drop, [name for name in told.would_drop if name == only]
    told.notices = []
    if not told.errors:
        _tell_named(told, only, going, kept)


def _tell_named(told: TierOutcome, only: str, going: Collection[str], kept: dict[str, str]) -> None:
    """A chunk that somebody named and that stays is a refusal."""
    if only in going:
        return
    stays = f"chunk {only} stays: "
    told.errors.append(stays + kept.get(only, "it is not past drop_after, or it is gone already").removeprefix(stays))
    told.refused = True


def drop_due(
    hot: HotRun, told: dict[str, TierOutcome], now: datetime, *, only: str | None = None, force: bool = False
) -> None:
    acts: list[Act] = []
    with hot.ledger.database.reader() as state:
        holds = state.holds()
    for each in told.values():
        table, book = each.table, hot.book(each.table)
        chunks = book.chunks()
        going, kept = due_to_drop(table, chunks, holds, now, force=force)
        for chunk in chunks:
            if chunk.name in kept:
                book.waits(chunk, kept[chunk.name])
        if only is not None:
            _tell_named(each, only, [chunk.name for chunk in going], kept)
        forced_by = hot.context.actor if force and table.gated else None
        acts += [
            act_of(table, chunk, new_id(), gated=table.gated and not force, forced_by=forced_by)
            for chunk in going
            if only in (None, chunk.name)
        ]
    by_server: dict[str, list[Act]] = {}
    for act in acts:
        by_server.setdefault(told[act.dataset].table.server.secret.get_secret_value(), []).append(act)
    for of_server in by_server.values():
        _guarded(hot, told, of_server, forced=force)


def _guarded(hot: HotRun, told: dict[str, TierOutcome], acts: Sequence[Act], *, forced: bool) -> None:
    """The acts of one server. Where it goes away under them the next run closes them, by what it sees there; tables of
    other servers have their run.
    """
    tables = {act.dataset: told[act.dataset] for act in acts}
    try:
        _carry_out(hot, tables, acts, forced=forced)
    except LeaseError:
        raise
    except Exception as error:
        keep_trace(error)
        for each in tables.values():
            tell(each, error)


def _carry_out(hot: HotRun, told: dict[str, TierOutcome], acts: Sequence[Act], *, forced: bool) -> None:
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
        after = hot.book(each.table).chunk(name)
        if after is not None and after.state is ChunkState.DROPPED:
            each.dropped.append(name)
        elif result.error is not None:
            each.errors.append(result.error)
