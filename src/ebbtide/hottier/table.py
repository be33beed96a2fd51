"""A hot table as its server has it now: columns, partitions with their bounds, and what stands in the way."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from psycopg import Connection

from ebbtide.config.hottier import HotTable
from ebbtide.errors import InputError, RefusedError
from ebbtide.hottier.columns import TIMES, Columns, read_columns
from ebbtide.hottier.server import OLDEST, identity
from ebbtide.hottier.statements import statement

_OPEN_BELOW, _OPEN_ABOVE = ("MINVALUE", "-infinity"), ("MAXVALUE", "infinity")
_BOUND = re.compile(r"FOR VALUES FROM \((.+)\) TO \((.+)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PartitionLeaf:
    """A partition. A missing bound is the end of time on that side. A tombstone refuses every row."""

    oid: int
    schema: str
    name: str
    first: datetime | None
    last: datetime | None
    tombstone: bool

    @property
    def path(self) -> tuple[str, str]:
        return self.schema, self.name

    @property
    def window(self) -> str:
        """Its time range for people."""
        return f"[{_shown(self.first)}, {_shown(self.last)})"


@dataclass(frozen=True, slots=True)
class ServerTable:
    """A table, found. `partitioned` says whether it has chunks."""

    oid: int
    schema: str
    name: str
    owner: str
    partitioned: bool
    columns: Columns
    time_kind: str
    leaves: tuple[PartitionLeaf, ...]

    @property
    def path(self) -> tuple[str, str]:
        return self.schema, self.name

    @property
    def chunks(self) -> tuple[PartitionLeaf, ...]:
        return tuple(leaf for leaf in self.leaves if not leaf.tombstone)

    @property
    def tombstones(self) -> tuple[PartitionLeaf, ...]:
        return tuple(leaf for leaf in self.leaves if leaf.tombstone)


def find(connection: Connection[tuple[Any, ...]], table: HotTable) -> ServerTable:
    """Look the table up; an `InputError` where there is none, or one of another kind."""
    schema, name = table.path
    row = connection.execute(
        "SELECT c.oid::bigint, c.relkind::text, pg_get_userbyid(c.relowner)::text, c.relispartition"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s",
        [schema, name],
    ).fetchone()
    if row is None:
        raise InputError(f"no table {table.name} on the server", where=table.where, hint="look at its schema and name")
    oid, kind, owner, is_partition = row
    if kind not in ("p", "r") or is_partition:
        what = "a partition of another table" if is_partition else "not a table"
        raise InputError(f"{table.name} is {what}", where=table.where, hint="name a table that rows are written into")
    columns = read_columns(connection, oid)
    time = next((column for column in columns.columns if column.name == table.time), None)
    if time is None or time.kind not in TIMES:
        raise InputError(
            f"{table.name} has no time column {table.time!r}", where=table.where,
            hint="name a column of type timestamptz, timestamp or date under `time:`",
        )  # fmt: skip
    if table.cold is not None and not time.key:
        raise InputError(
            f"{table.name} has no primary key with {table.time!r} in it", where=table.where,
            hint="updates and deletes are followed by the key, and PostgreSQL wants the time in a partitioned table's",
        )  # fmt: skip
    if time.kind == "date" and table.chunk.unit == "h" and table.chunk.count % 24:
        raise InputError(
            f"{table.name} is partitioned by days, and chunks of {table.chunk} are parts of one", where=table.where,
            hint="let `chunk:` be of whole days",
        )  # fmt: skip
    if kind == "p":
        _refuse_other_key(connection, table, oid)
    leaves = _leaves(connection, oid) if kind == "p" else ()
    return ServerTable(oid, schema, name, owner, kind == "p", columns, time.kind, leaves)


def _refuse_other_key(connection: Connection[tuple[Any, ...]], table: HotTable, oid: int) -> None:
    row = connection.execute(
        "SELECT p.partstrat = 'r' AND p.partnatts = 1 AND a.attname = %(time)s"
        " FROM pg_partitioned_table p LEFT JOIN pg_attribute a"
        " ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]"
        " WHERE p.partrelid = %(oid)s",
        {"oid": oid, "time": table.time},
    ).fetchone()
    if row is None or not row[0]:
        raise InputError(
            f"{table.name} is not partitioned by ranges of {table.time!r} alone", where=table.where,
            hint="chunks are ranges of one time column",
        )  # fmt: skip


def _leaves(connection: Connection[tuple[Any, ...]], oid: int) -> tuple[PartitionLeaf, ...]:
    rows = connection.execute(statement("leaves"), {"oid": oid}).fetchall()
    ranges = _ranges(connection, {name: bound for _, _, name, bound, _ in rows})
    return tuple(
        PartitionLeaf(leaf, schema, name, *ranges[name], tombstone) for leaf, schema, name, _, tombstone in rows
    )


def is_still(connection: Connection[tuple[Any, ...]], found: ServerTable, leaf: PartitionLeaf) -> bool:
    """Whether the partition that has the leaf's name now is the leaf, and has its range."""
    named = {"schema": leaf.schema, "name": leaf.name, "parent": found.oid}
    row = connection.execute(statement("leaf"), named).fetchone()
    if row is None or row[0] != leaf.oid:
        return False
    return _ranges(connection, {leaf.name: row[1]})[leaf.name] == (leaf.first, leaf.last)


def _ranges(
    connection: Connection[tuple[Any, ...]], bounds: Mapping[str, str | None]
) -> dict[str, tuple[datetime | None, datetime | None]]:
    """The ranges of partitions by their names, from bounds as the server writes them: one question for all."""
    texts: dict[str, tuple[str, str]] = {}
    for name, bound in bounds.items():
        match = _BOUND.fullmatch(bound or "")
        if match is None:
            raise RefusedError(
                f"{name} is a default partition: its rows would lie in no chunk", hint="detach it, or give it bounds"
            )
        texts[name] = match[1].strip("'"), match[2].strip("'")
    asked = {text for first, last in texts.values() for text in (first, last)} - {*_OPEN_BELOW, *_OPEN_ABOVE}
    instants = _instants(connection, asked)

    def at(name: str, text: str, open_: tuple[str, str]) -> datetime | None:
        if text in open_:
            return None
        if (found := instants.get(text)) is None:
            raise RefusedError(f"{name} has a bound beyond the calendar", hint="give it one of the years 1 to 9998")
        return found

    return {name: (at(name, f, _OPEN_BELOW), at(name, t, _OPEN_ABOVE)) for name, (f, t) in texts.items()}


def _instants(connection: Connection[tuple[Any, ...]], texts: Collection[str]) -> dict[str, datetime | None]:
    """Bounds as the server's own cast reads them, in UTC. Times without a zone are meant in UTC.

    Infinity is an open end: the lake takes no infinite time, so none is between the two.
    """
    if not texts:
        return {}
    rows = connection.execute(
        "SELECT t, CASE WHEN t::timestamptz >= '0001-01-01+00' AND t::timestamptz < '9999-12-31+00'"
        " THEN t::timestamptz END FROM unnest(%s::text[]) b (t)",
        [list(texts)],
    )
    return {text: None if at is None else at.astimezone(UTC) for text, at in rows}


def refuse_unfit(
    connection: Connection[tuple[Any, ...]], found: ServerTable, *, synced: bool, streamed: bool
) -> tuple[str, ...]:
    """Every reason why it cannot be tiered. Named rights come with the statement that grants them."""
    problems = []
    if identity(connection).version < OLDEST:
        problems.append(f"the server is older than PostgreSQL {OLDEST}")
    if synced:
        problems += found.columns.problems
    if streamed:
        level = connection.execute("SELECT current_setting('wal_level')").fetchone()
        if level is None or level[0] != "logical":
            problems.append(
                "the server has wal_level = replica: set it to logical and restart the server, or say `mirror: batch`"
            )
    known = {"oid": found.oid, "synced": synced}
    problems += [f"{name} {why}" for name, why in connection.execute(statement("preflight"), known)]
    for right, in_mirror_alone, has, grant in connection.execute(statement("rights"), {"oid": found.oid}):
        if not has and (streamed or not in_mirror_alone):
            problems.append(f"the role lacks {right}: {grant}")
    installed = connection.execute(statement("watchers")).fetchone()
    if installed is None or not installed[0]:
        problems.append("the server lacks Ebbtide's functions and event triggers: run `ebbtide tier init`")
    return tuple(problems)


def _shown(at: datetime | None) -> str:
    return "…" if at is None else f"{at:%Y-%m-%d %H:%M:%S}+00"
