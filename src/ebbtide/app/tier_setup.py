"""`ebbtide tier init|add|resync|remove`: what a table needs on its server, its first copy, and its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from psycopg import Connection
from psycopg.sql import Composed

from ebbtide.app.ledger import open_for_writing
from ebbtide.app.results.tier import TierChange
from ebbtide.app.round import sweeper
from ebbtide.app.runs import recorded
from ebbtide.app.tier_cold import refuse_outlived
from ebbtide.app.tier_copy import copy_again, first_copy, refuse_foreign, refuse_loss
from ebbtide.app.tier_opened import HotRun, added, cold_of, hot_run, hot_table, hot_tables, refuse_another
from ebbtide.config import Project
from ebbtide.config.hottier import HotTable, ServerUrl
from ebbtide.errors import EbbtideError, InputError, RefusedError, kind_of
from ebbtide.formats.iceberg.cold import ColdRange, ColdTable
from ebbtide.hottier import partitions, setup
from ebbtide.hottier.chunks import new_records
from ebbtide.hottier.drift import refuse_unfit_types
from ebbtide.hottier.log import mark_own
from ebbtide.hottier.repartition import Wide, exchange, make_partitioned, plan_wide, promise
from ebbtide.hottier.server import connect, identity
from ebbtide.hottier.statements import build
from ebbtide.hottier.table import ServerTable, find, refuse_unfit
from ebbtide.model.ids import DatasetId
from ebbtide.run import RunContext, quiet
from ebbtide.state.hottier import ChunkState, HotRecord, HotWriter, MirrorState

Session = Connection[tuple[Any, ...]]
_RESIDENT = "rows of chunks that are here are copied again; what lies in the lake only stays as it is"


def init(project: Project, *, dry_run: bool = False) -> TierChange:
    """Bring functions and event triggers to every server of the project. Needs a superuser once."""
    statements = setup.install()
    servers: dict[str, ServerUrl] = {}
    for table in hot_tables(project).values():
        servers.setdefault(table.server.secret.get_secret_value(), table.server)
    if not servers:
        raise InputError("no hot tables", where=str(project.root / "hottier"), hint="docs/hottier.md shows a file")
    told: tuple[str, ...] = ()
    for server in servers.values():
        with connect(server) as connection:
            told = partitions.shown(connection, statements)
            if not dry_run:
                _refuse_no_superuser(connection)
                partitions.execute(connection, statements)
    return TierChange(table=None, state="would be initialised" if dry_run else "initialised", statements=told)


def _refuse_no_superuser(connection: Session) -> None:
    row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    if row is None or not row[0]:
        raise RefusedError(
            "only a superuser may create event triggers",
            hint="let one run the statements of `ebbtide tier init --dry-run` once",
        )


def add(
    project: Project, name: str, *, partition: bool = False, dry_run: bool = False, context: RunContext | None = None
) -> TierChange:
    """Adopt a table's chunks; with `cold`, copy it into the lake and mirror it from there on.

    `partition`: make a partitioned table of a plain one first, while it is in use.
    """
    context = quiet(context)
    table = hot_table(project, name)
    name = table.id
    ledger, now = open_for_writing(project, context)
    if name in added(ledger):
        raise InputError(f"{name} was added already", hint=f"`ebbtide tier resync {name}` copies it again")
    refuse_outlived(project, table)
    with connect(table.server) as connection:
        found, before, wide = _partitioned(connection, table, now) if partition else (None, [], None)
        found = found or _fit(connection, table)
        source = setup.name_for(connection, project.name, table)
        publication = source if table.streamed else None
        statements = _statements(table, found, publication, now=now)
        told = partitions.shown(connection, [*before, *statements])
        if dry_run:
            more = () if publication is None else (f"CREATE_REPLICATION_SLOT {publication} LOGICAL pgoutput",)
            return TierChange(table=name, state="would be added", statements=(*told, *more))
        if publication is not None:
            setup.refuse_taken(connection, publication)
    with (
        _partitioned_by_now(table) as exchanged,
        sweeper(ledger, context) as lease,
        recorded(context, ledger, "tier add", lease) as run,
        hot_run(project, ledger, lease, run.context) as hot,
    ):
        cold = _new_cold(project, table, found, source)  # refuses before anything of the server is changed
        if wide is not None:
            run.context.step(f"partitioning {table.name}")
            make_partitioned(hot.session(table), table, find(hot.session(table), table), wide)
            exchanged.append(wide)
            found = _fit(hot.session(table), table)
            statements = _statements(table, found, publication, now=now)
        _register(hot, table, found, publication, now=now)
        try:
            with hot.session(table).transaction():
                mark_own(hot.session(table))
                for each in statements:
                    hot.session(table).execute(each)
            _register_chunks(hot, table)
            if publication is not None and cold is not None:
                first_copy(hot, table, cold, publication, may_lose=True)
        except BaseException:
            _undo(hot, table, publication)
            raise
        run.ended(0, name)
    return TierChange(table=name, state="added", statements=told)


@contextmanager
def _partitioned_by_now(table: HotTable) -> Iterator[list[Wide]]:
    """What fails behind the exchange says that the table is another one by now, and until when it takes rows."""
    exchanged: list[Wide] = []
    try:
        yield exchanged
    except EbbtideError as error:
        for wide in exchanged:
            by_now = (
                f"{table.name} is partitioned by now, and takes rows of before {wide.end:%Y-%m-%d %H:%M} only:"
                f" run `ebbtide tier add {table.id}` again"
            )
            error.hint = by_now if error.hint is None else f"{error.hint}; {by_now}"
        raise


def _undo(hot: HotRun, table: HotTable, publication: str | None) -> None:
    """A table whose first copy failed is not added: no slot of it holds the server's log, and `add` begins anew."""
    with suppress(EbbtideError):  # what went wrong is what is told; what is left here is for `tier remove`
        if publication is not None:
            with connect(table.server) as connection:
                setup.drop_slot(connection, publication)
                connection.execute(build("DROP PUBLICATION IF EXISTS {p}", p=(publication,)))
        with hot.ledger.database.sweeper(hot.lease) as state:
            HotWriter(state.connection).remove(table.id)


def _partitioned(
    connection: Session, table: HotTable, now: datetime
) -> tuple[ServerTable | None, list[Composed], Wide | None]:
    """A plain table as it will be, the statements that make it so, and its one wide chunk. Nothing is changed yet."""
    plain = find(connection, table)
    if plain.partitioned:
        return None, [], None
    wide = plan_wide(connection, table, plain, now=now)
    found = wide.as_chunk(plain)
    if problems := refuse_unfit(connection, found, synced=table.cold is not None, streamed=table.streamed):
        raise RefusedError(f"{table.name} cannot be tiered: {'; '.join(problems)}", hint="nothing was changed")
    return found, [*promise(table, plain, wide), *exchange(connection, table, plain, wide)], wide


def _fit(connection: Session, table: HotTable) -> ServerTable:
    found = find(connection, table)
    if not found.partitioned:
        raise InputError(
            f"{table.name} is not partitioned by time", where=table.where,
            hint=f"`ebbtide tier add {table.id} --partition` makes it so while it is in use; --dry-run shows how",
        )  # fmt: skip
    if problems := refuse_unfit(connection, found, synced=table.cold is not None, streamed=table.streamed):
        raise RefusedError(f"{table.name} cannot be tiered: {'; '.join(problems)}", hint="nothing was changed")
    return found


def _statements(table: HotTable, found: ServerTable, publication: str | None, *, now: Any) -> list[Composed]:
    made = [] if publication is None else setup.publish(found, publication)
    return [*made, *partitions.ahead(table, found, publication, now=now)]


def _new_cold(project: Project, table: HotTable, found: ServerTable, slot: str | None) -> ColdTable | None:
    """An empty cold table. One that has rows belongs to somebody: it is not taken over."""
    if table.cold is None:
        return None
    cold = cold_of(project, table)
    if cold is None:
        dataset = DatasetId.parse(table.cold)
        return ColdTable.create(project.catalogs[dataset.catalog], dataset, found.columns.schema, table.time)
    if cold.source not in (None, slot):
        raise RefusedError(f"{table.cold} is another mirror's already", hint="give this table a cold table of its own")
    if cold.version is not None and cold.rows(ColdRange(table.time, None, None, found.time_kind)):
        raise RefusedError(f"{table.cold} has rows already", hint="name a table that does not exist yet")
    return cold


def _register(hot: HotRun, table: HotTable, found: ServerTable, publication: str | None, *, now: Any) -> None:
    del found
    here = identity(hot.session(table))
    state = MirrorState.STARTING if table.streamed else MirrorState.OFF if table.cold is None else MirrorState.STREAMING
    record = HotRecord(
        id=table.id, cold=table.cold, system=here.system, timeline=here.timeline, slot=publication,
        publication=publication, state=state, because="" if publication is None else "its first copy is not done",
        added_at=now, position=here.flushed if state is MirrorState.STREAMING else None,
    )  # fmt: skip
    with hot.ledger.database.sweeper(hot.lease) as state_writer:
        HotWriter(state_writer.connection).add(record)


def _register_chunks(hot: HotRun, table: HotTable) -> ServerTable:
    found = find(hot.session(table), table)
    with hot.ledger.database.sweeper(hot.lease) as state:
        writer = HotWriter(state.connection)
        writer.add_chunks(new_records(table.id, found, writer))
    return found


def resync(
    project: Project, name: str, *, confirm: bool = False, dry_run: bool = False, context: RunContext | None = None
) -> TierChange:
    """Copy what is here again, and mirror from there on. No row of a chunk that is in the lake only goes, and of others
    no more than `delete_share` of a chunk, or what stopped the mirror, unless a person confirms.
    """
    context = quiet(context)
    table = hot_table(project, name)
    name = table.id
    ledger, _ = open_for_writing(project, context)
    record = added(ledger).get(name)
    if record is None or table.cold is None or (record.slot is None and table.streamed):
        raise InputError(f"{name} has no mirror", hint=f"`ebbtide tier add {name}` makes one")
    if dry_run:
        return TierChange(table=name, state="would be copied again", statements=(), because=_RESIDENT)
    with (
        sweeper(ledger, context) as lease,
        recorded(context, ledger, "tier resync", lease) as run,
        hot_run(project, ledger, lease, run.context) as hot,
    ):
        connection = hot.session(table)
        here, record = identity(connection), hot.book(table).record()
        refuse_another(table, record, here)
        found = _fit(connection, table)
        if not table.streamed:
            if cold_of(project, table) is None:
                _new_cold(project, table, found, setup.name_for(connection, project.name, table))
            copy_again(hot, table, found, here, confirm=confirm)
            run.ended(0, name)
            return TierChange(table=name, state="copied again", statements=(), because=_RESIDENT)
        slot = record.slot
        assert slot is not None
        cold = cold_of(project, table)
        if cold is None:
            cold = _new_cold(project, table, found, slot)
        assert cold is not None
        refuse_foreign(cold, table, found, slot)
        refuse_unfit_types(cold, found.columns)
        if not confirm:
            _refuse_unconfirmed(record)
            refuse_loss(connection, cold, table, found)
        # What waits to be confirmed waits until the copy is done: who dies before it has confirmed nothing.
        hot.book(table).set_table(
            state=MirrorState.STARTING, because="it is being copied again", system=here.system, timeline=here.timeline,
            position=None, passed=None, confirmed=None,
        )  # fmt: skip
        try:
            _start_over(connection, found, slot)
            _register_chunks(hot, table)
            _prove_again(hot, table, {leaf.oid for leaf in found.chunks})
            first_copy(hot, table, cold, slot, may_lose=confirm)
        except Exception as error:
            because = error.message if isinstance(error, EbbtideError) else kind_of(error)
            hot.book(table).set_table(state=MirrorState.DEGRADED, because=f"it was not copied again: {because}")
            raise
        run.ended(0, name)
    return TierChange(table=name, state="copied again", statements=(), because=_RESIDENT)


def _refuse_unconfirmed(record: HotRecord) -> None:
    if record.confirm is not None:
        raise RefusedError(
            f"{record.id} stopped at what nobody confirmed: {record.because}",
            hint=f"`ebbtide tier resync {record.id} --confirm` takes these rows from the lake, too",
        )


def _prove_again(hot: HotRun, table: HotTable, there: set[int]) -> None:
    """What was proven was proven of another copy. A chunk that was detached is none any more."""
    book = hot.book(table)
    for chunk in book.chunks():
        if chunk.state in (ChunkState.ACTIVE, ChunkState.TIERED):
            state = ChunkState.ACTIVE if chunk.oid in there else ChunkState.MISSING
            book.set_chunk(chunk.name, state=state, sealed=None, changed=None, tiered_at=None, digest=None)


def _start_over(connection: Session, found: ServerTable, name: str) -> None:
    setup.drop_slot(connection, name)
    with connection.transaction():
        mark_own(connection)
        connection.execute(build("DROP PUBLICATION IF EXISTS {p}", p=(name,)))
        for each in setup.publish(found, name):
            connection.execute(each)
