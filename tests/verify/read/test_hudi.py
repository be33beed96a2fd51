"""Hudi's log files and HFiles, written here by their formats' own definitions."""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ebbtide.verify.read.hudi_log import _DELETIONS
from ebbtide.verify.read.pieces import Cells
from tests.verify.read.search import pieces_of, places, reasons, whole_numbers

_SCHEMA = {"type": "record", "name": "person", "fields": [
    {"name": "email", "type": ["null", "string"]}, {"name": "user_id", "type": "long"}]}  # fmt: skip
_WRAPPED = {"type": "record", "name": "LongWrapper", "fields": [{"name": "value", "type": "long"}]}
_METADATA = {"type": "record", "name": "HoodieMetadataRecord", "fields": [
    {"name": "key", "type": "string"}, {"name": "type", "type": "int"},
    {"name": "filesystemMetadata", "type": ["null", {"type": "map", "values": "long"}]},
    {"name": "ColumnStatsMetadata", "type": ["null", {"type": "record", "name": "Stats", "fields": [
        {"name": "fileName", "type": "string"}, {"name": "columnName", "type": "string"},
        {"name": "minValue", "type": ["null", _WRAPPED]}, {"name": "maxValue", "type": ["null", "LongWrapper"]},
        {"name": "valueCount", "type": "long"}]}]}]}  # fmt: skip


def _encoded(schema: Any, record: Any) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(json.loads(json.dumps(schema))), record)
    return sink.getvalue()


def _headers(headers: dict[int, str]) -> bytes:
    out = struct.pack(">i", len(headers))
    for key, value in headers.items():
        out += struct.pack(">ii", key, len(value.encode())) + value.encode()
    return out


def _block(kind: int, content: bytes, headers: dict[int, str]) -> bytes:
    rest = struct.pack(">ii", 1, kind) + _headers(headers) + struct.pack(">q", len(content)) + content + _headers({})
    size = len(rest) + 8
    return b"#HUDI#" + struct.pack(">q", size) + rest + struct.pack(">q", size + 14)


def _avro_block(records: list[Any]) -> bytes:
    content = struct.pack(">ii", 3, len(records))
    for record in records:
        encoded = _encoded(_SCHEMA, record)
        content += struct.pack(">i", len(encoded)) + encoded
    return _block(3, content, {0: "20260101000000000", 2: json.dumps(_SCHEMA)})


def _delete_block(keys: list[str]) -> bytes:
    deletions = [
        {"recordKey": key, "partitionPath": "email=a%40b.c", "orderingVal": {"value": 7654321}} for key in keys
    ]
    for deletion in deletions:
        deletion["orderingVal"] = ("LongWrapper", {"value": 7654321})  # type: ignore[assignment]
    encoded = _encoded(_DELETIONS, {"deleteRecordList": deletions})
    return _block(1, struct.pack(">ii", 3, len(encoded)) + encoded, {0: "20260101000000000"})


def _parquet_block() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"email": ["carol@example.com"]}), sink)
    return _block(5, sink.getvalue(), {2: "{}"})


_LOG = ".f1-0_20260101000000000.log.1_0-1-1"


def test_every_block_of_a_log_comes_out() -> None:
    rows = [{"email": f"user-{n}@example.com", "user_id": 8841302 + n} for n in range(50)]
    hfile = _hfile([(b"dave-key", b"dave@example.com")])
    content = b"".join(
        [_avro_block(rows), _delete_block(["erin-key", "8841302"]), _parquet_block(), _block(0, b"", {3: "0"}),
         _block(4, hfile, {2: ""}), _avro_block(rows[:1])]
    )  # fmt: skip
    pieces = pieces_of(content, _LOG)
    assert reasons(pieces) == []
    for value, where in (
        ("user-49@example.com", "field email"), (8841302 + 49, "field user_id"), ("erin-key", "record key"),
        ("8841302", "record key"), ("a@b.c", "partition path"), (7654321, "field orderingVal.value"),
        ("carol@example.com", "column email"), ("dave-key", "record key"), ("dave@example.com", "value of an HFile"),
    ):  # fmt: skip
        assert where in places(pieces, value), value


def test_what_is_damaged_in_a_log_is_told_and_comes_as_bytes() -> None:
    good = _avro_block([{"email": "alice@example.com", "user_id": 1}])
    unknown = _block(6 + 1, b"bob@example.com", {})
    old = _block(1, struct.pack(">ii", 2, 15) + b"bob@example.com", {})
    for middle in (unknown, old):
        pieces = pieces_of(good + middle + good, _LOG)
        assert places(pieces, "alice@example.com") >= {"field email"}
        assert "block that cannot be read" in places(pieces, "bob@example.com")
        assert len(reasons(pieces)) >= 2
    for odd in (good + b"bob@example.com", good + good[:20] + b"bob@example.com"):
        pieces = pieces_of(odd, _LOG)
        assert places(pieces, "bob@example.com") == {"content"}
        assert reasons(pieces)


def _hblock(kind: bytes, content: bytes, packed: bytes | None = None) -> bytes:
    packed = content if packed is None else packed
    return (
        kind + struct.pack(">iiqbii", len(packed) + 4, len(content), -1, 1, 16384, len(packed) + 33) + packed + bytes(4)
    )


def _hadoop(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, codec="snappy", asbytes=True)
    return struct.pack(">ii", len(content), len(packed)) + packed


_PACKERS: dict[str, Callable[[bytes], bytes] | None] = {
    "lzo": None,
    "gz": gzip.compress,
    "": None,
    "snappy": lambda content: bytes(pa.compress(content, codec="snappy", asbytes=True)),
    "lz4": lambda content: bytes(pa.compress(content, codec="lz4_raw", asbytes=True)),
    "bzip2": None,
    "zstd": lambda content: bytes(pa.compress(content, codec="zstd", asbytes=True)),
}
"""In the order of their numbers."""


def _hfile(cells: list[tuple[bytes, bytes]], schema: str = "", codec: str = "", numbered: bool = True) -> bytes:
    data = b""
    for row, value in cells:
        key = struct.pack(">h", len(row)) + row + b"\x00" + bytes(8) + b"\x04"
        data += struct.pack(">ii", len(key), len(value)) + key + value + (b"\0" if numbered else b"")
    pairs = b""
    for first, second in (("schema", schema), ("hfile.LASTKEY", "last")):
        pair = b"\x0a" + _varint(len(first)) + first.encode() + b"\x12" + _varint(len(second)) + second.encode()
        pairs += b"\x0a" + _varint(len(pair)) + pair
    pack, infos = _PACKERS[codec], b"PBUF" + _varint(len(pairs)) + pairs
    said = b"\x08\x10\x60" + bytes([[*_PACKERS].index(codec)])
    trailer = (b'TRABLK"$' + _varint(len(said)) + said).ljust(4096, b"\0")
    data_block = _hblock(b"DATABLK*", data, pack(data) if pack else None)
    return data_block + _hblock(b"FILEINF2", infos, pack(infos) if pack else None) + trailer


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


@pytest.mark.parametrize("codec", ["", "gz", "zstd", "snappy", "lz4"])
@pytest.mark.parametrize("numbered", [True, False])
def test_records_of_the_metadata_table_come_out(codec: str, numbered: bool) -> None:
    stats = {"fileName": "f1.parquet", "columnName": "user_id", "minValue": {"value": 8841302},
             "maxValue": {"value": 9941302}, "valueCount": 5555555}  # fmt: skip
    records = [
        {"key": "", "type": 3, "filesystemMetadata": None, "ColumnStatsMetadata": stats},
        {"key": "email=x", "type": 2, "filesystemMetadata": {"email=a%40b.c/f.parquet": 6666666},
         "ColumnStatsMetadata": None},
    ] * 40  # fmt: skip
    cells = [(f"user-{n:03d}-key".encode(), _encoded(_METADATA, record)) for n, record in enumerate(records)]
    pieces = pieces_of(_hfile(cells, json.dumps(_METADATA), codec, numbered), "t/.hoodie/metadata/x/x-0000-0_0-1.hfile")
    assert reasons(pieces) == []
    assert places(pieces, "user-079-key") == {"record key"}
    assert places(pieces, "a@b.c") == {"field filesystemMetadata: key"}
    assert places(pieces, 8841302) == places(pieces, 9941302) == {"bound of column user_id"}
    assert whole_numbers(pieces).keys() == {8841302, 9941302}
    bounds = [p for p in pieces if isinstance(p, Cells) and p.how == "bound"]
    assert {p.described_by(0) for p in bounds} == {"f1.parquet"}


def test_a_block_that_is_as_long_packed_as_it_is_plain_is_unpacked() -> None:
    """Seen on a real table: 121 bytes, and 121 bytes of gzip."""
    as_long = False
    for n in range(20, 90):
        value = bytes(range(65, 91)) + random.Random(n).randbytes(3) + b"a" * (n // 2)
        content = _hfile([(b"alice-%d" % n, value)], codec="gz")
        packed, plain = struct.unpack(">ii", content[8:16])
        as_long |= packed - 4 == plain
        assert places(pieces_of(content, "x.hfile"), f"alice-{n}") == {"record key"}
    assert as_long


def test_snappy_as_hadoop_packs_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_PACKERS, "snappy", _hadoop)
    pieces = pieces_of(_hfile([(b"alice", b"alice@example.com" * 9)], codec="snappy"), "x.hfile")
    assert places(pieces, "alice@example.com") == {"value of an HFile"}
    assert reasons(pieces) == []


def test_values_of_an_hfile_without_a_schema_that_fits_are_bytes() -> None:
    for schema in ("", "no json", json.dumps(_METADATA)):
        pieces = pieces_of(_hfile([(b"alice", b"\xff\xffalice@example.com")], schema), "x.hfile")
        assert places(pieces, "alice@example.com") == {"value of an HFile"}
        assert reasons(pieces) == []


def test_an_hfile_that_is_cut_off_cannot_be_told() -> None:
    content = _hfile([(b"alice", b"alice@example.com")] * 50)
    pieces = pieces_of(content[:1500], "x.hfile")
    assert reasons(pieces)
    assert places(pieces, "alice@example.com") == {"content"}
