"""Hudi's log files: blocks of data, of deletions and of commands (`HoodieLogFormat`)."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from ebbtide.verify.read.avro import Everything, decoder
from ebbtide.verify.read.gather import Gathered
from ebbtide.verify.read.hfile import read_hfile
from ebbtide.verify.read.hudi_records import HudiRecord, is_metadata
from ebbtide.verify.read.parquet import read_parquet
from ebbtide.verify.read.pieces import CannotTell, Pieces
from ebbtide.verify.read.stored import ObjectSource, UnknownContentError, as_bytes, exactly, failed

MAGIC = b"#HUDI#"
_SCHEMA = 2
_COMMAND, _DELETE, _CORRUPT, _AVRO, _HFILE, _PARQUET, _CDC = range(7)
_MOST_HEADERS = 1_000
_RECORD = 32 << 20


def read_log(stored: ObjectSource) -> Pieces:
    """Block by block. One that cannot be read comes as bytes; what follows something that is no block, too."""
    at = 0
    with stored.open() as file:
        while at < stored.size:
            file.seek(at)
            if file.read(len(MAGIC)) != MAGIC:
                yield CannotTell("there is something between the blocks of a log")
                yield from as_bytes(stored, "content", at)
                return
            size = int.from_bytes(exactly(file, 8, "a block"), "big", signed=True)
            start, at = at, at + len(MAGIC) + 8 + size
            if size < 16 or at > stored.size:
                yield CannotTell("a block of a log is cut off, or damaged")
                yield from as_bytes(stored, "content", start)
                return
            try:
                yield from _block(stored, file, at)
            except Exception as error:
                yield failed("a block of a log cannot be read", error)
                yield from as_bytes(stored, "block that cannot be read", start, at)


def _block(stored: ObjectSource, file: BinaryIO, end: int) -> Pieces:
    if _int(file) > 1:
        raise UnknownContentError("it is of a newer version")
    kind = _int(file)
    said = list(_headers(file))
    headers = dict(said)
    size = int.from_bytes(exactly(file, 8, "a block"), "big", signed=True)
    content = file.tell()
    if content + size > end:
        raise UnknownContentError("its content is longer than the block")
    gathered = Gathered()
    for _, header in said:
        gathered.add("header of a log block", header)
    yield from gathered.take()
    part = stored.part(content, size)
    schema = headers.get(_SCHEMA, "")
    if kind in (_AVRO, _CDC):
        yield from _records(part, schema)
    elif kind == _PARQUET:
        yield from read_parquet(part)
    elif kind == _HFILE:
        yield from read_hfile(part, schema)
    elif kind == _DELETE:
        yield from _deletions(part)
    elif kind != _COMMAND or size:
        raise UnknownContentError("it is of a kind that is not known")
    file.seek(content + size)
    for _, footer in _headers(file):
        gathered.add("footer of a log block", footer)
    yield from gathered.take()
    exactly(file, 8, "a block")  # how long it is, once more
    if file.tell() != end:
        raise UnknownContentError("it has bytes behind its footer")


def _headers(file: BinaryIO) -> Iterator[tuple[int, str]]:
    count = _int(file)
    if not 0 <= count <= _MOST_HEADERS:
        raise UnknownContentError("it has too many headers")
    for _ in range(count):
        key = _int(file)
        yield key, exactly(file, _int(file), "a header").decode("utf-8", "replace")


def _records(part: ObjectSource, schema: str) -> Pieces:
    parsed = json.loads(schema)
    decode = decoder(parsed)
    take: Callable[[Gathered, Any], None] = HudiRecord(parsed) if is_metadata(part.name) else Everything(parsed)
    gathered = Gathered()
    with part.open() as file:
        _int(file)
        for _ in range(_int(file)):
            size = _int(file)
            if size > _RECORD:
                raise UnknownContentError("a record of it is too large")
            take(gathered, _whole(decode, exactly(file, size, "a record")))
            if gathered.full:
                yield from gathered.take()
        yield from gathered.take()
        if file.tell() != part.size:
            raise UnknownContentError("it has bytes behind its records")


def _whole(decode: Callable[[BinaryIO], Any], content: bytes) -> Any:
    stream = io.BytesIO(content)
    record = decode(stream)
    if stream.tell() != len(content):
        raise UnknownContentError("it has bytes behind a record")
    return record


def _deletions(part: ObjectSource) -> Pieces:
    """The keys that a block deletes. Before log version 3 they were written by Kryo, which is not read."""
    with part.open() as file:
        version, size = _int(file), _int(file)
        if version < 3 or size + 8 != part.size:
            raise UnknownContentError("its deletions are of a version that is not known")
        record = _whole(decoder(_DELETIONS), exactly(file, size, "deletions"))
    gathered, take = Gathered(), Everything(_DELETIONS)
    for deletion in record["deleteRecordList"]:
        gathered.add("record key", deletion["recordKey"])
        gathered.add("partition path", deletion["partitionPath"], "path")
        take(gathered, {"orderingVal": deletion["orderingVal"]})
        if gathered.full:
            yield from gathered.take()
    yield from gathered.take()


def _int(file: BinaryIO) -> int:
    return int.from_bytes(exactly(file, 4, "a number"), "big", signed=True)


def _wrapper(name: str, kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": "value", "type": kind}]}


_WRAPPERS = {
    "BooleanWrapper": "boolean",
    "IntWrapper": "int",
    "LongWrapper": "long",
    "FloatWrapper": "float",
    "DoubleWrapper": "double",
    "BytesWrapper": "bytes",
    "StringWrapper": "string",
    "DateWrapper": "int",
    "DecimalWrapper": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15},
    "TimeMicrosWrapper": "long",
    "TimestampMicrosWrapper": "long",
}
_ARRAY = {
    "type": "record",
    "name": "ArrayWrapper",
    "fields": [
        {
            "name": "wrappedValues",
            "type": ["null", {"type": "array", "items": ["null", *_WRAPPERS, _wrapper("LocalDateWrapper", "int")]}],
        }
    ],
}
_DELETION = {
    "type": "record",
    "name": "HoodieDeleteRecord",
    "fields": [
        {"name": "recordKey", "type": ["null", "string"]},
        {"name": "partitionPath", "type": ["null", "string"]},
        {"name": "orderingVal", "type": ["null", *(_wrapper(*each) for each in _WRAPPERS.items()), _ARRAY]},
    ],
}
_DELETIONS = {
    "type": "record",
    "name": "HoodieDeleteRecordList",
    "fields": [{"name": "deleteRecordList", "type": {"type": "array", "items": _DELETION}}],
}
"""What a delete block of log version 3 holds (`HoodieDeleteRecordList.avsc`)."""
