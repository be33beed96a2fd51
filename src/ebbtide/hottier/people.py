"""People in a hot table: where their rows are, and taking them out; every value in its column's own type.

Values reach the server by a binary COPY into a table of the session's own, and no other way: a statement's text and its
bound parameters may be written into the server's log (`log_min_duration_statement`, `log_parameter_max_length`,
auto_explain), and `pg_stat_statements` keeps texts; what a COPY carries is in none of them, and the context of an error
in a binary one names a line and a column only. A temporary table is not in the log that replicas and mirrors read. It
is never analysed: statistics hold values, and are logged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any
from typing import Literal as OneOf
from uuid import UUID

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from ebbtide.errors import UnreadableError
from ebbtide.hottier.columns import ServerColumn
from ebbtide.hottier.log import flushed
from ebbtide.hottier.statements import build, statement
from ebbtide.hottier.stops import ERASED
from ebbtide.hottier.table import ServerTable

Session = Connection[tuple[Any, ...]]
Match = OneOf["exact", "casefold", "normalised-email"]
Right = OneOf["SELECT", "DELETE", "UPDATE"]
_LONGEST = "15min"
_AT_ONCE = 10_000
_TABLE = """
CREATE TEMP TABLE ebbtide_people (
    identity text NOT NULL, person int4 NOT NULL, text text, whole int8, number numeric, day date, id uuid, raw bytea,
    spelled text
)
"""
_TYPES = ("text", "int4", "text", "int8", "numeric", "date", "uuid", "bytea", "text")
_TEXTS = ("text", "varchar", "bpchar", "enum", "jsonb")
_OWN = {"int2": "whole", "int4": "whole", "int8": "whole", "numeric": "number", "date": "day", "uuid": "id",
        "bytea": "raw"}  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Value:
    """One value of a person's identity, in each type that can hold it as it is spelled."""

    identity: str
    person: int
    text: str | None = None
    whole: int | None = None
    number: Decimal | None = None
    day: date | None = None
    id: UUID | None = None
    raw: bytes | None = None
    spelled: str | None = None
    """As a row has it that means the same in another case."""


@dataclass(frozen=True, slots=True)
class Way:
    """A column by which an identity tells people apart, and how its values are compared."""

    column: ServerColumn
    identity: str
    match: Match


@dataclass(frozen=True, slots=True, repr=False)
class PersonRows:
    """Rows of one person in one partition, and the columns that say so; the rows themselves where somebody asks."""

    person: int
    leaf: int
    rows: int
    columns: tuple[str, ...]
    texts: tuple[str, ...] = ()


def can_compare(column: ServerColumn) -> bool:
    """Whether values of its type tell people apart. An array's elements are not looked at one by one."""
    return not column.array and (column.kind in _TEXTS or column.kind in _OWN)


def refuse_without(connection: Session, found: ServerTable, rights: Sequence[Right]) -> None:
    """Refused where the role may not, with the statement that lets it."""
    for has, lacks, grant in connection.execute(
        statement("people_rights"), {"oid": found.oid, "rights": list(rights)}
    ).fetchall():
        if not has:
            raise UnreadableError(f"{found.schema}.{found.name}", f"the role lacks {lacks}: {grant}")


def find_rows(
    connection: Session, found: ServerTable, ways: Sequence[Way], values: Sequence[Value], *, with_rows: bool = False
) -> list[PersonRows]:
    """Whose rows are in which partition: one statement, of one snapshot, that changes nothing."""
    if not ways:
        return []
    with _asked(connection) as copy, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        _careful(connection)
        copy(values)
        copy(_spelled(connection, found, ways, values))
        hits = SQL(" UNION ALL ").join(_hits(found, way) for way in ways)
        counted = connection.execute(build(_COUNTED, hits=hits)).fetchall()
        texts: dict[tuple[int, int], list[str]] = {}
        if with_rows:
            shown = build(_SHOWN, hits=hits, table=found.path)
            for leaf, person, _, text in connection.execute(shown):
                texts.setdefault((leaf, person), []).append(text)
    return [
        PersonRows(person, leaf, rows, tuple(sorted(columns)), tuple(texts.get((leaf, person), ())))
        for leaf, person, rows, columns in counted
    ]


_COUNTED = """
SELECT leaf, person, count(DISTINCT place), array_agg(DISTINCT of)
FROM ({hits}) hits (leaf, place, person, of) GROUP BY leaf, person ORDER BY leaf, person
"""
_SHOWN = """
SELECT DISTINCT leaf, person, place, to_jsonb(r)::text
FROM ({hits}) hits (leaf, place, person, of) JOIN {table} r ON r.tableoid = leaf AND r.ctid = place
ORDER BY leaf, person, place
"""
_HITS = """
SELECT r.tableoid::int8, r.ctid, p.person, {name} FROM {table} r JOIN pg_temp.ebbtide_people p ON {same}
"""


def _hits(found: ServerTable, way: Way) -> Composed:
    return build(_HITS, table=found.path, name=way.column.name, same=_same(way))


def count_rows(connection: Session, found: ServerTable) -> int:
    """All rows that the table has."""
    with connection.transaction():
        _careful(connection)
        row = connection.execute(build("SELECT count(*) FROM {table}", table=found.path)).fetchone()
    assert row is not None
    return int(row[0])


@dataclass(frozen=True, slots=True)
class Taken:
    """What a transaction took out: rows by partition. The log before `position` may hold them."""

    rows: Mapping[int, int]
    position: int


def take_out(
    connection: Session,
    found: ServerTable,
    ways: Sequence[Way],
    values: Sequence[Value],
    *,
    act: str,
    redact: Mapping[str, str | None] | None = None,
) -> Taken:
    """These people's rows go, or have columns replaced, in one transaction. Done again it finds nobody."""
    taken: dict[int, int] = {}
    with _asked(connection) as copy:
        with connection.transaction():
            _careful(connection)
            copy(values)
            copy(_spelled(connection, found, ways, values))
            connection.execute("SELECT pg_logical_emit_message(true, %s, %s)", [ERASED, act])
            for way in ways:
                body = build(_BODY, change=_change(found, _same(way), redact)).as_string(connection)
                connection.execute(build(_FUNCTION, body=body))
                for leaf, rows in connection.execute("SELECT leaf, many FROM pg_temp.ebbtide_take_out()"):
                    taken[leaf] = taken.get(leaf, 0) + rows
        return Taken(taken, flushed(connection))


_FUNCTION = """
CREATE OR REPLACE FUNCTION pg_temp.ebbtide_take_out() RETURNS TABLE (leaf int8, many int8) LANGUAGE plpgsql AS {body}
"""
_BODY = """
#variable_conflict use_column
DECLARE
    broken text;
BEGIN
    RETURN QUERY {change};
    SET CONSTRAINTS ALL IMMEDIATE;
EXCEPTION WHEN OTHERS THEN -- its own words, which the server would log, have the row or its key
    GET STACKED DIAGNOSTICS broken = CONSTRAINT_NAME;
    RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = 'ebbtide: rows of people stay, refused by ' || coalesce(
        nullif(quote_ident(broken), '""'), 'the table');
END
"""


def _change(found: ServerTable, same: Composable, redact: Mapping[str, str | None] | None) -> Composed:
    """A row that two ways lead to is changed by the first: the second finds nobody in it."""
    if redact is None:
        what = build("DELETE FROM {table} r USING pg_temp.ebbtide_people p WHERE {same}", table=found.path, same=same)
    else:
        put = SQL(", ").join(build("{c} = {v}", c=Identifier(name), v=Literal(value)) for name, value in redact.items())
        what = build(
            "UPDATE {table} r SET {put} FROM pg_temp.ebbtide_people p WHERE {same}",
            table=found.path, put=put, same=same,
        )  # fmt: skip
    return build(
        "WITH gone AS ({what} RETURNING r.tableoid::int8 AS leaf) SELECT leaf, count(*) FROM gone GROUP BY leaf",
        what=what,
    )


_DEAD = re.compile(
    "([0-9]+) (?:are dead but not yet removable|dead from [0-9]+ pages not removed"
    "|dead row versions cannot be removed yet|pages? due to buffer pins)"
)
"""What VACUUM says of rows that it had to leave, of the table and of what is stored beside it."""


def clean_up(connection: Session, found: ServerTable, leaves: Sequence[int]) -> bool:
    """Let the server reuse the room of rows that went, in these partitions and their indexes, and forget its statistics
    of them; whether it could now, by its own words: one that warns a role that may not, or leaves what an old snapshot
    sees, ends without an error. Words that are not understood mean no. What a page held stays in it until it is written
    over: only a rewrite of the table (VACUUM FULL, pg_repack) ends that, and none is done here.
    """
    paths = [leaf.path for leaf in found.leaves if leaf.oid in leaves]
    if found.oid in leaves:
        paths.append(found.path)
    said: list[str] = []

    def hear(told: psycopg.errors.Diagnostic) -> None:
        said.append(f"{told.message_primary} {told.message_detail}")

    connection.add_notice_handler(hear)
    try:
        for path in paths:
            said.clear()
            connection.execute(build("VACUUM (VERBOSE, INDEX_CLEANUP ON, ANALYZE) {path}", path=path))
            left = [int(number) for each in said for number in _DEAD.findall(each)]
            if not left or any(left):
                return False
        if found.partitioned and paths:
            connection.execute(build("ANALYZE {path}", path=found.path))
    except psycopg.Error:
        return False
    finally:
        connection.remove_notice_handler(hear)
    return True


@contextmanager
def _asked(connection: Session) -> Iterator[Callable[[Sequence[Value]], None]]:
    """A table of the session's own, and what puts values into it: a transaction that reads only may fill one, and not
    make it.
    """
    connection.execute(_TABLE)

    def copy(values: Sequence[Value]) -> None:
        if not values:
            return
        with connection.cursor().copy("COPY pg_temp.ebbtide_people FROM STDIN (FORMAT BINARY)") as rows:
            rows.set_types(_TYPES)
            for v in values:
                rows.write_row((v.identity, v.person, v.text, v.whole, v.number, v.day, v.id, v.raw, v.spelled))

    try:
        yield copy
    finally:
        if not connection.closed:
            connection.execute("DROP TABLE pg_temp.ebbtide_people")


def _careful(connection: Session) -> None:
    """No statement runs for ever, and none leaves rows out that a policy hides: it fails."""
    connection.execute(
        "SELECT set_config('statement_timeout', %s, true), set_config('row_security', 'off', true)", [_LONGEST]
    )


def _spelled(connection: Session, found: ServerTable, ways: Sequence[Way], values: Sequence[Value]) -> list[Value]:
    """Values of rows with letters beyond ASCII that mean one of these in another case. What a server makes of such
    letters depends on how it was built and on its collations, so they are compared here.
    """
    meant: dict[tuple[str, str], set[int]] = {}
    for value in values:
        if value.text is not None:
            meant.setdefault((value.identity, value.text), set()).add(value.person)
    told: set[tuple[str, int, str]] = set()
    for way in ways:
        if way.match == "exact" or way.column.kind not in _TEXTS:
            continue
        with connection.cursor("ebbtide_spelled") as rows:
            rows.itersize = _AT_ONCE
            query = 'SELECT DISTINCT {c}::text COLLATE "C" FROM {table} WHERE {c}::text COLLATE "C" ~ \'[^[:ascii:]]\''
            for (text,) in rows.execute(build(query, c=Identifier(way.column.name), table=found.path)):
                people = meant.get((way.identity, _folded(text, way.match)), ())
                told |= {(way.identity, person, text) for person in people}
    return [Value(identity, person, spelled=text) for identity, person, text in sorted(told)]


def _folded(text: str, match: Match) -> str:
    return text.strip(" ").casefold() if match == "normalised-email" else text.casefold()


def _same(way: Way) -> Composed:
    """Whether a row's value is the person's. The typed comparison lets an index answer, where there is one."""
    column, kind = Identifier("r", way.column.name), way.column.kind
    if (own := _OWN.get(kind)) is not None:
        return build("p.identity = {i} AND {c} = p.{own}", i=way.identity, c=column, own=Identifier(own))
    if way.match == "exact":
        typed = build("{c} = p.text AND ", c=column) if kind in ("text", "varchar") else SQL("")
        same = build('{c}::text = p.text COLLATE "C"', c=column)
        return build("p.identity = {i} AND {typed}{same}", i=way.identity, typed=typed, same=same)
    folded = build('lower({c}::text COLLATE "C")', c=column)
    if way.match == "normalised-email":
        folded = build("btrim({f}, ' ')", f=folded)
    return build(
        'p.identity = {i} AND ({f} = p.text COLLATE "C" OR {c}::text = p.spelled COLLATE "C")',
        i=way.identity, f=folded, c=column,
    )  # fmt: skip
