"""Canonical JSON: one value, one text (spec §5, RFC 8785)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.errors import InputError
from ebbtide.model.canonical import (
    MAX_DEPTH,
    MAX_INTEGER,
    MAX_LEAF_BYTES,
    base64_bytes,
    base64_text,
    dumps,
    dumps_leaf,
    loads_canonical,
    parse_timestamp,
    timestamp,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
KEY = st.text(st.characters(max_codepoint=127))
VALUES = st.recursive(
    st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEY, inner, max_size=5),
    max_leaves=20,
)


def test_strings_are_escaped_as_in_the_example_of_rfc_8785_section_3_2_2() -> None:
    # The `string` member of the RFC's example; its numbers are floats and its literals hold a null.
    value = "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/"
    expected = b'{"string":"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'  # euro sign as UTF-8, lower-case escapes
    assert dumps({"string": value}) == expected


def test_every_control_character_has_the_one_escape_of_rfc_8785() -> None:
    short = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}
    for code in range(0x20):
        assert dumps(chr(code)).decode() == '"' + short.get(code, f"\\u{code:04x}") + '"'
    for character in "\x7f\u0080\u2028\u2029\ufeff/":
        assert dumps(character) == f'"{character}"'.encode()


def test_keys_are_sorted_by_their_bytes_at_every_level() -> None:
    assert dumps({"b": {"z": 1, "": 2, "A": 3, "a": 4, "1": 5, "10": 6}, "a": [True, False]}) == (
        b'{"a":[true,false],"b":{"":2,"1":5,"10":6,"A":3,"a":4,"z":1}}'
    )


@settings(deadline=None)
@given(VALUES)
def test_what_is_written_is_read_back_and_reads_alike_elsewhere(value: object) -> None:
    data = dumps(value)
    assert loads_canonical(data, limit=len(data)) == value == json.loads(data)


@settings(deadline=None)
@given(VALUES)
def test_any_other_text_of_the_same_value_is_refused(value: object) -> None:
    data = dumps(value)
    others = {json.dumps(value).encode(), json.dumps(value, indent=1).encode(), data + b"\n", b" " + data}
    for other in others - {data}:
        with pytest.raises(InputError):
            loads_canonical(other, limit=2 * len(other))


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_canonical_or_refused(data: bytes) -> None:
    try:
        value = loads_canonical(data)
    except InputError:
        return
    assert dumps(value) == data


@pytest.mark.parametrize("number", [2**53, -(2**53), 2**63 - 1, 10**400])
def test_integers_that_other_languages_round_are_refused(number: int) -> None:
    with pytest.raises(InputError, match="integer beyond"):
        dumps({"snapshot": number})
    with pytest.raises(InputError, match="integer beyond"):
        loads_canonical(b'{"snapshot":%d}' % number)


@pytest.mark.parametrize("number", [MAX_INTEGER, -MAX_INTEGER, 0])
def test_the_largest_exact_integers_are_kept(number: int) -> None:
    assert loads_canonical(dumps([number])) == [number]


def test_64_bit_ids_survive_as_strings() -> None:
    assert dumps({"id": "-9223372036854775808"}) == b'{"id":"-9223372036854775808"}'


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        float("nan"),
        float("inf"),
        None,
        b"x",
        {1: 2},
        {"é": 1},
        {"a": {None: 1}},
        {1, 2},
        datetime.now(UTC),
        object(),
    ],
)
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(InputError):
        dumps({"inner": [value]})


@pytest.mark.parametrize(
    "text",
    [
        *('{"a":1.0}', '{"a":1e3}', '{"a":NaN}', '{"a":-Infinity}', '{"a":null}', '{"a":-0}', '{"a":01}', '{"é":1}'),
        *('{"b":1,"a":2}', '{"a":1, "b":2}', '"\\u0041"', '"\\/"', '"\\u000F"', '"\\ud83d\\ude00"', "\ufeff{}"),
        *("", "{", "1 2", "nul"),
    ],
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        loads_canonical(text.encode())


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '{"a":1,"b":{"c":1,"c":2}}', '{"a":1,"\\u0061":1}'])
def test_a_key_that_occurs_twice_is_refused_by_name(text: str) -> None:
    with pytest.raises(InputError, match="twice"):
        loads_canonical(text.encode())


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\ude00\ud83d"])
def test_lone_surrogates_are_refused_written_and_read(text: str) -> None:
    with pytest.raises(InputError, match="surrogate"):
        dumps({"path": text})
    with pytest.raises(InputError, match="surrogate"):
        loads_canonical(json.dumps({"path": text}).encode())
    with pytest.raises(InputError, match="not UTF-8"):
        loads_canonical(b'"' + text.encode("utf-8", "surrogatepass") + b'"')


def test_unicode_is_kept_as_it_is_and_never_normalised() -> None:
    composed, decomposed = "\u00e9", "e\u0301"
    assert dumps(composed) != dumps(decomposed)
    assert loads_canonical(dumps(["😀", "\U0010ffff", "\x00", composed, decomposed])) == [
        "😀", "\U0010ffff", "\x00", composed, decomposed,
    ]  # fmt: skip


def test_a_leaf_has_at_most_60000_bytes() -> None:
    overhead = len(dumps({"a": ""}))
    assert len(dumps_leaf({"a": "x" * (MAX_LEAF_BYTES - overhead)})) == MAX_LEAF_BYTES == 60_000
    with pytest.raises(InputError, match="60001 bytes"):
        dumps_leaf({"a": "x" * (MAX_LEAF_BYTES - overhead + 1)})
    with pytest.raises(InputError, match="too long"):
        loads_canonical(dumps({"a": "x" * MAX_LEAF_BYTES}))


def test_very_long_lists_are_written_and_read() -> None:
    value = {"files": [f"part-{number:08}.parquet" for number in range(200_000)]}
    data = dumps(value)
    assert loads_canonical(data, limit=len(data)) == value


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 1_000, 30_000])
def test_nesting_is_bounded(depth: int) -> None:
    with pytest.raises(InputError, match="nested deeper"):
        loads_canonical(b"[" * depth + b"]" * depth, limit=2 * depth)
    assert loads_canonical(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)


def test_an_error_never_shows_a_value() -> None:
    for value in ("secret\ud800", ["secret", 1.5], {"user_id": ("secret", None)}):
        with pytest.raises(InputError) as caught:
            dumps({"user_id": value})
        assert "secret" not in f"{caught.value!r} {caught.value.hint}"


def test_times_are_written_in_utc_with_microseconds() -> None:
    noon = datetime(2026, 1, 31, 12, 0, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert timestamp(noon) == "2026-01-31T06:30:00.000000Z"
    assert parse_timestamp("2026-01-31T06:30:00.000000Z") == noon
    with pytest.raises(InputError, match="time zone"):
        timestamp(datetime(2026, 1, 31))  # noqa: DTZ001


@settings(deadline=None)
@given(st.datetimes(timezones=st.just(UTC)))
def test_every_time_is_read_back(moment: datetime) -> None:
    assert parse_timestamp(timestamp(moment)) == moment


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T06:30:00Z",
        "2026-01-31T06:30:00.000000+00:00",
        "2026-01-31 06:30:00.000000Z",
        "2026-02-30T00:00:00.000000Z",
        "2026-01-31T06:30:00.000000",
        "20260131T063000.000000Z",
        "0001-01-01T00:00:00.000000+23:59",
        "2026-01-31",
        "",
    ],
)
def test_other_ways_to_write_a_time_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_timestamp(text)


@settings(deadline=None)
@given(st.binary())
def test_base64_has_one_text_for_the_same_bytes(data: bytes) -> None:
    text = base64_text(data)
    assert base64_bytes(text) == data
    for other in (text + "\n", text + "=", " " + text, text.rstrip("=") + "!"):
        with pytest.raises(InputError):
            base64_bytes(other)


@pytest.mark.parametrize("text", ["AR==", "AB==", "AAB=", "A", "AA", "AA=", "A===", "_w==", "é", "\udc80AAA"])
def test_base64_with_stray_bits_or_cut_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        base64_bytes(text)
