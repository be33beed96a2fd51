"""One object read whole and searched: in a Spark task, or in the process."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from ebbtide.errors import keep_trace
from ebbtide.model.paths import local_path
from ebbtide.storage.versions import StoredVersion, VersionKind, kept_beside, open_version
from ebbtide.verify.bounds import Suspicion, explains
from ebbtide.verify.matcher import Matcher, ObjectFindings
from ebbtide.verify.read.objects import read_object
from ebbtide.verify.read.pieces import CannotTell, Cells, Piece

_AT_ONCE = 64 << 20
"""Objects up to this size are held whole while they are read, and read from their store just once."""
_STEP = 256 << 10
"""So much is hashed at a time, while it is still at hand in the processor."""
_own = threading.local()
_CHANGED = "it changed while it was read"


@dataclass(frozen=True, slots=True)
class LookOrder:
    """An object to be read; `number` tells it from the others."""

    number: int
    stored: StoredVersion
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ObjectLook:
    """What was read of an object, and what it holds. `hides` says that its path may hold somebody's value."""

    number: int
    bytes: int
    checksum: str
    hides: bool
    findings: ObjectFindings


def look_at(order: LookOrder, matcher: Matcher) -> ObjectLook:
    """Read one object and search it. Whatever goes wrong is said in the answer: an error would carry paths."""
    stored = order.stored
    hides = matcher.holds(stored.path)
    if stored.kind is not VersionKind.OBJECT:
        findings = matcher.search(iter([_name(stored.path)]))
        hides = hides or bool(findings.found)
        if stored.kind is VersionKind.UNLISTED:
            findings.untold.add((None, "a folder that cannot be listed"))
        if stored.kind is VersionKind.UPLOAD:
            findings.untold.add((None, "an upload that nobody finished: its parts cannot be read"))
        return ObjectLook(order.number, 0, stored.kind.value.replace(" ", "-"), hides, findings)
    source = _Source(stored, order.options)
    try:
        source.read_whole()
        findings = matcher.search(_safely(source))
        if source.changed():
            findings.untold.add((None, _CHANGED))
    except Exception as error:
        keep_trace(error)
        findings = matcher.search(iter([_name(stored.path), *source.links(), CannotTell(reason(error))]))
    hides = hides or any(how == "path" and where == "path" for _, how, where in findings.found)
    return ObjectLook(order.number, source.size, source.checksum, hides, findings)


def explain(order: LookOrder, matcher: Matcher, suspicions: list[Suspicion]) -> list[bool | None]:
    """For each of the bounds whether this file, which it describes, holds a neighbour's value; None: not to be told."""
    source = _Source(order.stored, order.options)
    answers: list[bool | None] = []
    for each in suspicions:
        try:
            source.read_whole()
            answers.append(explains(matcher.needles[each.needle], each, _safely(source)))
        except Exception as error:
            keep_trace(error)
            answers.append(None)
    return answers


class _NoFileError(Exception):
    """A pipe, a socket or a device: opening it may wait for good, and reading it may never end."""


class _Source:
    """An object's bytes: from memory where it is small, else from its store."""

    def __init__(self, stored: StoredVersion, options: Mapping[str, str]) -> None:
        self.stored, self.size, self.checksum = stored, stored.bytes, stored.checksum or "-"
        self._options = options
        self._held: memoryview | None = None
        self._place = local_path(stored.path) and stored.path.removeprefix("file://")
        self._as_it_was: tuple[int, int] | None = None
        self._opened_last: BinaryIO | None = None

    def read_whole(self) -> None:
        if self._held is not None or self._as_it_was is not None:
            return
        if self._place and not (stat.S_ISREG(mode := Path(self._place).stat().st_mode) or stat.S_ISDIR(mode)):
            raise _NoFileError
        if self.stored.bytes <= _AT_ONCE:
            with self._opened() as file:
                held, digest = _read(file)
            if len(held) <= _AT_ONCE:  # else it has grown
                self._held, self.size, self.checksum = held, len(held), f"sha256:{digest}"
                return
        if self._place:
            self._as_it_was = self._facts()
            with Path(self._place).open("rb") as plain:
                self.checksum = f"sha256:{hashlib.file_digest(plain, 'sha256').hexdigest()}"

    def open(self) -> BinaryIO:
        if self._held is None:
            return self._opened()
        return io.BufferedReader(pa.BufferReader(self._held))

    def changed(self) -> bool:
        return self._as_it_was is not None and self._as_it_was != self._facts()

    def links(self) -> Iterator[Piece]:
        """Where a link leads to: the path stands in storage, too."""
        if self._place and Path(self._place).is_symlink():
            target = str(Path(self._place).readlink()).encode("utf-8", "replace").decode()
            yield Cells("target of a link", "path", pa.array([target], pa.string()))

    def beside(self) -> Iterator[Piece]:
        """What the store says of an object that was read, in words of whoever wrote it."""
        if self._opened_last is not None and (texts := kept_beside(self._opened_last)):
            yield Cells("metadata or a tag of the object", "row", pa.array(texts, pa.string()))

    def _opened(self) -> BinaryIO:
        self._opened_last = open_version(self.stored, self._options)
        return self._opened_last

    def _facts(self) -> tuple[int, int]:
        facts = Path(self._place or "").stat()
        return facts.st_size, facts.st_mtime_ns


def _read(file: BinaryIO) -> tuple[memoryview, str]:
    """The bytes of an object, one more than may be held where there are so many, and their SHA-256.

    They lie where this thread reads one object after the other, and are good until it reads the next: new room each
    time would cost as much as the reading.
    """
    if len(getattr(_own, "room", b"")) <= _AT_ONCE:
        _own.room = bytearray(_AT_ONCE + 1)
    room, digest, at = memoryview(_own.room)[: _AT_ONCE + 1], hashlib.sha256(), 0
    while size := file.readinto(room[at : at + _STEP]):  # type: ignore[attr-defined]
        digest.update(room[at : at + size])
        at += size
    return room[:at], digest.hexdigest()


def _safely(source: _Source) -> Iterator[Piece]:
    """The pieces; an error between two of them ends them, and is a piece."""
    try:
        yield from source.links()
        yield from read_object(source.stored.path, source.stored.bytes, source.open)
        yield from source.beside()
    except Exception as error:
        keep_trace(error)
        yield CannotTell(reason(error))


def reason(error: Exception) -> str:
    """Why an object was not read, in words that hold no path."""
    if isinstance(error, _NoFileError):
        return "it is a pipe, a socket or a device, or a link to one"
    if isinstance(error, FileNotFoundError):
        return "it vanished between the listing and the reading"
    if isinstance(error, PermissionError):
        return "no permission to read it"
    if isinstance(error, IsADirectoryError):
        return "a link to a folder, which is not followed"
    if isinstance(error, OSError) and error.errno in errno.errorcode:
        return f"it cannot be read: {os.strerror(error.errno or 0)}"
    return f"it cannot be read: {type(error).__name__}"


def _name(path: str) -> Piece:
    """The path itself, which comes first of every object."""
    return next(read_object(path, 0, _nothing))


def _nothing() -> BinaryIO:
    return io.BytesIO()
