"""Values of people who do not exist, and pieces to look for them in."""

from __future__ import annotations

import pyarrow as pa

from ebbtide.verify.matcher import Matcher, ObjectFindings
from ebbtide.verify.needles import Needle
from ebbtide.verify.read.pieces import Cells, Piece, Raw

LONG = "person-7f3a-of-forty-characters-in-all-xx"


def needle(value: str, *types: str, match: str = "exact", person: str = "p1") -> Needle:
    return Needle(person, "user_id", value, frozenset(types or ("string",)), match)


NUMBER = needle("8841302", "bigint", "string")
EMAIL = needle("anna@x.de")
UUID = needle("0b5c9e1a-7f3d-4c1e-9a52-1f0e6d8c7b3a", "string", "binary")


def search(wanted: Needle, *pieces: Piece) -> ObjectFindings:
    return Matcher([wanted]).search(iter(pieces))


def is_found(wanted: Needle, values: pa.Array) -> bool | None:
    """Whether it is found in cells of rows; None where that cannot be told."""
    return _told(wanted, search(wanted, Cells("column c", "row", values)))


def in_bytes(wanted: Needle, data: bytes) -> bool | None:
    return _told(wanted, search(wanted, Raw("file", data, 0)))


def _told(wanted: Needle, findings: ObjectFindings) -> bool | None:
    if findings.found:
        return True
    is_open = bool(findings.untold) or (findings.unknown_bytes and bool(Matcher([wanted]).short))
    return None if is_open else False
