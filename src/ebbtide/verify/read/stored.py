"""An object as the readers see it, its bytes where nothing better is known, and what is said when a reader fails."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from ebbtide.errors import keep_trace, kind_of
from ebbtide.verify.read.pieces import CannotTell, Open, Pieces, Raw

CHUNK = 4 << 20
HELD = 64 << 20
"""The most bytes of one object that a reader holds at a time, where it cannot go through them as a stream."""
DEEPEST = 4
"""How deep containers are opened that lie in each other."""


class UnknownContentError(ValueError):
    """The content is not what its format says; the words are ours and quote nothing of it."""


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """One object, or what was unpacked from one. `name` is for recognition alone, and quoted nowhere."""

    name: str
    size: int
    open: Open
    depth: int = 0

    @property
    def file_name(self) -> str:
        return self.name.rsplit("/", 1)[-1]

    def inner(self, content: bytes, name: str | None = None) -> ObjectSource:
        """Content that was unpacked from this, and fits the memory."""
        return ObjectSource(
            self.name if name is None else name, len(content), lambda: io.BytesIO(content), self.depth + 1
        )

    def part(self, start: int, size: int) -> ObjectSource:
        """A range of this that is an object of its own."""
        if start < 0 or size < 0 or start + size > self.size:
            raise UnknownContentError("a part of it lies outside of it")
        return ObjectSource(
            self.name, size, lambda: io.BufferedReader(_Range(self.open(), start, size), 1 << 20), self.depth + 1
        )


Reader = Callable[[ObjectSource], Pieces]


class _Range(io.RawIOBase):
    """A range of a file as a file."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file, self._start, self._size, self._at = file, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._start + self._at)
        content = self._file.read(max(0, min(len(buffer), self._size - self._at)))
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()


def whole(stored: ObjectSource, most: int = HELD) -> bytes:
    """All bytes, where they are no more than what may be held."""
    if stored.size > most:
        raise UnknownContentError(f"it has more than {most >> 20} MiB, and its format cannot be read in parts")
    with stored.open() as file:
        return file.read(most)


def arrow_file(file: BinaryIO) -> Any:
    """The same file for Arrow, which reads what lies in memory or on a disk by itself: through Python costs a tenth."""
    raw = getattr(file, "raw", None)
    if isinstance(raw, pa.NativeFile):
        return raw
    try:
        return pa.OSFile(raw.name) if isinstance(raw, io.FileIO) else file
    except UnicodeEncodeError:  # the name is no text
        return file


def exactly(file: BinaryIO, size: int, what: str = "something") -> bytes:
    """So many bytes from where the file stands; an object that ends before them is cut off."""
    content = file.read(size) if 0 <= size <= HELD else b""
    if len(content) != size:
        raise UnknownContentError(f"it ends in the middle of {what}, or is damaged")
    return content


def as_bytes(stored: ObjectSource, where: str = "content", start: int = 0, end: int | None = None) -> Iterator[Raw]:
    """The bytes of a range, chunk by chunk."""
    at, end = start, stored.size if end is None else min(end, stored.size)
    with stored.open() as file:
        file.seek(start)
        while at < end and (chunk := file.read(min(CHUNK, end - at))):
            yield Raw(where, chunk, at)
            at += len(chunk)


def bytes_of(where: str, content: bytes) -> Iterator[Raw]:
    """The same for bytes that are held already."""
    for at in range(0, len(content), CHUNK):
        yield Raw(where, content[at : at + CHUNK], at)


def failed(what: str, error: Exception) -> CannotTell:
    """What is said of an error: our own words, or its kind. Texts of others may quote what was read."""
    keep_trace(error)
    reason = str(error) if isinstance(error, UnknownContentError) else kind_of(error)
    return CannotTell(f"{what}: {reason}")
