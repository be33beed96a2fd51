"""Avro: every field of any file, and the bounds of Iceberg's and Paimon's manifests as what they are."""

from __future__ import annotations

import io
import json
import struct
from datetime import time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DecimalType, LongType, NestedField, StringType, UUIDType

from ebbtide.verify.read.avro import read_head
from ebbtide.verify.read.gather import Unscaled
from ebbtide.verify.read.paimon import fields_of_row
from ebbtide.verify.read.pieces import Cells
from ebbtide.verify.read.stored import ObjectSource
from tests.verify.read.search import pieces_of, places, reasons, whole_numbers

_ANY = {
    "type": "record",
    "name": "Any",
    "fields": [
        {"name": "text", "type": ["null", "string"]},
        {"name": "number", "type": "long"},
        {"name": "bytes", "type": "bytes"},
        {"name": "map", "type": {"type": "map", "values": {"type": "array", "items": "string"}}},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "inner", "type": {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "string"}]}},
    ],
}


def _avro(schema: Any, records: list[Any], codec: str = "null", metadata: dict[str, str] | None = None) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, schema, records, codec=codec, metadata=metadata, sync_interval=500)
    return sink.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_every_field_of_any_file_comes_out(codec: str) -> None:
    records = [
        {
            "text": f"text-{n:04d}",
            "number": 1_000_000 + n,
            "bytes": f"bytes-{n:04d}".encode(),
            "map": {f"key-{n:04d}": [f"item-{n:04d}"]},
            "amount": Decimal(n) / 4 + 7000,
            "id": UUID(int=n),
            "inner": {"x": f"inner-{n:04d}"},
        }
        for n in range(200)
    ]
    facts = {"owner": "carol@example.com", "avro.owner": "erin@example.com"}
    pieces = pieces_of(_avro(_ANY, records, codec, facts), "x/any.avro")
    assert reasons(pieces) == []
    assert places(pieces, "erin@example.com") == {"metadata of the file"}
    for n in (0, 111, 199):
        for value in (f"text-{n:04d}", 1_000_000 + n, f"bytes-{n:04d}".encode(), f"key-{n:04d}", f"item-{n:04d}",
                      Decimal(n) / 4 + 7000, str(UUID(int=n)), f"inner-{n:04d}"):  # fmt: skip
            assert places(pieces, value), value
    assert places(pieces, "carol@example.com") == {"metadata of the file"}
    assert not any("key-" in p.where for p in pieces if isinstance(p, Cells))


def test_schemas_without_a_bound_are_refused_and_searched_as_bytes() -> None:
    endless = {"type": "record", "name": "r", "fields": [{"name": "next", "type": ["null", "r"]}]}
    nothing = {"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}]}
    for schema, record in ((endless, {"next": {"next": None}}), (nothing, {"a": [None] * 5})):
        pieces = pieces_of(_avro(schema, [record]), "x.avro")
        assert reasons(pieces)[0] == "its schema cannot be read: its schema has no bound"
        assert "content" in places(pieces, "next" if schema is endless else "items")


def test_a_damaged_block_comes_as_bytes_and_the_others_as_values() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "string"}]}
    content = _avro(schema, [{"x": f"person-{n:05d}"} for n in range(200)])
    at = content.index(b"person-00100") - 1
    broken = content[:at] + b"\xff" + content[at + 1 :]
    pieces = pieces_of(broken, "x.avro")
    assert reasons(pieces)[0].startswith("a block cannot be decoded: ")
    assert "field x" in places(pieces, "person-00000")
    assert "field x" in places(pieces, "person-00199")
    assert "block that cannot be decoded" in places(pieces, "person-00100")


def test_a_table_of_iceberg_gives_bounds_by_their_types_and_no_counts(tmp_path: Path) -> None:
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("ns")
    schema = Schema(
        NestedField(1, "user_id", LongType()),
        NestedField(2, "email", StringType()),
        NestedField(3, "amount", DecimalType(20, 2)),
        NestedField(4, "ref", UUIDType()),
        NestedField(5, "who", StringType()),
    )
    spec = PartitionSpec(PartitionField(5, 1000, IdentityTransform(), "who"))
    table = catalog.create_table("ns.t", schema, partition_spec=spec)
    emails = ["alice-the-first-of-her-name@example.com", "zoe-the-last-of-her-name@example.com"]
    refs = [UUID(int=1), UUID(int=2)]
    table.append(
        pa.table(
            {
                "user_id": [8841302, 9941302],
                "email": emails,
                "amount": pa.array([Decimal("12.34"), Decimal("99.99")], pa.decimal128(20, 2)),
                "ref": pa.array([r.bytes for r in refs], pa.binary(16)),
                "who": ["x#y z"] * 2,
            }
        )
    )
    manifests = [each for each in (tmp_path / "w").rglob("*.avro") if not each.name.startswith("snap-")]
    pieces = pieces_of(manifests[0].read_bytes(), f"t/metadata/{manifests[0].name}")
    assert reasons(pieces) == []
    assert places(pieces, 8841302) == places(pieces, 9941302) == {"bound of column user_id"}
    assert places(pieces, Decimal("12.34")) == places(pieces, Decimal("99.99")) == {"bound of column amount"}
    assert places(pieces, "x#y z", "path") == {"partition of column who", "path of a data file"}
    bounds = {(p.values[0].as_py(), p.cut, p.raised) for p in pieces if isinstance(p, Cells) and "email" in p.where}
    assert (emails[0][:16], 16, False) in bounds
    assert (emails[1][:15] + chr(ord(emails[1][15]) + 1), 16, True) in bounds
    data = next((tmp_path / "w").rglob("*.parquet"))
    described = {p.described_by(0) for p in pieces if isinstance(p, Cells) and p.how == "bound"}
    assert {each.rsplit("/", 1)[-1] for each in described if each} == {data.name}
    assert whole_numbers(pieces).keys() == {8841302, 9941302}
    list_ = next((tmp_path / "w").rglob("snap-*.avro"))
    pieces = pieces_of(list_.read_bytes(), f"t/metadata/{list_.name}")
    assert reasons(pieces) == []
    assert "bound of a partition field" in places(pieces, "x#y z", "bound")
    for file in (path for path in (tmp_path / "w").rglob("*") if path.is_file()):
        assert reasons(pieces_of(file.read_bytes(), str(file))) == [], file.name


_STATS = {"name": "_STATS", "type": {"type": "record", "name": "S", "fields": [
    {"name": "_MIN_VALUES", "type": "bytes"}, {"name": "_MAX_VALUES", "type": "bytes"}]}}  # fmt: skip
_PAIMON = {
    "type": "record",
    "name": "record",
    "fields": [
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_FILE", "type": {"type": "record", "name": "F", "fields": [
            {"name": "_FILE_NAME", "type": "string"}, {"name": "_FILE_SIZE", "type": "long"},
            {"name": "_MIN_KEY", "type": "bytes"}, _STATS]}},
    ],
}  # fmt: skip


def _binary_row(*values: Any) -> bytes:
    """A row as Paimon writes it (`BinaryRowWriter`): nulls, a word per field, and what does not fit behind them."""
    fixed = (len(values) + 63 + 8) // 64 * 8
    nulls, words, behind = bytearray(fixed), b"", b""
    for n, value in enumerate(values):
        if value is None:
            nulls[(n + 8) // 8] |= 1 << (n + 8) % 8
            words += bytes(8)
        elif isinstance(value, int):
            words += struct.pack("<q", value)
        elif len(value) <= 7:
            words += value.ljust(7, b"\0") + bytes([0x80 | len(value)])
        else:
            words += struct.pack("<II", len(value), fixed + 8 * len(values) + len(behind))
            behind += value + bytes(-len(value) % 8)
    return struct.pack(">i", len(values)) + bytes(nulls) + words + behind


def test_rows_of_paimons_manifests_come_out_field_by_field() -> None:
    long = b"alice-the-first-"
    row = _binary_row(8841302, None, b"bob", long, (123456).to_bytes(9, "big"), -5)
    entry = {
        "_PARTITION": _binary_row(b"a b#c"),
        "_FILE": {"_FILE_NAME": "data-1.parquet", "_FILE_SIZE": 7777777, "_MIN_KEY": row,
                  "_STATS": {"_MIN_VALUES": row, "_MAX_VALUES": row}},
    }  # fmt: skip
    pieces = pieces_of(_avro(_PAIMON, [entry]), "t/manifest/manifest-1")
    assert reasons(pieces) == []
    assert places(pieces, "a b#c", "path") == {"partition field 0"}
    assert places(pieces, 8841302) == {"least key, field 0", "bound of column 0"}
    assert places(pieces, "bob") == {"least key, field 2", "bound of column 2"}
    assert places(pieces, long.decode()) == {"least key, field 3", "bound of column 3"}
    assert places(pieces, Decimal("1234.56")) == {"least key, field 4", "bound of column 4"}
    assert places(pieces, Decimal("88413.02")) == {"least key, field 0", "bound of column 0"}
    assert not places(pieces, 7777777)
    texts = [p for p in pieces if isinstance(p, Cells) and p.where == "bound of column 3"]
    cuts = {(p.cut, p.raised, p.described_by(0)) for p in texts if p.values[0].as_py() == long.decode()}
    assert cuts == {(16, False, "data-1.parquet"), (16, True, "data-1.parquet")}
    assert (5, -5) in list(fields_of_row(row))
    assert (0, Unscaled(8841302)) in list(fields_of_row(row))


def test_bounds_of_partitions_are_whole_in_paimons_lists() -> None:
    row = _binary_row(b"a value of more than sixteen characters")
    stats = {"_FILE_NAME": "manifest-1", "_PARTITION_STATS": {"_MIN_VALUES": row, "_MAX_VALUES": row}}
    fields = [{"name": name, "type": "bytes"} for name in ("_MIN_VALUES", "_MAX_VALUES")]
    inner = {"type": "record", "name": "stats", "fields": fields}
    of = [{"name": "_FILE_NAME", "type": "string"}, {"name": "_PARTITION_STATS", "type": inner}]
    pieces = pieces_of(_avro({"type": "record", "name": "m", "fields": of}, [stats]), "t/manifest/manifest-list-1")
    bounds = [
        p
        for p in pieces
        if isinstance(p, Cells) and p.where == "bound of partition field 0" and pa.types.is_large_string(p.values.type)
    ]
    assert bounds
    assert all(each.cut is None for each in bounds)


def test_a_row_that_is_none_comes_as_bytes() -> None:
    odd = b"\x00\x00\x00\x09alice@example.com"
    entry = {"_PARTITION": odd, "_FILE": {"_FILE_NAME": "x", "_FILE_SIZE": 1, "_MIN_KEY": b"",
             "_STATS": {"_MIN_VALUES": b"", "_MAX_VALUES": b""}}}  # fmt: skip
    assert places(pieces_of(_avro(_PAIMON, [entry]), "manifest-1"), "alice@example.com") == {
        "partition field, as bytes"
    }


def test_json_of_the_schema_is_searched_too() -> None:
    schema = {"type": "record", "name": "r", "doc": "made by dave@example.com", "fields": []}
    assert places(pieces_of(_avro(schema, []), "x.avro"), "dave@example.com") == {"schema of the file"}
    assert json.dumps(schema)


@pytest.mark.parametrize(
    "fields",
    [
        [("status", "int", 1), ("data_file", {"type": "record", "name": "f", "fields": [
            {"name": "file_path", "type": "string"}, {"name": "user_id", "type": "long"}]},
            {"file_path": "a", "user_id": 8841302})],
        [("status", "int", 1), ("user_id", "long", 8841302), ("data_file", {"type": "record", "name": "f", "fields": [
            {"name": "file_path", "type": "string"}]}, {"file_path": "a"})],
        [("manifest_path", "string", "a"), ("partition_spec_id", "int", 0), ("user_id", "long", 8841302)],
    ],
)  # fmt: skip
def test_a_number_in_a_field_that_iceberg_does_not_define_is_a_value(fields: list[tuple[str, Any, Any]]) -> None:
    """Somebody's records that look like a manifest's hold people; counts and ids of the format's own fields do not."""
    schema = {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind, _ in fields]}
    pieces = pieces_of(_avro(schema, [{name: value for name, _, value in fields}]), "t/metadata/x.avro")
    assert places(pieces, 8841302)
    assert whole_numbers(pieces).keys() == {8841302}


def test_what_came_of_the_blocks_before_the_one_that_is_cut_off_counts() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "e", "type": "string"}]}
    sink = io.BytesIO()
    rows = [{"e": "alice@example.com"}, *({"e": f"row {n}"} for n in range(5000))]
    fastavro.writer(sink, schema, rows, codec="deflate", sync_interval=1000)
    pieces = pieces_of(sink.getvalue()[:-30], "x.avro")
    assert places(pieces, "alice@example.com") == {"field e"}
    assert any("it cannot be read" in told for told in reasons(pieces))


def test_times_of_a_day_are_no_numbers() -> None:
    fields = [
        {"name": name, "type": {"type": kind, "logicalType": f"time-{name}"}}
        for name, kind in (("millis", "int"), ("micros", "long"))
    ]
    sink = io.BytesIO()
    at = time(2, 27, 21, 302000)
    fastavro.writer(sink, {"type": "record", "name": "r", "fields": fields}, [{"millis": at, "micros": at}])
    pieces = pieces_of(sink.getvalue(), "x.avro")
    assert reasons(pieces) == []
    assert not whole_numbers(pieces)


def test_bytes_behind_what_a_block_unpacks_to_are_read() -> None:
    content = _avro(
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}, [{"a": "x"}], "deflate"
    )
    head = read_head(ObjectSource("x.avro", len(content), lambda: io.BytesIO(content)))
    packed = content[head.blocks + 2 : -16] + b"alice@example.com"
    hidden = content[: head.blocks + 1] + bytes([2 * len(packed)]) + packed + head.sync
    assert reasons(pieces_of(content, "x.avro")) == []
    assert places(pieces_of(hidden, "x.avro"), "alice@example.com") == {"block that cannot be read"}
