"""Seal, fence and the drop itself: every lock of a chunk, each in one short transaction with a time limit.

1. A **seal** waits out every writer of the chunk and writes a marker into the log: what comes before is the marker's.
2. A **fence** keeps writers out, by triggers that say so, while digests are compared without a lock.
3. A **drop** locks the parent first, then the chunk: a held SHARE lock and a DROP would deadlock with writers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import Connection

from ebbtide.errors import ConflictError, RefusedError
from ebbtide.hottier.mirror import mark_own
from ebbtide.hottier.partitions import with_tombstone
from ebbtide.hottier.setup import position_of
from ebbtide.hottier.statements import build, statement
from ebbtide.hottier.table import Found, Leaf, is_still

Session = Connection[tuple[Any, ...]]
_WAIT = "2s"
_TRIES = 3
_BUSY = "a writer or reader of it has not ended"


@dataclass(frozen=True, slots=True)
class Fence:
    """A fence that stands. `marker` is its place in the log, `proof` differs once somebody touched it."""

    leaf: Leaf
    marker: int
    proof: str


def seal(connection: Session, leaf: Leaf) -> int:
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


def _marker(connection: Session, prefix: str, leaf: Leaf) -> int:
    # Only a transactional message: another one would survive a seal that is undone.
    row = connection.execute(
        "SELECT pg_logical_emit_message(true, %s, %s)::text", [prefix, str(leaf.oid)]
    ).fetchone()  # fmt: skip
    assert row is not None
    return position_of(row[0])


def fence(connection: Session, found: Found, leaf: Leaf) -> Fence:
    """Keep writers out of a chunk: they are told so, at once or when they stop waiting."""
    name, window = f"{found.schema}.{found.name}", leaf.window
    try:
        with connection.transaction():
            connection.execute("SELECT set_config('lock_timeout', %s, true)", [_WAIT])
            connection.execute(build("LOCK TABLE ONLY {leaf} IN SHARE ROW EXCLUSIVE MODE", leaf=leaf.path))
            for each in (
                "CREATE TRIGGER ebbtide_fence BEFORE INSERT OR UPDATE OR DELETE ON {leaf} FOR EACH ROW"
                " EXECUTE FUNCTION ebbtide.refuse_fenced({name}, {window})",
                "CREATE TRIGGER ebbtide_fence_t BEFORE TRUNCATE ON {leaf} FOR EACH STATEMENT"
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


def _proof(connection: Session, leaf: Leaf) -> tuple[str, bool]:
    row = connection.execute(statement("fence_proof"), {"oid": leaf.oid}).fetchone()
    return ("", False) if row is None or row[0] is None else (row[0], bool(row[1]))


def unfence(connection: Session, leaf: Leaf) -> None:
    """Let writers in again."""
    with connection.transaction():
        connection.execute(build("DROP TRIGGER IF EXISTS ebbtide_fence ON {leaf}", leaf=leaf.path))
        connection.execute(build("DROP TRIGGER IF EXISTS ebbtide_fence_t ON {leaf}", leaf=leaf.path))
        mark_own(connection)


def drop(connection: Session, found: Found, leaf: Leaf, standing: Fence | None) -> None:
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


def _drop(connection: Session, found: Found, leaf: Leaf, standing: Fence | None) -> None:
    connection.execute("SELECT set_config('lock_timeout', '300ms', true)")
    connection.execute(build("LOCK TABLE ONLY {table} IN ACCESS EXCLUSIVE MODE", table=found.path))
    connection.execute(build("LOCK TABLE ONLY {leaf} IN ACCESS EXCLUSIVE MODE", leaf=leaf.path))
    if not is_still(connection, found, leaf):
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
