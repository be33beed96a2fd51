"""What a table needs on its server: functions and event triggers, a publication, a slot; a dry run shows all of it.

The publication names every leaf: what is written into one after a DETACH is still published. It is made before the
slot, or the first transactions would be decoded without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Composed

from ebbtide.config.hottier import HotTable, ServerUrl
from ebbtide.errors import ConflictError, RefusedError
from ebbtide.hottier.server import connect
from ebbtide.hottier.statements import build, statement
from ebbtide.hottier.table import PartitionLeaf, ServerTable

Session = Connection[tuple[Any, ...]]
_WAIT = "30s"


def install() -> tuple[Composed, ...]:
    """The statements of `tier init`; run again, they change nothing."""
    text = statement("install").as_string(None)
    return tuple(SQL(part).format() for part in _split(text))  # type: ignore[arg-type, unused-ignore]


def _split(text: str) -> list[str]:
    """Statements end with `;` and an empty line: bodies of functions hold semicolons, and no empty line."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    parts = [part.strip().rstrip(";") for block in lines.split("\n\n") for part in _of_block(block)]
    return [part for part in parts if part]


def _of_block(block: str) -> list[str]:
    return [block] if "$$" in block else block.split(";\n")


def name_for(connection: Session, project: str, table: HotTable) -> str:
    """The name of its slot and publication: one for each project, database and table."""
    row = connection.execute("SELECT current_database()::text").fetchone()
    assert row is not None
    return "ebbtide_" + hashlib.sha256(f"{project}\0{row[0]}\0{table.id}".encode()).hexdigest()[:16]


def publish(found: ServerTable, name: str) -> list[Composed]:
    """What makes the publication of a table and of each leaf by its name."""
    tables = SQL(", ").join(
        build("{t}", t=path) for path in (found.path, *(leaf.path for leaf in found.chunks))
    )  # fmt: skip
    return [
        build(
            "CREATE PUBLICATION {p} FOR TABLE {tables} WITH (publish = 'insert, update, delete, truncate',"
            " publish_via_partition_root = false)",
            p=(name,), tables=tables,
        )
    ]  # fmt: skip


@contextmanager
def new_slot(server: ServerUrl, name: str) -> Iterator[tuple[str, int]]:
    """Make a slot; gives a snapshot of the database exactly where the slot begins, good until the block is left.

    Whatever is committed before the position is in the snapshot, whatever comes after is in the log: no row is in both
    or in neither.
    """
    with connect(server, replication=True) as connection:
        for timeout in ("lock_timeout", "statement_timeout"):
            connection.execute(build("SET {t} = {wait}", t=(timeout,), wait=_WAIT))
        try:
            row = connection.execute(
                build("CREATE_REPLICATION_SLOT {slot} LOGICAL pgoutput EXPORT_SNAPSHOT", slot=(name,))
            ).fetchone()
        except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled):
            raise ConflictError(
                f"no slot for the log in {_WAIT}: {_blocker(server)} has not ended",
                hint="a slot begins where every older transaction has ended; end it, or try again later",
            ) from None
        assert row is not None
        yield row[2], position_of(row[1])


def _blocker(server: ServerUrl) -> str:
    """The oldest transaction that writes. Its statement is not shown: it may hold rows."""
    with connect(server) as connection:
        row = connection.execute(statement("oldest")).fetchone()
    return "a transaction that is older" if row is None else str(row[0])


def position_of(lsn: str) -> int:
    high, low = lsn.split("/")
    return (int(high, 16) << 32) | int(low, 16)


def lsn_of(position: int) -> str:
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def slot_state(connection: Session, name: str) -> tuple[int, int, str] | None:
    """Where a slot is confirmed to, how many bytes of log it holds back, and its status; None where it is gone."""
    row = connection.execute(
        "SELECT (confirmed_flush_lsn - '0/0')::bigint, (pg_current_wal_lsn() - restart_lsn)::bigint, wal_status::text"
        " FROM pg_replication_slots WHERE slot_name = %s AND database = current_database()",
        [name],
    ).fetchone()
    return None if row is None else (int(row[0] or 0), int(row[1] or 0), row[2] or "lost")


def drop_slot(connection: Session, name: str) -> None:
    """Give the server's log free. A slot that is gone already is as wanted."""
    if slot_state(connection, name) is not None:
        connection.execute("SELECT pg_drop_replication_slot(%s)", [name])


def altered(connection: Session, found: ServerTable, name: str) -> str | None:
    """Why a publication no longer publishes every change of the table; None where it does."""
    row = connection.execute(statement("publication"), {"name": name, "oid": found.oid}).fetchone()
    if row is None:
        return "its publication is gone"
    whole, has_table, filtered, _ = row
    if not whole or filtered:
        return "its publication was altered: it leaves changes out"
    return None if has_table else "its publication was altered: it no longer has the table"


def unnamed(connection: Session, found: ServerTable, name: str) -> list[PartitionLeaf]:
    """The chunks that a publication does not name: what is written into one after a DETACH would not be published."""
    row = connection.execute(statement("publication"), {"name": name, "oid": found.oid}).fetchone()
    return [] if row is None else [leaf for leaf in found.chunks if leaf.oid not in row[3]]


def exists(connection: Session, publication: str) -> bool:
    return connection.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", [publication]).fetchone() is not None


def refuse_taken(connection: Session, name: str) -> None:
    """A slot or publication of that name means that the project mirrors the table already."""
    row = connection.execute(
        "SELECT (SELECT count(*) FROM pg_replication_slots WHERE slot_name = %(n)s)"
        " + (SELECT count(*) FROM pg_publication WHERE pubname = %(n)s)",
        {"n": name},
    ).fetchone()
    if row is not None and row[0]:
        raise RefusedError(
            f"the server has a slot or a publication {name} already", hint="run `ebbtide tier resync` or `tier remove`"
        )
