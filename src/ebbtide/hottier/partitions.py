"""Chunks on the server: those ahead of time, and the tombstones of those that went.

Every change is a list of statements first: a dry run shows the same list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg import Connection
from psycopg.sql import SQL, Composable, Composed, Literal

from ebbtide.config.hottier import HotTable
from ebbtide.hottier.statements import build
from ebbtide.hottier.table import ServerTable

_MONDAY = datetime(1970, 1, 5, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAME_BYTES = 40
Range = tuple[datetime | None, datetime]


def ahead(table: HotTable, found: ServerTable, publication: str | None, *, now: datetime) -> list[Composed]:
    """What makes the chunks that are missing up to `ahead` lengths from now. Nothing for a range that is taken."""
    statements: list[Composed] = []
    for first, last in _missing(table, found, now):
        statements += new_chunk(table, found, first, last, publication)
    return statements


def new_chunk(
    table: HotTable, found: ServerTable, first: datetime, last: datetime, publication: str | None
) -> list[Composed]:
    """A chunk made beside the table and attached: `CREATE … PARTITION OF` would queue behind every reader."""
    leaf = (found.schema, chunk_name(found, first, table))
    made = [
        # An identity is the parent's: a table that has one of its own cannot be attached.
        build("CREATE TABLE {leaf} (LIKE {table} INCLUDING ALL EXCLUDING IDENTITY)", leaf=leaf, table=found.path),
        build("ALTER TABLE {leaf} OWNER TO {owner}", leaf=leaf, owner=(found.owner,)),
    ]
    if publication is not None:
        made.append(build("ALTER PUBLICATION {p} ADD TABLE {leaf}", p=(publication,), leaf=leaf))
    made.append(
        build(
            "ALTER TABLE {table} ATTACH PARTITION {leaf} FOR VALUES FROM ({first}) TO ({last})",
            table=found.path,
            leaf=leaf,
            first=bound(first, found.time_kind),
            last=bound(last, found.time_kind),
        )
    )
    return made


def chunk_name(found: ServerTable, first: datetime, table: HotTable) -> str:
    stem = found.name.encode()[:_NAME_BYTES].decode("utf-8", "ignore")
    return f"{stem}_p{first:%Y%m%d%H}" if table.chunk.unit == "h" else f"{stem}_p{first:%Y%m%d}"


def bound(at: datetime | None, kind: str) -> Composable:
    """A bound as the time column's type writes it, in UTC."""
    if at is None:
        return SQL("MINVALUE")
    shown = f"{at:%Y-%m-%d}" if kind == "date" else f"{at:%Y-%m-%d %H:%M:%S.%f}"
    return Literal(shown + ("+00" if kind == "timestamptz" else ""))


def _missing(table: HotTable, found: ServerTable, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    length = table.chunk.exact
    taken = [(leaf.first, leaf.last) for leaf in found.leaves]
    first = floor(now, length)
    while first <= now + table.ahead * length:
        last = first + length
        if all((end is not None and end <= first) or (begin is not None and begin >= last) for begin, end in taken):
            yield first, last
        first = last


def floor(at: datetime, length: timedelta) -> datetime:
    """The begin of the chunk that a time lies in."""
    start = _MONDAY if length % timedelta(days=7) == timedelta(0) else _EPOCH
    return start + (at - start) // length * length


def with_tombstone(found: ServerTable, first: datetime | None, last: datetime) -> list[Composed]:
    """What answers late rows of a range that is gone: it grows together with the tombstones beside it."""
    gone = [(leaf.first, leaf.last) for leaf in found.tombstones if leaf.last is not None]
    if not any(leaf.last is not None and first is not None and leaf.last <= first for leaf in found.leaves):
        first = None  # nothing lies before it: whatever comes from there is as late
    merged = _merged([*((a, b) for a, b in gone if b is not None), (first, last)])
    return _retomb(found, merged)


def without_tombstone(found: ServerTable, first: datetime | None, last: datetime) -> list[Composed]:
    """What opens a range again that tombstones cover."""
    left: list[Range] = []
    for leaf in found.tombstones:
        if leaf.last is None:
            continue
        before, after = _lower(leaf.first), leaf.last
        if first is not None and before < first:
            left.append((leaf.first, min(first, after)))
        if after > last:
            left.append((max(before, last), after) if before > last else (last, after))
    return _retomb(found, left)


def _retomb(found: ServerTable, ranges: Sequence[Range]) -> list[Composed]:
    kept = {(leaf.first, leaf.last) for leaf in found.tombstones} & set(ranges)
    statements = [
        build("DROP TABLE {leaf}", leaf=leaf.path) for leaf in found.tombstones if (leaf.first, leaf.last) not in kept
    ]
    for first, last in ranges:
        if (first, last) not in kept:
            statements += _tombstone(found, first, last)
    return statements


def _tombstone(found: ServerTable, first: datetime | None, last: datetime) -> list[Composed]:
    stem = found.name.encode()[:_NAME_BYTES].decode("utf-8", "ignore")
    leaf = (found.schema, f"{stem}_gone{last:%Y%m%d%H%M%S}")
    window = f"before {last:%Y-%m-%d %H:%M:%S}+00" if first is None else f"{first:%Y-%m-%d %H:%M:%S}+00 to {last}"
    return [
        build(
            "CREATE TABLE {leaf} PARTITION OF {table} FOR VALUES FROM ({first}) TO ({last})",
            leaf=leaf, table=found.path, first=bound(first, found.time_kind), last=bound(last, found.time_kind),
        ),
        build(
            "CREATE TRIGGER ebbtide_gone BEFORE INSERT ON {leaf} FOR EACH ROW"
            " EXECUTE FUNCTION ebbtide.refuse_late({name}, {window}, {hint})",
            leaf=leaf, name=f"{found.schema}.{found.name}", window=window,
            hint="`ebbtide tier untier` brings a chunk back",
        ),
        build("ALTER TABLE {leaf} ENABLE ALWAYS TRIGGER ebbtide_gone", leaf=leaf),
    ]  # fmt: skip


def _merged(ranges: Sequence[Range]) -> list[Range]:
    done: list[Range] = []
    for first, last in sorted(ranges, key=lambda r: (_lower(r[0]), r[1])):
        if done and _lower(first) <= done[-1][1]:
            done[-1] = (done[-1][0], max(done[-1][1], last))
        else:
            done.append((first, last))
    return done


def _lower(at: datetime | None) -> datetime:
    return datetime.min.replace(tzinfo=UTC) if at is None else at


def execute(connection: Connection[tuple[Any, ...]], statements: Sequence[Composed]) -> None:
    """All of them, or none."""
    with connection.transaction():
        for each in statements:
            connection.execute(each)


def shown(connection: Connection[tuple[Any, ...]], statements: Sequence[Composed]) -> tuple[str, ...]:
    """The statements as a person would write them."""
    return tuple(each.as_string(connection) for each in statements)
