"""Values in PostgreSQL's binary form, column by column, into Arrow: numpy looks at all rows at once.

A field is where a value lies in a buffer. What the lake cannot hold (infinity, NaN in a numeric) is an error: the
mirror stops, and no value is ever guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ebbtide.errors import RefusedError
from ebbtide.hottier.columns import ServerColumn

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
_EPOCH_US = 946_684_800_000_000
_EPOCH_DAYS = 10_957
_DAY_US = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_897
"""The years 1 to 9999, which every reader of the lake knows, in days since 1970."""
_MOST = 1 << 31
_DIGITS_IN_64_BITS = 18


class CannotFollowError(RefusedError):
    """The log says something that the cold table cannot follow."""


class UnfitValueError(CannotFollowError):
    """A value that the lake has no word for."""

    def __init__(self, column: str, what: str) -> None:
        super().__init__(
            f"column {column} holds {what}, which the lake cannot", hint="correct the row, then `ebbtide tier resync`"
        )


@dataclass(frozen=True, slots=True)
class Field:
    """Where the values of a column lie. `there` is False for NULL, `kept` True where TOAST left a value out."""

    start: Ints
    length: Ints
    there: NDArray[np.bool_]
    kept: NDArray[np.bool_]


def integers(buffer: Bytes, at: Ints, size: int) -> Ints:
    """Big-endian signed integers at these places; a place too near the end is one that nobody looks at."""
    at = np.clip(at, 0, max(len(buffer) - size, 0))
    raw = np.ascontiguousarray(buffer[at[:, None] + np.arange(size)])
    return raw.view(f">i{size}").ravel().astype(np.int64)


def plain_to_arrow(buffer: Bytes, field: Field, column: ServerColumn) -> pa.Array:
    """The values of one column that has no arrays."""
    kind, there = column.kind, field.there
    mask = None if there.all() else ~there
    at = np.where(there, field.start, 0)
    if kind in ("int2", "int4", "int8"):
        return pa.array(integers(buffer, at, int(kind[3])), mask=mask).cast(column.arrow)
    if kind in ("float4", "float8"):
        size = int(kind[5])
        raw = integers(buffer, at, size).astype(f"i{size}").view(f"f{size}")
        return pa.array(raw, mask=mask, from_pandas=False)
    if kind == "bool":
        return pa.array(buffer[at].astype(np.bool_) if len(buffer) else np.zeros(len(at), np.bool_), mask=mask)
    if kind in ("timestamp", "timestamptz", "date"):
        return _time(buffer, at, there, mask, column)
    if kind == "numeric":
        return _numeric(buffer, field, column)
    if kind == "uuid":
        return _uuid(buffer, field, mask)
    skip = 1 if kind == "jsonb" else 0  # the version of its binary form
    return _spans(buffer, field.start + skip, field.length - skip, there, column.arrow)


def _time(buffer: Bytes, at: Ints, there: NDArray[np.bool_], mask: Any, column: ServerColumn) -> pa.Array:
    size, edge = (4, 1 << 31) if column.kind == "date" else (8, 1 << 63)
    raw = integers(buffer, at, size)
    if (there & ((raw == -edge) | (raw == edge - 1))).any():
        raise UnfitValueError(column.name, "an infinite time")
    first, last = (_FIRST_DAY, _LAST_DAY) if size == 4 else (_FIRST_DAY * _DAY_US, _LAST_DAY * _DAY_US)
    epoch = _EPOCH_DAYS if size == 4 else _EPOCH_US
    if (there & ((raw < first - epoch) | (raw >= last - epoch))).any():
        raise UnfitValueError(column.name, "a time beyond the calendar")
    if size == 4:
        return pa.array((raw + _EPOCH_DAYS).astype(np.int32), mask=mask).cast(column.arrow)
    return pa.array(np.where(there, raw, 0) + _EPOCH_US, mask=mask).cast(column.arrow)


def _spans(buffer: Bytes, start: Ints, length: Ints, there: NDArray[np.bool_], type_: pa.DataType) -> pa.Array:
    """Byte strings that lie anywhere in a buffer, without an object for any of them."""
    if len(buffer) >= _MOST:
        raise CannotFollowError(
            "a transaction is larger than 2 GiB", hint="run `ebbtide tier resync`, and write in smaller ones"
        )
    count = len(start)
    order = np.argsort(start, kind="stable")
    offsets = np.zeros(2 * count + 1, np.int32)
    # A NULL has a place, too, and no length: places only ever grow from one row to the next.
    begin, size = np.minimum(start, len(buffer))[order], np.where(there, length, 0)[order]
    offsets[0 : 2 * count : 2] = begin
    offsets[1 : 2 * count : 2] = begin + size
    offsets[2 * count :] = offsets[2 * count - 1] if count else 0
    both = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(buffer)])
    back = np.empty(count, np.int64)
    back[order] = np.arange(count)
    taken = both.take(pa.array(back * 2, mask=None if there.all() else ~there))
    return taken if type_ == pa.binary() else taken.cast(type_)


def _uuid(buffer: Bytes, field: Field, mask: Any) -> pa.Array:
    at = np.where(field.there, field.start, 0)
    if not len(at):
        return pa.array([], pa.string())
    at = np.clip(at, 0, max(len(buffer) - 16, 0))
    raw = np.ascontiguousarray(buffer[at[:, None] + np.arange(16)])
    digits = np.frombuffer(raw.tobytes().hex().encode(), np.uint8).reshape(-1, 32)
    dash = np.full((len(at), 1), ord("-"), np.uint8)
    parts = [digits[:, :8], dash, digits[:, 8:12], dash, digits[:, 12:16], dash, digits[:, 16:20], dash, digits[:, 20:]]
    text = np.ascontiguousarray(np.hstack(parts))
    found = (
        pa.Array.from_buffers(pa.binary(36), len(at), [None, pa.py_buffer(text)]).cast(pa.binary()).cast(pa.string())
    )
    return found if mask is None else pa.compute.if_else(pa.array(~mask), found, None)


def _numeric(buffer: Bytes, field: Field, column: ServerColumn) -> pa.Array:
    """Groups of four decimal digits with a weight, into unscaled integers of the column's scale."""
    there, at = field.there, np.where(field.there, field.start, 0)
    groups = np.where(there, integers(buffer, at, 2), 0)
    weight, sign = integers(buffer, at + 2, 2), integers(buffer, at + 4, 2) & 0xFFFF
    if (there & ~np.isin(sign, (0, 0x4000))).any():
        raise UnfitValueError(column.name, "NaN or infinity")
    if column.precision > _DIGITS_IN_64_BITS:
        return _wide_numeric(buffer, field, column, groups, weight, sign)
    total = np.zeros(len(at), np.int64)
    for n in range(int(groups.max(initial=0))):
        live = groups > n
        digit = np.where(live, integers(buffer, at + 8 + 2 * n, 2), 0)
        power = 4 * (weight - n) + column.scale
        # The column's precision and scale bound what is stored: groups outside of them hold zeros.
        up, down = np.clip(power, 0, _DIGITS_IN_64_BITS), np.clip(-power, 0, 4)
        total += np.where(power >= 0, digit * 10**up, digit // 10**down)
    total = np.where(sign == 0x4000, -total, total)
    wide = np.empty((len(total), 2), np.int64)
    wide[:, 0], wide[:, 1] = total, total >> 63
    valid = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(column.arrow, len(total), [valid, pa.py_buffer(wide)])


def _wide_numeric(
    buffer: Bytes, field: Field, column: ServerColumn, groups: Ints, weight: Ints, sign: Ints
) -> pa.Array:
    """More than 18 digits are rare, and are counted row by row."""
    found: list[Decimal | None] = []
    for row in range(len(field.start)):
        if not field.there[row]:
            found.append(None)
            continue
        start, total = int(field.start[row]) + 8, 0
        for n in range(int(groups[row])):
            digit = int(buffer[start + 2 * n]) << 8 | int(buffer[start + 2 * n + 1])
            power = 4 * (int(weight[row]) - n) + column.scale
            total += digit * 10**power if power >= 0 else digit // 10**-power
        made = (1 if sign[row] == 0x4000 else 0, tuple(int(c) for c in str(total)), -column.scale)
        found.append(Decimal(made))
    return pa.array(found, column.arrow)
