"""Values that tell people apart: the one spelling of each, by the types of the columns that it stands in (spec §4).

The same person is a bigint here and a text there, so a value is canonical text, and only text that every declared
column can hold is taken. Nothing here says a value: an error names the identity and the type.
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from uuid import UUID

from ebbtide.config.subjects import Match, Subject
from ebbtide.errors import InputError

_INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_WORDS = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint", "bytes": "binary",
          "varbinary": "binary", "varchar": "string", "char": "string"}  # fmt: skip
_TEXTS = ("string",)
_TYPE = re.compile(
    r"(?<![\w`])(decimal\(\d+, ?\d+\)|fixed\[\d+\]|uuid|date|long|bigint|integer|int|smallint|short|tinyint|byte"
    r"|(?:var)?(?:binary|char)(?:\(\d+\))?|bytes|string|boolean|float|double|real|timestamp\w*|time)(?![\w`]|\s*:)"
)
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS = 38
_NOBODY = frozenset({"null", "none", "nan", "undefined", "\\n"})


@dataclass(frozen=True, slots=True)
class DeclaredIdentity:
    """An identity as its columns have it: the types, as Spark SQL spells them, that its values must fit. `around` are
    those in nested columns around it, one or another of which may be its own. `more` says that there may be others: a
    table that has it was dropped, or could never be read.
    """

    subject: Subject
    types: frozenset[str]
    around: frozenset[str] = frozenset()
    more: bool = False

    def types_of(self, value: str) -> frozenset[str]:
        """The types that this value may be stored as."""
        return self.types | {each for each in self.around if form(each, value) is not None}


def types_in(native: str) -> frozenset[str]:
    """Every type of values in a column's type, spelled as Spark does but for `uuid`; those inside of a nested type."""
    found = (match[0].replace(" ", "") for match in _TYPE.finditer(native.lower()))
    return frozenset(_as_spark(name) for name in found)


def _as_spark(name: str) -> str:
    if name.startswith("fixed"):
        return "binary"
    plain = name.partition("(")[0]
    return name if plain == "decimal" else _WORDS.get(plain, plain)


def canonical(declared: DeclaredIdentity, text: str) -> str:
    """The one spelling of a value. What a declared column cannot hold is an `InputError` that does not say it."""
    name = declared.subject.name
    stripped = text.strip()
    if not stripped:
        raise InputError(f"{name}: an empty value", hint="write identity=value")
    if is_nobody(text):
        raise InputError(f"{name}: a value that stands for nobody", hint="NULL is no person: leave the identity out")
    if stripped[0] in "*%" or stripped[-1] in "*%" or not text.isprintable():
        raise InputError(f"{name}: a pattern instead of a value", hint="name one person: wildcards match nobody")
    forms: dict[str, str] = {}
    for type_ in sorted(declared.types):
        found = form(type_, text)
        if found is None:
            raise InputError(
                f"{name}: a value that is not of its column's type, {type_}", where=None, hint=_hint_for(type_)
            )
        forms[type_] = found
    told = [found for type_, found in forms.items() if type_ not in _TEXTS]
    return matched(declared.subject.match, told[0] if told else text)


def is_nobody(text: str) -> bool:
    """Whether a value is what people write where there is none."""
    return not text.strip() or text.strip().lower() in _NOBODY


def form(type_: str, text: str) -> str | None:
    """The text of a value in a column of this type; None where such a column cannot hold it."""
    if type_ in _TEXTS:
        return text
    if type_ in _INTEGERS:
        return _integer(text, _INTEGERS[type_])
    if match := _DECIMAL.fullmatch(type_):
        return _decimal(text, int(match[1]), int(match[2]))
    if type_ == "uuid":
        return _uuid(text)
    if type_ == "binary":
        return _uuid(text) or text
    return _day(text) if type_ == "date" else None


def _integer(text: str, bits: int) -> str | None:
    try:
        value = int(text) if set(text.strip()) <= {*string.digits, "+", "-"} else None
    except ValueError:
        return None
    return str(value) if value is not None and -(1 << bits - 1) <= value < 1 << bits - 1 else None


def _decimal(text: str, precision: int, scale: int) -> str | None:
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        return None
    if not value.is_finite() or abs(value.adjusted()) > _MOST_DIGITS:
        return None
    plain = format(value.normalize(), "f")
    whole, _, fraction = plain.lstrip("-").partition(".")
    fits = len(fraction) <= scale and len(whole.lstrip("0")) <= precision - scale
    return ("0" if not value else plain) if fits else None


def _uuid(text: str) -> str | None:
    try:
        return str(UUID(text.strip()))
    except ValueError:
        return None


def _day(text: str) -> str | None:
    try:
        return date.fromisoformat(text.strip()).isoformat()
    except ValueError:
        return None


def _hint_for(type_: str) -> str:
    if type_ in _INTEGERS:
        return f"write a whole number of {_INTEGERS[type_]} bits"
    hints = {"uuid": "write it as 8-4-4-4-12 hexadecimal digits", "date": "write 2026-11-15"}
    if type_.startswith("decimal"):
        return "write a number that fits, in digits"
    return hints.get(type_, f"a column of the type {type_} tells nobody apart: name another one in subjects.yml")


def matched(match: Match, text: str) -> str:
    """What is compared of a value: all values that count as the same person have the same."""
    if match == "exact":
        return text
    return text.strip().casefold() if match == "normalised-email" else text.casefold()


def bytes_of(value: str) -> Collection[bytes]:
    """What a binary column holds of a value: the 16 bytes of a UUID, or the text's own."""
    plain = _uuid(value)
    return (value.encode(),) if plain is None else (UUID(plain).bytes, value.encode())
