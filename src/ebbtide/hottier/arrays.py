"""Arrays in PostgreSQL's binary form into lists of Arrow: places of elements one by one, their values all at once.

Of one dimension, counted from 1: the lake's lists know no others.
"""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa

from ebbtide.hottier.columns import ServerColumn
from ebbtide.hottier.values import Bytes, Field, UnfitValueError, plain_to_arrow

_HEAD, _DIMENSION, _LENGTH = struct.Struct("!iii"), struct.Struct("!ii"), struct.Struct("!i")


def to_arrow(buffer: Bytes, field: Field, column: ServerColumn) -> pa.Array:
    """The values of one column."""
    return _lists(buffer, field, column) if column.array else plain_to_arrow(buffer, field, column)


def _lists(buffer: Bytes, field: Field, column: ServerColumn) -> pa.Array:
    raw = buffer.data
    starts: list[int] = []
    sizes: list[int] = []
    counts = np.zeros(len(field.start), np.int64)
    for row in np.flatnonzero(field.there):
        at = int(field.start[row])
        dimensions, _, _ = _HEAD.unpack_from(raw, at)
        at += _HEAD.size
        if dimensions == 0:
            continue
        count, lowest = _DIMENSION.unpack_from(raw, at)
        if dimensions > 1 or lowest != 1:
            raise UnfitValueError(column.name, "an array of several dimensions, or one that is not counted from 1")
        at += _DIMENSION.size
        counts[row] = count
        for _ in range(count):
            (size,) = _LENGTH.unpack_from(raw, at)
            at += _LENGTH.size
            starts.append(at)
            sizes.append(size)
            at += max(size, 0)
    length = np.array(sizes, np.int64)
    there = length >= 0
    elements = Field(np.array(starts, np.int64), np.where(there, length, 0), there, np.zeros(len(there), np.bool_))
    offsets = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
    mask = None if field.there.all() else pa.array(~field.there)
    return pa.ListArray.from_arrays(offsets, plain_to_arrow(buffer, elements, column.element), mask=mask)
