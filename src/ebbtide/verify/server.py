"""A table of a PostgreSQL server, read to its last row and searched like an object of storage.

Every column of every row that a reader sees comes here, and so does what the planner keeps of them (`pg_stats`,
`pg_stats_ext`): values of people are told to no server. What lies in pages, dead rows, indexes and the log
of the server is not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
from psycopg import Connection
from psycopg.sql import SQL, Composable, Identifier

from ebbtide.verify.matcher import Matcher, ObjectFindings
from ebbtide.verify.read.pieces import Cells, Piece

_AT_ONCE = 16 << 20
_WHOLE = ("int2", "int4", "int8")
_COLUMNS = """
SELECT a.attname::text, y.typname::text
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_type y ON y.oid = a.atttypid
WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_STATISTICS = """
WITH RECURSIVE tables AS (
    SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = %s
    UNION ALL
    SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tables t ON t.oid = i.inhparent
), kept AS (
    SELECT oid FROM tables
    UNION ALL -- those of an expression are its index's
    SELECT x.indexrelid FROM pg_catalog.pg_index x JOIN tables t ON t.oid = x.indrelid
)
SELECT 'column ' || s.attname, s.most_common_vals::text, s.histogram_bounds::text, s.most_common_elems::text
FROM pg_catalog.pg_stats s
JOIN pg_catalog.pg_namespace n ON n.nspname = s.schemaname
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = s.tablename
JOIN kept k ON k.oid = c.oid
UNION ALL
SELECT s.statistics_name::text, s.most_common_vals::text, NULL, NULL
FROM pg_catalog.pg_stats_ext s
JOIN pg_catalog.pg_namespace n ON n.nspname = s.schemaname
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = s.tablename
JOIN tables t ON t.oid = c.oid
UNION ALL
SELECT s.statistics_name::text, s.most_common_vals::text, s.histogram_bounds::text, s.most_common_elems::text
FROM pg_catalog.pg_stats_ext_exprs s
JOIN pg_catalog.pg_namespace n ON n.nspname = s.schemaname
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = s.tablename
JOIN tables t ON t.oid = c.oid
"""
NOT_READ = "a hot table: its rows were read; what its server's pages, dead rows and log hold was not"


def search_table(connection: Connection[tuple[Any, ...]], path: tuple[str, str], matcher: Matcher) -> ObjectFindings:
    """All that the table holds of whom the matcher knows. Nothing is changed."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute("SELECT set_config('row_security', 'off', true)")
        return matcher.search(_pieces(connection, path))


def _pieces(connection: Connection[tuple[Any, ...]], path: tuple[str, str]) -> Iterator[Piece]:
    columns = connection.execute(_COLUMNS, path).fetchall()
    for name, *texts in connection.execute(_STATISTICS, path).fetchall():
        values = pa.array([text for text in texts if text is not None], pa.string())
        yield Cells(f"statistics of {name}", "bound", values)
    if not columns:
        return
    chosen = SQL(", ").join(_told(Identifier(name), type_) for name, type_ in columns)
    query = SQL("COPY (SELECT {chosen} FROM {table}) TO STDOUT (FORMAT csv)").format(
        chosen=chosen, table=Identifier(*path)
    )
    held: list[bytes] = []
    size = 0
    with connection.cursor().copy(query) as rows:
        for row in rows:  # one whole row each
            held.append(bytes(row))
            size += len(row)
            if size >= _AT_ONCE:
                yield from _cells(b"".join(held), columns)
                held, size = [], 0
    if held:
        yield from _cells(b"".join(held), columns)


def _told(column: Identifier, type_: str) -> Composable:
    """A column as text that spells its values as they are compared."""
    if type_ == "bytea":
        return SQL("encode({}, 'hex')").format(column)
    return SQL("trim_scale({})::text" if type_ == "numeric" else "{}::text").format(column)


def _cells(data: bytes, columns: list[tuple[str, str]]) -> Iterator[Piece]:
    names = [str(n) for n in range(len(columns))]
    types = {n: pa.int64() if type_ in _WHOLE else pa.string() for n, (_, type_) in zip(names, columns, strict=True)}
    table = csv.read_csv(
        pa.BufferReader(data),
        csv.ReadOptions(column_names=names, block_size=max(len(data), 1)),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
    for n, (name, type_) in zip(names, columns, strict=True):
        values = table[n].combine_chunks()
        if type_ == "bytea":
            values = pa.array(
                [None if each is None else bytes.fromhex(each) for each in values.to_pylist()], pa.binary()
            )
        yield Cells(f"column {name}", "row", values)
