"""HFiles, as Hudi keeps its metadata in (HBase's versions 2 and 3): keys and values of the data blocks, and file infos.

The blocks follow each other from the first byte, each with a head that says how long it is. Values are Avro by the
schema that the file's own infos hold, or that of the log block that the file lies in.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from ebbtide.verify.read.avro import Everything, decoder
from ebbtide.verify.read.gather import Gathered
from ebbtide.verify.read.hudi_records import HudiRecord, is_metadata
from ebbtide.verify.read.packed import hadoop_blocks, is_hadoop
from ebbtide.verify.read.pieces import CannotTell, Cells, Pieces
from ebbtide.verify.read.stored import HELD, ObjectSource, UnknownContentError, as_bytes, bytes_of, exactly, failed

_DATA, _INFO, _TRAILER = b"DATABLK*", b"FILEINF2", b'TRABLK"$'
_KINDS = (_DATA, _INFO, b"METABLKc", b"IDXROOT2", b"IDXLEAF2", b"IDXINTE2", b"BLMFBLK2", b"BLMFMET2", b"DELFABL2")
_HEAD = 33
_TRAILER_SIZES = (4096, 212)
"""Of version 3, and of version 2."""
_CODECS = {1: "gzip", 2: "", 3: "snappy", 4: "lz4_raw", 6: "zstd"}
"""By their numbers in the trailer."""
_CODEC_FIELD = 12


@dataclass(frozen=True, slots=True)
class _Block:
    kind: bytes
    start: int
    packed: int
    plain: int
    end: int


def is_hfile(head: bytes, _: str) -> bool:
    return head[:8] in (*_KINDS, _TRAILER)


def read_hfile(stored: ObjectSource, schema: str = "") -> Pieces:
    with stored.open() as file:
        blocks, end = _blocks(file, stored.size)
        codec = _codec(file, end, stored.size - end)
        gathered = Gathered()
        for block in blocks:
            if block.kind == _INFO:
                for key, value in _infos(_unpacked(file, block, codec)):
                    gathered.add("file info", key)
                    gathered.add("file info", _text(value))
                    schema = value.decode("utf-8", "replace") if key == "schema" else schema
        yield from gathered.take()
        read = _reader(schema, stored.name)
        for block in blocks:
            try:
                content = _unpacked(file, block, codec)
                if block.kind == _DATA:
                    yield from _data(content, read)
                elif block.kind != _INFO and content.strip(b"\0"):
                    # Indexes repeat keys of the data blocks; blooms hold hashes of them.
                    gathered.add("index or bloom filter of an HFile", content, "bytes")
                    yield from gathered.take()
            except Exception as error:
                yield failed("a block of an HFile cannot be read", error)
                yield from as_bytes(stored, "block that cannot be read", block.start, block.end)
    yield from _trailer(stored, end, stored.size - end)


def _trailer(stored: ObjectSource, start: int, size: int) -> Pieces:
    """Places, counts and the name of a class, in what is mostly empty."""
    if size in _TRAILER_SIZES:
        with stored.open() as file:
            file.seek(start)
            content = exactly(file, size, "its trailer")
        yield Cells("trailer of an HFile", "bytes", pa.array([content], pa.large_binary()))
    else:
        yield CannotTell("an HFile has no whole trailer, or something behind it")
        yield from as_bytes(stored, "content", start)


def _blocks(file: BinaryIO, size: int) -> tuple[list[_Block], int]:
    """All blocks up to the trailer, which holds places and counts."""
    found, at = [], 0
    while at < size:
        file.seek(at)
        head = file.read(_HEAD)
        if head[:8] == _TRAILER:
            break
        if head[:8] not in _KINDS or len(head) < _HEAD:
            raise UnknownContentError("it has a block of a kind that is not known")
        on_disk, plain, _, _, _, data = struct.unpack(">iiqbii", head[8:])
        end = at + _HEAD + on_disk
        if on_disk < 0 or not _HEAD <= data <= _HEAD + on_disk or end > size or plain < 0:
            raise UnknownContentError("a block of it is cut off, or damaged")
        found.append(_Block(head[:8], at, data - _HEAD, plain, end))
        at = end
    return found, at


def _codec(file: BinaryIO, end: int, size: int) -> str:
    """How the blocks are packed, by the trailer: from their bytes and lengths it cannot always be told."""
    file.seek(end)
    content = exactly(file, size, "its trailer") if size in _TRAILER_SIZES else b""
    stream = io.BytesIO(content[8:])
    limit = _varint(stream) + stream.tell() if content else 0
    while stream.tell() < limit:
        tag = _varint(stream)
        value = _varint(stream)
        if tag & 7 == 2:
            stream.seek(value, io.SEEK_CUR)
        elif tag >> 3 == _CODEC_FIELD and value in _CODECS:
            return _CODECS[value]
    raise UnknownContentError("its trailer does not say how it is packed")


def _unpacked(file: BinaryIO, block: _Block, codec: str) -> bytes:
    file.seek(block.start + _HEAD)
    packed = exactly(file, block.packed, "a block")
    if not codec:
        return packed
    if block.plain > HELD:
        raise UnknownContentError("it is too large")
    if codec == "gzip":
        plain = zlib.decompressobj(wbits=31).decompress(packed, block.plain + 1)
    elif codec != "zstd" and is_hadoop(packed, block.plain):
        plain = b"".join(hadoop_blocks(io.BytesIO(packed), codec))
    else:
        plain = bytes(pa.decompress(packed, decompressed_size=block.plain, codec=codec, asbytes=True))
    if len(plain) != block.plain:
        raise UnknownContentError("it is not as long as it says")
    return plain


def _infos(content: bytes) -> Iterator[tuple[str, bytes]]:
    """The file's infos: protobuf, a length and then pairs of a first and a second text."""
    stream = io.BytesIO(content)
    if stream.read(4) != b"PBUF":
        raise UnknownContentError("its infos are of a version that is not known")
    end = _varint(stream)
    end += stream.tell()
    while stream.tell() < end:
        if _varint(stream) != 10:
            raise UnknownContentError("its infos are damaged")
        pair = io.BytesIO(exactly(stream, _varint(stream), "its infos"))
        texts = {}
        while (tag := pair.read(1)) != b"":
            texts[tag[0] >> 3] = exactly(pair, _varint(pair), "its infos")
        yield texts.get(1, b"").decode("utf-8", "replace"), texts.get(2, b"")


def _varint(stream: BinaryIO) -> int:
    value = 0
    for n in range(10):
        byte = exactly(stream, 1, "a number")[0]
        value |= (byte & 0x7F) << 7 * n
        if not byte & 0x80:
            return value
    raise UnknownContentError("it has a number without an end")


Read = Callable[[Gathered, bytes], None]


def _reader(schema: str, name: str) -> Read:
    """What takes a value apart: by its schema where there is one that fits, else it is bytes."""
    try:
        parsed = json.loads(schema)
        decode = decoder(parsed)
    except Exception:
        return lambda into, value: into.add("value of an HFile", value)
    take = HudiRecord(parsed) if is_metadata(name) else Everything(parsed)

    def read(into: Gathered, value: bytes) -> None:
        stream = io.BytesIO(value)
        try:
            record = decode(stream)
        except Exception:
            record = None
        if record is not None and stream.tell() == len(value):
            take(into, record)
        else:
            into.add("value of an HFile", value)

    return read


def _data(content: bytes, read: Read) -> Pieces:
    """Keys and values: with a number of one byte or more behind each, or without."""
    gathered = Gathered()
    for step in (_with_number, _without_number):
        cells = list(_cells(content, step))
        if cells and cells[-1] is not None:
            break
    else:
        if content:
            yield CannotTell("a block of an HFile has another layout")
            yield from bytes_of("block of an HFile", content)
        return
    for cell in cells:
        if cell is None:
            continue
        key, value = cell
        gathered.add("record key", _text(key))
        if value:
            read(gathered, value)
        if gathered.full:
            yield from gathered.take()
    yield from gathered.take()


def _cells(content: bytes, step: Callable[[bytes, int], int]) -> Iterator[tuple[bytes, bytes] | None]:
    """Key and value of each cell; None at the end where the block does not fall into cells."""
    at = 0
    while at < len(content):
        if at + 8 > len(content):
            yield None
            return
        keys, values = struct.unpack(">ii", content[at : at + 8])
        end = at + 8 + keys + values
        if keys < 2 or values < 0 or end > len(content):
            yield None
            return
        key = content[at + 8 : at + 8 + keys]
        rows = int.from_bytes(key[:2], "big")
        yield key[2 : 2 + rows] if rows <= keys - 2 else key, content[at + 8 + keys : end]
        at = step(content, end)


def _with_number(content: bytes, at: int) -> int:
    """Behind a Hadoop `VLong`, whose first byte says how many follow."""
    if at >= len(content):
        return at
    first = struct.unpack("b", content[at : at + 1])[0]
    return at + 1 + (0 if first >= -112 else -first - 112 if first >= -120 else -first - 120)


def _without_number(_: bytes, at: int) -> int:
    return at


def _text(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
