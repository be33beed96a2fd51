"""`ebbtide tier untier`: a dropped chunk comes back from the lake, equal by digest."""

from __future__ import annotations

from typing import Any

from psycopg import Connection
from psycopg.sql import SQL

from ebbtide.app.ledger import open_for_writing
from ebbtide.app.results.tier import TierChange
from ebbtide.app.round import sweeper
from ebbtide.app.runs import recorded
from ebbtide.app.tier_opened import hot_run, hot_table
from ebbtide.config import Project
from ebbtide.config.hottier import HotTable
from ebbtide.errors import InputError, RefusedError
from ebbtide.formats.iceberg.cold import ColdRange, ColdTable
from ebbtide.hottier.digest import cold_digest, hot_digest
from ebbtide.hottier.log import mark_own
from ebbtide.hottier.partitions import bound, without_tombstone
from ebbtide.hottier.statements import build
from ebbtide.hottier.table import PartitionLeaf, ServerTable, find
from ebbtide.run import RunContext, quiet
from ebbtide.state.hottier import ChunkRecord, ChunkState, HotWriter


def untier(
    project: Project, name: str, chunk: str, *, dry_run: bool = False, context: RunContext | None = None
) -> TierChange:
    """Bring a chunk back. It stays until a person drops it by its name."""
    context = quiet(context)
    table = hot_table(project, name)
    name = table.id
    ledger, _ = open_for_writing(project, context)
    with (
        sweeper(ledger, context) as lease,
        recorded(context, ledger, "tier untier", lease) as run,
        hot_run(project, ledger, lease, run.context) as hot,
    ):
        book, mirror = hot.book(table), hot.mirror(table)
        record = book.chunk(chunk)
        if record is None or record.state is not ChunkState.DROPPED or record.last is None:
            raise InputError(f"no dropped chunk {chunk!r} of {name}", hint="`ebbtide tier status` lists them")
        if mirror is None:
            raise InputError(f"{name} has no cold table: what was dropped is gone", hint="restore it from a backup")
        if dry_run:
            run.ended(0, "nothing was done")
            return TierChange(table=name, state="would come back", statements=())
        found = mirror.drain()
        oid = _bring_back(hot.session(table), mirror.cold, table, found, record, hot.book(table).record().publication)
        with ledger.database.sweeper(lease) as state:
            HotWriter(state.connection).add_chunks(
                [
                    ChunkRecord(
                        hot_table=table.id, name=chunk, oid=oid, first=record.first, last=record.last,
                        state=ChunkState.ACTIVE, pinned=1,
                    )
                ]
            )  # fmt: skip
        run.ended(0, chunk)
    return TierChange(table=name, state=f"chunk {chunk} is back", statements=())


def _bring_back(
    connection: Connection[tuple[Any, ...]],
    cold: ColdTable,
    table: HotTable,
    found: ServerTable,
    chunk: ChunkRecord,
    publication: str | None,
) -> int:
    """One transaction: a table filled and compared, the tombstone opened, the table attached and published.

    Its rows are written before it is published, so that the mirror does not see them as new.
    """
    assert chunk.last is not None
    span = ColdRange(table.time, chunk.first, chunk.last, found.time_kind)
    version = cold.version
    leaf_path = (found.schema, chunk.name)
    with connection.transaction():
        mark_own(connection)
        connection.execute(
            build("CREATE TABLE {leaf} (LIKE {t} INCLUDING ALL EXCLUDING IDENTITY)", leaf=leaf_path, t=found.path)
        )
        connection.execute(build("ALTER TABLE {leaf} OWNER TO {owner}", leaf=leaf_path, owner=(found.owner,)))
        _fill(connection, cold, span, version, leaf_path, found)
        row = connection.execute("SELECT %s::regclass::oid::bigint", [_quoted(connection, leaf_path)]).fetchone()
        assert row is not None
        leaf = PartitionLeaf(row[0], found.schema, chunk.name, chunk.first, chunk.last, tombstone=False)
        here = hot_digest(connection, leaf, found.columns)
        there = cold_digest(cold.batches(span, version=version), found.columns)
        if here != there:
            raise RefusedError(
                f"chunk {chunk.name} did not come back as it lies in the lake: {here.rows:,} rows here, "
                f"{there.rows:,} there", hint="nothing was changed",
            )  # fmt: skip
        connection.execute(build("LOCK TABLE ONLY {t} IN ACCESS EXCLUSIVE MODE", t=found.path))
        for each in without_tombstone(find(connection, table), chunk.first, chunk.last):
            connection.execute(each)
        connection.execute(
            build(
                "ALTER TABLE {t} ATTACH PARTITION {leaf} FOR VALUES FROM ({first}) TO ({last})",
                t=found.path, leaf=leaf_path, first=bound(chunk.first, found.time_kind),
                last=bound(chunk.last, found.time_kind),
            )
        )  # fmt: skip
        if publication is not None:
            connection.execute(build("ALTER PUBLICATION {p} ADD TABLE {leaf}", p=(publication,), leaf=leaf_path))
    return int(leaf.oid)


def _fill(
    connection: Connection[tuple[Any, ...]],
    cold: ColdTable,
    span: ColdRange,
    version: str | None,
    leaf: tuple[str, str],
    found: ServerTable,
) -> None:
    names = SQL(", ").join(build("{c}", c=(name,)) for name in found.columns.names)
    query = build("COPY {leaf} ({names}) FROM STDIN", leaf=leaf, names=names)
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        for batch in cold.batches(span, version=version):
            columns = [batch.column(name).to_pylist() for name in found.columns.names]
            for row in zip(*columns, strict=True):
                copy.write_row(row)


def _quoted(connection: Connection[tuple[Any, ...]], path: tuple[str, str]) -> str:
    return build("{t}", t=path).as_string(connection)
