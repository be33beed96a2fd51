"""Commitments hide identifiers and bind them; openings open them and never print themselves."""

from __future__ import annotations

import hashlib
import hmac
import traceback

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.errors import InputError
from ebbtide.ledger.commitment import Identifier, Opening, commit, new_key

KEY = bytes(range(32))
SECRET = "8841302-secret"
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def opening() -> Opening:
    return Opening("r-1", KEY, (Identifier("user_id", SECRET), Identifier("email", "é@example.org")))


def test_a_commitment_is_the_hmac_of_type_and_canonical_value() -> None:
    assert commit(KEY, "user_id", "8841302") == hmac.new(KEY, b'user_id"8841302"', hashlib.sha256).hexdigest()


def test_keys_are_random_and_commitments_under_two_keys_differ() -> None:
    assert commit(new_key(), "user_id", "1") != commit(new_key(), "user_id", "1")


@settings(deadline=None)
@given(TEXT, TEXT, st.text("ab1_", min_size=1), st.text("ab1_", min_size=1))
def test_type_and_value_never_run_together(one: str, two: str, first: str, second: str) -> None:
    assert (commit(KEY, first, one) == commit(KEY, second, two)) == ((first, one) == (second, two))


@pytest.mark.parametrize(("key", "kind"), [(b"short", "user_id"), (KEY, ""), (KEY, 'a"b'), (KEY, "é")])
def test_a_short_key_or_an_ambiguous_type_is_refused(key: bytes, kind: str) -> None:
    with pytest.raises(InputError):
        commit(key, kind, "1")


def test_an_opening_is_read_back() -> None:
    assert Opening.parse(opening().encode()) == opening()
    assert opening().commitments()[0] == commit(KEY, "user_id", SECRET)


def test_what_tables_of_identities_gave_is_kept_once_and_opens_no_commitment() -> None:
    email, device = opening().identifiers[1], Identifier("device", "d-1")
    known = opening().knowing([device, email]).knowing([device])
    assert Opening.parse(known.encode()) == known
    assert (known.resolved, known.everything) == ((device,), (*opening().identifiers, device))
    assert known.commitments() == opening().commitments()
    assert "d-1" not in repr(known)


def test_an_opening_and_its_errors_never_show_key_or_identifier() -> None:
    shown = [repr(opening()), str(opening()), f"{opening().identifiers}", repr(opening().identifiers[0])]
    for damage in (b"", b"x", opening().encode()[:-3], opening().encode().replace(b'"v":1', b'"v":9')):
        with pytest.raises(InputError) as caught:
            Opening.parse(damage)
        shown += [*traceback.format_exception_only(caught.value), str(caught.value.hint)]
    for text in shown:
        assert SECRET not in text
        assert KEY.hex() not in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"ebbtide-opening"', b'"other"'),
        (b'"v":1', b'"v":2'),
        (b'"v":1', b'"v":true'),
        (b'"v":1', b'"v":1,"w":1'),
        (b'"request":"r-1"', b'"request":1'),
        (b"1f", b"1F"),
        (b"1f", b""),
        (b'"type":"user_id"', b'"type":1'),
        (b'"type":"user_id"', b'"kind":"user_id"'),
        (b'"type":"user_id"', b'"type":"user\\"id"'),
    ],
)
def test_what_is_no_opening_is_refused(old: bytes, new: bytes) -> None:
    assert old in opening().encode()
    with pytest.raises(InputError):
        Opening.parse(opening().encode().replace(old, new))


def test_an_opening_without_identifiers_is_refused() -> None:
    with pytest.raises(InputError):
        Opening.parse(Opening("r-1", KEY, ()).encode())
