"""Values of a fixed width, many at once: whole numbers, decimals, dates, floats and fixed bytes, as they are stored.

A table of 65,536 answers tells for two bytes of each value whether it may be one of those that are looked for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date as Day
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from ebbtide.verify.needles import Needle, byte_forms, day_of, number_of, unscaled

_EPOCH = Day(1970, 1, 1)


class FixedSet:
    """The values of one type that are looked for, as it stores them."""

    def __init__(self, wanted: Mapping[bytes, Sequence[int]], width: int, lane: int) -> None:
        self._wanted, self._width = wanted, width
        # Two bytes that differ from value to value: of numbers the low ones, of floats those below the exponent.
        self._lane = lane if width > 1 else 0
        size = min(width, 2)
        self._kind = np.dtype(f"<u{size}")
        self._step = width // size
        self._may_be = np.zeros(1 << 8 * size, dtype=bool)
        for each in wanted:
            self._may_be[int.from_bytes(each[size * self._lane : size * self._lane + size], "little")] = True

    def found(self, values: pa.Array) -> Iterator[int]:
        """The needles whose value is one of these."""
        if not self._wanted or not len(values):
            return
        begin = values.offset * self._width
        data = memoryview(values.buffers()[1])[begin : begin + len(values) * self._width]
        lanes = np.frombuffer(data, self._kind)[self._lane :: self._step]
        places = np.flatnonzero(self._may_be[lanes])
        if not len(places):
            return
        cells = np.frombuffer(data, f"V{self._width}")
        for cell in np.unique(cells[places]):
            needles = self._wanted.get(cell.tobytes())
            if needles is not None and self._is_there(values, cells, places, cell):
                yield from needles

    @staticmethod
    def _is_there(values: pa.Array, cells: np.ndarray, places: np.ndarray, cell: np.void) -> bool:
        """Not only below a null, where anything may lie."""
        same = places[cells[places] == cell]
        return values.null_count == 0 or any(values[int(place)].is_valid for place in same)


Number = Callable[[Needle], Decimal | None]


def fixed_set(needles: Sequence[Needle], kind: pa.DataType, number: Number) -> FixedSet | None:
    """What to look for in arrays of this type, by what is said to be the number of a needle; None for types that no
    value has.
    """
    found = _stored(kind, number)
    if found is None:
        return None
    stored, width, lane = found
    wanted: dict[bytes, list[int]] = {}
    for n, needle in enumerate(needles):
        for each in stored(needle):
            wanted.setdefault(each, []).append(n)
    return FixedSet(wanted, width, lane)


def _stored(kind: pa.DataType, number: Number) -> tuple[Callable[[Needle], Iterator[bytes]], int, int] | None:
    """How a value is stored in this type, in how many bytes, and which pair of them tells values apart."""
    if pt.is_date(kind):
        width = kind.bit_width // 8
        return lambda needle: _day(needle, width), width, 0 if width == 4 else 1
    if pt.is_integer(kind):
        width, signed = kind.bit_width // 8, pt.is_signed_integer(kind)
        return lambda needle: _number(number(needle), 0, width, signed=signed), width, 0
    if pt.is_decimal(kind):
        width = kind.bit_width // 8
        return lambda needle: _number(number(needle), kind.scale, width, signed=True), width, 0
    if pt.is_float32(kind) or pt.is_float64(kind):
        code, width = ("<f", 4) if pt.is_float32(kind) else ("<d", 8)
        return lambda needle: _float(needle, code), width, 0 if width == 4 else 2
    if pt.is_fixed_size_binary(kind) and kind.byte_width % 2 == 0:
        width = kind.byte_width
        return lambda needle: _bytes(needle, width), width, width // 2 - 1
    return None


def _number(number: Decimal | None, scale: int, width: int, *, signed: bool) -> Iterator[bytes]:
    whole = unscaled(number, scale)
    low, high = (-(1 << 8 * width - 1), 1 << 8 * width - 1) if signed else (0, 1 << 8 * width)
    if whole is not None and low <= whole < high:
        yield whole.to_bytes(width, "little", signed=signed)


def _float(needle: Needle, code: str) -> Iterator[bytes]:
    """The nearest float is what became of a value when it was written as one. A float of four bytes is the nearest to
    many whole numbers, and counts only where it is the number itself.
    """
    number = number_of(needle)
    if number is None:
        return
    try:
        stored = struct.pack(code, float(number))
    except OverflowError:
        return
    if code == "<d" or number != number.to_integral_value() or struct.unpack(code, stored)[0] == number:
        yield stored


def _day(needle: Needle, width: int) -> Iterator[bytes]:
    day = day_of(needle)
    if day is not None:
        days = (day - _EPOCH).days
        yield (days if width == 4 else days * 86_400_000).to_bytes(width, "little", signed=True)


def _bytes(needle: Needle, width: int) -> Iterator[bytes]:
    yield from {form.content for form in byte_forms(needle) if len(form.content) == width}
