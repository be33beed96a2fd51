"""Values of a binary column that are packed by themselves: they are unpacked, or cannot be told."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from ebbtide.verify.read.pieces import Cells
from tests.verify.people import LONG, is_found, needle, search

_PERSON = needle(LONG)


def _gzip_with_a_name(content: bytes) -> bytes:
    sink = io.BytesIO()
    with gzip.GzipFile("n", "wb", fileobj=sink) as stream:
        stream.write(content)
    return sink.getvalue()


def _streamed(codec: str) -> Callable[[bytes], bytes]:
    def pack(content: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(content)
        return bytes(sink.getvalue())

    return pack


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "zlib": zlib.compress, "zlib 1": lambda content: zlib.compress(content, 1),
    "zlib 9": lambda content: zlib.compress(content, 9), "gzip": gzip.compress, "gzip with a name": _gzip_with_a_name,
    "bz2": bz2.compress, "xz": lzma.compress, "zstd": _streamed("zstd"), "lz4": _streamed("lz4"),
}  # fmt: skip


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_a_value_is_found_in_what_a_cell_unpacks_to(pack: Callable[[bytes], bytes]) -> None:
    holds, neighbour = pack(b'{"who": "' + LONG.encode() * 3 + b'"}'), pack(b'{"who": "somebody"}' * 3)
    for type_ in (pa.binary(), pa.large_binary()):
        assert is_found(_PERSON, pa.array([b"\x01", holds, None], type_)) is True
        assert is_found(_PERSON, pa.array([b"\x01", neighbour, None], type_)) is False
    assert is_found(_PERSON, pa.array([neighbour + holds])) is not False, (
        "behind another one, as `cat a.gz b.gz` has it"
    )
    assert is_found(_PERSON, pa.array([neighbour + neighbour])) is not True


def test_what_does_not_unpack_cannot_be_told() -> None:
    for packed in (
        b"\xff\x06\x00\x00sNaPpY...",
        b"PK\x03\x04...",
        b"\x1f\x8b\x08\x00...",
        gzip.compress(b"x" * 99)[:-4],
    ):
        assert is_found(_PERSON, pa.array([packed])) is None
    twice = zlib.compress(zlib.compress(LONG.encode()))
    assert is_found(_PERSON, pa.array([twice])) is None
    bomb = zlib.compress(b"\0" * (17 << 20))
    assert is_found(_PERSON, pa.array([bomb])) is None


def test_random_bytes_are_not_taken_for_packed_ones() -> None:
    noise = np.random.default_rng(7).integers(0, 256, (20_000, 16), dtype=np.uint8)
    noise[:, 0] = 0x78
    noise[:, 1] = 0x9C
    cells = pa.array([row.tobytes() for row in noise], pa.binary())
    findings = search(_PERSON, Cells("column c", "row", cells))
    assert not findings.found
    assert not findings.untold
