"""What is looked for: the values of people, in every way in which each may have been written down.

A value has text forms, which may stand in a text, and byte forms, which may stand in bytes of no known structure: its
text forms in several encodings, and what its declared types are as bytes. A form of fewer than six bytes that are not
trivial (0x00 and 0xff pad numbers) means nothing among unknown bytes: it stands there by chance. It is not searched for
there, and whoever has such a form cannot be told from such bytes (`is_short`).

`casefold` and `normalised-email` compare what is left when case (and, of the latter, white space around it) is taken
away, as requests do when they canonicalise a value.
"""

from __future__ import annotations

import base64
import html
import json
import re
import struct
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date as Day
from decimal import Context, Decimal, InvalidOperation
from enum import StrEnum
from urllib.parse import quote, quote_plus
from uuid import UUID

LEAST_BYTES = 6
"""How many bytes that are not trivial mean something among unknown ones, and how many characters inside of a text."""
_EXACT = Context(prec=100)
_DIGITS = re.compile(r"[1-9][0-9]{5,37}", re.ASCII)
_TRIVIAL = b"\x00\xff"
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_FLOAT = ("float", "double")
_URI = ";,/?:@&=+$-_.!~*'()#"
"""What JavaScript's `encodeURI` leaves as it is."""
_HIVE_ESCAPES = frozenset("\"#%'*/:=?\\\x7f{[]^" + "".join(map(chr, range(1, 32))))


class Rule(StrEnum):
    """What may stand beside a value without making another one of it (`matcher.py`)."""

    ANYTHING = "anything"
    NUMBER = "number"
    EMAIL = "email"


@dataclass(frozen=True, slots=True, repr=False)
class Needle:
    """One value of one person. `person` is an opaque id, `value` the canonical text, `types` those (as Spark SQL spells
    them) of the columns that the identity is declared for; `match` is exact, casefold or normalised-email.
    """

    person: str
    identity: str
    value: str
    types: frozenset[str]
    match: str = "exact"

    def __repr__(self) -> str:
        return f"Needle({self.person}, {self.identity}=<hidden>)"


@dataclass(frozen=True, slots=True, repr=False)
class Form:
    """One way to write a value. `fold` says that letters of either case are it."""

    content: bytes
    rule: Rule = Rule.ANYTHING
    fold: bool = False


def is_short(content: bytes) -> bool:
    """Whether it means nothing among unknown bytes."""
    return len(content.translate(None, _TRIVIAL)) < LEAST_BYTES


def number_of(needle: Needle) -> Decimal | None:
    """The value as a number, where one of its types is one."""
    if not any(each in (*_WHOLE, *_FLOAT) or each.startswith("decimal") for each in needle.types):
        return None
    try:
        number = Decimal(needle.value.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def digits_of(needle: Needle) -> Decimal | None:
    """The value as a number where it is nothing but digits, enough of them to mean something, whatever its types are:
    writers keep such identifiers as numbers, too.
    """
    if (number := number_of(needle)) is not None:
        return number
    return Decimal(needle.value) if _DIGITS.fullmatch(needle.value) else None


def unscaled(number: Decimal | None, scale: int) -> int | None:
    """What a decimal of this scale stores for a number; None where it cannot hold it."""
    if number is None:
        return None
    moved = number.scaleb(scale, _EXACT)
    return int(moved) if moved == moved.to_integral_value(context=_EXACT) else None


def uuid_of(needle: Needle) -> UUID | None:
    """The value as a UUID, where it is one. Its case and its dashes do not count."""
    if not re.fullmatch(r"\{?[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}\}?", needle.value.strip()):
        return None
    return UUID(needle.value.strip())


def day_of(needle: Needle) -> Day | None:
    """The value as a date, where one of its types is."""
    try:
        return Day.fromisoformat(needle.value) if "date" in needle.types else None
    except ValueError:
        return None


def plain_number(number: Decimal) -> str:
    """The one text of a number: no exponent, no sign where it is positive, no zeros that say nothing."""
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text if text not in ("", "-0") else "0"


def text_forms(needle: Needle) -> Iterator[Form]:
    """How the value may stand in a text: as it is, escaped, in hex, in base64."""
    text, rule, fold = _canonical(needle)
    yield Form(text.encode(), rule, fold)
    uuid = uuid_of(needle)
    if uuid is not None:
        yield Form(uuid.hex.encode(), fold=True)
    escaped = {text.replace("'", "''"), text.replace("'", "\\'"), text.replace('"', '""')}  # in SQL, and in CSV
    escaped |= {re.sub(r"[^0-9A-Za-z_]", lambda found: f"_x{ord(found[0]):X}", text)}  # Iceberg's names of columns
    escaped |= {unicodedata.normalize(each, text) for each in ("NFC", "NFD")}
    if fold:
        escaped |= set(_unfolded(text))
    # What stands for a letter in an escape is told in one case of that letter alone.
    for spelled in _spellings(text) if fold and not text.isascii() else (text,):
        escaped |= {*_in_json(spelled), *_in_addresses(spelled), *_in_html(spelled)}
    yield from (Form(each.encode(), rule, fold) for each in _told_apart(escaped - {text}, fold=fold))
    number = number_of(needle)
    if number is not None:
        yield from (Form(each.encode(), Rule.NUMBER, fold=True) for each in _scientific(number))
    for plain in _plain_bytes(needle, text, uuid):
        yield Form(plain.hex().encode(), fold=True)
        yield from map(Form, _base64(plain))


def byte_forms(needle: Needle) -> Iterator[Form]:
    """How the value may stand in bytes: all of its text forms, UTF-16, and what its types are."""
    yield from text_forms(needle)
    yield from other_byte_forms(needle)


def other_byte_forms(needle: Needle) -> Iterator[Form]:
    """The byte forms that are no text forms."""
    text, _, fold = _canonical(needle)
    for codec in ("utf-16-le", "utf-16-be"):
        yield Form(text.encode(codec), fold=fold and text.isascii())
    if not text.isascii():
        for spelled in _spellings(text) if fold else (text,):
            yield from (Form(spelled.encode(codec)) for codec in ("utf-16-le", "utf-16-be"))
            with suppress(UnicodeEncodeError):
                yield Form(spelled.encode("cp1252"))
    yield from map(Form, dict.fromkeys(binary_forms(needle)))


def binary_forms(needle: Needle) -> Iterator[bytes]:
    """The value as numbers, identifiers and dates are stored: what a whole binary cell may be."""
    uuid, number, day = uuid_of(needle), number_of(needle), day_of(needle)
    if uuid is not None:
        yield from (uuid.bytes, uuid.bytes_le, uuid.bytes[::-1])
    if (said := _said_in_hex(needle)) is not None:
        yield said
    if number is not None:
        yield from _number_bytes(needle, number)
    if day is not None:
        days = (day - Day(1970, 1, 1)).days
        yield from (days.to_bytes(4, order, signed=True) for order in ("little", "big"))


def _number_bytes(needle: Needle, number: Decimal) -> Iterator[bytes]:
    if number == number.to_integral_value():
        for size in (4, 8):
            if -(1 << 8 * size - 1) <= int(number) < 1 << 8 * size - 1:
                yield from (int(number).to_bytes(size, order, signed=True) for order in ("little", "big"))
    for precision, scale in _decimals(needle):
        if (whole := unscaled(number, scale)) is not None:
            yield from _twos_complement(whole, precision)
    if any(each in _FLOAT for each in needle.types):
        for kind in ("<d", ">d", "<f", ">f"):
            if Decimal(struct.unpack(kind, struct.pack(kind, float(number)))[0]) == number:
                yield struct.pack(kind, float(number))


def _twos_complement(whole: int, precision: int) -> Iterator[bytes]:
    """Two's complement as formats store decimals: as few bytes as will do, those of the precision, and sixteen."""
    least = (whole if whole >= 0 else ~whole).bit_length() // 8 + 1
    of_precision = next(n for n in range(1, 33) if 10**precision <= 1 << 8 * n - 1)
    yield from (whole.to_bytes(n, "big", signed=True) for n in sorted({least, of_precision, 16}) if n >= least)
    if least <= 16:
        yield whole.to_bytes(16, "little", signed=True)


def _decimals(needle: Needle) -> Iterator[tuple[int, int]]:
    for each in sorted(needle.types):
        if each.startswith("decimal"):
            said = [int(n) for n in re.findall(r"\d+", each)] or [10]
            yield said[0], said[1] if len(said) > 1 else 0


def _canonical(needle: Needle) -> tuple[str, Rule, bool]:
    """The text that is searched for, what must not stand beside it, and whether its case counts."""
    number, uuid = number_of(needle), uuid_of(needle)
    if uuid is not None:
        return str(uuid), Rule.ANYTHING, True
    if number is not None:
        return plain_number(number), Rule.NUMBER, False
    text = needle.value.strip() if needle.match == "normalised-email" else needle.value
    rule = Rule.NUMBER if re.fullmatch(r"[0-9]+", text) else Rule.ANYTHING
    rule = Rule.EMAIL if re.fullmatch(r"[^@\s]+@[^@\s]+", text) else rule
    return text, rule, needle.match != "exact"


def _said_in_hex(needle: Needle) -> bytes | None:
    """A value of a binary column that was written as `0x…`."""
    if "binary" not in needle.types or not re.fullmatch(r"0x([0-9a-fA-F]{2})+", needle.value):
        return None
    return bytes.fromhex(needle.value[2:])


def _plain_bytes(needle: Needle, text: str, uuid: UUID | None) -> Iterator[bytes]:
    """What may stand in hex or in base64, where that is long enough to mean something."""
    spelled = {text, text.casefold(), *_spellings(text)} if needle.match != "exact" else {text}
    packed = [] if uuid is None else [uuid.bytes]
    if (said := _said_in_hex(needle)) is not None:
        packed = [said]
    return (each for each in (*(each.encode() for each in sorted(spelled)), *packed) if not is_short(each))


def _base64(plain: bytes) -> Iterator[bytes]:
    """The characters that stand for these bytes whatever stands before and after them, in both alphabets."""
    for lead in range(3):
        packed = base64.b64encode(bytes(lead) + plain)
        core = packed[(0, 2, 3)[lead] : (lead + len(plain)) * 8 // 6]
        yield core
        if (other := core.translate(bytes.maketrans(b"+/", b"-_"))) != core:
            yield other


def _hive(text: str) -> str:
    """As Hive and Spark write a partition's value into a path."""
    return "".join(f"%{ord(each):02X}" if each in _HIVE_ESCAPES else each for each in text)


def _spellings(text: str) -> Iterator[str]:
    """A text that is compared whatever its case is, as people write it: small, large, and with large first letters."""
    mailbox, at, domain = text.partition("@")
    yield from dict.fromkeys((text, text.upper(), f"{mailbox.title()}{at}{domain}"))


def _told_apart(texts: Iterable[str], *, fold: bool) -> list[str]:
    """Each text once; where case does not count, one for all whose letters differ in it alone, as `Scanner` folds."""
    return list({"".join(map(_small, each)) if fold else each: each for each in sorted(texts)}.values())


def _small(letter: str) -> str:
    small = letter.lower()
    return small if len(small.encode("utf-8", "replace")) == len(letter.encode("utf-8", "replace")) else letter


def _in_json(text: str) -> Iterator[str]:
    """The escapes of JSON, also where a document lies in another one."""
    once = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    once |= {each.replace("/", "\\/") for each in once}
    # .NET, Gson, those that have `@` as \u0040, and those that leave letters and digits alone.
    for special in ("<>&'+\"", "<>&'=", "@/", "".join(each for each in text if not each.isalnum())):
        once |= {_for_html(text, special), _for_html(json.dumps(text)[1:-1], special.replace("\\", ""))}
    once |= {_unicode(each, str.upper) for each in once} | {_unicode(each, str.lower) for each in once}
    yield from once
    yield from (each.replace("\\", "\\\\").replace('"', '\\"') for each in once if "\\" in each)


def _in_addresses(text: str) -> Iterator[str]:
    """Percent-encoded: whole, as forms and JavaScript do it, as Hive names partitions, and twice."""
    once = quote(text, safe="")
    ways = (once, quote_plus(text), quote(text, safe="@"), quote(text, safe="!'()*"), quote(text, safe=_URI))
    for encoded in (*ways, _hive(text), quote(once)):
        yield from (encoded, re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), encoded))


def _in_html(text: str) -> Iterator[str]:
    """What HTML and XML have as entities."""
    once = html.escape(text)
    yield from (once, once.replace("&#x27;", "&#39;"), once.replace("&#x27;", "&apos;"), html.escape(text, quote=False))
    yield text.replace("@", "&#64;")


def _for_html(text: str, special: str) -> str:
    return "".join(f"\\u{ord(each):04X}" if each in special else each for each in text)


def _unfolded(text: str) -> Iterator[str]:
    """What is folded into a text in other ways than letter by letter: the sharp s, and the sigma that ends a word."""
    yield text.replace("ss", "\xdf")
    yield text.replace("ss", "\u1e9e")
    yield re.sub("\u03c3(?!\\w)", "\u03c2", text)
    yield text.replace("i\u0307", "\u0130")


def _scientific(number: Decimal) -> Iterator[str]:
    """A large number that became a float, as the JVM, Python and C write it: `1.2345678E7`, `1.2345678e+07`."""
    whole, _, fraction = format(abs(number), "f").partition(".")
    if len(whole) >= 8:
        start = f"{'-' if number < 0 else ''}{whole[0]}.{(whole[1:] + fraction).rstrip('0') or '0'}e"
        exponent = len(whole) - 1
        yield from dict.fromkeys((f"{start}{exponent}", f"{start}+{exponent}", f"{start}+{exponent:02}"))


def _unicode(text: str, case: Callable[[str], str]) -> str:
    return re.sub(r"\\u[0-9A-Fa-f]{4}", lambda found: "\\u" + case(found[0][2:]), text)
