"""`ebbtide tier remove`: the end of a mirror, also of a table that no file names any more. No row goes."""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from ebbtide.app.ledger import open_for_writing
from ebbtide.app.results.tier import TierChange
from ebbtide.app.round import sweeper
from ebbtide.app.tier_opened import added, hot_table, hot_tables
from ebbtide.config import Project
from ebbtide.config.hottier import HotTable, ServerUrl
from ebbtide.errors import ConflictError, InputError, RefusedError
from ebbtide.hottier import setup
from ebbtide.hottier.fence import take_down_fences
from ebbtide.hottier.log import mark_own
from ebbtide.hottier.server import connect, identity
from ebbtide.hottier.statements import build
from ebbtide.model.ids import written
from ebbtide.run import RunContext, quiet
from ebbtide.state.hottier import HotRecord, HotWriter

Session = Connection[tuple[Any, ...]]


def remove(project: Project, name: str, *, dry_run: bool = False, context: RunContext | None = None) -> TierChange:
    """End the mirror, and forget the table's chunks. No row goes, here or in the lake."""
    context = quiet(context)
    ledger, _ = open_for_writing(project, context)
    known = added(ledger)
    table = hot_tables(project).get(written(name))
    if table is None and written(name) not in known:
        table = hot_table(project, name)  # says which names there are
    name = written(name)
    if (record := known.get(name)) is None:
        raise InputError(f"{name} was not added", hint="`ebbtide tier status` lists what was")
    told = () if record.slot is None else (
        f"SELECT pg_drop_replication_slot('{record.slot}')", f'DROP PUBLICATION IF EXISTS "{record.slot}"'
    )  # fmt: skip
    if not dry_run:
        with sweeper(ledger, context) as lease:
            if table is not None:
                with connect(table.server) as connection:
                    _unfence(connection, table)
                    _end(connection, record)
            else:
                _end_where_it_is(project, record)
            with ledger.database.sweeper(lease) as state:
                HotWriter(state.connection).remove(name)
    return TierChange(table=name, state="would be removed" if dry_run else "removed", statements=told)


def _end(connection: Session, record: HotRecord) -> None:
    if record.slot is not None:
        setup.drop_slot(connection, record.slot)
        with connection.transaction():
            mark_own(connection)
            connection.execute(build("DROP PUBLICATION IF EXISTS {p}", p=(record.slot,)))


def _end_where_it_is(project: Project, record: HotRecord) -> None:
    """Of a table without a file nobody knows the address: its server is looked for among those of the others."""
    if record.slot is None:
        return
    servers: dict[str, ServerUrl] = {}
    for table in hot_tables(project).values():
        servers.setdefault(table.server.secret.get_secret_value(), table.server)
    for server in servers.values():
        with connect(server) as connection:
            if identity(connection).system == record.system and _is_here(connection, record.slot):
                _end(connection, record)
                return
    raise RefusedError(
        f"no file of hottier/ names the server and the database of {record.id}: its slot {record.slot} would stay",
        hint="put its file back, then run it again",
    )


def _is_here(connection: Session, slot: str) -> bool:
    """Whether the slot is one of this database, or is gone from the server."""
    row = connection.execute(
        "SELECT coalesce(bool_or(database = current_database()), true) FROM pg_replication_slots WHERE slot_name = %s",
        [slot],
    ).fetchone()
    return row is not None and bool(row[0])


def _unfence(connection: Session, table: HotTable) -> None:
    """No fence is left behind: nobody would take it down any more."""
    if standing := take_down_fences(connection, table):
        raise ConflictError(
            f"the fence of chunk {standing[0]} still stands: a writer of it has not ended", hint="run it again"
        )
