"""Text files: their lines as text cells. Lines without an end come in parts that overlap."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.verify.read.broken import unbroken
from ebbtide.verify.read.pieces import CannotTell, Cells, Pieces
from ebbtide.verify.read.stored import ObjectSource, as_bytes

_CHUNK = 4 << 20
_OVERLAP = 64 << 10
"""More than any value is long."""
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_MEANT = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}
_BORDER = re.compile("[\\s\"'<>;|]")
_ALLOWED = frozenset(b"\t\n\r\f\x0b\x1b")
_NO_TEXT = re.compile("[" + "".join(f"\\x{byte:02x}" for byte in range(32) if byte not in _ALLOWED) + "]")


def is_text(head: bytes) -> bool:
    """Whether an object begins as text: UTF-8 without control characters, or what says that it is UTF-16."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    if any(byte < 32 and byte not in _ALLOWED for byte in head):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def read_text(stored: ObjectSource, where: str = "text") -> Pieces:
    """Where it stops being text, the rest comes as bytes."""
    with stored.open() as file:
        head = file.read(4)
        encoding = next((name for mark, name in _MARKS if head.startswith(mark)), "utf-8")
        file.seek(0)
        for part in _parts(file, encoding):
            if part is None or _NO_TEXT.search(part):
                # UTF-16 without a mark is UTF-8 with zeros in it.
                yield CannotTell("it begins as text and goes on as something else")
                yield from as_bytes(stored)
                return
            whole = pa.array([part], pa.large_string())
            yield Cells(where, "row", pc.list_flatten(pc.split_pattern(whole, "\n")))
            runs = [run.decode("utf-8", "replace") for run in unbroken(memoryview(whole.buffers()[2] or b""))]
            if runs:
                yield Cells(where, "row", pa.array(runs, pa.large_string()))


def is_plain(line: bytes) -> bool:
    """Whether a line is text and nothing else."""
    try:
        return _NO_TEXT.search(line.decode()) is None
    except UnicodeDecodeError:
        return False


def read_properties(stored: ObjectSource) -> Pieces:
    """Java's properties: what is special in them has a backslash before it, also within a value (`a\\#b`)."""
    for piece in read_text(stored):
        yield piece
        if isinstance(piece, Cells):
            escaped = [line for line in piece.values.to_pylist() if "\\" in line]
            if any(line.endswith("\\") for line in escaped):
                yield CannotTell("a line of it goes on in the next one")
            if escaped:
                plain = [_joined(_ESCAPED.sub(_meant, line)) for line in escaped]
                yield Cells("property", "row", pa.array(plain, pa.large_string()))


def _meant(escaped: re.Match[str]) -> str:
    return chr(int(escaped[1], 16)) if escaped[1] else _MEANT.get(escaped[2], escaped[2])


def _joined(line: str) -> str:
    """Java writes a character beyond 16 bits as two."""
    return line.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def parts_of(texts: Iterable[str]) -> Iterator[str]:
    """A line that comes in several texts, in parts that overlap."""
    rest = ""
    for text in texts:
        part, rest = _cut(rest + text)
        yield part
    if rest:
        yield rest


def _cut(text: str) -> tuple[str, str]:
    """A part of a line, and what it goes on with, which overlap. Where they can they end and begin beside a space or a
    quote: what stands beside a value counts.
    """
    near = max(0, len(text) - _OVERLAP)
    end = max((found.end() for found in _BORDER.finditer(text, near)), default=len(text))
    start = max(0, end - _OVERLAP)
    border = _BORDER.search(text, start, max(start, end - _OVERLAP // 2))
    return text[:end], text[border.start() if border else start :]


def _parts(file: BinaryIO, encoding: str) -> Iterator[str | None]:
    """Decoded parts that end with a line where they can; None where it is no text any more, which ends them."""
    decoder = codecs.getincrementaldecoder(encoding)()
    rest = ""
    while chunk := file.read(_CHUNK):
        try:
            text = rest + decoder.decode(chunk)
        except UnicodeDecodeError:
            if rest:
                yield rest
            yield None
            return
        end = text.rfind("\n")
        if end >= 0:
            yield text[:end]
        rest = text[end + 1 :]
        if len(rest) >= _CHUNK:
            part, rest = _cut(rest)
            yield part
    try:
        rest += decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        yield None
        return
    if rest:
        yield rest
