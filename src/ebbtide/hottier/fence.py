"""Seal, fence and the drop itself: every lock of a chunk, each in one short transaction with a time limit.

1. A **seal** waits out every writer of the chunk and writes a marker into the log: what comes before is the marker's.
2. A **fence** keeps writers out, by triggers that say so, while digests are compared without a lock.
3. A **drop** locks the parent first, then the chunk: a held SHARE lock and a DROP would deadlock with writers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import Connection

from ebbtide.config.hottier import HotTable
from ebbtide.errors import ConflictError, RefusedError
from ebbtide.hottier.columns import read_columns
from ebbtide.hottier.log import mark_own
from ebbtide.hottier.partitions import with_tombstone
from ebbtide.hottier.setup import position_of
from ebbtide.hottier.statements import build, statement
from ebbtide.hottier.table import PartitionLeaf, ServerTable, is_still

Session = Connection[tuple[Any, ...]]
_WAIT = "2s"
_MOMENT = "50ms"
_TRIGGERS = ("ebbtide_fence", "ebbtide_fence_t")
_TRIES = 3
_BUSY = "a writer or reader of it has not ended"


@dataclass(frozen=True, slots=True)
class Fence:
    """A fence that stands. `marker` is its place in the log, `proof` differs once somebody touched it."""

    leaf: PartitionLeaf
    marker: int
    proof: str


def seal(connection: Session, leaf: PartitionLeaf) -> int:
    """The marker's place in the log. Every transaction that wrote into the chunk before has ended by then, prepared
    ones too; with a writer that does not end it is a `ConflictError`.
    """
    try:
        with connection.transaction():
            connection.execute("SELECT set_config('lock_timeout', %s, true)", [_WAIT])
            connection.execute(build("LOCK TABLE ONLY {leaf} IN SHARE MODE", leaf=leaf.path))
            return _marker(connection, "ebbtide.seal", leaf)
    except psycopg.errors.LockNotAvailable:
        raise ConflictError(f"chunk {leaf.name} is not sealed: {_BUSY}", hint="the next run tries again") from None


def _marker(connection: Session, prefix: str, leaf: PartitionLeaf) -> int:
    # Only a transactional message: another one would survive a seal that is undone.
    row = connection.execute(
        "SELECT pg_logical_emit_message(true, %s, %s)::text", [prefix, str(leaf.oid)]
    ).fetchone()  # fmt: skip
    assert row is not None
    return position_of(row[0])


def fence(connection: Session, found: ServerTable, leaf: PartitionLeaf) -> Fence:
    """Keep writers out of a chunk: they are told so, at once or when they stop waiting."""
    name, window = f"{found.schema}.{found.name}", leaf.window
    try:
        with connection.transaction():
            connection.execute("SELECT set_config('lock_timeout', %s, true)", [_WAIT])
            connection.execute(build("LOCK TABLE ONLY {leaf} IN SHARE ROW EXCLUSIVE MODE", leaf=leaf.path))
            for each in (
                "CREATE OR REPLACE TRIGGER ebbtide_fence BEFORE INSERT OR UPDATE OR DELETE ON {leaf} FOR EACH ROW"
                " EXECUTE FUNCTION ebbtide.refuse_fenced({name}, {window})",
                "CREATE OR REPLACE TRIGGER ebbtide_fence_t BEFORE TRUNCATE ON {leaf} FOR EACH STATEMENT"
                " EXECUTE FUNCTION ebbtide.refuse_fenced({name}, {window})",
                "ALTER TABLE {leaf} ENABLE ALWAYS TRIGGER ebbtide_fence",
                "ALTER TABLE {leaf} ENABLE ALWAYS TRIGGER ebbtide_fence_t",
            ):
                connection.execute(build(each, leaf=leaf.path, name=name, window=window))
            mark_own(connection)
            marker = _marker(connection, "ebbtide.fence", leaf)
    except psycopg.errors.LockNotAvailable:
        raise ConflictError(f"chunk {leaf.name} is not fenced: {_BUSY}", hint="the next run tries again") from None
    proof, stands = _proof(connection, leaf)
    if not stands:
        raise RefusedError(f"the fence of chunk {leaf.name} does not stand", hint="run again")
    return Fence(leaf, marker, proof)


def _proof(connection: Session, leaf: PartitionLeaf) -> tuple[str, bool]:
    row = connection.execute(statement("fence_proof"), {"oid": leaf.oid}).fetchone()
    return ("", False) if row is None or row[0] is None else (row[0], bool(row[1]))


def unfence(connection: Session, path: tuple[str, str], triggers: Sequence[str] = _TRIGGERS) -> None:
    """Let writers in again, also beside a reader that does not end: to drop a trigger would wait for that one."""
    if triggers:
        with connection.transaction():
            connection.execute("SELECT set_config('lock_timeout', %s, true)", [_WAIT])
            for name in triggers:
                connection.execute(build("ALTER TABLE {leaf} DISABLE TRIGGER {t}", leaf=path, t=(name,)))
            mark_own(connection)
    with suppress(psycopg.errors.LockNotAvailable), connection.transaction():  # else a later run does
        connection.execute("SELECT set_config('lock_timeout', %s, true)", [_MOMENT])
        for name in _TRIGGERS:
            connection.execute(build("DROP TRIGGER IF EXISTS {t} ON {leaf}", leaf=path, t=(name,)))
        mark_own(connection)


def take_down_fences(connection: Session, table: HotTable) -> tuple[str, ...]:
    """Fences that no drop followed: their run died. Writers get their chunks back. Gives those that still stand.

    The table is not looked at for it: it may be one that is refused by now.
    """
    schema, name = table.path
    standing = []
    for leaf_schema, leaf, triggers in connection.execute(
        statement("fences"), {"schema": schema, "name": name}
    ).fetchall():
        try:
            unfence(connection, (leaf_schema, leaf), triggers)
        except psycopg.Error:  # of one chunk: the others' writers wait for theirs
            standing.append(leaf)
    return tuple(standing)


def drop(connection: Session, found: ServerTable, leaf: PartitionLeaf, standing: Fence | None) -> None:
    """Remove a chunk, and leave a tombstone for its late rows, in one transaction; with a fence only if it is whole."""
    for attempt in range(_TRIES):
        try:
            with connection.transaction():
                _drop(connection, found, leaf, standing)
            return
        except psycopg.errors.LockNotAvailable:
            time.sleep(0.1 * 2**attempt)
    raise ConflictError(f"chunk {leaf.name} is not dropped: {_BUSY}", hint="the next run tries again")


def another(chunk: str) -> RefusedError:
    """Its name is another partition's by now, or its range is another one."""
    return RefusedError(f"chunk {chunk} is not what it was when it was looked at: it stays", hint="run again")


def _drop(connection: Session, found: ServerTable, leaf: PartitionLeaf, standing: Fence | None) -> None:
    connection.execute("SELECT set_config('lock_timeout', '300ms', true)")
    connection.execute(build("LOCK TABLE ONLY {table} IN ACCESS EXCLUSIVE MODE", table=found.path))
    connection.execute(build("LOCK TABLE ONLY {leaf} IN ACCESS EXCLUSIVE MODE", leaf=leaf.path))
    if not is_still(connection, found, leaf):
        raise another(leaf.name)
    if standing is not None and read_columns(connection, found.oid) != found.columns:
        # One that came with a default is in no row of the log, and digests were taken without it.
        raise another(leaf.name)
    if standing is not None and _proof(connection, leaf) != (standing.proof, True):
        raise RefusedError(
            f"somebody touched the fence of chunk {leaf.name}: it stays", hint="nothing was dropped; run again"
        )
    connection.execute(build("DROP TABLE {leaf}", leaf=leaf.path))
    assert leaf.last is not None, "a chunk without an end is never due"
    for each in with_tombstone(found, leaf.first, leaf.last):
        connection.execute(each)
    mark_own(connection)
