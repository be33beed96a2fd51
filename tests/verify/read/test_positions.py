"""Files of places and checksums are clean as long as they are what they say."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from tests.verify.read.search import pieces_of, places, reasons


def _vector(magic: bytes) -> bytes:
    content = magic + b"\x01\0\0\0\0\0\0\0" + bytes(range(40))
    return struct.pack(">i", len(content)) + content + struct.pack(">I", zlib.crc32(content))


_DELTA = (1681511377).to_bytes(4, "little")
_PAIMON = (1581511376).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("name", "magic"), [("deletion_vector_1234.bin", _DELTA), ("index-1234-0", _PAIMON), ("index-1234-0", _DELTA)]
)
def test_vectors_hold_places_and_anything_else_in_them_is_seen(name: str, magic: bytes) -> None:
    content = b"\x01" + _vector(magic) * 2
    assert reasons(pieces_of(content, name)) == []
    for odd in (content + b"alice@example.com", content.replace(b"\x05\x06\x07", b"bob"), content[:-2]):
        pieces = pieces_of(odd, name)
        assert reasons(pieces)
        assert places(pieces, odd[-17:])


def _puffin(*blobs: tuple[str, bytes], gap: bytes = b"", flags: int = 0) -> bytes:
    content, listed = b"PFA1", []
    for kind, blob in blobs:
        content += gap
        listed.append({"type": kind, "offset": len(content), "length": len(blob), "fields": [], "snapshot-id": 1,
                       "note": "carol@example.com",
                       "properties": {"referenced-data-file": "w/email=a%40b.c/x.parquet"}})  # fmt: skip
        content += blob
    footer = json.dumps({"blobs": listed, "properties": {"created-by": "test"}}).encode()
    if flags:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "lz4") as stream:
            stream.write(footer)
        footer = bytes(sink.getvalue())
    return content + b"PFA1" + footer + struct.pack("<iI", len(footer), flags) + b"PFA1"


@pytest.mark.parametrize("flags", [0, 1])
def test_blobs_of_puffin_are_told_by_their_types(flags: int) -> None:
    vectors = _puffin(("deletion-vector-v1", _vector(_DELTA)), ("deletion-vector-v1", _vector(_DELTA)), flags=flags)
    pieces = pieces_of(vectors, "x.puffin")
    assert reasons(pieces) == []
    assert places(pieces, "email=a@b.c") == {"properties of a blob"}
    assert places(pieces, "carol@example.com") == {"properties of a blob"}
    sketch = pieces_of(_puffin(("apache-datasketches-theta-v1", b"x" * 50), flags=flags), "x.stats")
    assert reasons(sketch) == ["a sketch holds hashes, which cannot be searched (apache-datasketches-theta-v1)"]
    unknown = pieces_of(_puffin(("alice", b"alice@example.com"), flags=flags), "x.stats")
    assert reasons(unknown) == ["a blob of a kind that is not known", "bytes: blob"]
    assert places(unknown, "alice@example.com") == {"blob"}
    hidden = pieces_of(
        _puffin(("deletion-vector-v1", _vector(_DELTA)), gap=b"alice@example.com", flags=flags), "x.puffin"
    )
    assert places(hidden, "alice@example.com") == {"bytes between the blobs"}


def test_checksums_are_four_bytes_each() -> None:
    assert reasons(pieces_of(b"crc\0" + struct.pack(">I", 512) + bytes(8), ".x.parquet.crc")) == []
    assert reasons(pieces_of(b"crc\0" + struct.pack(">I", 512) + bytes(7), ".x.parquet.crc"))
    hidden = b"crc\0" + struct.pack(">I", 512) + b"alice@example.org.uk"
    assert places(pieces_of(hidden, ".x.parquet.crc"), "alice@example.org.uk") == {"checksums of a file"}
    assert reasons(pieces_of(b"crc\0alice@example.com", "x.bin"))


def test_every_value_of_orc_comes_out(tmp_path: Path) -> None:
    n = range(3000)
    table = pa.table(
        {
            "id": [8_000_000 + i for i in n],
            "email": [f"user-{i:05d}@example.com" for i in n],
            "nested": [{"tags": [f"tag-{i:05d}"], "map": [(f"key-{i:05d}", i)]} for i in n],
        },
        schema=pa.schema(
            [("id", pa.int64()), ("email", pa.string()),
             ("nested", pa.struct([("tags", pa.list_(pa.string())), ("map", pa.map_(pa.string(), pa.int64()))]))]
        ),
    )  # fmt: skip
    orc.write_table(table, tmp_path / "x.orc", compression="zlib", stripe_size=20_000, dictionary_key_size_threshold=1)
    content = (tmp_path / "x.orc").read_bytes()
    assert orc.ORCFile(tmp_path / "x.orc").nstripes > 1
    pieces = pieces_of(content, "x.orc")
    assert reasons(pieces) == []
    for i in (0, 1777, 2999):
        for value, where in (
            (8_000_000 + i, "column id"),
            (f"user-{i:05d}@example.com", "column email"),
            (f"tag-{i:05d}", "column nested.tags.element"),
            (f"key-{i:05d}", "column nested.map.key"),
        ):
            assert where in places(pieces, value)  # fmt: skip
    assert reasons(pieces_of(content[: len(content) // 2], "x.orc"))


def test_bytes_between_the_stripes_of_orc_and_its_footer_are_read(tmp_path: Path) -> None:
    orc.write_table(pa.table({"e": ["a", "bob@example.com"]}), tmp_path / "x.orc")
    content = (tmp_path / "x.orc").read_bytes()
    read = orc.ORCFile(tmp_path / "x.orc")
    tail = read.stripe_statistics_length + read.file_footer_length + read.file_postscript_length + 1
    assert reasons(pieces_of(content, "x.orc")) == []
    hidden = content[:-tail] + b"alice@example.com" + content[-tail:]
    pieces = pieces_of(hidden, "x.orc")
    assert places(pieces, "bob@example.com") == {"column e"}
    assert places(pieces, "alice@example.com") == {"bytes between the stripes"}
    assert reasons(pieces_of(content[:-tail] + bytes(40) + content[-tail:], "x.orc")) == []


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_the_stripes_of_an_orc_file_are_all_of_it_however_it_is_packed(tmp_path: Path, codec: str) -> None:
    rows = pa.table({"e": [f"{n**9:x}-{n:06d}@example.com" for n in range(30_000)]})
    orc.write_table(rows, tmp_path / "x.orc", compression=codec, stripe_size=20_000)
    assert orc.ORCFile(tmp_path / "x.orc").nstripes > 1
    pieces = pieces_of((tmp_path / "x.orc").read_bytes(), "x.orc")
    assert reasons(pieces) == []
    assert places(pieces, "-029999@example.com") == {"column e"}


@pytest.mark.parametrize("hidden", [b"alice@example.com", bytes(17)])
def test_bytes_before_and_between_the_stripes_of_orc_are_read(tmp_path: Path, hidden: bytes) -> None:
    rows = pa.table({"e": [f"user-{n:06d}@example.com" for n in range(30_000)]})
    orc.write_table(rows, tmp_path / "x.orc", stripe_size=100_000)
    content = (tmp_path / "x.orc").read_bytes()
    for stripe in (0, 1):
        pieces = pieces_of(_with_a_gap(content, stripe, hidden), "x.orc")
        assert places(pieces, "user-029999@example.com") == {"column e"}
        assert bool(places(pieces, "alice@example.com")) == (hidden != bytes(17))
        assert reasons(pieces) == (["bytes: bytes between the stripes"] if hidden != bytes(17) else [])


def _with_a_gap(content: bytes, stripe: int, hidden: bytes) -> bytes:
    """The file with bytes before a stripe, whose place and that of those behind it are written anew in the footer."""
    post = content[-1 - content[-1] : -1]
    size = dict(_fields(post))[1]
    assert isinstance(size, int)
    footer, at, fields = content[-1 - len(post) - size : -1 - len(post)], 0, list[tuple[int, int | bytes]]()
    seen = -1
    for field, value in _fields(footer):
        if field == 3 and isinstance(value, bytes):
            seen += 1
            place = dict(_fields(value))
            assert isinstance(place[1], int)
            at = place[1] if seen == stripe else at
            value = _encoded((n, v + len(hidden) if n == 1 and seen >= stripe and isinstance(v, int) else v)
                             for n, v in place.items())  # fmt: skip
        fields.append((field, value))
    body, written = content[: -1 - len(post) - size], _encoded(fields)
    ends = _encoded((n, len(written) if n == 1 else v) for n, v in _fields(post))
    return body[:at] + hidden + body[at:] + written + ends + bytes([len(ends)])


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Protobuf, as far as ORC needs it here: numbers, and bytes with their length."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            value, shift, at = value | (content[at] & 0x7F) << shift, shift + 7, at + 1
            if not content[at - 1] & 0x80:
                return value

    while at < len(content):
        tag, value = number(), number()
        if tag & 7 == 2:
            yield tag >> 3, content[at : at + value]
            at += value
        else:
            yield tag >> 3, value


def _encoded(fields: Iterable[tuple[int, int | bytes]]) -> bytes:
    def number(value: int) -> bytes:
        return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + number(value >> 7)

    return b"".join(
        number(field << 3) + number(value)
        if isinstance(value, int)
        else number(field << 3 | 2) + number(len(value)) + value
        for field, value in fields
    )
