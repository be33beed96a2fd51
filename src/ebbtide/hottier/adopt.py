"""Partitions that somebody else made, by hand or with a tool: they join the publication where nothing of them lacks.

The publication has their table, so what is written into them is told as long as they are attached. What lay in them
before is not: it is for the digests to say.

1. Under a short SHARE lock nobody writes into the partition: its digest is taken, and a marker written into the log.
2. The mirror reads as far as the marker. Whoever waited for the lock commits behind it.
3. Equal digests: every row came through the log, and the publication names the partition from now on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import Connection

from ebbtide.formats.iceberg.cold import ColdRange, ColdTable
from ebbtide.hottier.digest import Digest, cold_digest, hot_digest
from ebbtide.hottier.log import mark_own
from ebbtide.hottier.setup import position_of
from ebbtide.hottier.statements import build
from ebbtide.hottier.table import PartitionLeaf, ServerTable
from ebbtide.hottier.values import CannotFollowError

_WAIT = "2s"
_LONGEST = "20s"
"""How long writers of it wait at the most."""


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A partition as it was at a place of the log."""

    leaf: PartitionLeaf
    digest: Digest
    marker: int


def look(connection: Connection[tuple[Any, ...]], found: ServerTable, leaf: PartitionLeaf) -> Newcomer | None:
    """None where a writer of it does not end. One that is too large to be looked at while its writers wait takes a
    resync: a `CannotFollowError`.
    """
    try:
        with connection.transaction():
            connection.execute("SELECT set_config('lock_timeout', %s, true)", [_WAIT])
            connection.execute(build("LOCK TABLE ONLY {leaf} IN SHARE MODE", leaf=leaf.path))
            connection.execute("SELECT set_config('statement_timeout', %s, true)", [_LONGEST])
            digest = hot_digest(connection, leaf, found.columns)
            row = connection.execute(
                "SELECT pg_logical_emit_message(true, 'ebbtide.adopt', %s)::text", [str(leaf.oid)]
            ).fetchone()  # fmt: skip
    except psycopg.errors.LockNotAvailable:
        return None
    except psycopg.errors.QueryCanceled:
        raise CannotFollowError(
            f"its publication does not name {leaf.name}, which has more rows than can be compared while writers wait",
            hint="run `ebbtide tier resync TABLE`",
        ) from None
    assert row is not None
    return Newcomer(leaf, digest, position_of(row[0]))


def join(
    connection: Connection[tuple[Any, ...]],
    cold: ColdTable,
    found: ServerTable,
    newcomer: Newcomer,
    time: str,
    publication: str,
) -> bool:
    """Name it, where the lake has exactly its rows."""
    leaf = newcomer.leaf
    span = ColdRange(time, leaf.first, leaf.last, found.time_kind)
    if cold_digest(cold.batches(span), found.columns) != newcomer.digest:
        return False
    with connection.transaction():
        mark_own(connection)
        connection.execute(build("ALTER PUBLICATION {p} ADD TABLE {leaf}", p=(publication,), leaf=leaf.path))
    return True
