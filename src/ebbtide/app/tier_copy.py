"""The copy of a hot table into its cold one, the first or one more, and what it may not take from the lake.

1. It is one commit with the position of the slot, under the slot's own snapshot: who dies before it begins anew.
2. Rows of chunks that are here are replaced; what lies in the lake only stays.
3. A chunk of which the lake has many more rows than the server was cut by something that nobody confirmed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from psycopg import Connection

from ebbtide.app.tier_opened import HotRun
from ebbtide.config.hottier import HotTable
from ebbtide.errors import RefusedError
from ebbtide.formats.iceberg.cold import ColdRange, ColdTable, outside
from ebbtide.formats.iceberg.position import Position
from ebbtide.hottier import setup
from ebbtide.hottier.batch import BatchMirror
from ebbtide.hottier.copy import rows_of, seen_by
from ebbtide.hottier.drift import begin_with
from ebbtide.hottier.server import Identity
from ebbtide.hottier.statements import build
from ebbtide.hottier.stops import rows_lost
from ebbtide.hottier.table import ServerTable, find
from ebbtide.state.hottier import ChunkState, MirrorState


def first_copy(hot: HotRun, table: HotTable, cold: ColdTable, slot: str, *, may_lose: bool) -> None:
    """Copy everything. `may_lose`: a person confirmed that rows go, or there are none that could."""
    connection, record = hot.session(table), hot.book(table).record()
    hot.context.step("copying", unit="rows")
    with setup.new_slot(table.server, slot) as (snapshot, at), seen_by(connection, snapshot):
        position = Position(record.system, record.timeline, at, slot)
        found = find(connection, table)
        if not may_lose:  # rows may have gone since the first look
            refuse_loss(connection, cold, table, found)
        begin_with(cold, found.columns, slot)
        rows = rows_of(connection, found.path, found.columns, hot.context.advance, whole=True)
        if cold.version is None:
            cold.begin(rows, position)
        else:
            _replace_resident(cold, table, found, rows, position)
    hot.book(table).set_table(state=MirrorState.STREAMING, because="", position=at, passed=None, confirm=None)


def _replace_resident(
    cold: ColdTable, table: HotTable, found: ServerTable, rows: Iterator[pa.Table], position: Position
) -> None:
    """The rows of resident chunks as they are here; what lies in the lake only stays."""
    spans = [ColdRange(table.time, leaf.first, leaf.last, found.time_kind) for leaf in found.chunks]

    def replace(files: Iterator[pa.Table]) -> tuple[list[int], Iterable[pa.Table]]:
        going, kept = outside(files, spans)
        return going, (part for parts in (kept, rows) for part in parts)

    cold.commit(found.columns.schema.empty_table(), position, replace, spans)


def copy_again(hot: HotRun, table: HotTable, found: ServerTable, here: Identity, *, confirm: bool) -> None:
    """What `mirror: batch` brought, once more, from the server that answers by now; what was proven is proven anew."""
    mirror, book = hot.mirror(table), hot.book(table)
    assert isinstance(mirror, BatchMirror)
    refuse_foreign(mirror.cold, table, found, mirror.source)
    if not confirm:
        refuse_loss(hot.session(table), mirror.cold, table, found)
    position = Position(here.system, here.timeline, here.flushed, mirror.source)
    leaves = {leaf.oid: leaf for leaf in found.chunks}
    for chunk in book.chunks():
        leaf = leaves.get(chunk.oid)
        if leaf is None or chunk.state not in (ChunkState.ACTIVE, ChunkState.TIERED):
            continue
        book.set_chunk(chunk.name, state=ChunkState.ACTIVE, sealed=None, tiered_at=None, digest=None)
        if mirror.cold.rows(ColdRange(table.time, leaf.first, leaf.last, found.time_kind)):
            mirror.copy(found, leaf, position, may_lose=confirm)
    book.set_table(
        state=MirrorState.STREAMING, because="", system=here.system, timeline=here.timeline, position=here.flushed,
        passed=None,
    )  # fmt: skip


def refuse_foreign(cold: ColdTable, table: HotTable, found: ServerTable, slot: str) -> None:
    """A cold table with rows that this mirror did not bring is somebody's: none of them is replaced."""
    if cold.source == slot:
        return
    if cold.source is not None:
        raise RefusedError(f"{table.cold} is another mirror's", hint="give this table a cold table of its own")
    if cold.version is not None and cold.rows(ColdRange(table.time, None, None, found.time_kind)):
        raise RefusedError(f"{table.cold} does not say who wrote its rows", hint="name a table that does not exist yet")


def refuse_loss(connection: Connection[tuple[Any, ...]], cold: ColdTable, table: HotTable, found: ServerTable) -> None:
    """Where the lake would lose more than `delete_share` of a chunk: a copy is no way around a confirmation."""
    told = []
    for leaf in found.chunks:
        row = connection.execute(build("SELECT count(*) FROM ONLY {leaf}", leaf=leaf.path)).fetchone()
        here = 0 if row is None else int(row[0])
        there = cold.rows(ColdRange(table.time, leaf.first, leaf.last, found.time_kind))
        if there - here > there * table.delete_share:
            told.append(rows_lost(leaf.name, here, there))
    if told:
        raise RefusedError(
            f"{table.id}: {'; '.join(told)}",
            hint=f"look at what took them; `ebbtide tier resync {table.id} --confirm` takes them from the lake, too",
        )
