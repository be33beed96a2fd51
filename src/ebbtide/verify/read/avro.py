"""Avro object containers, block by block (Avro 1.11, "Object Container Files"), every field of every record.

A block is unpacked within a bound, and its records are decoded one by one. Schemas that let few bytes become many
values, or a value be nested without end, are refused: no writer of the four formats has one.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from fastavro import parse_schema, schemaless_reader

from ebbtide.storage.unpack import unpack_block
from ebbtide.verify.read.gather import Gathered
from ebbtide.verify.read.pieces import Pieces
from ebbtide.verify.read.stored import ObjectSource, UnknownContentError, as_bytes, bytes_of, exactly, failed

MAGIC = b"Obj\x01"
_SYNC = 16
_BLOCK = 32 << 20
"""The most that a block may unpack to."""
_FACTS = 10_000
_KEPT = ("decimal", "uuid", "date", "time-millis", "time-micros")
"""The logical types whose values are told by them; instants stay the numbers that they are."""


@dataclass(frozen=True, slots=True)
class AvroHeader:
    """What the head of a file says: its own metadata, its schema as JSON, and where its blocks begin."""

    facts: Mapping[str, bytes]
    schema: Any
    blocks: int
    sync: bytes


Record = Callable[[Gathered, Any], None]
"""Takes a record apart into values."""


def read_head(stored: ObjectSource) -> AvroHeader:
    with stored.open() as file:
        if exactly(file, 4) != MAGIC:
            raise UnknownContentError("it is no Avro file")
        facts: dict[str, bytes] = {}
        while count := number(file):
            if count < 0:
                count = -count
                number(file)
            if len(facts) + count > _FACTS:
                raise UnknownContentError("its head counts more than it holds")
            for _ in range(count):
                key = exactly(file, number(file), "its head").decode("utf-8", "replace")
                if key in facts:
                    raise UnknownContentError("its head says a thing twice")
                facts[key] = exactly(file, number(file), "its head")
        sync = exactly(file, _SYNC, "its head")
        return AvroHeader(facts, json.loads(facts.get("avro.schema", b"null")), file.tell(), sync)


def read_container(stored: ObjectSource, head: AvroHeader, record: Record) -> Pieces:
    """All blocks of a file. One that cannot be decoded comes as bytes, unpacked where it can be."""
    codec = head.facts.get("avro.codec", b"null").decode("ascii", "replace")
    try:
        decode = decoder(head.schema)
    except Exception as error:
        yield failed("its schema cannot be read", error)
        yield from as_bytes(stored)
        return
    gathered = Gathered()
    for key, fact in head.facts.items():
        if key not in ("avro.schema", "avro.codec"):
            gathered.add("metadata of the file", key)
            gathered.add("metadata of the file", _text(fact))
    gathered.add("schema of the file", _text(head.facts.get("avro.schema", b"")))
    try:
        yield from _blocks(stored, head, codec, lambda plain, count: _block(plain, count, decode, gathered, record))
    except Exception:  # what came of the blocks before is good
        yield from gathered.take()
        raise
    yield from gathered.take()


def _blocks(stored: ObjectSource, head: AvroHeader, codec: str, read: Callable[[bytes, int], Pieces]) -> Pieces:
    with stored.open() as file:
        file.seek(head.blocks)
        while file.tell() < stored.size:
            count = number(file)
            packed = exactly(file, number(file), "a block")
            if exactly(file, _SYNC, "a block") != head.sync:
                raise UnknownContentError("a block of it does not end where it should")
            try:
                plain = unpack_block(codec, packed, _BLOCK)
            except Exception as error:
                plain = None
                yield failed("a block cannot be unpacked", error)
            if plain is None:
                yield failed("a block cannot be read", UnknownContentError("it is too large, or damaged"))
                yield from bytes_of("block that cannot be read", packed)
                continue
            yield from read(plain, count)


def _block(plain: bytes, count: int, decode: Callable[[BinaryIO], Any], into: Gathered, record: Record) -> Pieces:
    stream = io.BytesIO(plain)
    try:
        if count > len(plain):
            raise UnknownContentError("it counts more records than it has bytes")
        for _ in range(count):
            record(into, decode(stream))
            if into.full:
                yield from into.take()
        if stream.tell() != len(plain):
            raise UnknownContentError("it has bytes behind its records")
    except Exception as error:
        yield failed("a block cannot be decoded", error)
        yield from bytes_of("block that cannot be decoded", plain)


def decoder(schema: Any) -> Callable[[BinaryIO], Any]:
    """A function that reads one record of a schema from a stream."""
    if not _is_bounded(schema, {}, 0):
        raise UnknownContentError("its schema has no bound")
    parsed = parse_schema(_without_times(schema))
    return lambda stream: schemaless_reader(stream, parsed, None)


class Everything:
    """Takes records apart into every value, and every key of a map; without numbers where they are the format's own.

    A place is made of names of the schema alone: the keys of a map may be values.
    """

    def __init__(self, schema: Any, *, numbers: bool = True) -> None:
        self._names = frozenset(names_in(schema))
        self._numbers = numbers

    def __call__(self, into: Gathered, record: Any, place: str = "field") -> None:
        todo: list[tuple[str, Any]] = [(place, record)]
        while todo:
            place, value = todo.pop()
            if isinstance(value, Mapping):
                if self._names.issuperset(value):
                    joint = " " if place == "field" else "."
                    todo += [(f"{place}{joint}{name}", each) for name, each in value.items()]
                    continue
                for name, each in value.items():
                    into.add(f"{place}: key", name)
                    todo.append((place, each))
            elif isinstance(value, list | tuple):
                todo += [(place, each) for each in value]
            elif self._numbers or isinstance(value, str | bytes):
                into.add(place, value)


def number(file: BinaryIO) -> int:
    """A long: seven bits a byte, the lowest first, the sign in the lowest bit."""
    value = 0
    for n in range(10):
        byte = exactly(file, 1, "a number")[0]
        value |= (byte & 0x7F) << 7 * n
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1)
    raise UnknownContentError("it has a number without an end")


def _text(fact: bytes) -> str | bytes:
    try:
        return fact.decode()
    except UnicodeDecodeError:
        return fact


def _without_times(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_times(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {
        key: _without_times(each) if key in ("type", "fields", "items", "values") else each
        for key, each in schema.items()
        if key not in ("default", "doc")
    }
    if isinstance(kept.get("logicalType"), str) and kept["logicalType"] not in _KEPT:
        del kept["logicalType"]
    return kept


def _is_bounded(schema: Any, open_: dict[str, bool], depth: int) -> bool:
    """Whether no type holds itself, and nothing of no bytes stands in an array: so much data, so many values."""
    if depth > 64:
        return False
    if isinstance(schema, list):
        return all(_is_bounded(each, open_, depth + 1) for each in schema)
    if isinstance(schema, str):
        return not open_.get(schema.rsplit(".", 1)[-1], False)
    if not isinstance(schema, Mapping):
        return False
    kind = schema.get("type")
    if kind in ("record", "error"):
        name = str(schema.get("name", "")).rsplit(".", 1)[-1]
        open_[name] = True
        bounded = all(_is_bounded(field.get("type"), open_, depth + 1) for field in schema.get("fields", ()))
        open_[name] = False
        return bounded
    if kind == "array":
        return _takes_bytes(schema.get("items")) and _is_bounded(schema.get("items"), open_, depth + 1)
    if kind == "map":
        return _is_bounded(schema.get("values"), open_, depth + 1)
    if isinstance(kind, list | Mapping):
        return _is_bounded(kind, open_, depth + 1)
    return isinstance(kind, str) and (kind in ("enum", "fixed") or not open_.get(kind.rsplit(".", 1)[-1], False))


def _takes_bytes(schema: Any) -> bool:
    """Whether a value takes at least a byte. A name that was defined before is taken for one that does."""
    if isinstance(schema, list):
        return True  # which of them it is, is a number of its own
    if isinstance(schema, Mapping):
        kind = schema.get("type")
        if kind in ("record", "error"):
            return any(_takes_bytes(field.get("type")) for field in schema.get("fields", ()))
        if kind == "fixed":
            return bool(schema.get("size", 0) > 0)
        return _takes_bytes(kind)
    return bool(schema != "null")


def fields_of(schema: Any) -> Iterator[str]:
    """The names of the fields of a record's schema."""
    if isinstance(schema, Mapping):
        yield from (str(field.get("name")) for field in schema.get("fields", ()) if isinstance(field, Mapping))


def names_in(schema: Any) -> Iterator[str]:
    """The names of all fields in a schema, however deep."""
    todo = [schema]
    while todo:
        each = todo.pop()
        if isinstance(each, list):
            todo += each
        elif isinstance(each, Mapping):
            yield from fields_of(each)
            todo += [each.get(part) for part in ("type", "items", "values")]
            todo += [field.get("type") for field in each.get("fields", ()) if isinstance(field, Mapping)]
