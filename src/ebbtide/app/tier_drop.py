"""The chunks of a run that go: what is due, and the acts that drop it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from ebbtide.acts.act import Act
from ebbtide.acts.engine import Engine, Lake
from ebbtide.app.tier_opened import HotRun
from ebbtide.app.tier_table import TierOutcome, tell
from ebbtide.config.hottier import HotTable
from ebbtide.errors import LeaseError, keep_trace
from ebbtide.hottier.owner import KIND, ChunkDropper, ChunkOwner, act_of, why_kept
from ebbtide.hottier.table import find
from ebbtide.inventory.current import Current
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.durations import is_older
from ebbtide.state.hottier import ChunkRecord, ChunkState
from ebbtide.state.values import Hold
from ebbtide.state.writer import new_id


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
        if held := why_kept(table, chunk, holds):
            kept[chunk.name] = held
        elif chunk.pinned:
            kept[chunk.name] = "a person brought it back: `ebbtide tier drop` with its name drops it"
        elif gated and chunk.state is not ChunkState.TIERED:
            kept[chunk.name] = next(iter(chunk.waits_for), "it is not proven durable in the lake")
        else:
            going.append(chunk)
    return going, kept


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
        if only is not None and only in kept:
            stays = f"chunk {only} stays: "
            each.errors.append(stays + kept[only].removeprefix(stays))
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
