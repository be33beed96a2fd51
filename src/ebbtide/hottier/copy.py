"""The first rows of a table, as the snapshot of its slot has them: COPY in binary, parsed by column, in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from psycopg import Connection
from psycopg.sql import SQL

from ebbtide.hottier.arrays import to_arrow
from ebbtide.hottier.columns import Columns
from ebbtide.hottier.pgoutput import fields
from ebbtide.hottier.statements import build

_ROWS = 100_000
_BYTES = 512 << 20
_HEADER = 19
_END = b"\xff\xff"


@contextmanager
def seen_by(connection: Connection[tuple[Any, ...]], snapshot: str) -> Iterator[None]:
    """A transaction that sees exactly what the snapshot does."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(build("SET TRANSACTION SNAPSHOT {s}", s=snapshot))
        yield


def rows_of(
    connection: Connection[tuple[Any, ...]],
    path: tuple[str, ...],
    columns: Columns,
    advance: Callable[[int], None],
    *,
    whole: bool,
) -> Iterator[pa.Table]:
    """The rows of a table with its partitions, or of one partition alone."""
    names = SQL(", ").join(build("{c}", c=(name,)) for name in columns.names)
    query = build(
        "COPY (SELECT {names} FROM {only} {table}) TO STDOUT (FORMAT binary)",
        names=names, only=SQL("" if whole else "ONLY"), table=path,
    )  # fmt: skip
    rows: list[bytes] = []
    size = 0
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        for n, data in enumerate(copy):
            row = bytes(data)[_HEADER:] if n == 0 else bytes(data)
            if row and row != _END:
                rows.append(row)
                size += len(row)
            if len(rows) >= _ROWS or size >= _BYTES:
                yield _table(rows, columns)
                advance(len(rows))
                rows, size = [], 0
    if rows:
        yield _table(rows, columns)
        advance(len(rows))


def _table(rows: list[bytes], columns: Columns) -> pa.Table:
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    starts = np.cumsum(sizes) - sizes
    buffer = np.frombuffer(b"".join(rows), np.uint8)
    where, ends = fields(buffer, starts, len(columns.columns), copied=True)
    assert bool((ends == starts + sizes).all()), "COPY sends one row a message"
    return pa.table(
        [to_arrow(buffer, field, column) for field, column in zip(where, columns.columns, strict=True)],
        schema=columns.schema,
    )
