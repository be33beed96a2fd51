"""The digest of a chunk: how many rows, and the sum of 64 bits of each row's md5. Order does not matter.

A row is `|` and the canonical text of each value, or `-` for NULL, in the order of the columns. PostgreSQL computes it
where the rows are; for the cold side Arrow builds the same texts column by column.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import Connection
from psycopg.sql import SQL

from ebbtide.hottier.columns import Columns, ServerColumn
from ebbtide.hottier.statements import build
from ebbtide.hottier.table import PartitionLeaf

_EPOCH_US = 946_684_800_000_000
_EPOCH_DAYS = 10_957
_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Digest:
    """Two are equal where the rows are."""

    rows: int
    total: int

    def __str__(self) -> str:
        return f"{self.rows}:{self.total}"


def hot_digest(connection: Connection[tuple[Any, ...]], leaf: PartitionLeaf, columns: Columns) -> Digest:
    """Of a partition, by the server, in the snapshot of one statement."""
    texts = [build("coalesce('|' || {x}, '-')", x=column.canonical) for column in columns.columns]
    row = connection.execute(
        build(
            "SELECT count(*), coalesce(sum(('x' || substr(md5({row}), 1, 16))::bit(64)::bigint), 0) FROM ONLY {leaf}",
            row=SQL(" || ").join(texts),
            leaf=leaf.path,
        )
    ).fetchone()
    assert row is not None
    return Digest(int(row[0]), int(row[1]))


def cold_digest(batches: Iterable[pa.RecordBatch], columns: Columns) -> Digest:
    """Of rows of the cold table."""
    rows = total = 0
    for whole in batches:
        for first in range(0, whole.num_rows, _ROWS):
            batch = whole.slice(first, _ROWS)
            rows += batch.num_rows
            total += _sum(batch, columns)
    return Digest(rows, total)


def _sum(batch: pa.RecordBatch, columns: Columns) -> int:
    parts = []
    for column in columns.columns:
        text = _text(batch.column(column.name).cast(column.arrow), column).cast(pa.binary())
        parts.append(pc.fill_null(pc.binary_join_element_wise(pa.scalar(b"|"), text, b""), b"-"))
    row = pc.binary_join_element_wise(*parts, b"")
    offsets = np.frombuffer(row.buffers()[1], np.int32)[row.offset : row.offset + len(row) + 1].tolist()
    data, md5 = memoryview(row.buffers()[2] or b""), hashlib.md5
    hashes = b"".join([md5(data[a:b], usedforsecurity=False).digest() for a, b in pairwise(offsets)])
    return int(np.frombuffer(hashes, ">i8")[::2].astype(object).sum())


def _text(values: pa.Array, column: ServerColumn) -> pa.Array:
    """The canonical text of every value, as `ServerColumn.canonical` writes it."""
    kind = column.kind
    if column.array:
        return _array_text(values, column.element)
    if kind in ("int2", "int4", "int8", "bool"):
        return values.cast(pa.string())
    if kind == "numeric":
        unscaled = pa.decimal128(38, 0)
        return pa.Array.from_buffers(unscaled, len(values), values.buffers(), offset=values.offset).cast(pa.string())
    if kind == "date":
        return _hex(
            values, values.cast(pa.int32()).fill_null(0).to_numpy().astype(">i4") - np.int32(_EPOCH_DAYS), ">i4"
        )
    if kind in ("timestamp", "timestamptz"):
        return _hex(values, values.cast(pa.int64()).fill_null(0).to_numpy() - _EPOCH_US, ">i8")
    if kind in ("float4", "float8"):
        plain = values.fill_null(0).to_numpy()
        plain = np.where(plain == 0, plain.dtype.type(0), plain)
        return _hex(values, np.where(np.isnan(plain), plain.dtype.type("nan"), plain), f">f{kind[5]}")
    if kind == "bytea":
        return _bytes_hex(values)
    length = pc.utf8_length(values).cast(pa.string())
    return pc.binary_join_element_wise(length, values, ":")


def _array_text(values: pa.Array, element: ServerColumn) -> pa.Array:
    """How many elements, and their texts as a row has those of its columns."""
    sizes = pc.list_value_length(values)
    offsets = np.concatenate(([0], np.cumsum(sizes.fill_null(0).to_numpy())))
    parts = _text(values.flatten(), element).cast(pa.binary())
    parts = pc.fill_null(pc.binary_join_element_wise(pa.scalar(b"|"), parts, b""), b"-")
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), parts), b"")
    return pc.binary_join_element_wise(sizes.cast(pa.string()).cast(pa.binary()), joined, b":")


def _hex(values: pa.Array, plain: Any, form: str) -> pa.Array:
    """Fixed bytes as hexadecimal digits."""
    width = 2 * int(form[2])
    digits = pa.py_buffer(np.ascontiguousarray(plain.astype(form)).tobytes().hex().encode())
    made = pa.Array.from_buffers(pa.binary(width), len(values), [None, digits]).cast(pa.binary()).cast(pa.string())
    return pc.if_else(values.is_null(), None, made) if values.null_count else made


def _bytes_hex(values: pa.Array) -> pa.Array:
    dense = pa.concat_arrays([values])
    if dense.offset or len(dense) == 0:
        dense = pa.array(dense.to_pylist(), pa.binary())
    offsets = np.frombuffer(dense.buffers()[1], np.int32)[: len(dense) + 1]
    digits = pa.py_buffer(bytes(dense.buffers()[2] or b"").hex().encode())
    twice = pa.py_buffer((offsets * 2).astype(np.int32))
    return pa.Array.from_buffers(pa.string(), len(dense), [dense.buffers()[0], twice, digits], dense.null_count)
