"""Chunks as an owner of acts: asked once more in the transaction of the intent, settled by what the server shows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

import psycopg
from psycopg import Connection

from ebbtide.acts.act import Act, ActResult, Phase, Stage
from ebbtide.config.hottier import HotTable
from ebbtide.errors import RefusedError
from ebbtide.hottier import gate
from ebbtide.hottier.batch import AnyMirror
from ebbtide.hottier.chunks import covered
from ebbtide.hottier.fence import another, drop, fence, unfence
from ebbtide.hottier.table import PartitionLeaf, ServerTable, find
from ebbtide.ledger.ledger import Step
from ebbtide.model.dataset import Catalog
from ebbtide.model.durations import is_older
from ebbtide.model.removal import Committed
from ebbtide.state.hottier import ChunkRecord, ChunkState, HotWriter
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.values import Hold, HoldScope

KIND = "chunk"
_HERE = (ChunkState.ACTIVE, ChunkState.TIERED)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropChunk(Stage):
    """A chunk leaves the hot tier. `gated` unless nobody meant it to be in the lake, or a person forced it."""

    phase: ClassVar[Phase] = Phase.METADATA
    table: HotTable
    chunk: str
    oid: int
    first: datetime | None
    last: datetime | None
    gated: bool

    def __str__(self) -> str:
        how = "behind a fence, digests compared once more" if self.gated else "outright, without the gate"
        return f"drop chunk {self.chunk} of {self.table.name} {how}"


def act_of(table: HotTable, chunk: ChunkRecord, act_id: str, *, gated: bool, forced_by: str | None) -> Act:
    """The act that drops one chunk: the partition that the registry has, with the range that it has there."""
    stage = DropChunk(table=table, chunk=chunk.name, oid=chunk.oid, first=chunk.first, last=chunk.last, gated=gated)
    return Act(
        id=act_id, dataset=table.id, catalog=Catalog("hot", "postgresql", ""), kind=KIND, target="chunks",
        object=chunk.name, forced_by=forced_by, stages=(stage,),
    )  # fmt: skip


def why_kept(table: HotTable, chunk: ChunkRecord, holds: Collection[Hold]) -> str | None:
    """The hold that keeps a chunk: one on the hot table or its cold one, and any one on a person, whose rows nobody has
    traced here.
    """
    names = {table.id, table.cold}
    for hold in holds:
        if hold.scope is HoldScope.SUBJECT:
            return f"hold {hold.id}"
        if any(name is not None and hold.covers(name, chunk.days) for name in names):
            return f"hold {hold.id}"
    return None


@dataclass(slots=True)
class ChunkOwner:
    """Asks the registry and the holds; settles by looking at the server."""

    tables: dict[str, HotTable]
    look: Callable[[HotTable], ServerTable]
    forced: bool = False
    verb: str = "tier drop"

    def still_wanted(self, step: Step[SweepWriter], act: Act, at: datetime) -> Act | None:
        """Not where a hold came meanwhile, or the chunk is no longer what it was."""
        stage, table = _stage(act), self.tables[act.dataset]
        writer = HotWriter(step.state.connection)
        chunk = writer.chunk(act.dataset, stage.chunk)
        if chunk is None or chunk.oid != stage.oid or chunk.state not in _HERE:
            return None
        if stage.gated and chunk.state is not ChunkState.TIERED:
            return None
        if table.drop_after is None or chunk.last is None or not is_older(chunk.last, table.drop_after, at):
            return None
        if held := why_kept(table, chunk, step.state.holds()):
            writer.set_chunk(act.dataset, chunk.name, waits_for=(held,))
            return None
        forced_by = step.state.actor(act.forced_by) if act.forced_by is not None else None
        writer.set_chunk(act.dataset, chunk.name, act=act.id, forced_by=forced_by)
        return replace(act, forced_by=forced_by)

    def put_back(self, step: Step[SweepWriter], act: Act) -> None:
        HotWriter(step.state.connection).set_chunk(act.dataset, _stage(act).chunk, act=None, forced_by=None)

    def put_off(self, step: Step[SweepWriter], result: ActResult, at: datetime) -> None:
        """A drop has one stage."""

    def settle(self, result: ActResult, after: object) -> ChunkSettlement:  # noqa: ARG002 - the lake's inventory
        """Gone is what the server no longer lists and a tombstone answers for."""
        stage, act = _stage(result.act), result.act
        found = self.look(self.tables[act.dataset])
        gone = not _at(found, stage)
        return ChunkSettlement(act.dataset, stage.chunk, found, gone, stage.gated, result.error)


@dataclass(frozen=True, slots=True)
class ChunkSettlement:
    """What became of one chunk."""

    table_id: str
    chunk: str
    found: ServerTable
    gone: bool
    gated: bool
    error: str | None

    @property
    def failed(self) -> bool:
        return not self.gone

    @property
    def finished(self) -> bool:
        return self.gone

    def write(self, step: Step[SweepWriter], at: datetime) -> None:
        writer = HotWriter(step.state.connection)
        chunk = writer.chunk(self.table_id, self.chunk)
        if chunk is None:
            return
        if self.gone and covered(self.found, chunk):
            writer.set_chunk(self.table_id, self.chunk, state=ChunkState.DROPPED, dropped_at=at, waits_for=())
        elif not self.gone:
            because = (self.error or "it was not dropped",)
            # What it was proven by may hold no more: it is sealed and proven anew, or would wait for ever.
            again = {"state": ChunkState.ACTIVE, "sealed": None} if self.gated and chunk.state in _HERE else {}
            writer.set_chunk(self.table_id, self.chunk, act=None, forced_by=None, waits_for=because, **again)


@dataclass(frozen=True, slots=True)
class ChunkDropper:
    """Carries out drops. `mirror` is the one of a table that has one."""

    session: Callable[[HotTable], Connection[tuple[Any, ...]]]
    mirror: Callable[[HotTable], AnyMirror | None]
    check: Callable[[], None]

    def commit(self, result: ActResult) -> ActResult:
        stage = _stage(result.act)
        connection = self.session(stage.table)
        if stage.gated:
            self._behind_a_fence(connection, stage)
            return replace(result, committed=Committed())
        found = find(connection, stage.table)
        leaf = _leaf(found, stage)
        if leaf is not None:
            self.check()
            drop(connection, found, leaf, None)
        return replace(result, committed=Committed())

    def delete(self, result: ActResult, also: Collection[str]) -> ActResult:  # noqa: ARG002 - no act has files here
        return result

    def _behind_a_fence(self, connection: Connection[tuple[Any, ...]], stage: DropChunk) -> None:
        mirror = self.mirror(stage.table)
        if mirror is None:
            raise RefusedError("its mirror is OFF: nothing proves that it is in the lake", hint="`ebbtide tier add`")
        found = find(connection, stage.table)
        leaf = _leaf(found, stage)
        if leaf is None:
            return
        standing = fence(connection, found, leaf)
        try:
            found = mirror.drain(newcomers=False)
            self._prove(connection, mirror, found, stage, standing.marker)
            self.check()
            drop(connection, found, leaf, standing)
        except BaseException:
            with suppress(psycopg.Error):  # what went wrong is what is told; the next run takes the fence down
                unfence(connection, leaf.path)
            raise

    def _prove(
        self,
        connection: Connection[tuple[Any, ...]],
        mirror: AnyMirror,
        found: ServerTable,
        stage: DropChunk,
        marker: int,
    ) -> None:
        """Everything once more, now that nobody writes: what was proven is what is there, here and in the lake."""
        record = mirror.book.record()
        chunk = mirror.book.chunk(stage.chunk)
        leaf = _leaf(found, stage)
        shut = "nobody knows it any more" if chunk is None else gate.shut(record, chunk)
        if leaf is None or chunk is None or shut or chunk.state is not ChunkState.TIERED:
            raise RefusedError(f"chunk {stage.chunk} stays: {shut or 'it changed since it was proven'}", hint=_AGAIN)
        if record.reached is None or record.reached <= marker:
            raise RefusedError(f"chunk {stage.chunk} stays: the mirror has not passed its fence", hint=_AGAIN)
        proof = gate.compare(connection, mirror.cold, found, leaf, stage.table.time)
        if isinstance(proof, str):
            raise RefusedError(f"chunk {stage.chunk} stays: {proof}", hint=_AGAIN)
        if str(proof.digest) != chunk.digest:
            raise RefusedError(f"chunk {stage.chunk} stays: it is not what was proven", hint=_AGAIN)


_AGAIN = "nothing was dropped; the next run looks again"


def _at(found: ServerTable, stage: DropChunk) -> list[PartitionLeaf]:
    """What has the chunk's name, or is the chunk under another one."""
    return [leaf for leaf in found.chunks if leaf.oid == stage.oid or leaf.name == stage.chunk]


def _leaf(found: ServerTable, stage: DropChunk) -> PartitionLeaf | None:
    """The partition that the act is about; None where it is gone."""
    there = _at(found, stage)
    meant = (stage.oid, stage.chunk, stage.first, stage.last)
    if any((leaf.oid, leaf.name, leaf.first, leaf.last) != meant for leaf in there):
        raise another(stage.chunk)
    return next(iter(there), None)


def _stage(act: Act) -> DropChunk:
    stage = act.stage(Phase.METADATA)
    assert isinstance(stage, DropChunk)
    return stage
