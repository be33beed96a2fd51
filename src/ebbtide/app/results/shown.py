"""How results look to people in a notebook, and to programs: `repr`, HTML and `to_dict()`, the same for every verb.

Names in a lake are other people's texts: what does not print is written out, and HTML is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from html import escape
from itertools import islice
from typing import Any, TypeVar

from ebbtide.app.as_json import as_json

_Row = TypeVar("_Row")
_MOST = 20
"""Rows that are shown; `to_dict()` has all."""
_FEW = 3
"""Fields that are still read on one line."""


class Shown:
    """A frozen result of a verb."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """What the command line prints with `--json`."""
        made: dict[str, Any] = as_json(self)
        return made

    def __repr__(self) -> str:
        return "\n".join(_as_text(_parts(self)))

    def _repr_html_(self) -> str:
        return "".join(_as_html(_parts(self)))


class ResultRows(tuple[_Row, ...]):
    """Frozen rows of one kind."""

    __slots__ = ()

    def to_dicts(self) -> list[dict[str, Any]]:
        """What the command line prints with `--json`."""
        return [as_json(row) for row in self]

    def __repr__(self) -> str:
        return "\n".join(_as_text(_of_rows(self)))

    def _repr_html_(self) -> str:
        return "".join(_as_html(_of_rows(self)))


@dataclass(frozen=True, slots=True)
class _ShownParts:
    """What there is to show: a title, single facts, and tables by name."""

    title: str
    facts: tuple[tuple[str, str], ...]
    tables: tuple[tuple[str, Sequence[Mapping[str, Any]]], ...]
    inner: tuple[_ShownParts, ...] = ()


def _parts(result: Any) -> _ShownParts:
    facts, tables, inner = [], [], []
    for field in (field for field in fields(result) if field.repr):
        value = getattr(result, field.name)
        if isinstance(value, tuple) and value and (is_dataclass(value[0]) or isinstance(value[0], Mapping)):
            tables.append((field.name, [_cells(row) for row in value]))
        elif is_dataclass(value) and len(fields(value)) > _FEW:
            inner.append(replace(_parts(value), title=field.name))
        elif value not in (None, ()):
            facts.append((field.name, _text(value)))
    if hasattr(result, "first_rows"):  # one that keeps its rows elsewhere
        name, rows = result.first_rows(_MOST)
        tables += [(name, [_cells(row) for row in rows])] if rows else []
    return _ShownParts(type(result).__name__, tuple(facts), tuple(tables), tuple(inner))


def _of_rows(rows: tuple[Any, ...]) -> _ShownParts:
    return _ShownParts(f"{len(rows)} rows", (), (("", [_cells(row) for row in rows]),) if rows else ())


def _cells(row: Any) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    return {field.name: getattr(row, field.name) for field in fields(row) if field.repr}


def _text(value: Any) -> str:
    """One value on one line. Rows inside of a row are counted."""
    if isinstance(value, tuple) and value and is_dataclass(value[0]) and len(fields(value[0])) > _FEW:
        return f"{len(value)} rows"
    value = as_json(value)
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_text(item)}" for key, item in value.items())
    return "" if value is None else "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))


def _shown(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]], int]:
    """Columns that say something, the first rows, and how many more there are."""
    few = list(islice(rows, _MOST))
    columns = list(dict.fromkeys(key for row in few for key in row if row[key] not in (None, (), [], "")))
    return columns, [[_text(row.get(column)) for column in columns] for row in few], len(rows) - len(few)


def _as_text(parts: _ShownParts) -> Iterator[str]:
    yield parts.title
    for name, value in parts.facts:
        yield f"  {name}: {value}"
    for name, rows in parts.tables:
        columns, lines, more = _shown(rows)
        if name:
            yield f"{name} ({len(rows)})"
        widths = [max(map(len, cells)) for cells in zip(columns, *lines, strict=True)]
        for line in (columns, *lines):
            yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        if more:
            yield f"  … {more} more"
    for part in parts.inner:
        yield from _as_text(part)


def _as_html(parts: _ShownParts) -> Iterator[str]:
    yield f"<b>{escape(parts.title)}</b>"
    if parts.facts:
        yield _table([f"<th>{escape(name)}</th><td>{escape(value)}</td>" for name, value in parts.facts])
    for name, rows in parts.tables:
        columns, lines, more = _shown(rows)
        head = "".join(f"<th>{escape(column)}</th>" for column in columns)
        body = ["".join(f"<td>{escape(cell)}</td>" for cell in line) for line in lines]
        yield (f"<p>{escape(name)} ({len(rows)})</p>" if name else "") + _table([head, *body])
        if more:
            yield f"<p>… {more} more</p>"
    for part in parts.inner:
        yield from _as_html(part)


def _table(rows: Iterable[str]) -> str:
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"
