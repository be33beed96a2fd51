"""A connection to the server, and who it is. Connection values and the driver's words about them are never shown.

Positions in a log mean something on one server and one timeline only: `Identity` goes with each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.conninfo import make_conninfo

from ebbtide.config.hottier import ServerUrl
from ebbtide.errors import EbbtideError, InputError, UnreadableError

OLDEST = 14
_SECONDS = 10
_SETTINGS = {
    "TimeZone": "UTC", "DateStyle": "ISO, YMD", "extra_float_digits": "1", "bytea_output": "hex",
    "search_path": "pg_catalog", "client_encoding": "UTF8", "lock_timeout": "5s", "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0", "synchronous_commit": "local", "session_replication_role": None,
}  # fmt: skip
_KNOWN = {
    "password authentication failed": "it refuses the password",
    "no password supplied": "it wants a password",
    "no pg_hba.conf entry": "it lets nobody in from here (pg_hba.conf)",
    "starting up": "it is starting up",
    "shutting down": "it is shutting down",
    "does not exist": "it has no such database or role",
    "Connection refused": "nothing listens there",
    "No such file": "nothing listens there",
    "timeout": "it did not answer in time",
    "could not translate host name": "nobody knows the host's name",
    "too many clients": "it has no connection left",
}


@dataclass(frozen=True, slots=True)
class Identity:
    """Which server it is: a copy of its disk and a promoted replica are others, however alike they look."""

    system: str
    timeline: int
    version: int
    flushed: int
    """The log's position that is on its disk."""


@contextmanager
def connect(server: ServerUrl, *, replication: bool = False) -> Iterator[Connection[tuple[Any, ...]]]:
    """A session in UTC, in autocommit. What goes wrong inside is an error without the driver's words."""
    connection = _open(server, replication=replication)
    try:
        yield connection
    except psycopg.Error as error:
        raise failed(server, error) from None
    finally:
        connection.close()


def _open(server: ServerUrl, *, replication: bool) -> Connection[tuple[Any, ...]]:
    try:
        more = {"replication": "database"} if replication else {}
        info = make_conninfo(
            server.secret.get_secret_value(), application_name="ebbtide", connect_timeout=_SECONDS, **more
        )
    except psycopg.Error:
        raise InputError(
            "not the address of a PostgreSQL server", where=server.where, hint="write postgresql://user@host/database"
        ) from None
    try:
        connection = psycopg.connect(info, autocommit=True, prepare_threshold=None)
        if not replication:
            for name, value in _SETTINGS.items():
                if value is not None:
                    connection.execute("SELECT pg_catalog.set_config(%s, %s, false)", [name, value])
        return connection
    except psycopg.Error as error:
        raise _unreachable(server, error) from None


def _unreachable(server: ServerUrl, error: psycopg.Error) -> EbbtideError:
    said = str(error)
    reason = next((word for text, word in _KNOWN.items() if text in said), type(error).__name__)
    return UnreadableError(
        f"the server of {server.where}", reason, hint="look at its address, its password and whether it runs"
    )


def failed(server: ServerUrl, error: psycopg.Error) -> EbbtideError:
    """An error of a statement: its kind and code. Its text may quote rows."""
    code = f" ({error.sqlstate})" if error.sqlstate else ""
    missing = error.sqlstate == "42501"
    hint = "`ebbtide tier add TABLE --dry-run` names the rights that are missing" if missing else None
    return UnreadableError(f"the server of {server.where}", f"{type(error).__name__}{code}", hint=hint)


def identity(connection: Connection[tuple[Any, ...]]) -> Identity:
    """Who answers. One in recovery has no log of its own, and is refused."""
    row = connection.execute(
        """SELECT (SELECT system_identifier FROM pg_control_system())::text,
                  pg_is_in_recovery(), current_setting('server_version_num')::int"""
    ).fetchone()
    assert row is not None
    if row[1]:
        raise UnreadableError("the server", "it is in recovery: a replica takes no chunks", hint="name the primary")
    # The checkpoint's timeline would do on most days: after a promotion it is the old one until the next checkpoint.
    more = connection.execute(
        "SELECT ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int,"
        " (pg_current_wal_flush_lsn() - '0/0')::bigint"
    ).fetchone()
    assert more is not None
    return Identity(row[0], more[0], row[2] // 10000, int(more[1]))
