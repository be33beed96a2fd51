"""What stands beside a value may make another one of it: 8841302 is not in 18841302, and anna@x.de not in johanna@x.de.

Read beside each other (a text's characters are bytes here, all that counts is ASCII):

1. A number ends where its digits end: a digit before it (zeros that lead are none) or after it makes another number.
   So does the fraction of a second before it, and standing inside of a UUID or of sixteen hexadecimal digits.
2. A point between it and other digits may be a number's or a name's: nobody can tell (`.0` after it says nothing).
3. An address goes on to the left and to the right with letters and digits. What else a mailbox or a domain may have
   there (`j.anna@x.de`, `anna@x.de.com`) may be a file's name as well: nobody can tell.
4. What is escaped before it (`%20`, `\\u0020`, `\\n`) ends, whatever its last character is.
"""

from __future__ import annotations

import re
from enum import StrEnum

from ebbtide.verify.needles import Rule

AROUND = 40
"""How many bytes on either side are looked at."""
_ESCAPED = re.compile(rb"(?:%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[abefnrtv]|=[0-9A-F]{2})\Z")
_SECONDS = re.compile(rb":[0-5][0-9][.,]\Z")
_POINT_BEFORE = re.compile(rb"[0-9]\.\Z")
_POINT_AFTER = re.compile(rb"\.[0-9]")
_NOTHING_AFTER = re.compile(rb"\.0+(?![0-9])")
_UUID = re.compile(rb"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
_HEX = re.compile(rb"(?=[0-9]*[A-Fa-f])[0-9A-Fa-f]{16,}")
_LETTER = re.compile(rb"[A-Za-z0-9\x80-\xff]")
_MAILBOX = re.compile(rb"[._%+\-]\Z")
_DOMAIN = re.compile(rb"[.\-][A-Za-z0-9]")
_WORD = re.compile(rb"[A-Za-z0-9_\x80-\xff]")


class Verdict(StrEnum):
    """Whether a value stands there: it does, another one does, or nobody can tell."""

    IT = "it"
    ANOTHER = "another"
    UNKNOWN = "unknown"


def judge(rule: Rule, before: bytes, value: bytes, after: bytes) -> Verdict:
    """What stands there, by what stands around it."""
    if _ESCAPED.search(before):
        before = b""
    if rule is Rule.NUMBER:
        return _number(before, value, after)
    return _email(before, after) if rule is Rule.EMAIL else Verdict.IT


def is_word(before: bytes, after: bytes) -> bool:
    """Whether it stands by itself, between characters that belong to no word."""
    return not _WORD.search(before[-1:]) and not _WORD.match(after)


def _email(before: bytes, after: bytes) -> Verdict:
    if _LETTER.search(before[-1:]) or _LETTER.match(after):
        return Verdict.ANOTHER
    return Verdict.UNKNOWN if _MAILBOX.search(before) or _DOMAIN.match(after) else Verdict.IT


def _number(before: bytes, value: bytes, after: bytes) -> Verdict:
    leading = before.rstrip(b"0")
    if leading[-1:].isdigit() or after[:1].isdigit() or _SECONDS.search(before):
        return Verdict.ANOTHER
    around, at = before + value + after, len(before)
    for longer in (_UUID, _HEX):
        if any(each.start() <= at and at + len(value) <= each.end() for each in longer.finditer(around)):
            return Verdict.ANOTHER
    if _POINT_BEFORE.search(before) or (_POINT_AFTER.match(after) and not _NOTHING_AFTER.match(after)):
        return Verdict.UNKNOWN
    return Verdict.IT
