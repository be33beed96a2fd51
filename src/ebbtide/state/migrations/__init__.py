"""Numbered migrations: each is a list of statements that is never edited once it is released. A statement is SQL, or
a function where SQL does not do.

The table `ebbtide_version` has one row. Its version is the number of the last migration, 0 is an empty database.
All missing migrations run in one transaction: an upgrade that dies leaves the old layout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sqlalchemy import Connection, inspect, text

from ebbtide.errors import StateError, StateVersionError
from ebbtide.state.migrations import (
    m0001_state,
    m0002_ledger,
    m0003_sweep,
    m0004_condemned,
    m0005_nodes,
    m0006_words,
    m0007_runs,
    m0008_paused,
    m0009_requests,
    m0010_hottier,
    m0011_erasure,
    m0012_erased,
)

Statement: TypeAlias = str | Callable[[Connection], None]

MIGRATIONS: tuple[tuple[Statement, ...], ...] = (
    m0001_state.STATEMENTS,
    m0002_ledger.STATEMENTS,
    m0003_sweep.STATEMENTS,
    m0004_condemned.STATEMENTS,
    m0005_nodes.STATEMENTS,
    m0006_words.STATEMENTS,
    m0007_runs.STATEMENTS,
    m0008_paused.STATEMENTS,
    m0009_requests.STATEMENTS,
    m0010_hottier.STATEMENTS,
    m0011_erasure.STATEMENTS,
    m0012_erased.STATEMENTS,
)
LATEST = len(MIGRATIONS)

_TYPES = {
    "sqlite": {"count": "INTEGER", "binary": "BLOB", "random": "randomblob(16)"},
    "postgresql": {"count": "BIGINT", "binary": "BYTEA", "random": "uuid_send(gen_random_uuid())"},
}


def found_version(connection: Connection) -> int:
    """The layout of this database; 0 when it is empty. Foreign tables without ours are refused."""
    names = inspect(connection).get_table_names()
    if "ebbtide_version" not in names:
        if names:
            raise StateError(
                f"the state database holds other tables than Ebbtide's, such as {min(names)}",
                hint="give the state a database or schema of its own",
            )
        return 0
    versions = connection.execute(text("SELECT version FROM ebbtide_version")).scalars().all()
    if len(versions) != 1:
        raise StateError(
            f"ebbtide_version has {len(versions)} rows, not one", hint="restore the state database from a backup"
        )
    return int(versions[0])


def migrate(connection: Connection, *, to: int = LATEST) -> tuple[int, int]:
    """Bring the database up to layout `to` inside the caller's transaction; gives the layouts before and after."""
    before = found_version(connection)
    if before > to:
        raise StateVersionError(found=before, expected=to)
    types = _TYPES[connection.dialect.name]
    if before == 0:
        connection.execute(
            text(
                "CREATE TABLE ebbtide_version (id {count} NOT NULL PRIMARY KEY, version {count} NOT NULL)".format(
                    **types
                )
            )
        )
        connection.execute(text("INSERT INTO ebbtide_version (id, version) VALUES (1, 0)"))
    for statements in MIGRATIONS[before:to]:
        for statement in statements:
            if isinstance(statement, str):
                connection.execute(text(statement.format(**types)))
            else:
                statement(connection)
    connection.execute(text("UPDATE ebbtide_version SET version = :version"), {"version": to})
    return before, to
