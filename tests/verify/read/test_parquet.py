"""Parquet: every value of every leaf column, whatever its encoding, and what stands beside the rows."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ebbtide.verify.read import parquet
from ebbtide.verify.read.pieces import CannotTell, Cells, Raw
from tests.verify.read.search import pieces_of, places, reasons, whole_numbers

_ROWS = 500


def _table() -> pa.Table:
    n = range(_ROWS)
    return pa.table(
        {
            "number": pa.array([10_000_000 + i for i in n], pa.int64()),
            "small": pa.array([20_000_000 + i for i in n], pa.int32()),
            "text": [f"user-{i:05d}@example.com" for i in n],
            "few": pa.array([f"country {i % 5}" for i in n]).dictionary_encode(),
            "large.dotted": pa.array([f"large-{i:05d}" for i in n], pa.large_string()),
            "decimal": pa.array([Decimal(i) / 4 + 7000 for i in n], pa.decimal128(20, 2)),
            "binary": [f"bytes-{i:05d}".encode() for i in n],
            "fixed": pa.array([f"fixed-id-{i:07d}".encode() for i in n], pa.binary(16)),
            "address": [{"street": f"street {i:05d}", "phones": [f"phone {i:05d}", None]} for i in n],
            "names": pa.array([[(f"key {i:05d}", f"value {i:05d}")] for i in n], pa.map_(pa.string(), pa.string())),
            "deep": [[[{"x": f"deep {i:05d}"}], []] if i % 3 else None for i in n],
            "flag": [True] * _ROWS,
        }
    )


def _written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def _leaf_values(table: pa.Table) -> Iterator[Any]:
    """Every value of the table by Python's own means, but for truth values."""
    todo: list[Any] = [row for column in table.columns for row in column.to_pylist()]
    while todo:
        each = todo.pop()
        if isinstance(each, dict):
            todo += each.values()
        elif isinstance(each, list | tuple):
            todo += each
        elif each is not None and not isinstance(each, bool):
            yield each


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False, "compression": "zstd"},
        {"row_group_size": 90, "compression": "gzip", "data_page_version": "2.0"},
        {"dictionary_pagesize_limit": 512, "data_page_size": 256, "compression": "none"},
        {"write_page_index": True, "compression": "lz4", "version": "1.0"},
    ],
)
@pytest.mark.parametrize("by_column", [False, True])
def test_every_value_comes_out(options: dict[str, Any], by_column: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_column:  # as if the row groups were too large to be read whole
        monkeypatch.setattr(parquet, "HELD", 10)
        monkeypatch.setattr(parquet, "_BATCH", 4096)
    table = _table()
    pieces = pieces_of(_written(table, **options), "t/data.parquet")
    assert reasons(pieces) == []
    rows = {
        each for piece in pieces if isinstance(piece, Cells) and piece.how == "row" for each in piece.values.to_pylist()
    }
    wanted = set(_leaf_values(table))
    assert len(wanted) > 10 * _ROWS
    assert wanted <= rows
    assert {"column number", "column large.dotted", "column address.street", "column address.phones.element"} <= {
        piece.where for piece in pieces if isinstance(piece, Cells)
    }
    assert not any(pa.types.is_nested(p.values.type) or pa.types.is_dictionary(p.values.type)
                   for p in pieces if isinstance(p, Cells))  # fmt: skip


def test_a_dictionary_comes_out_once_and_not_by_row() -> None:
    table = pa.table({"few": [f"country {i % 5}" for i in range(200_000)]})
    pieces = pieces_of(_written(table), "t/data.parquet")
    assert sum(len(p.values) for p in pieces if isinstance(p, Cells) and p.where == "column few") == 5


def test_statistics_and_page_indexes_come_out_as_bounds_of_their_type() -> None:
    table = _table()
    content = _written(table, write_page_index=True, row_group_size=100)
    pieces = pieces_of(content, "t/data.parquet")
    meta = pq.ParquetFile(io.BytesIO(content)).metadata
    for column in range(meta.num_columns):
        facts = meta.row_group(3).column(column).statistics
        if facts is None or isinstance(facts.min, bool):
            continue
        name = meta.schema.column(column).path
        for value in (facts.min, facts.max):
            for what in ("statistics", "page index"):
                assert f"{what} of column {name}" in places(pieces, value, "bound"), (name, value)
    raised = {p.where: p.raised for p in pieces if isinstance(p, Cells) and p.how == "bound" and p.raised}
    assert raised
    assert all(p.describes == "t/data.parquet" for p in pieces if isinstance(p, Cells) and p.how == "bound")


def test_key_values_of_the_footer_come_out() -> None:
    keys = {"hoodie_min_record_key": "user-0001", "hoodie_max_record_key": "user-0999", "iceberg.schema": "{}"}
    table = pa.table({"x": [1]}).replace_schema_metadata(keys)
    pieces = pieces_of(_written(table), "t/data.parquet")
    for key, value in keys.items():
        assert "key-value footer" in places(pieces, key)
        assert "key-value footer" in places(pieces, value)


def test_bytes_between_the_columns_come_out() -> None:
    """A hole in a Parquet file is legal, and whatever stands in it."""
    content = _written(pa.table({"x": ["a"]}))
    assert reasons(pieces_of(content, "x.parquet")) == []
    size = int.from_bytes(content[-8:-4], "little")
    start = len(content) - 8 - size
    hidden = content[:start] + b"alice@example.com" + content[start:]
    pieces = pieces_of(hidden, "x.parquet")
    assert places(pieces, "alice@example.com") == {"bytes between the columns"}
    assert pq.read_table(io.BytesIO(hidden)).num_rows == 1


def test_the_writers_name_and_bytes_in_the_footer_behind_its_end_come_out() -> None:
    content = _written(pa.table({"x": ["a"]}))
    name = b"parquet-cpp-arrow"
    named = content.replace(name, b"alice@example.com"[: len(name)])
    assert len(name) == len(b"alice@example.com")
    assert places(pieces_of(named, "x.parquet"), "alice@example.com") == {"key-value footer"}
    size = int.from_bytes(content[-8:-4], "little")
    longer = content[:-8] + b"alice@example.com" + (size + 17).to_bytes(4, "little") + b"PAR1"
    assert places(pieces_of(longer, "x.parquet"), "alice@example.com") == {"bytes between the columns"}


def test_what_a_table_format_keeps_for_itself_is_no_value() -> None:
    reserved = pa.schema(
        [
            pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("_row_id", pa.int64(), metadata={"PARQUET:field_id": "2147483540"}),
            pa.field("_row-id-col-1234", pa.int64()),
        ]
    )
    table = pa.table([[1111111], [2222222], [3333333]], schema=reserved)
    assert whole_numbers(pieces_of(_written(table), "x.parquet")).keys() == {1111111}
    paimon = pa.table({"_SEQUENCE_NUMBER": [2222222], "_VALUE_KIND": [3333333], "id": [1111111]})
    assert whole_numbers(pieces_of(_written(paimon), "x.parquet")).keys() == {1111111}
    alone = pa.table({"_SEQUENCE_NUMBER": [2222222]})
    assert 2222222 in whole_numbers(pieces_of(_written(alone), "x.parquet"))


def test_a_checkpoint_of_delta_gives_bounds_with_the_files_that_they_describe() -> None:
    stats = {"numRecords": 8841302, "minValues": {"email": "a" * 32, "id": 7654321},
             "maxValues": {"email": "b" * 32 + "\x7f"}, "nullCount": {"email": 8841302}}  # fmt: skip
    parsed = {"numRecords": 8841302, "minValues": {"email": "c" * 32}, "maxValues": {"email": "d" * 32 + "\U0010ffff"}}
    add = [
        None,
        {"path": "p%3D1/one.parquet", "size": 8841302, "stats": json.dumps(stats), "stats_parsed": parsed,
         "partitionValues": [("day", "2026-01-01")]},
    ]  # fmt: skip
    kind = pa.struct(
        [
            ("path", pa.string()),
            ("size", pa.int64()),
            ("stats", pa.string()),
            ("stats_parsed", pa.struct([(s, pa.int64() if s == "numRecords" else pa.struct([("email", pa.string())]))
                                        for s in parsed])),
            ("partitionValues", pa.map_(pa.string(), pa.string())),
        ]
    )  # fmt: skip
    table = pa.table({"add": pa.array(add, kind), "txn": pa.array([None, {"version": 8841302}])})
    pieces = pieces_of(_written(table), "t/_delta_log/00000000000000000010.checkpoint.parquet")
    assert reasons(pieces) == []
    bounds = [p for p in pieces if isinstance(p, Cells) and p.where == "bound of column email"]
    found = {(v, p.raised, p.cut, p.described_by(n)) for p in bounds for n, v in enumerate(p.values.to_pylist()) if v}
    assert found == {
        ("a" * 32, False, 32, "p%3D1/one.parquet"),
        ("b" * 32, True, 32, "p%3D1/one.parquet"),
        ("c" * 32, False, 32, "p%3D1/one.parquet"),
        ("d" * 32, True, 32, "p%3D1/one.parquet"),
    }
    assert places(pieces, 7654321) == {"bound of column id"}
    assert places(pieces, "2026-01-01", "row") == {"column add.partitionValues.value"}
    assert whole_numbers(pieces)[8841302] == 0
    assert places(pieces, "8841302") == set()


def test_an_encrypted_or_truncated_file_cannot_be_told_and_comes_as_bytes() -> None:
    content = _written(_table(), compression="none", use_dictionary=False)
    hidden = content[:-4] + b"PARE"
    for broken, reason in (
        (hidden, "it cannot be read: it is encrypted"),
        (content[: len(content) // 2], "it cannot be read: it has no Parquet footer"),
        (b"no parquet at all" * 10, "it cannot be read: it is no Parquet"),
    ):
        pieces = pieces_of(broken, "t/data.parquet")
        assert [p.because for p in pieces if isinstance(p, CannotTell)] == [reason]
        assert b"".join(p.data for p in pieces if isinstance(p, Raw)) == broken


def test_a_broken_column_does_not_hide_the_others() -> None:
    table = pa.table({"one": [f"first-{i:04d}" for i in range(300)], "two": [f"second-{i:04d}" for i in range(300)]})
    content = bytearray(_written(table, use_dictionary=False, compression="none"))
    chunk = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0)
    content[chunk.data_page_offset : chunk.data_page_offset + 40] = b"\xff" * 40
    pieces = pieces_of(bytes(content), "t/data.parquet")
    assert [r for r in reasons(pieces) if not r.startswith("bytes")] == ["column one cannot be read: OSError"]
    assert "column that cannot be read" in places(pieces, "first-0123")
    assert "column two" in places(pieces, "second-0123")


def test_variants_hold_numbers_that_cannot_be_searched() -> None:
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    table = pa.table({"v": pa.array([{"metadata": b"\1\0\0", "value": b"alice@example.com"}], kind)})
    pieces = pieces_of(_written(table), "x.parquet")
    assert reasons(pieces) == ["column v holds variants, whose numbers cannot be searched"]
    assert places(pieces, "alice@example.com", "row") == {"column v.value"}


def test_long_values_in_a_dictionary_do_not_fill_the_memory() -> None:
    """Half a MiB, 20,000 times, and then something else: 10 GiB if its rows were written out at once."""
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), ["x" * (1 << 19)])
    others = pa.array([f"{n:09d}" * 10 for n in range(30_000)]).dictionary_encode()
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"t": pa.chunked_array([long, others])}), sink, store_schema=False, dictionary_pagesize_limit=1 << 20
    )
    assert len({str(each) for each in pq.ParquetFile(sink).metadata.row_group(0).column(0).encodings}) > 2
    pieces = pieces_of(sink.getvalue(), "x.parquet")
    assert reasons(pieces) == []
    assert max(p.values.nbytes for p in pieces if isinstance(p, Cells)) < 200 << 20


def test_lists_that_are_views_are_read() -> None:
    for kind in (pa.list_view(pa.string()), pa.large_list_view(pa.string())):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"a": pa.array([["x"], ["alice@example.com"]], kind)}), sink, write_statistics=False)
        pieces = pieces_of(bytes(sink.getvalue()), "a.parquet")
        assert places(pieces, "alice@example.com") == {"column a.element"}
        assert reasons(pieces) == []


def test_a_table_without_rows_is_read_to_its_end() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.int64())}), sink)
    assert reasons(pieces_of(bytes(sink.getvalue()), "a.parquet")) == []


@pytest.mark.parametrize("kind", [pa.time32("ms"), pa.time64("us"), pa.time64("ns")], ids=str)
def test_the_bounds_of_times_of_a_day_are_no_numbers(kind: pa.DataType) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"t": pa.array([8841302, 9], kind)}), sink, write_page_index=True)
    pieces = pieces_of(sink.getvalue(), "x.parquet")
    assert reasons(pieces) == []
    assert 8841302 not in whole_numbers(pieces)
