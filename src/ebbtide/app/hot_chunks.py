"""Chunks of hot tables as a plan takes them: what the registry knows, and the ages of `hottier/*.yml` (spec §2, §6).

No server is asked, and no variable of the environment: a plan says how old what it knows of them is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ebbtide.app.state import open_state
from ebbtide.config import Project, yaml
from ebbtide.config.hottier import HotTable, load_hot_tables
from ebbtide.errors import InputError
from ebbtide.model.durations import Duration, micros_of
from ebbtide.model.times import as_text
from ebbtide.state.hottier import ChunkRecord, ChunkState, HotReader, HotRecord, MirrorState
from ebbtide.state.values import Hold, HoldScope

if TYPE_CHECKING:
    from ebbtide.plan.plan import Plan

NOT_PROVEN = "it is not proven durable in the lake"
_DUE = "WHERE target = 'chunks' AND decision = 'sweep'"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def has_hot_tables(project: Project) -> bool:
    """Whether there is a hot tier to speak of: who has none pays for none."""
    return (project.root / "hottier").is_dir()


def declared(project: Project) -> tuple[dict[str, HotTable], tuple[str, ...]]:
    """The hot tables by id, and what is wrong with their files: that keeps nobody from planning the lake."""
    try:
        return load_hot_tables(project.root, None), ()
    except InputError as error:
        return {}, (f"no policy of a hot table is known: {error.message}",)


def chunks_of(project: Project, holds: Iterable[Hold]) -> tuple[pa.Table, tuple[str, ...]]:
    """The rows of `plan.world.CHUNKS`, and what a plan warns of."""
    from ebbtide.plan.world import CHUNKS

    tables, warnings = declared(project)
    people = [f"hold:{hold.owner} ({hold.reason})" for hold in holds if hold.scope is HoldScope.SUBJECT]
    with open_state(project).reader() as state:
        reader = HotReader(state.connection)
        records = {record.id: record for record in reader.tables()}
        rows = [
            _row(tables.get(name), record, chunk, people)
            for name, record in records.items()
            for chunk in reader.chunks(name)
            if chunk.state is not ChunkState.DROPPED
        ]
    warnings += tuple(
        f"{name} is not synced: its chunks are not known, and its policy holds everything until `ebbtide tier add`"
        for name in tables
        if name not in records
    )
    return pa.Table.from_pylist(rows, CHUNKS), warnings


def on_both_tiers(project: Project, holds: tuple[Hold, ...]) -> tuple[Hold, ...]:
    """The holds, and each on a hot table or its cold one again on the other: either keeps both."""
    if not has_hot_tables(project):
        return holds
    pairs = {(name, table.cold) for name, table in declared(project)[0].items()}
    with open_state(project).reader() as state:
        pairs |= {(record.id, record.cold) for record in HotReader(state.connection).tables()}
    known = {(hold.id, hold.dataset) for hold in holds}
    more = [
        replace(hold, dataset=other)
        for hold in holds
        for hot, cold in sorted((hot, cold) for hot, cold in pairs if cold is not None)
        for one, other in ((hot, cold), (cold, hot))
        if hold.dataset == one and (hold.id, other) not in known
    ]
    return (*holds, *more)


def when_seen(project: Project) -> str | None:
    """How old what is known of chunks is: when a run last looked at the hot tier."""
    if not has_hot_tables(project):
        return None
    with open_state(project).reader() as state:
        looked = [run.finished_at for run in state.runs() if run.verb.startswith("tier ") and run.finished_at]
    return (
        f"chunks as the run of {as_text(max(looked))} saw them" if looked else "no run has looked at the hot tier yet"
    )


def who_drops(plan: Plan) -> tuple[str, ...]:
    """What is said of chunks that are due: neither a mark nor a sweep takes them."""
    from ebbtide.plan.plan import read

    due = next(read(plan.folder, "objects", _DUE, columns="count(*) AS chunks"))["chunks"]
    return (f"{due} chunks of hot tables are due: `ebbtide tier run` drops them, no mark or sweep does",) if due else ()


def refuse_unknown_chunk(project: Project, table: str, name: str) -> ChunkRecord:
    """The chunk that somebody named, also one that is in the lake only by now."""
    with open_state(project).reader() as state:
        reader = HotReader(state.connection)
        tables = [record.id for record in reader.tables()]
        chunks = {chunk.name: chunk for chunk in reader.chunks(table)}
    if table not in tables:
        hint = yaml.nearest(table, tables) if tables else "`ebbtide tier add` adds one of hottier/*.yml"
        raise InputError(f"no hot table {table} was added", hint=hint)
    if name not in chunks:
        raise InputError(f"no chunk {name!r} of {table}", hint=yaml.nearest(name, list(chunks)))
    return chunks[name]


def _row(table: HotTable | None, record: HotRecord, chunk: ChunkRecord, people: list[str]) -> Mapping[str, Any]:
    gated = record.cold is not None or (table is not None and table.gated)
    days = chunk.days
    seen = f"{chunk.oid}|{chunk.name}|{chunk.first}|{chunk.last}|{chunk.digest}"
    return {
        "table_id": record.id, "object_id": chunk.name, "cold": record.cold,
        "rule": None if table is None else table.file, "state": str(chunk.state), "rows": chunk.rows,
        "fingerprint": hashlib.sha256(seen.encode()).hexdigest(),
        "first_us": _micros(chunk.first), "last_us": _micros(chunk.last),
        "first_day": days and days[0], "last_day": days and days[1], "pinned": bool(chunk.pinned),
        "shut": [f"gate:{why}" for why in _shut(record, chunk)] if gated else [], "people": people,
        **_age("tier", None if table is None else table.tier_after),
        **_age("drop", None if table is None else table.drop_after),
    }  # fmt: skip


def _shut(record: HotRecord, chunk: ChunkRecord) -> list[str]:
    if record.state is not MirrorState.STREAMING:
        return [f"the mirror is {record.state}{f' ({record.because})' if record.because else ''}"]
    if chunk.state is ChunkState.TIERED:
        return []
    return why_not_proven(chunk)


def why_not_proven(chunk: ChunkRecord) -> list[str]:
    """What the last run said, but for holds, which are asked anew."""
    return [why for why in chunk.waits_for if not why.startswith("hold ")] or [NOT_PROVEN]


def _age(name: str, length: Duration | None) -> dict[str, Any]:
    if length is None:
        return {}
    return {f"{name}_months": length.months, f"{name}_micros": micros_of(length), f"{name}_text": str(length)}


def _micros(at: datetime | None) -> int | None:
    return None if at is None else (at - _EPOCH) // timedelta(microseconds=1)
