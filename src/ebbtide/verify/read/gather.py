"""Values that come one by one from Python readers, put together into arrays of one place and one type.

Metadata comes this way; data does not, where it can be helped (Parquet and ORC stay in Arrow).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ebbtide.verify.read.pieces import Cells, How

_MANY = 20_000
_LARGE = 8 << 20
_INT64 = range(-(1 << 63), 1 << 63)
Place = tuple[str, How, int | None, bool]


@dataclass(frozen=True, slots=True)
class Unscaled:
    """A number that may be a decimal whose scale is written elsewhere: it comes out with each that it can have."""

    number: int


_SCALES = range(19)
_UNSCALED = range(-(10**38) + 1, 10**38)


@dataclass(slots=True)
class Gathered:
    """Values by place and kind. `full` says when to take them out, which empties it."""

    _values: dict[tuple[Place, str], tuple[list[Any], list[str | None]]] = field(default_factory=dict)
    _count: int = 0
    _bytes: int = 0

    def add(
        self,
        where: str,
        value: object,
        how: How = "row",
        *,
        cut: int | None = None,
        raised: bool = False,
        describes: str | None = None,
    ) -> None:
        """One value, a text percent-decoded, too; None, truth values and what is no value of a column are left out."""
        kind = _kind_of(value)
        if kind is None:
            return
        if kind == "text" and not isinstance(value, str):
            value = str(value)
        values, described = self._values.setdefault(((where, how, cut, raised), kind), ([], []))
        for each in decoded(value) if kind == "text" and isinstance(value, str) else (value,):
            values.append(each)
            described.append(describes)
            self._count += 1
            self._bytes += len(each) if isinstance(each, str | bytes) else 16

    def take_over(self, other: Gathered, how: How, describes: str | None) -> None:
        """The values of another, as what they are here."""
        for ((where, _, cut, raised), kind), (values, _) in other._values.items():
            mine, described = self._values.setdefault(((where, how, cut, raised), kind), ([], []))
            mine += values
            described += [describes] * len(values)
            self._count += len(values)

    @property
    def full(self) -> bool:
        return self._count >= _MANY or self._bytes >= _LARGE

    def take(self) -> Iterator[Cells]:
        """All that was gathered, each place by itself."""
        gathered, self._values, self._count, self._bytes = self._values, {}, 0, 0
        for ((where, how, cut, raised), kind), (values, described) in gathered.items():
            named = pa.array(described, pa.string()) if any(described) else None
            if kind != "unscaled":
                yield Cells(where, how, _array(kind, values), cut, raised, named)
                continue
            whole = pa.array([Decimal(each.number) for each in values], pa.decimal128(38, 0))
            for scale in _SCALES:
                scaled = pa.Array.from_buffers(pa.decimal128(38, scale), len(whole), whole.buffers())
                yield Cells(where, how, scaled, cut, raised, named)


def _kind_of(value: object) -> str | None:
    """Which array a value belongs into: numbers that no integer column holds are told by their text."""
    if isinstance(value, str | uuid.UUID | time):
        return "text"
    if isinstance(value, bytes | bytearray | memoryview):
        return "binary"
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, Unscaled):
        return "unscaled" if value.number in _UNSCALED else None
    if isinstance(value, int):
        return "integer" if value in _INT64 else "text"
    if isinstance(value, Decimal):
        return _kind_of_decimal(value)
    if isinstance(value, float):
        return "float"
    if isinstance(value, date | datetime):
        return "text" if isinstance(value, datetime) else "date"
    return None


def _kind_of_decimal(value: Decimal) -> str:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or exponent > 0 or len(value.as_tuple().digits) > 38 or exponent < -38:
        return "text"
    return f"decimal {-exponent}"


def _array(kind: str, values: list[Any]) -> pa.Array:
    if kind == "text":
        # A lone surrogate is legal in JSON, and no UTF-8.
        return pa.array([each.encode("utf-8", "replace").decode() for each in values], pa.large_string())
    if kind.startswith("decimal"):
        return pa.array(values, pa.decimal128(38, int(kind.partition(" ")[2])))
    types = {"binary": pa.large_binary(), "integer": pa.int64(), "float": pa.float64(), "date": pa.date32()}
    return pa.array([bytes(each) for each in values] if kind == "binary" else values, types[kind])


def decoded(text: str) -> Iterator[str]:
    """A text as written, and percent-decoded until it stays as it is: formats encode paths once, or once more.

    Iceberg writes a space in a path as a plus.
    """
    forms = {text: None}
    for _ in range(4):
        more = [unquote(each, errors="replace") for each in forms if "%" in each]
        more += [each.replace("+", " ") for each in forms if "+" in each and ("%" in each or "=" in each)]
        if forms.keys() >= set(more):
            break
        forms |= dict.fromkeys(more)
    yield from forms
