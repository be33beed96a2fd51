"""What the tests of readers share: an object read from memory, and a slow search that knows nothing of formats."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any

from ebbtide.verify.read.objects import read_object
from ebbtide.verify.read.pieces import CannotTell, Cells, Piece, Raw


def pieces_of(content: bytes, name: str) -> list[Piece]:
    return list(read_object(name, len(content), lambda: io.BytesIO(content)))


def reasons(pieces: Iterable[Piece]) -> list[str]:
    """Why something was not read, and the bytes of no known structure: a file that is understood has neither."""
    told = [piece.because for piece in pieces if isinstance(piece, CannotTell)]
    return told + [f"bytes: {piece.where}" for piece in pieces if isinstance(piece, Raw)]


def places(pieces: Iterable[Piece], value: str | bytes | int | Decimal | date, how: str = "") -> set[str]:
    """The places where a value stands: whole, within a text or a binary, or among bytes that are put together."""
    found = set()
    raw: dict[str, bytes] = {}
    for piece in pieces:
        if isinstance(piece, Cells) and piece.how.startswith(how):
            if any(_is_in(value, each) for each in piece.values.to_pylist()):
                found.add(piece.where)
        elif isinstance(piece, Raw):
            raw[piece.where] = raw.get(piece.where, b"") + piece.data
    encoded = _bytes(value)
    return found | {where for where, content in raw.items() if encoded and encoded in content}


def _is_in(value: Any, cell: Any) -> bool:
    if isinstance(value, str) and isinstance(cell, str):
        return value in cell
    if isinstance(value, str | bytes) and isinstance(cell, bytes):
        return bool(_bytes(value)) and _bytes(value) in cell
    if isinstance(value, bool) or isinstance(cell, bool):
        return False
    return type(value) is type(cell) and bool(value == cell)


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else b""


def whole_numbers(pieces: Iterable[Piece]) -> Counter[int]:
    return Counter(
        each
        for piece in pieces
        if isinstance(piece, Cells)
        for each in piece.values.to_pylist()
        if isinstance(each, int) and not isinstance(each, bool)
    )
