"""The server's log, as a slot decodes it: peeked in groups, so that memory does not grow with a transaction."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import Connection

from ebbtide.hottier.pgoutput import ChangeBatch, joined
from ebbtide.hottier.setup import lsn_of
from ebbtide.hottier.statements import build

_GROUP = 50_000
_FEWER = 10
_BYTES = 1 << 30
CHANGES = 200_000
"""Changes of a batch; the transaction that passes the number is still read to its end."""

# Never `two_phase`: one peek with it changes the slot for good. `upto_nchanges` stops at a commit.
_PEEK = """
DECLARE ebbtide_log BINARY CURSOR FOR
SELECT string_agg(data, ''::bytea ORDER BY n), string_agg(int4send(length(data)), ''::bytea ORDER BY n)
FROM ROWS FROM (
    pg_logical_slot_peek_binary_changes(
        {slot}, {upto}::pg_lsn, {changes},
        'proto_version', '1', 'publication_names', {publication}, 'binary', 'true', 'messages', 'true'
    )
) WITH ORDINALITY AS x (lsn, xid, data, n)
GROUP BY (n - 1) / {group}
ORDER BY (n - 1) / {group}
"""


def peek(
    connection: Connection[tuple[Any, ...]], slot: str, publication: str, *, upto: int, changes: int = CHANGES
) -> ChangeBatch:
    """Whole transactions from where the slot is on; nothing moves by it."""
    group = _GROUP
    while True:
        try:
            found = _peek(connection, slot, publication, upto, changes, group)
        except psycopg.errors.ProgramLimitExceeded:  # more than the server puts into one value: rows are wide
            if group == 1:
                raise
            found, group = None, max(group // _FEWER, 1)
        if found is not None:
            return found
        changes = max(changes // _FEWER, 1)


def _peek(
    connection: Connection[tuple[Any, ...]], slot: str, publication: str, upto: int, changes: int, group: int
) -> ChangeBatch | None:
    """None where it is more than is held at once, and fewer changes may be less: of one transaction all are told."""
    from psycopg.sql import SQL, Literal

    query = SQL(_PEEK).format(
        slot=Literal(slot), upto=Literal(lsn_of(upto)), changes=Literal(changes), publication=Literal(publication),
        group=Literal(group),
    )  # fmt: skip
    messages: list[bytes] = []
    lengths: list[bytes] = []
    size = 0
    with connection.transaction():
        connection.execute(query)
        while size < _BYTES or changes == 1:
            row = connection.cursor(binary=True).execute("FETCH 1 FROM ebbtide_log").fetchone()
            if row is None:
                return joined(b"".join(messages), b"".join(lengths), limit=changes)
            messages.append(row[0])
            lengths.append(row[1])
            size += len(row[0])
    return None


def advance(connection: Connection[tuple[Any, ...]], slot: str, to: int) -> None:
    """Let the server forget its log up to a commit's end."""
    connection.execute("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", [slot, lsn_of(to)])


def flushed(connection: Connection[tuple[Any, ...]]) -> int:
    row = connection.execute("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint").fetchone()
    assert row is not None
    return int(row[0])


def mark_own(connection: Connection[tuple[Any, ...]]) -> None:
    """Say in the log that this transaction's DDL is ours."""
    connection.execute(build("SELECT pg_logical_emit_message(true, 'ebbtide.own', {x})", x=""))
