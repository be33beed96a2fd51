"""What stands beside a value may make another one of it: 8841302 is not in 18841302, and anna@x.de not in johanna@x.de.

Read beside each other:

1. A number ends where its digits end: a digit before it (zeros that lead are none) or after it (zeros that end a
   fraction are none) makes another number. So does the fraction of a second before it, and standing inside of a UUID or
   of sixteen hexadecimal digits. Behind a comma a time may have its fraction, of three, six or nine digits, or a line
   its next cell: nobody can tell.
2. A point between it and other digits may be a number's or a name's: nobody can tell (`.0` after it says nothing).
3. An address goes on to the left and to the right with letters and digits of ASCII. Other letters may be an address's
   or those of a text without spaces, and what else a mailbox or a domain may have there (`j.anna@x.de`,
   `anna@x.de.com`) may be a file's name as well: nobody can tell. Quotes, spaces and dashes of any kind end it.
4. What is escaped before it (`%20`, `\\u0020`, `\\n`) ends, whatever its last character is. A `=20` may be that of a
   mail, or the start of a value behind its name: nobody can tell, but in a path, where it is no mail's.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum

from ebbtide.verify.needles import Rule

AROUND = 40
"""How many bytes on either side are looked at."""
_ESCAPED = re.compile(rb"(?:%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[abefnrtv])\Z")
_QUOTED = re.compile(rb"=[0-9A-F]{2}\Z")
_QUOTED_SIGN = (b"=3D", b"=0A", b"=0D")
_QUOTED_CONTROL = re.compile(rb"=(?:0[0-8]|1[0-9])\Z")
"""Two digits that no text has as a character: they belong to the number."""
_SECONDS = re.compile(rb":[0-5][0-9]\.\Z")
_SECONDS_OR_CELL = re.compile(rb":[0-5][0-9],\Z")
_OF_SECONDS = (3, 6, 9)
_POINT_BEFORE = re.compile(rb"[0-9]\.\Z")
_POINT_AFTER = re.compile(rb"\.[0-9]")
_NOTHING_AFTER = re.compile(rb"\.0+(?![0-9])")
_FRACTION = re.compile(rb"-?[0-9]+\.[0-9]+")
_UUID = re.compile(rb"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
_HEX = re.compile(rb"(?=[0-9]*[A-Fa-f])[0-9A-Fa-f]{16,}")
_MAILBOX = re.compile(rb"[._%+\-]\Z")
_DOMAIN = re.compile(rb"[.\-][A-Za-z0-9]")


class Verdict(StrEnum):
    """Whether a value stands there: it does, another one does, or nobody can tell."""

    IT = "it"
    ANOTHER = "another"
    UNKNOWN = "unknown"


def judge(rule: Rule, before: bytes, value: bytes, after: bytes, *, is_path: bool = False) -> Verdict:
    """What stands there, by what stands around it."""
    if rule is Rule.ANYTHING:
        return Verdict.IT
    if _ESCAPED.search(before):
        before = b""
    verdict = _judge(rule, before, value, after)
    if verdict is not Verdict.ANOTHER or is_path or not _QUOTED.search(before):
        return verdict
    if rule is Rule.NUMBER and _QUOTED_CONTROL.search(before):
        return verdict
    is_sign = before.endswith(_QUOTED_SIGN) or (rule is Rule.NUMBER and not before[-2:].isdigit())
    quoted = _judge(rule, b"", value, after)
    return Verdict.UNKNOWN if quoted is Verdict.IT and not is_sign else quoted


def is_word(before: bytes, after: bytes) -> bool:
    """Whether it may stand by itself: beside it is nothing that its own word would go on with."""
    return not any(each == "_" or _is_letter(each) for each in (_last(before), _first(after)))


def _judge(rule: Rule, before: bytes, value: bytes, after: bytes) -> Verdict:
    return _number(before, value, after) if rule is Rule.NUMBER else _email(before, after)


def _email(before: bytes, after: bytes) -> Verdict:
    beside = (_last(before), _first(after))
    if any(each.isascii() and each.isalnum() for each in beside):
        return Verdict.ANOTHER
    if any(map(_is_alphanumeric, beside)):
        return Verdict.UNKNOWN
    return Verdict.UNKNOWN if _MAILBOX.search(before) or _DOMAIN.match(after) else Verdict.IT


def _number(before: bytes, value: bytes, after: bytes) -> Verdict:
    leading = before.rstrip(b"0")
    if _FRACTION.fullmatch(value):
        after = after.lstrip(b"0")
    if leading[-1:].isdigit() or after[:1].isdigit() or _SECONDS.search(leading):
        return Verdict.ANOTHER
    around, at = before + value + after, len(before)
    for longer in (_UUID, _HEX):
        if any(each.start() <= at and at + len(value) <= each.end() for each in longer.finditer(around)):
            return Verdict.ANOTHER
    if _POINT_BEFORE.search(leading) or (_POINT_AFTER.match(after) and not _NOTHING_AFTER.match(after)):
        return Verdict.UNKNOWN
    digits = len(before) - len(leading) + len(value)
    return Verdict.UNKNOWN if _SECONDS_OR_CELL.search(leading) and digits in _OF_SECONDS else Verdict.IT


def _last(before: bytes) -> str:
    """The last character; of bytes that are no text, the replacement character."""
    return before[-4:].decode(errors="replace")[-1:]


def _first(after: bytes) -> str:
    return after[:4].decode(errors="replace")[:1]


def _is_alphanumeric(character: str) -> bool:
    """Whether it is a letter or a digit of any alphabet, the mark of one, or no character that is known."""
    return character == "\ufffd" or character.isalnum() or unicodedata.category(character or " ")[0] == "M"


def _is_letter(character: str) -> bool:
    """Whether it makes one word with letters of ASCII: other alphabets' letters may stand beside it without a space."""
    if character.isascii():
        return character.isalnum()
    return _is_alphanumeric(character) and unicodedata.name(character, "").startswith(("LATIN", "COMBINING"))
