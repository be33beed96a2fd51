"""One object of storage in pieces: what it is, by its first bytes and then by its name, and whoever reads that.

Nothing in an object makes this raise. What a reader cannot read is said, and comes as bytes beside that.

Memory: no reader holds more than some hundred MiB of an object, whatever its size (each module says how much it holds).
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pyarrow as pa

from ebbtide.verify.read import hfile, hudi_log, packed, positions, sqlite, text
from ebbtide.verify.read.avro import MAGIC as AVRO
from ebbtide.verify.read.avro_files import read_avro
from ebbtide.verify.read.documents import read_json
from ebbtide.verify.read.gather import decoded
from ebbtide.verify.read.orc import read_orc
from ebbtide.verify.read.parquet import read_parquet
from ebbtide.verify.read.pieces import CannotTell, Cells, Open, Pieces, Unsearched
from ebbtide.verify.read.stored import ObjectSource, Reader, UnknownContentError, as_bytes, failed

_HEAD = 4096
_EXPECTED = {
    ".parquet": "Parquet",
    ".orc": "ORC",
    ".avro": "Avro",
    ".hfile": "HFile",
    ".puffin": "Puffin",
    ".json": "JSON",
}
_INDEX_VERSION = ((3007000).to_bytes(4, "little"), (3007000).to_bytes(4, "big"))
Is = Callable[[bytes, str], bool]


def read_object(name: str, size: int, open_: Open) -> Pieces:
    """All that an object holds. `name` is its path as listed, `size` as listed; `open_` opens it from its start."""
    yield from _path(name)
    try:
        with open_() as file:
            held = file.seek(0, os.SEEK_END)
    except Exception as error:
        yield failed("it cannot be opened", error)
        return
    if held != size:
        yield CannotTell("it has another size than it was listed with")
    yield from read_content(ObjectSource(name, held, open_))


def read_content(stored: ObjectSource) -> Pieces:
    """What an object holds, or what was unpacked from one."""
    if stored.size == 0:
        return
    try:
        with stored.open() as file:
            head = file.read(_HEAD)
        reader = _reader(head, stored)
        yield from reader(stored)
    except Exception as error:
        yield failed("it cannot be read", error)
        try:
            yield from as_bytes(stored)
        except Exception as again:
            yield failed("its bytes cannot be read", again)


def _path(name: str) -> Pieces:
    """The segments of a path, as listed and percent-decoded, and what stands behind a `column=`."""
    found: dict[str, None] = {}
    for form in decoded(name):
        for segment in form.split("/"):
            found[segment] = None
            found[segment.partition("=")[2]] = None
    found.pop("", None)
    # What is no UTF-8 in a local path comes as lone surrogates.
    values = [each.encode("utf-8", "replace").decode() for each in found]
    yield Cells("path", "path", pa.array(values, pa.string()))


def _unknown(stored: ObjectSource) -> Pieces:
    yield CannotTell(Unsearched.NO_FORMAT)
    yield from as_bytes(stored)


def _other(expected: str) -> Reader:
    def read(_: ObjectSource) -> Pieces:
        raise UnknownContentError(f"it is no {expected}")
        yield

    return read


def _begins(*magic: bytes) -> Is:
    return lambda head, _: head.startswith(magic)


def _named(prefix: str, ending: str) -> Is:
    return lambda _, name: name.startswith(prefix) and name.endswith(ending)


def _reader(head: bytes, stored: ObjectSource) -> Reader:
    name = stored.file_name
    for fits, reader in _READERS:
        if fits(head, name):
            return reader
    if expected := next((kind for ending, kind in _EXPECTED.items() if name.endswith(ending)), None):
        return _other(expected)
    return text.read_text if text.is_text(head) else _unknown


def _is_json(head: bytes, _: str) -> bool:
    return head.lstrip()[:1] in (b"{", b"[") and text.is_text(head)


def _is_shared_memory(head: bytes, name: str) -> bool:
    """SQLite's index of a write-ahead log: numbers of pages, and hashes of them."""
    return name.endswith("-shm") and head[:4] in _INDEX_VERSION


def _nothing(_: ObjectSource) -> Pieces:
    yield from ()


_READERS: tuple[tuple[Is, Reader], ...] = (
    (_begins(b"PAR1", b"PARE"), read_parquet),
    (_begins(b"ORC"), read_orc),
    (_begins(AVRO), read_avro),
    (_begins(positions.PUFFIN), positions.read_puffin),
    (_begins(hudi_log.MAGIC), hudi_log.read_log),
    (hfile.is_hfile, hfile.read_hfile),
    (_begins(sqlite.MAGIC), sqlite.read_sqlite),
    (_begins(*sqlite.LOGS), sqlite.read_log),
    (_is_shared_memory, _nothing),
    (lambda head, name: head.startswith(positions.CRC) and name.endswith(".crc"), positions.read_crc),
    (_named("deletion_vector_", ".bin"), positions.read_vectors),
    (lambda head, name: name.startswith("index-") and head.startswith(b"\x01"), positions.read_vectors),
    (packed.is_packed, lambda stored: packed.read_packed(stored, read_content)),
    (_is_json, read_json),
    (lambda head, name: name.endswith(".properties") and text.is_text(head), text.read_properties),
)
