"""Containers: what is in them is read as the object that it is, within a bounded depth and size."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import struct
import zipfile
import zlib
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ebbtide.verify.read.pieces import CannotTell, Cells, Raw
from ebbtide.verify.read.stored import HELD
from tests.tiers import deep_after_first
from tests.verify.read.search import pieces_of, places, reasons


def _arrow(codec: str) -> Callable[[bytes], bytes]:
    def pack(content: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(content)
        return bytes(sink.getvalue())

    return pack


def _snappy_frames(content: bytes) -> bytes:
    packed: bytes = bytes(4) + pa.compress(content, codec="snappy", asbytes=True)
    return b"\xff\x06\x00\x00sNaPpY" + b"\0" + len(packed).to_bytes(3, "little") + packed


def _hadoop(codec: str) -> Callable[[bytes], bytes]:
    def pack(content: bytes) -> bytes:
        packed: bytes = pa.compress(content, codec=codec, asbytes=True)
        return len(content).to_bytes(4, "big") + len(packed).to_bytes(4, "big") + packed

    return pack


def _zip(content: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("email=bob%40example.com/data.parquet", content)
    return sink.getvalue()


_PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": (".gz", gzip.compress),
    "zstd": (".zst", _arrow("zstd")),
    "lz4": (".lz4", _arrow("lz4")),
    "bz2": (".bz2", bz2.compress),
    "xz": (".xz", lzma.compress),
    "snappy": (".sz", _snappy_frames),
    "Hadoop's snappy": (".snappy", _hadoop("snappy")),
    "Hadoop's lz4": (".lz4", _hadoop("lz4_raw")),
    "zip": (".zip", _zip),
}


def _parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"email": ["alice@example.com"], "id": [8841302]}), sink)
    return sink.getvalue()


@pytest.mark.parametrize("kind", _PACKERS)
def test_what_is_packed_is_read_as_the_object_that_it_is(kind: str) -> None:
    ending, pack = _PACKERS[kind]
    pieces = pieces_of(pack(_parquet()), f"x/data.parquet{ending}")
    assert reasons(pieces) == []
    assert places(pieces, "alice@example.com", "row") == {"column email"}
    assert places(pieces, 8841302, "row") == {"column id"}
    if kind == "zip":
        assert places(pieces, "bob@example.com") == {"name in an archive"}
        return
    pieces = pieces_of(pack(gzip.compress(pack(b"to bob@example.com\n"))), f"x/mail.log{ending}.gz{ending}")
    assert "text" in places(pieces, "bob@example.com")
    assert reasons(pieces) == []


@pytest.mark.parametrize("kind", [each for each in _PACKERS if each != "zip"])
def test_what_is_cut_off_cannot_be_told(kind: str) -> None:
    ending, pack = _PACKERS[kind]
    noise = random.Random(1).randbytes(50_000)
    packed = pack(noise)
    assert reasons(pieces_of(packed[: len(packed) * 2 // 3], f"x{ending}"))


def test_containers_in_containers_are_opened_to_a_depth() -> None:
    content = b"alice@example.com"
    for depth in range(1, 7):
        content = gzip.compress(content)
        pieces = pieces_of(content, "x")
        assert bool(places(pieces, "alice@example.com")) == (depth <= 4)
        assert bool(reasons(pieces)) == (depth > 4)


@pytest.mark.parametrize("byte", deep_after_first(b"a", b"\0"))
def test_a_bomb_is_not_unpacked_to_its_end(byte: bytes) -> None:
    """A GiB in a MiB: what comes out is bounded, and that there is more is said."""
    packer = __import__("zlib").compressobj(9, wbits=31)
    packed = b"".join(packer.compress(byte * (1 << 20)) for _ in range(1024)) + packer.flush()
    most = max(64 << 20, 100 * len(packed))
    size = 0
    told = []
    for piece in pieces_of(packed, "bomb.gz"):
        if isinstance(piece, CannotTell):
            told.append(piece.because)
        elif isinstance(piece, Raw):
            size += len(piece.data)
        elif isinstance(piece, Cells) and piece.where == "text":
            size += piece.values.nbytes
    assert told[-1] == f"it has {len(packed)} bytes and unpacks to more than {most >> 20} MiB"
    assert size < 1.2 * most


def test_a_large_text_in_a_container_is_read_line_by_line() -> None:
    """Larger than may be held, and no bomb."""
    words = [random.Random(n).randbytes(12).hex() for n in range(2000)]
    lines = [" ".join(random.Random(n).choices(words, k=30)) for n in range(1000)]
    text = "\n".join(lines * (HELD // len("\n".join(lines)) + 2)) + "\nthe last alice@example.com"
    packed = gzip.compress(text.encode(), 1)
    cells = [p for p in pieces_of(packed, "mail.log.gz") if isinstance(p, Cells) and p.where == "text"]
    assert sum(len(p.values) for p in cells) == text.count("\n") + 1
    assert cells[-1].values[-1].as_py() == "the last alice@example.com"
    assert max(p.values.nbytes for p in cells) < 32 << 20


def test_an_encrypted_entry_cannot_be_told() -> None:
    content = bytearray(_zip(b"alice@example.com"))
    content[6] |= 1
    at = content.index(b"PK\x01\x02")
    content[at + 8] |= 1
    assert reasons(pieces_of(bytes(content), "x.zip")) == ["an entry of an archive is encrypted"]


def test_noise_is_no_format() -> None:
    pieces = pieces_of(bytes(range(128, 256)) + os.urandom(0), "x.dat")
    assert reasons(pieces) == ["its format is not known", "bytes: content"]


_BESIDE = b"alice@example.com"


def _gzip_with_a_name(content: bytes) -> bytes:
    sink = io.BytesIO()
    with gzip.GzipFile(_BESIDE.decode(), "wb", fileobj=sink) as stream:
        stream.write(content)
    return sink.getvalue()


def _zip_that_lost_an_entry(content: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("lost", _BESIDE)
    held = sink.getvalue()
    sink = io.BytesIO()
    sink.write(held[: held.index(b"PK\x01\x02")])
    with zipfile.ZipFile(sink, "a") as archive:
        archive.writestr("kept", content)
    return sink.getvalue()


def _with_a_frame_to_skip(codec: str) -> Callable[[bytes], bytes]:
    frame = (0x184D2A5B).to_bytes(4, "little") + len(_BESIDE).to_bytes(4, "little") + _BESIDE
    return lambda content: _arrow(codec)(content) + frame


def _gzip_after_another(content: bytes) -> bytes:
    return gzip.compress(content) + _gzip_with_a_name(b"a line\n")


def _gzip_with_a_large_head(content: bytes) -> bytes:
    packed = gzip.compress(content)
    return packed[:3] + b"\x04" + packed[4:10] + (60_000).to_bytes(2, "little") + _BESIDE.rjust(60_000) + packed[10:]


def _snappy_with_a_frame_to_skip(kind: int) -> Callable[[bytes], bytes]:
    return lambda content: _snappy_frames(content) + bytes([kind]) + len(_BESIDE).to_bytes(3, "little") + _BESIDE


def _zip_whose_entry_has_another_head(content: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        entry = zipfile.ZipInfo("a.txt")
        entry.extra = b"\x77\x77" + len(_BESIDE).to_bytes(2, "little") + _BESIDE
        archive.writestr(entry, content)
    at = sink.getvalue().rindex(_BESIDE)
    return sink.getvalue()[:at] + bytes(len(_BESIDE)) + sink.getvalue()[at + len(_BESIDE) :]


def _zip_with_bytes_behind_an_entry(content: bytes) -> bytes:
    """They count as the entry's own: its packed size says so."""
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(content) + packer.flush() + _BESIDE
    sizes = struct.pack("<III", zlib.crc32(content), len(packed), len(content))
    facts = struct.pack("<HHHHH", 20, 0, 8, 0, 0) + sizes + struct.pack("<HH", 5, 0)
    entry = b"PK\x03\x04" + facts + b"a.txt" + packed
    listed = b"PK\x01\x02" + struct.pack("<H", 20) + facts + bytes(14) + b"a.txt"
    return entry + listed + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(listed), len(entry), 0)


def _streamed_zip(content: bytes, behind: bytes) -> bytes:
    """Written to where nobody can go back: sizes and checksum stand behind each entry."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError

    sink = Pipe()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", content)
        archive.fp.write(behind)  # type: ignore[union-attr]
        archive.start_dir += len(behind)
    return sink.getvalue()


@pytest.mark.parametrize(
    "pack",
    [
        _gzip_with_a_name, _zip_that_lost_an_entry, _with_a_frame_to_skip("zstd"), _with_a_frame_to_skip("lz4"),
        lambda content: bz2.compress(content) + _BESIDE, lambda content: lzma.compress(content) + _BESIDE,
        _gzip_after_another, _gzip_with_a_large_head, _snappy_with_a_frame_to_skip(0x80),
        _snappy_with_a_frame_to_skip(0xFE), _zip_whose_entry_has_another_head,
        lambda content: _streamed_zip(content, _BESIDE[:6]), _zip_with_bytes_behind_an_entry,
    ],
    ids=["gzip", "zip", "zstd", "lz4", "bz2", "xz", "second gzip", "large head", "snappy", "padding", "zip head",
         "streamed zip", "behind an entry"],
)  # fmt: skip
def test_what_a_container_holds_beside_its_content_is_read(pack: Callable[[bytes], bytes]) -> None:
    pieces = pieces_of(pack(b"bob@example.com\n"), "x")
    assert places(pieces, _BESIDE[:6])


def test_what_stands_behind_the_entries_of_a_streamed_archive_is_known() -> None:
    pieces = pieces_of(_streamed_zip(b"bob@example.com\n", b""), "x.zip")
    assert reasons(pieces) == []
    assert places(pieces, "bob@example.com") == {"text"}


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress], ids=["bz2", "xz"])
def test_streams_one_after_another_are_one(pack: Callable[[bytes], bytes]) -> None:
    content = pack(b"a line\n") + pack(b"x" * (5 << 20) + b"\nbob@example.com\n")
    pieces = pieces_of(content, "x.txt")
    assert reasons(pieces) == []
    assert places(pieces, "bob@example.com")
    assert any(isinstance(each, CannotTell) for each in pieces_of(content[:-9], "x.txt"))


def test_bytes_behind_the_end_of_an_archive_are_read() -> None:
    for content in (_zip(b"bob@example.com"), _zip_that_lost_an_entry(b"bob@example.com")):
        pieces = pieces_of(content + _BESIDE, "x.zip")
        assert places(pieces, _BESIDE)
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("a.txt", "bob")
        archive.comment = b"a comment"
    assert not [told for told in reasons(pieces_of(sink.getvalue(), "x.zip")) if "behind" in told]
    assert places(pieces_of(sink.getvalue() + _BESIDE, "x.zip"), _BESIDE) == {"bytes behind an archive"}
