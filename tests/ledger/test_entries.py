"""Typed entries: one leaf each, and nothing of a person in any of them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from ebbtide.errors import InputError
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import KINDS, Files, Outcome, attachments_of, parse_entry, salted
from ebbtide.ledger.leaf import read_body
from ebbtide.ledger.request_entries import Verified
from ebbtide.model.canonical import dumps
from tests.ledger.samples import ALL, AT, FILES, hold, intent


def test_there_is_a_sample_of_every_kind() -> None:
    assert {type(entry) for entry in ALL} == set(KINDS.values())


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.KIND)
def test_an_entry_comes_back_from_its_leaf(entry: Entry) -> None:
    for given in (entry, replace(entry, simulated=True)):
        assert parse_entry(given.encode()) == given
        body = read_body(given.encode())
        assert (body["kind"], body["v"], body["at"]) == (entry.KIND, 1, "2026-11-15T09:00:00.000007Z")
        assert body.get("simulated") is (True if given.simulated else None)


def test_what_has_no_value_is_left_out() -> None:
    body = json.loads(intent("a").encode())
    assert set(body) == {"v", "kind", "at", "act", "verb", "dataset", "object", "fence"}
    assert json.loads(replace(hold(), dataset=None).encode()).keys().isdisjoint({"dataset", "commitments"})


def test_zero_is_a_value() -> None:
    found = next(entry for entry in ALL if isinstance(entry, Verified))
    assert json.loads(found.encode())["found"] == 0


def test_a_64_bit_id_is_text_in_the_leaf() -> None:
    assert json.loads(intent("a").encode())["object"] == "9223372036854775807"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "hold.unheard"},
        {"unheard": "x"},
        {"hold": 7},
        {"hold": True},
        {"first_day": "2026-1-1"},
        {"first_day": "20260101"},
        {"last_day": "2026-02-30"},
        {"commitments": "aa"},
        {"commitments": [1]},
        {"commitments": []},
        {"at": "2026-11-15T09:00:00Z"},
        {"v": 2},
        {"simulated": False},
    ],
)
def test_a_leaf_that_ebbtide_would_not_write_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        parse_entry(dumps(json.loads(hold().encode()) | change))


@pytest.mark.parametrize("key", ["hold", "scope", "owner", "reason", "at", "kind", "v"])
def test_a_leaf_that_lacks_what_its_kind_needs_is_refused(key: str) -> None:
    body = json.loads(hold().encode())
    del body[key]
    with pytest.raises(InputError):
        parse_entry(dumps(body))


def test_an_integer_is_no_flag_and_a_flag_no_integer() -> None:
    body = json.loads(intent("a").encode())
    for value in (True, "7"):
        with pytest.raises(InputError):
            parse_entry(dumps(body | {"fence": value}))
    with pytest.raises(InputError):
        parse_entry(dumps(body | {"simulated": 1}))


def test_a_leaf_that_is_too_long_is_refused() -> None:
    with pytest.raises(InputError, match="60000"):
        replace(hold(), commitments=tuple(str(n) * 60 for n in range(1000))).encode()


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InputError):
        hold(at=datetime(2026, 1, 1)).encode()  # noqa: DTZ001


def test_an_outcome_has_one_of_the_known_results() -> None:
    with pytest.raises(InputError):
        Outcome(at=AT, act="a", result="fine")
    body = json.loads(Outcome(at=AT, act="a", result="done").encode())
    with pytest.raises(InputError):
        parse_entry(dumps(body | {"result": "fine"}))


def test_free_text_is_a_salted_hash() -> None:
    one, two = salted(b"1" * 16, "Jane Doe asked"), salted(b"2" * 16, "Jane Doe asked")
    assert one != two
    assert "Jane" not in one
    assert one.startswith("hmac-sha256:")


def test_an_entry_names_its_attachments() -> None:
    other = Files(count=1, bytes=1, digest="sha256:" + "1" * 64)
    entry = Outcome(at=AT, act="a", result="done", removed=FILES, left=other)
    assert attachments_of(entry) == {FILES.digest, other.digest}
    assert attachments_of(intent("a", files=FILES)) == {FILES.digest}
    assert attachments_of(hold()) == set()
