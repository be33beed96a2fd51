"""What every entry says, and how one entry lists others."""

from __future__ import annotations

from typing import Any

import pytest

from ebbtide.errors import InputError
from ebbtide.ledger.leaf import CERTIFIED, MAX_LISTED, LoggedEntry, listed_in, listing, read_body, requests_of
from ebbtide.model.canonical import dumps, dumps_leaf

GOOD: dict[str, Any] = {"v": 1, "kind": "request.received", "at": "2026-01-31T06:30:00.000000Z", "request": "r-1"}


def test_an_entry_is_read_with_whatever_its_kind_adds() -> None:
    body = {**GOOD, "law": "gdpr", "simulated": True}
    assert read_body(dumps(body)) == body
    assert requests_of(body) == ("r-1",)
    assert requests_of({"requests": ["a", "b"]}) == ("a", "b")
    assert requests_of({}) is None


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"v": 0},
        {"v": True},
        {"v": "1"},
        {"kind": "Request"},
        {"kind": ""},
        {"kind": "a..b"},
        {"kind": "a\n"},
        {"kind": 1},
        {"at": "2026-01-31"},
        {"at": 5},
        {"simulated": False},
        {"simulated": 1},
        {"request": 1},
        {"requests": ["a"]},
    ],
)
def test_an_entry_that_does_not_say_what_it_must_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        read_body(dumps({**GOOD, **change}))


@pytest.mark.parametrize("missing", ["v", "kind", "at"])
def test_an_entry_that_misses_a_key_is_refused(missing: str) -> None:
    with pytest.raises(InputError):
        read_body(dumps({key: value for key, value in GOOD.items() if key != missing}))


@pytest.mark.parametrize("leaf", [b"", b"[]", b'"x"', b"1", b"{}", b"\xff", dumps(GOOD) + b"\n"])
def test_what_is_no_entry_is_refused(leaf: bytes) -> None:
    with pytest.raises(InputError):
        read_body(leaf)


def test_the_longest_listing_fits_into_a_leaf() -> None:
    entries = [LoggedEntry(2**53 - 1 - number, b"%d" % number) for number in range(MAX_LISTED)]
    body = {
        **GOOD,
        "kind": CERTIFIED,
        "entries": listing(entries),
        "commitments": ["0" * 64] * 20,
        "request": "r" * 200,
    }
    assert read_body(dumps_leaf(body)) == body
    assert listed_in(body) == {entry.leaf_index: entry.hash for entry in entries}
    with pytest.raises(InputError, match="do not fit"):
        listing([*entries, LoggedEntry(1, b"x")])


ITEM: dict[str, Any] = {"index": 3, "leaf": "00" * 32}


@pytest.mark.parametrize(
    "entries",
    [
        None,
        {},
        [1],
        [ITEM, ITEM],
        [{**ITEM, "index": -1}],
        [{**ITEM, "index": True}],
        [{**ITEM, "index": "3"}],
        [{**ITEM, "leaf": "00" * 31}],
        [{**ITEM, "leaf": "0G" * 32}],
        [{**ITEM, "leaf": "AB" * 32}],
        [{**ITEM, "leaf": " 00" * 32}],
        [{**ITEM, "more": 1}],
        [{"index": 3}],
    ],
)
def test_a_listing_that_is_not_exact_is_refused(entries: Any) -> None:
    assert listed_in({**GOOD, "kind": CERTIFIED, "entries": [ITEM]}) == {3: bytes(32)}
    body = {**GOOD, "kind": CERTIFIED} | ({} if entries is None else {"entries": entries})
    with pytest.raises(InputError):
        listed_in(body)
