"""What stands beside a value makes it another one, or does not, or leaves it open."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ebbtide.verify.matcher import Matcher
from ebbtide.verify.read.pieces import Cells, Raw
from tests.verify.people import EMAIL, NUMBER, in_bytes, is_found, needle, search

HALF = needle("1234567.5", "decimal(12,2)")


def in_path(wanted: object, segment: str) -> bool | None:
    findings = search(wanted, Cells("path", "path", pa.array([segment])))  # type: ignore[arg-type]
    return True if findings.found else None if findings.untold else False


def test_a_cell_behind_a_clock_time_is_no_fraction_of_its_seconds() -> None:
    assert is_found(NUMBER, pa.array(["2024-01-01 12:34:56,8841302,login"])) is True
    assert is_found(NUMBER, pa.array(["2026-11-18T22:15:07,8841302"])) is True
    assert is_found(NUMBER, pa.array(["12:34:56.8841302"])) is False
    assert is_found(NUMBER, pa.array(["12:34:56.008841302"])) is False


def test_a_value_as_long_as_a_fraction_of_seconds_is_left_open_behind_a_comma() -> None:
    for value in ("123456", "123456789"):
        assert is_found(needle(value, "bigint"), pa.array([f"12:34:56,{value} login"])) is None
    assert is_found(NUMBER, pa.array(["12:34:56,008841302 login"])) is None
    assert is_found(needle("12345678", "bigint"), pa.array(["12:34:56,12345678"])) is True


@pytest.mark.parametrize(
    "text",
    ["E-Mail:\u00a0anna@x.de", "\u201canna@x.de\u201d", "\u00abanna@x.de\u00bb", "\u90ae\u7bb1\uff1aanna@x.de",
     "Anna\u2014anna@x.de", "anna@x.de\u2026", "\u3000anna@x.de\u3002"],
)  # fmt: skip
def test_quotes_spaces_and_dashes_of_any_kind_end_an_address(text: str) -> None:
    assert is_found(EMAIL, pa.array([text])) is True


@pytest.mark.parametrize(
    "text", ["\u8bf7\u8054\u7cfbanna@x.de\u8c22\u8c22", "\u00fcanna@x.de", "e\u0301anna@x.de", "anna@x.de\u8c22"]
)
def test_a_letter_of_another_alphabet_beside_an_address_leaves_it_open(text: str) -> None:
    assert is_found(EMAIL, pa.array([text])) is None


def test_half_a_character_beside_an_address_leaves_it_open() -> None:
    assert in_bytes(EMAIL, b"\x01\xfcanna@x.de\x01") is None
    assert in_bytes(EMAIL, b"\x01\xc2\xa0anna@x.de\x01") is True


def test_a_short_word_is_told_from_letters_of_its_own_alphabet_alone() -> None:
    meier = needle("Meier")
    for text in ("\u201cMeier\u201d", "\u8bf7\u8054\u7cfbMeier\u8c22", "Meier\u00a0"):
        assert is_found(meier, pa.array([text])) is None
    for text in ("Obermeier Meiers", "\u00c4Meier", "Meiere\u0301"):
        assert is_found(meier, pa.array([text])) is False


@pytest.mark.parametrize("lead", ["1", "12", "29", "41", "123"])
def test_digits_behind_the_name_of_a_partition_are_its_values_own(lead: str) -> None:
    assert in_path(NUMBER, f"user_id={lead}8841302") is False
    assert not Matcher([NUMBER]).holds(f"/lake/t/user_id={lead}8841302/a.parquet")
    assert in_path(NUMBER, "user_id=8841302") is True


def test_what_a_mail_may_have_quoted_leaves_a_value_open() -> None:
    for text in ("user_id=208841302", "user_id=998841302"):
        assert is_found(NUMBER, pa.array([text])) is None
    assert is_found(NUMBER, pa.array(["user_id=128841302"])) is False  # no text has the character 12
    assert is_found(NUMBER, pa.array(["user=3D8841302"])) is True
    assert is_found(NUMBER, pa.array(["Stra=C3=9F8841302"])) is True
    assert is_found(EMAIL, pa.array(["to=3Danna@x.de"])) is True
    assert is_found(EMAIL, pa.array(["email=20anna@x.de"])) is None
    assert in_path(EMAIL, "email=20anna@x.de") is False


def test_zeros_that_end_a_fraction_belong_to_it() -> None:
    for text in ("1234567.50", "a,1234567.500,b", "+1234567.5000000000"):
        assert is_found(HALF, pa.array([text])) is True
    for text in ("1234567.51", "1234567.505", "01234567.59", "91234567.50"):
        assert is_found(HALF, pa.array([text])) is False
    assert in_path(HALF, "amount=1234567.50") is True
    assert in_path(HALF, "amount=1234567.51") is False
    assert is_found(needle("12345678", "bigint"), pa.array(["1.2345678E70"])) is not True


def test_a_number_behind_a_point_and_zeros_is_left_open() -> None:
    assert is_found(NUMBER, pa.array(["0.008841302"])) is None


def test_a_fraction_that_became_a_float_is_found_as_floats_are_written() -> None:
    assert is_found(needle("12345678.5", "decimal(12,2)"), pa.array(["x 1.23456785E7 y"])) is True
    assert is_found(needle("12345678.5", "decimal(12,2)"), pa.array(["x 1.234567851E7 y"])) is not True


def test_what_stands_beside_a_value_counts_across_two_chunks_of_bytes() -> None:
    data = b"\x01" * 50 + b"johanna@x.de" + b"\x01" * 50 + b"anna@x.dev" + b"\x01" * 50
    for at in range(40, len(data)):
        pieces = (Raw("file", data[:at], 0), Raw("file", data[at:], at))
        findings = search(EMAIL, *pieces)
        assert not findings.found, at
        assert findings.untold
    whole = b"\x01" * 50 + b"anna@x.de" + b"\x01" * 50
    for at in range(40, len(whole)):
        assert search(EMAIL, Raw("file", whole[:at], 0), Raw("file", whole[at:], at)).found
    assert search(EMAIL, Raw("a", b"anna@x.de", 0), Raw("b", b"anna@x.de", 0)).found == {
        (0, "bytes", "a"),
        (0, "bytes", "b"),
    }
    assert search(EMAIL, Raw("a", b"anna@x.de", 0), Raw("a", b"v", 0)).found  # another of that name begins
