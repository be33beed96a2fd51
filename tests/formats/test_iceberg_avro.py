"""A damaged manifest or manifest list is an error: never a crash, never a shorter list."""

from __future__ import annotations

import bz2
import lzma
import random
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from ebbtide.formats.iceberg import avro
from ebbtide.formats.iceberg.container import _facts, _number, _whole, without_compression
from ebbtide.storage import unpack
from tests.inventory.lakes import SmallLake


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = SmallLake(tmp_path_factory.mktemp("avro"))
    return lake.create("t", 3) / "metadata"


@pytest.fixture(scope="module")
def manifest_list(metadata: Path) -> bytes:
    return max(metadata.glob("snap-*.avro"), key=lambda path: path.stat().st_size).read_bytes()


def test_a_whole_list_and_its_manifests_are_read(manifest_list: bytes) -> None:
    named = avro.manifests(manifest_list)
    assert len(named) == 3
    for manifest in named:
        (entry,) = avro.entries(Path(manifest.path.removeprefix("file://")).read_bytes(), manifest)
        assert entry.status is avro.Status.ADDED
        assert entry.content is avro.ManifestContent.DATA
        assert (entry.rows, entry.format) == (1, "PARQUET")
        assert entry.by == manifest.added_by


def test_a_list_that_is_cut_is_an_error_or_empty_where_its_blocks_would_begin(manifest_list: bytes) -> None:
    """The empty one is a valid list; `read` holds it against what the snapshot's summary counts."""
    empty = []
    for length in range(len(manifest_list)):
        try:
            found = avro.manifests(manifest_list[:length])
        except Exception:  # noqa: S112 - fastavro raises many kinds; that it raises is the point
            continue
        assert found == []
        empty.append(length)
    assert len(empty) <= 2


def test_a_manifest_of_another_length_is_an_error(manifest_list: bytes) -> None:
    manifest = avro.manifests(manifest_list)[0]
    content = Path(manifest.path.removeprefix("file://")).read_bytes()
    for wrong in (content[:-1], content + b"\0", b""):
        with pytest.raises(ValueError, match="its manifest list says"):
            avro.entries(wrong, manifest)


def test_a_manifest_with_another_count_is_an_error(manifest_list: bytes) -> None:
    one, two = avro.manifests(manifest_list)[:2]
    content = Path(one.path.removeprefix("file://")).read_bytes()
    with pytest.raises(ValueError, match="0 deleted entries, its manifest list says 2"):
        avro.entries(content, replace(one, deleted=2))
    assert avro.entries(content, replace(one, added=None, existing=None, deleted=None)) != []
    assert one != two


def test_scribbled_bytes_never_crash(manifest_list: bytes) -> None:
    """In this very process: a decoder that reads past its buffer would end it."""
    rng = random.Random(11)
    refused = 0
    for _ in range(2000):
        damaged = bytearray(manifest_list)
        for _ in range(rng.randint(1, 8)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            avro.manifests(bytes(damaged))
        except (MemoryError, RecursionError):
            raise
        except Exception:
            refused += 1
    assert refused > 1000


def _deflate(plain: bytes) -> bytes:
    return zlib.compress(plain, wbits=-15)


def _snappy(plain: bytes) -> bytes:
    return bytes(pa.compress(plain, codec="snappy", asbytes=True)) + zlib.crc32(plain).to_bytes(4, "big")


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "deflate": _deflate,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstandard": lambda plain: bytes(pa.compress(plain, codec="zstd", asbytes=True)),
    "snappy": _snappy,
}


def _packed(plain: bytes, codec: str, more: int = 0) -> bytes:
    """An Avro file of one block under another codec, with so many zeros after its records."""
    facts, at = _facts(plain, 4)
    facts[b"avro.codec"] = codec.encode()
    sync = plain[at : at + 16]
    count, at = _number(plain, at + 16)
    size, at = _number(plain, at)
    block = PACKERS[codec](plain[at : at + size] + bytes(more))
    if codec == "snappy" and more:  # it cannot pack by that much, but say so
        block = b"\xff\xff\xff\xff\x0f" + block
    head = b"".join(_whole(len(text)) + text for fact in facts.items() for text in fact)
    return b"Obj\x01" + _whole(len(facts)) + head + b"\x00" + sync + _whole(count) + _whole(len(block)) + block + sync


@pytest.mark.parametrize("codec", PACKERS)
def test_every_codec_is_read_and_none_unpacks_to_more_than_memory_holds(
    manifest_list: bytes, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "_FLOOR", 1 << 20)
    plain = without_compression(manifest_list)
    packed = _packed(plain, codec)
    assert avro.manifests(packed) == avro.manifests(manifest_list)
    bomb = _packed(plain, codec, more=8 << 20)
    with pytest.raises(ValueError, match=rf"it has {len(bomb)} bytes and unpacks to more than \d+ MiB"):
        avro.manifests(bomb)
    with pytest.raises(ValueError, match="in the middle"):
        avro.manifests(packed[:-20])
    with pytest.raises(ValueError, match="its codec 'none' is not known"):
        avro.manifests(packed.replace(_whole(len(codec)) + codec.encode(), _whole(4) + b"none"))
