"""Nothing in an object makes a reader raise, hang or fill the memory: cut off, with bits turned, or made up."""

from __future__ import annotations

import io
import random
import resource
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from ebbtide.verify.read.objects import read_object
from ebbtide.verify.read.pieces import CannotTell, Cells, Raw
from tests.verify.read.search import pieces_of, places, reasons
from tests.verify.read.test_avro import _PAIMON, _avro, _binary_row
from tests.verify.read.test_hudi import _avro_block, _delete_block, _hfile, _parquet_block
from tests.verify.read.test_positions import _DELTA, _puffin, _vector

_ROWS = [f"person-{n:04d}@example.com" for n in range(400)]


def _parquet(**options: Any) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"email": _ROWS, "n": list(range(400)), "l": [[{"x": each}] for each in _ROWS]})
    pq.write_table(table, sink, write_page_index=True, row_group_size=150, **options)
    return sink.getvalue()


def _orc() -> bytes:
    sink = pa.BufferOutputStream()
    orc.write_table(pa.table({"email": _ROWS, "n": list(range(400))}), sink, compression="zlib")
    return bytes(sink.getvalue())


def _any_avro() -> bytes:
    counts = {"name": "m", "type": {"type": "map", "values": ["null", "long"]}}
    schema = {"type": "record", "name": "r", "fields": [{"name": "email", "type": "string"}, counts]}
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [{"email": each, "m": {each: 7}} for each in _ROWS], codec="deflate")
    return sink.getvalue()


def _paimon() -> bytes:
    row = _binary_row(8841302, None, b"bob", _ROWS[0].encode())
    entry = {"_PARTITION": row, "_FILE": {"_FILE_NAME": "x", "_FILE_SIZE": 1, "_MIN_KEY": row,
             "_STATS": {"_MIN_VALUES": row, "_MAX_VALUES": row}}}  # fmt: skip
    return _avro(_PAIMON, [entry] * 50)


def _sqlite() -> bytes:
    base = sqlite3.connect(":memory:", isolation_level=None)
    base.execute("CREATE TABLE t (email TEXT, b BLOB)")
    base.executemany("INSERT INTO t VALUES (?, zeroblob(9000))", ((each,) for each in _ROWS[:40]))
    return base.serialize()


def _log() -> bytes:
    rows = [{"email": each, "user_id": 1} for each in _ROWS]
    return _avro_block(rows) + _delete_block(_ROWS) + _parquet_block()


def _zip() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(5):
            archive.writestr(f"{n}.parquet", _parquet())
    return sink.getvalue()


_FILES: dict[str, Callable[[], bytes]] = {
    "x.parquet": _parquet,
    "y.zstd.parquet": lambda: _parquet(compression="zstd", data_page_version="2.0"),
    "x.orc": _orc,
    "x.avro": _any_avro,
    "manifest-1": _paimon,
    "x.db": _sqlite,
    ".f.log.1_0-1-1": _log,
    "x.hfile": lambda: _hfile([(each.encode(), each.encode()) for each in _ROWS], codec="zstd"),
    "x.puffin": lambda: _puffin(("deletion-vector-v1", _vector(_DELTA)), ("apache-datasketches-theta-v1", b"x" * 40)),
    "x.zip": _zip,
    "x.json": lambda: b"\n".join(b'{"add":{"path":"%s"}}' % each.encode() for each in _ROWS),
}


@pytest.mark.parametrize("name", _FILES)
def test_what_is_cut_off_anywhere_never_raises_and_is_never_called_whole(name: str) -> None:
    content = _FILES[name]()
    assert not [each for each in reasons(pieces_of(content, name)) if "sketch" not in each]
    dice = random.Random(name)
    for _ in range(25):
        cut = content[: dice.randrange(1, len(content))]
        pieces = pieces_of(cut, name)
        assert name == "x.json" or reasons(pieces), len(cut)


@pytest.mark.parametrize("name", _FILES)
def test_turned_bits_never_raise_and_what_is_not_read_is_said(name: str) -> None:
    """A value is found in what is left, or it is said that something was not read; or the bits were its own."""
    content = _FILES[name]()
    dice = random.Random(name)
    for _ in range(60):
        broken = bytearray(content)
        for _ in range(dice.choice((1, 3, 20))):
            broken[dice.randrange(len(broken))] ^= 1 << dice.randrange(8)
        pieces_of(bytes(broken), name)


def test_noise_behind_every_magic_number_never_raises() -> None:
    dice = random.Random(16)
    magics = (b"PAR1", b"ORC", b"Obj\x01", b"PFA1", b"SQLite format 3\0", b"#HUDI#", b"DATABLK*", b"crc\0", b"\x1f\x8b",
              b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"BZh9", b"\xfd7zXZ\0", b"PK\x03\x04", b"{", b"[", b"\xff\xfe",
              b"\xff\x06\x00\x00sNaPpY", b"\x37\x7f\x06\x82", b"")  # fmt: skip
    for magic in magics:
        for size in (0, 1, 7, 40, 300, 5000):
            content = magic + dice.randbytes(size) + (magic if size % 2 else b"")
            pieces = pieces_of(content, "x")
            assert not content or size == 0 or reasons(pieces) or magic in (b"[", b"{", b"\xff\xfe"), (magic, size)


def test_the_reason_never_quotes_what_was_read() -> None:
    for content in (
        b"alice@example.com",
        b"PAR1alice@example.comPAR1",
        b"Obj\x01alice@example.com",
        b"{alice@example.com\\",
    ):
        for name in ("x.parquet", "x.avro", "email=alice@example.com/x.orc", "x"):
            for piece in pieces_of(content, name):
                assert not isinstance(piece, CannotTell) or "alice" not in piece.because
                assert not isinstance(piece, Cells | Raw) or "alice" not in piece.where


def test_an_object_that_vanishes_or_has_another_size_is_told() -> None:
    def gone() -> Any:
        raise FileNotFoundError(2, "No such file or directory", "/w/email=alice@example.com")

    told = [p.because for p in read_object("w/x.parquet", 10, gone) if isinstance(p, CannotTell)]
    assert told == ["it cannot be opened: FileNotFoundError: No such file or directory"]
    told = [p.because for p in read_object("x", 10, lambda: io.BytesIO(b"text")) if isinstance(p, CannotTell)]
    assert told == ["it has another size than it was listed with"]


def test_bytes_come_in_chunks_without_overlap_or_gap(tmp_path: Path) -> None:
    """Nine MiB of noise, read from a real file as the search will: what is held at a time is a chunk."""
    content = random.Random(9).randbytes(9 << 20)
    (tmp_path / "x.bin").write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    at = 0
    for piece in read_object("x.bin", len(content), lambda: pa.OSFile(str(tmp_path / "x.bin"), "rb")):
        if isinstance(piece, Raw):
            assert piece.offset == at
            assert piece.data == content[at : at + len(piece.data)]
            at += len(piece.data)
    assert at == len(content)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
    assert places(pieces_of(content, "x.bin"), content[4_194_300:4_194_310]) == {"content"}


def test_the_name_of_a_nested_field_of_orc_is_read() -> None:
    sink = io.BytesIO()
    orc.write_table(pa.table({"s": pa.array([[{"alice@example.com": 1}]])}), sink)
    assert places(pieces_of(sink.getvalue(), "x.orc"), "alice@example.com") >= {"names of columns"}
