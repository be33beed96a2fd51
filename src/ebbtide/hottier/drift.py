"""Columns that are not what they were when the mirror last looked: what it follows, and what only a resync does.

The log names columns, and tells of rows that are written. A column that is called otherwise by now, one that was made
again under its name, and values that a default gave to rows without writing them are not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ebbtide.formats.iceberg.cold import ColdTable
from ebbtide.hottier.columns import Columns
from ebbtide.hottier.pgoutput import Relation
from ebbtide.hottier.values import CannotFollowError

_AGAIN = "run `ebbtide tier resync TABLE`"


def follow(cold: ColdTable, columns: Columns, slot: str) -> bool:
    """Bring the cold table's columns in step with the server's; a `CannotFollowError` where the log is not enough.

    True where they were not: what was proven before was proven of other columns.
    """
    before = cold.remembered()
    if because := _why_not(columns, before):
        raise CannotFollowError(because, hint=_AGAIN)
    # Those that were dropped stay in mind: one that comes again under such a name is another one.
    return _follow(cold, columns, {**(before or {}), **_numbered(columns)}, slot)


def begin_with(cold: ColdTable, columns: Columns, slot: str) -> None:
    """The same before a copy: every row that is here is written with the columns of today."""
    _follow(cold, columns, _numbered(columns), slot)


def refuse_unfit_types(cold: ColdTable, columns: Columns) -> None:
    """A `CannotFollowError` where a column's type is none that the lake's can turn into."""
    _, unfit = cold.differing(columns.schema)
    if unfit:
        hint = "give the column another name, or this table another cold table"
        raise CannotFollowError("; ".join(unfit), hint=hint)


def _follow(cold: ColdTable, columns: Columns, now: Mapping[int, str], slot: str) -> bool:
    refuse_unfit_types(cold, columns)
    grown, _ = cold.differing(columns.schema)
    if not grown and now == cold.remembered() and cold.source == slot:
        return False
    cold.follow(grown, now, slot)
    return True


def _numbered(columns: Columns) -> dict[int, str]:
    return {column.number: column.name for column in columns.columns}


def _why_not(columns: Columns, before: Mapping[int, str] | None) -> str | None:
    if before is None:
        return "the cold table no longer says which columns it was copied with"
    names = set(before.values())
    for column in columns.columns:
        called = before.get(column.number)
        if called is not None and called != column.name:
            return f"column {called} is called {column.name} now: the log tells of one or the other"
        if called is None and column.name in names:
            return f"column {column.name} is another one than before, under the same name"
        if called is None and column.filled:
            return f"column {column.name} was added with a value that rows have without being written"
    return None


def refuse_renamed(cold: ColdTable, columns: Columns, relations: Iterable[Relation]) -> None:
    """A column that was called otherwise for a while: what was written then is told under a name that nobody knows."""
    known = set((cold.remembered() or {}).values())
    for relation in relations:
        told = set(relation.columns)
        lacking = [name for name in columns.names if name in known and name not in told]
        if lacking and told - known:
            raise CannotFollowError(f"column {lacking[0]} was called otherwise for a while", hint=_AGAIN)
