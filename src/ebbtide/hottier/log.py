"""The server's log, as a slot decodes it: peeked once, and given in parts, so that memory does not grow with a backlog.

Every peek, and every move of a slot, decodes anew from where the server begins to read, which is behind by all that was
written since its last running-transactions record. So one peek tells of much, and a slot moves once for it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Literal

from ebbtide.hottier.pgoutput import ChangeBatch, joined
from ebbtide.hottier.setup import lsn_of
from ebbtide.hottier.statements import build

_GROUP = 50_000
_FEWER = 10
_MESSAGES, _BYTES = 200_000, 256 << 20
"""From here on a part is given, at the end of a transaction: one that is larger is held whole."""
_SORTED_IN = "128MB"
"""Memory of the server for the order of the messages: within its default of 4 MB most go through its disk twice."""
CHANGES = 1 << 22
"""Changes of a peek; the transaction that passes the number is still read to its end."""

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
) -> Generator[ChangeBatch]:
    """Whole transactions from where the slot is on, part by part; nothing moves by it. What an earlier part described
    comes again with every later one, and after a server's limit that was met, everything from the first on.
    """
    group = _GROUP
    while True:
        try:
            yield from _peek(connection, slot, publication, upto, changes, group)
            return
        except psycopg.errors.ProgramLimitExceeded:  # more than the server puts into one value: rows are wide
            if group == 1:
                raise
            group = max(group // _FEWER, 1)
        except psycopg.errors.ConfigurationLimitExceeded:  # its temporary files
            if changes == 1:
                raise
            changes = max(changes // _FEWER, 1)


def _peek(
    connection: Connection[tuple[Any, ...]], slot: str, publication: str, upto: int, changes: int, group: int
) -> Generator[ChangeBatch]:
    query = SQL(_PEEK).format(
        slot=Literal(slot), upto=Literal(lsn_of(upto)), changes=Literal(changes), publication=Literal(publication),
        group=Literal(group),
    )  # fmt: skip
    held, told = _Held(), 0
    with connection.transaction():
        connection.execute("SELECT set_config('work_mem', %s, true)", [_SORTED_IN])
        connection.execute(query)
        while (row := connection.cursor(binary=True).execute("FETCH 1 FROM ebbtide_log").fetchone()) is not None:
            told += held.add(*row)
            if held.is_due:
                yield held.take(more=True)
        yield held.take(more=told >= changes)


class _Held:
    """Messages that were read, and not given yet."""

    def __init__(self) -> None:
        self._messages: list[bytes] = []
        self._lengths: list[bytes] = []
        self._count = self._size = 0
        self._ends = False

    def add(self, messages: bytes, lengths: bytes) -> int:
        """Gives how many they are."""
        batch = joined(messages, lengths)
        self._messages.append(messages)
        self._lengths.append(lengths)
        self._count += len(batch.starts)
        self._size += len(messages)
        self._ends = self._ends or batch.end is not None
        return len(batch.starts)

    @property
    def is_due(self) -> bool:
        return self._ends and (self._count >= _MESSAGES or self._size >= _BYTES)

    def take(self, *, more: bool) -> ChangeBatch:
        """The transactions that have ended. What they described, and the beginning of the next one, is kept."""
        batch = joined(b"".join(self._messages), b"".join(self._lengths), more=more)
        whole, messages, lengths = batch.split()
        self._messages, self._lengths, self._ends = [messages], [lengths], False
        self._count, self._size = len(lengths) // 4, len(messages)
        return whole


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
