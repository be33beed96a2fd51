"""What every verb of the hot tier opens: tables of the project, their servers, mirrors, and the book of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection

from ebbtide.app.state import open_state
from ebbtide.config import Project, yaml
from ebbtide.config.hottier import HotTable, load_hot_tables
from ebbtide.errors import InputError, RefusedError
from ebbtide.formats.iceberg.cold import ColdTable
from ebbtide.hottier.batch import AnyMirror, BatchMirror
from ebbtide.hottier.mirror import Mirror
from ebbtide.hottier.server import Identity, connect
from ebbtide.hottier.setup import name_for
from ebbtide.ledger.ledger import Ledger
from ebbtide.model.ids import DatasetId, written
from ebbtide.run import RunContext
from ebbtide.state.hottier import ChunkRecord, HotReader, HotRecord, HotWriter
from ebbtide.state.lease import Lease


def hot_tables(project: Project, name: str | None = None) -> dict[str, HotTable]:
    """The tables of `hottier/*.yml` by id, or the one that was named."""
    if name is None:
        return load_hot_tables(project.root)
    table = hot_table(project, name)
    return {table.id: table}


def hot_table(project: Project, name: str) -> HotTable:
    """The one that was named, however its name is written."""
    found = load_hot_tables(project.root)
    if (table := found.get(written(name))) is None:
        raise InputError(f"no hot table {name!r} in hottier/*.yml", hint=yaml.nearest(name, list(found)))
    return table


def cold_of(project: Project, table: HotTable) -> ColdTable | None:
    """Its cold table, where there is one by now."""
    if table.cold is None:
        return None
    dataset = DatasetId.parse(table.cold)
    catalog = project.catalogs.get(dataset.catalog)
    if catalog is None:
        hint = yaml.nearest(dataset.catalog, list(project.catalogs))
        raise InputError(f"no catalog {dataset.catalog!r} of {table.cold}", where=table.where, hint=hint)
    return ColdTable.open(catalog, dataset)


@dataclass(frozen=True, slots=True)
class StateBook:
    """What the state knows of one table; every write proves the lease."""

    ledger: Ledger
    lease: Lease
    table_id: str

    def record(self) -> HotRecord:
        with self.ledger.database.reader() as state:
            record = HotReader(state.connection).table(self.table_id)
        if record is None:
            raise InputError(f"{self.table_id} was not added", hint=f"run `ebbtide tier add {self.table_id}`")
        return record

    def chunks(self) -> tuple[ChunkRecord, ...]:
        with self.ledger.database.reader() as state:
            return HotReader(state.connection).chunks(self.table_id)

    def chunk(self, name: str) -> ChunkRecord | None:
        with self.ledger.database.reader() as state:
            return HotReader(state.connection).chunk(self.table_id, name)

    def set_table(self, **values: Any) -> None:
        with self.ledger.database.sweeper(self.lease) as state:
            HotWriter(state.connection).set_table(self.table_id, **values)

    def set_chunk(self, name: str, **values: Any) -> None:
        with self.ledger.database.sweeper(self.lease) as state:
            HotWriter(state.connection).set_chunk(self.table_id, name, **values)

    def waits(self, chunk: ChunkRecord, because: str) -> None:
        """Why a chunk stays. Most stay for what they stayed for before: nothing is written then."""
        if chunk.waits_for != (because,):
            self.set_chunk(chunk.name, waits_for=(because,))


@dataclass(slots=True)
class HotRun:
    """Sessions and mirrors of one run: each server is asked for one session a table."""

    project: Project
    ledger: Ledger
    lease: Lease
    context: RunContext
    stack: ExitStack
    sessions: dict[str, Connection[tuple[Any, ...]]] = field(default_factory=dict)
    mirrors: dict[str, AnyMirror] = field(default_factory=dict)

    def book(self, table: HotTable) -> StateBook:
        return StateBook(self.ledger, self.lease, table.id)

    def session(self, table: HotTable) -> Connection[tuple[Any, ...]]:
        name = table.id
        if name not in self.sessions:
            self.sessions[name] = self.stack.enter_context(connect(table.server))
        return self.sessions[name]

    def mirror(self, table: HotTable) -> AnyMirror | None:
        """Its mirror, where it has one: it was added with a cold table."""
        name = table.id
        if name not in self.mirrors:
            book = self.book(table)
            cold = cold_of(self.project, table)
            if cold is None or (table.streamed and book.record().slot is None):
                return None
            session = self.session(table)
            if table.streamed:
                self.mirrors[name] = Mirror(table, session, cold, book, self.context)
            else:
                source = name_for(session, self.project.name, table)
                self.mirrors[name] = BatchMirror(table, session, cold, book, self.context, source)
        return self.mirrors[name]


@contextmanager
def hot_run(project: Project, ledger: Ledger, lease: Lease, context: RunContext) -> Iterator[HotRun]:
    """Whatever is opened is closed at the end."""
    with ExitStack() as stack:
        yield HotRun(project, ledger, lease, context, stack)


def added(ledger: Ledger) -> Mapping[str, HotRecord]:
    """The tables that were added, by id."""
    with ledger.database.reader() as state:
        return {record.id: record for record in HotReader(state.connection).tables()}


def refuse_another(table: HotTable, record: HotRecord, here: Identity) -> None:
    """A table that is synced stays gated, whatever its file says by now; and a name is a table of one server only."""
    refuse_otherwise(table, record)
    if record.cold is None and record.system != here.system:
        raise RefusedError(
            f"{table.id} was added on another server", hint=f"run `ebbtide tier remove {table.id}` first"
        )


def refuse_otherwise(table: HotTable, record: HotRecord) -> None:
    """Of these what can be told without a server: its file has another cold table or mirror than it was added with."""
    name = table.id
    if record.cold != table.cold:
        raise RefusedError(
            f"{name} was added with {record.cold or 'no cold table'}, and its file names {table.cold or 'none'}",
            hint=f"nothing was done; put it back, or run `ebbtide tier remove {name}` first",
        )
    if record.cold is not None and (record.slot is not None) != table.streamed:
        before = "batch" if record.slot is None else "stream"
        raise RefusedError(
            f"{name} was added with mirror: {before}, and its file says {table.mirror}",
            hint=f"nothing was done; put it back, or run `ebbtide tier remove {name}` first",
        )


def refuse_not_as_added(project: Project, name: str) -> None:
    """As `refuse_otherwise`, of a table by its name: what a dry run asks, which opens no server."""
    table = hot_table(project, name)
    with open_state(project).reader() as state:
        record = HotReader(state.connection).table(table.id)
    if record is not None:
        refuse_otherwise(table, record)
