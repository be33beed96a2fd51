"""The gate: a chunk is durable in the lake when all of this holds, and not otherwise (spec §6).

1. The mirror is streaming.
2. The chunk is sealed: every transaction that wrote into it before the marker had ended.
3. The mirror, reading in the order of the log, has passed the marker.
4. No change of that chunk came after the marker.
5. Every column is mirrored, and digests of hot and cold are equal, the cold one of a version that is written down.

Whatever cannot be told is a no, with a reason: the chunk is asked again in the next run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from ebbtide.formats.iceberg.cold import ColdRange, ColdTable
from ebbtide.hottier.digest import Digest, cold_digest, hot_digest
from ebbtide.hottier.table import PartitionLeaf, ServerTable
from ebbtide.state.hottier import ChunkRecord, HotRecord, MirrorState


@dataclass(frozen=True, slots=True)
class ChunkProof:
    """What a chunk was proven by: equal digests of the partition and of a version of the cold table."""

    version: str
    digest: Digest


def shut(record: HotRecord | None, chunk: ChunkRecord) -> str | None:
    """Why the gate is shut by what the log says; None where only the digests are left to compare."""
    if record is None or record.state is not MirrorState.STREAMING:
        state = MirrorState.OFF if record is None else record.state
        return f"the mirror is {state}"
    if chunk.sealed is None:
        return "it is not sealed"
    if record.reached is None or record.reached <= chunk.sealed:
        return "the mirror has not passed its seal"
    if chunk.changed is not None and chunk.changed > chunk.sealed:
        return "it changed after it was sealed"
    return None


def compare(
    connection: Connection[tuple[Any, ...]], cold: ColdTable, found: ServerTable, leaf: PartitionLeaf, time: str
) -> ChunkProof | str:
    """The proof, or why there is none."""
    if found.columns.problems:  # digests would leave such a column out, on both sides
        return "; ".join(found.columns.problems)
    cold.refresh()
    version = cold.version
    if version is None:
        return "the cold table is empty"
    if lacking := [name for name in found.columns.names if name not in cold.columns.names]:
        return f"the lake lacks column {lacking[0]}"
    hot = hot_digest(connection, leaf, found.columns)
    span = ColdRange(time, leaf.first, leaf.last, found.time_kind)
    there = cold_digest(cold.batches(span, version=version), found.columns)
    if hot != there:
        return f"digests differ: {hot.rows:,} rows here, {there.rows:,} in the lake"
    return ChunkProof(version, hot)
