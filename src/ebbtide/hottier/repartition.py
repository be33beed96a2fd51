"""A plain table becomes a partitioned one while it is in use (spec §6); what is there becomes one wide chunk.

1. A promise about every row, and its proof, while writers go on: without it the attach would read the whole table.
2. One short transaction: the table is renamed, a partitioned one takes its name with all that it had (indexes, keys,
   identity, sequences, triggers, grants, publications), and the old one is attached. It gets its lock at once, or not
   at all.

The statements are read from the server's catalog (`sql/carried.sql`), and a dry run shows them. Whatever fails takes
the promise away again: left alone, it would refuse rows that lie beyond it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Composed

from ebbtide.config.hottier import HotTable
from ebbtide.errors import ConflictError, InputError, RefusedError
from ebbtide.hottier.log import mark_own
from ebbtide.hottier.partitions import bound, floor
from ebbtide.hottier.statements import build, statement
from ebbtide.hottier.table import PartitionLeaf, ServerTable

Session = Connection[tuple[Any, ...]]
_PROMISE = "ebbtide_range"
_WAIT = "2s"
_TRIES = 5
_AT_LEAST = timedelta(days=1)
_NAME_BYTES = 56


@dataclass(frozen=True, slots=True)
class Wide:
    """What a plain table becomes: the chunk `name`, with every row before `end`."""

    name: str
    end: datetime

    def as_chunk(self, found: ServerTable) -> ServerTable:
        """The table as it is found afterwards."""
        leaf = PartitionLeaf(found.oid, found.schema, self.name, None, self.end, tombstone=False)
        return replace(found, partitioned=True, leaves=(leaf,))


def plan_wide(connection: Session, table: HotTable, found: ServerTable, *, now: datetime) -> Wide:
    """The chunk, or why there can be none. It ends well ahead of the newest row: until then it takes new ones, too."""
    wide = Wide(_before(found.name), _end(connection, table, found, now))
    asked = {"oid": found.oid, "time": table.time, "before": wide.name}
    if problems := [why for (why,) in connection.execute(statement("unpartitionable"), asked)]:
        raise RefusedError(f"{table.name} cannot be partitioned: {'; '.join(problems)}", hint="nothing was changed")
    return wide


def promise(table: HotTable, found: ServerTable, wide: Wide) -> list[Composed]:
    """What is said and proven of every row first. Each statement is a transaction of its own."""
    return [
        build(
            "ALTER TABLE {table} ADD CONSTRAINT {promise} CHECK ({time} IS NOT NULL AND {time} < {end}) NOT VALID",
            table=found.path, promise=(_PROMISE,), time=(table.time,), end=bound(wide.end, found.time_kind),
        ),
        build("ALTER TABLE {table} VALIDATE CONSTRAINT {promise}", table=found.path, promise=(_PROMISE,)),
    ]  # fmt: skip


def exchange(connection: Session, table: HotTable, found: ServerTable, wide: Wide) -> list[Composed]:
    """The statements of the one transaction, as the catalog has what is to be carried along."""
    before = (found.schema, wide.name)
    asked = {"oid": found.oid, "before": wide.name, "promise": _PROMISE}
    carried: dict[int, list[Composed]] = {1: [], 2: [], 3: []}
    for place, _, _, text in connection.execute(statement("carried"), asked).fetchall():
        carried[place].append(SQL("{}").format(SQL(text)))
    return [
        *carried[1],
        build("ALTER TABLE {table} RENAME TO {name}", table=found.path, name=(wide.name,)),
        build(
            "CREATE TABLE {table} (LIKE {before} INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING COMMENTS"
            " INCLUDING STATISTICS) PARTITION BY RANGE ({time})",
            table=found.path, before=before, time=(table.time,),
        ),
        build("ALTER TABLE {table} OWNER TO {owner}", table=found.path, owner=(found.owner,)),
        *carried[2],
        build(
            "ALTER TABLE {table} ATTACH PARTITION {before} FOR VALUES FROM (MINVALUE) TO ({end})",
            table=found.path, before=before, end=bound(wide.end, found.time_kind),
        ),
        build("ALTER TABLE {before} DROP CONSTRAINT {promise}", before=before, promise=(_PROMISE,)),
        *carried[3],
        *_counted(connection, found),
    ]  # fmt: skip


def _counted(connection: Session, found: ServerTable) -> list[Composed]:
    """Identities go on where they are: one that was set and not used yet has that in its sequence only."""
    said = []
    table = build("{table}", table=found.path).as_string(connection)
    for column, *sequence in connection.execute(statement("identities"), {"oid": found.oid}).fetchall():
        row = connection.execute(
            build("SELECT last_value::text, is_called::text FROM {s}", s=tuple(sequence))
        ).fetchone()
        assert row is not None
        said.append(
            build(
                "SELECT setval(pg_get_serial_sequence({table}, {column}), {last}, {called})",
                table=table, column=column, last=row[0], called=row[1],
            )
        )  # fmt: skip
    return said


def make_partitioned(connection: Session, table: HotTable, found: ServerTable, wide: Wide) -> None:
    """Carry it out. Whatever goes wrong leaves the plain table as it was."""
    _take_back(connection, found)  # of one that died here
    said, proven = promise(table, found, wide)
    try:
        _in_turn(lambda: _said(connection, said))
        connection.execute(proven)
        _in_turn(lambda: _exchanged(connection, table, found, wide))
    except psycopg.errors.CheckViolation:
        _give_up(connection, found, wide)
        raise InputError(
            f"{table.name} has rows without a time, or of {wide.end:%Y-%m-%d %H:%M} and later",
            where=table.where,
            hint="nothing was changed; give them a time, or run it again",
        ) from None
    except BaseException:
        _give_up(connection, found, wide)
        raise


def _give_up(connection: Session, found: ServerTable, wide: Wide) -> None:
    """The promise goes, or is told: nobody finds out by a row that is refused."""
    try:
        _in_turn(lambda: _take_back(connection, found))
    except (psycopg.Error, ConflictError):
        drop = build("ALTER TABLE {t} DROP CONSTRAINT {p}", t=found.path, p=(_PROMISE,)).as_string(connection)
        raise ConflictError(
            f"{found.name} is in use all the time: it was not partitioned, and still promises to have no row of"
            f" {wide.end:%Y-%m-%d %H:%M} or later",
            hint=f"run it again when no transaction holds the table, or run: {drop}",
        ) from None


def _said(connection: Session, said: Composed) -> None:
    with connection.transaction():
        _patiently(connection)
        connection.execute(said)


def _exchanged(connection: Session, table: HotTable, found: ServerTable, wide: Wide) -> None:
    with connection.transaction():
        _patiently(connection)
        connection.execute(build("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE", table=found.path))
        for each in exchange(connection, table, found, wide):  # behind the lock: no sequence goes on
            connection.execute(each)


def _patiently(connection: Session) -> None:
    mark_own(connection)
    connection.execute("SELECT set_config('lock_timeout', %s, true)", [_WAIT])


def _in_turn(work: Callable[[], None]) -> None:
    """Who has to wait for the lock keeps every other waiting, too: not for long, and again a little later."""
    for left in reversed(range(_TRIES)):
        try:
            work()
            return
        except psycopg.errors.LockNotAvailable:
            if not left:
                raise ConflictError(
                    "the table was in use all the time: a transaction that touched it has not ended",
                    hint="nothing was changed; run it again when that has ended",
                ) from None
            time.sleep(0.5)


def _take_back(connection: Session, found: ServerTable) -> None:
    with connection.transaction():
        _patiently(connection)
        connection.execute(build("ALTER TABLE {t} DROP CONSTRAINT IF EXISTS {p}", t=found.path, p=(_PROMISE,)))


def _before(name: str) -> str:
    return name.encode()[:_NAME_BYTES].decode("utf-8", "ignore") + "_before"


def _end(connection: Session, table: HotTable, found: ServerTable, now: datetime) -> datetime:
    row = connection.execute(
        build(
            "SELECT CASE WHEN isfinite(newest) THEN newest END, isfinite(newest)"
            " FROM (SELECT max({time})::timestamptz FROM ONLY {table}) m (newest)",
            time=(table.time,), table=found.path,
        )
    ).fetchone()  # fmt: skip
    if row is not None and row[1] is False:
        raise InputError(f"{table.name} has a row at the end of time", where=table.where, hint="give it another time")
    newest = now if row is None or row[0] is None else max(now, row[0].astimezone(UTC))
    length = table.chunk.exact
    return floor(newest + max(table.ahead * length, _AT_LEAST), length) + length
