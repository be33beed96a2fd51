"""What personal identifiers look like: well-known patterns, with their checksums where they have one.

A checksum lets about a tenth of all numbers pass by chance, a pattern without one more: only the share of values that
match says something of a column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ebbtide.errors import SetupError

Test = Callable[[str], bool]

_EMAIL = re.compile(r"[^@\s\"<>(),;:]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_]{2,63}")
_AADHAAR = re.compile(r"[2-9]\d{3}[ -]?\d{4}[ -]?\d{4}", re.ASCII)
_PAN = re.compile(r"[A-Za-z]{5}\d{4}[A-Za-z]", re.ASCII)
_IBAN = re.compile(r"[A-Za-z]{2}\d{2}[ ]?[A-Za-z0-9 ]{11,37}", re.ASCII)
# Issuers: Visa, Mastercard, American Express, Diners, JCB, Discover, Maestro, UnionPay, RuPay.
_CARD = re.compile(
    r"(?:4|5[0-8]|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)|3[0-9]|6[0-9]|8[12])\d+", re.ASCII
)  # fmt: skip
# Whole numbers with a country's code, a mobile number of India, or a national number in its usual groups.
_PHONES = (
    re.compile(r"\+[1-9]\d{7,14}", re.ASCII),
    re.compile(r"[6-9]\d{9}", re.ASCII),
    re.compile(r"0\d{8,11}", re.ASCII),
)
_GROUPED = re.compile(r"(?:\+?\d{1,3}[ .-])?\(?\d{2,5}\)?(?:[ .-]\d{2,8}){1,4}", re.ASCII)
_BETWEEN = re.compile(r"[ ().-]")
_CARD_DIGITS, _PHONE_DIGITS = range(13, 20), range(9, 16)


def load_tests() -> Mapping[str, Test]:
    """The kinds of identifiers that can be told, each with its test; without python-stdnum a `SetupError`."""
    try:
        from stdnum import iban, luhn
        from stdnum.in_ import aadhaar, pan
    except ImportError:
        raise SetupError(
            "suggestions need python-stdnum, which is not installed", hint="install ebbtide[suggest]"
        ) from None

    def is_card(text: str) -> bool:
        digits = re.sub(r"[ -]", "", text)
        return len(digits) in _CARD_DIGITS and bool(_CARD.fullmatch(digits)) and luhn.is_valid(digits)

    return {
        "aadhaar": lambda text: bool(_AADHAAR.fullmatch(text)) and aadhaar.is_valid(text),
        "pan": lambda text: bool(_PAN.fullmatch(text)) and pan.is_valid(text),
        "iban": lambda text: bool(_IBAN.fullmatch(text)) and iban.is_valid(text),
        "card": is_card,
        "email": lambda text: bool(_EMAIL.fullmatch(text)),
        "phone": _is_phone,
    }


def _is_phone(text: str) -> bool:
    if any(pattern.fullmatch(text) for pattern in _PHONES):
        return True
    if not _GROUPED.fullmatch(text) or re.fullmatch(r"\d{4}-\d\d-\d\d|\d\d[.-]\d\d[.-]\d{4}", text):
        return False  # a date is written in groups, too
    return len(_BETWEEN.sub("", text).lstrip("+")) in _PHONE_DIGITS
