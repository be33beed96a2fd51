"""`ebbtide tier status`: each hot table, its mirror and its chunks, as the state knows them."""

from __future__ import annotations

from collections import Counter

from ebbtide.app.results.tier import Chunk, HotTableStatus
from ebbtide.app.state import open_state
from ebbtide.app.tier_opened import hot_tables
from ebbtide.config import Project
from ebbtide.config.hottier import HotTable
from ebbtide.state.hottier import ChunkRecord, ChunkState, HotReader, HotRecord, MirrorState

_HOLDS_ALL = "not synced: its policy holds everything until `ebbtide tier add`"


def hot_status(project: Project, name: str | None = None) -> tuple[HotTableStatus, ...]:
    """Nothing is asked of a server: what the last run saw."""
    tables = hot_tables(project, name)
    with open_state(project).reader() as state:
        reader = HotReader(state.connection)
        return tuple(_status(each, table, reader.table(each), reader.chunks(each)) for each, table in tables.items())


def _status(name: str, table: HotTable, record: HotRecord | None, chunks: tuple[ChunkRecord, ...]) -> HotTableStatus:
    counted = Counter(chunk.state for chunk in chunks)
    open_ = record is not None and record.state is MirrorState.STREAMING and not record.lag_bytes
    return HotTableStatus(
        table=name,
        cold=table.cold,
        mirror=str(MirrorState.OFF if record is None else record.state),
        because=_HOLDS_ALL if record is None else record.because,
        lag_bytes=None if record is None else record.lag_bytes,
        retained_bytes=None if record is None else record.retained_bytes,
        gate_open=bool(open_),
        pending=counted[ChunkState.ACTIVE],
        lateness_seconds=None if record is None else record.lateness,
        how=table.mirror,
        chunks=tuple(
            Chunk(
                chunk.name, chunk.first, chunk.last, str(chunk.state), chunk.waits_for, chunk.rows, chunk.tiered_at,
                chunk.dropped_at, bool(chunk.pinned),
            )
            for chunk in chunks
        ),
    )  # fmt: skip
