"""Tampering and bad input: every single byte of a certificate matters, and nothing fed in ends in a traceback."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ebbtide.errors import EbbtideError
from ebbtide.ledger.certificate import MAX_BYTES, Certificate
from ebbtide.ledger.check import CheckReport, check
from ebbtide.ledger.keys import Trust
from ebbtide.ledger.note import COSIGNATURE, Note, Signer
from tests.ledger.erasure import closed
from tests.tiers import deep_after_first

ERASURE = closed(batched=True)
WITNESS = Signer.generate("witness.example/w1", algorithm=COSIGNATURE)
STRANGER = Signer.generate("stranger.example/w2", algorithm=COSIGNATURE)


def certificate() -> Certificate:
    """One with a witness that the check knows and one that it does not: no signature line may be changed unseen."""
    note = ERASURE.ledger.checkpoint()
    cosigned = (signer.cosign(note.text, time=1_769_900_000) for signer in (WITNESS, STRANGER))
    return ERASURE.certificate(note._replace(signatures=(*note.signatures, *cosigned)))


GOOD = certificate().encode()
TRUST = ERASURE.trust(WITNESS)


def refused(data: bytes) -> CheckReport:
    report = check(data, TRUST, opening=ERASURE.opening)
    assert not report
    assert isinstance(report.failed, EbbtideError)
    assert report.exit_code in (1, 2)
    assert report.steps[-1].says
    return report


def test_the_untouched_certificate_holds() -> None:
    assert check(GOOD, TRUST, opening=ERASURE.opening)


@pytest.mark.parametrize("every", deep_after_first(4, 1))
def test_any_single_changed_byte_is_refused(every: int) -> None:
    for position in range(0, len(GOOD), every):
        # The lowest bit everywhere (in base64 it may be one that no byte uses), and each other bit in turn.
        for flip in (0x01, 0x02 << position % 7):
            changed = bytearray(GOOD)
            changed[position] ^= flip
            refused(bytes(changed))


def test_any_single_byte_left_out_or_doubled_is_refused() -> None:
    for position in range(0, len(GOOD), 3):
        refused(GOOD[:position] + GOOD[position + 1 :])
        refused(GOOD[: position + 1] + GOOD[position:])


def test_every_truncation_is_unreadable() -> None:
    for length in range(0, len(GOOD), 7):
        assert refused(GOOD[:length]).exit_code == 2


@pytest.mark.parametrize("more", [b"\n", b" ", b"\x00", b"{}", GOOD])
def test_anything_after_the_end_is_unreadable(more: bytes) -> None:
    assert refused(GOOD + more).exit_code == 2


def test_a_future_version_is_unreadable_and_says_which_one_is_read() -> None:
    report = refused(GOOD.replace(b'"v":2}', b'"v":3}'))
    assert report.exit_code == 2
    assert report.failed is not None
    assert (report.failed.message, report.failed.hint) == (
        "a certificate of version 3",
        "this Ebbtide reads version 2",
    )
    assert refused(GOOD.replace(rb"\"v\":1}", rb"\"v\":2}")).exit_code == 2


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe", GOOD.decode().encode("utf-16"), b"\xef\xbb\xbf" + GOOD, b"\x00" * 99]
)
def test_what_is_not_utf_8_json_is_unreadable(data: bytes) -> None:
    assert refused(data).exit_code == 2


def test_oversized_input_is_refused_unread_and_within_bounded_memory() -> None:
    data = GOOD.ljust(MAX_BYTES + 1)
    tracemalloc.start()
    assert refused(data).exit_code == 2
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("item", [b"[],", b'{"a":1},', b"1,"])
def test_what_is_small_on_disk_and_large_in_memory_stays_within_bounds(item: bytes) -> None:
    data = b"[" + item * (500_000 // len(item)) + b"1]"
    tracemalloc.start()
    assert refused(data).exit_code == 2
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # At the largest size that is read at all this is below a gibibyte.
    assert peak < 60 * len(data)


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 50_000 + b"]" * 50_000, b"1" * 1_000_000])
def test_deep_nesting_and_endless_numbers_are_unreadable(data: bytes) -> None:
    assert refused(data).exit_code == 2


def test_a_key_that_occurs_twice_is_unreadable() -> None:
    assert refused(GOOD.replace(b'{"index":1,', b'{"index":1,"index":1,')).exit_code == 2


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inner for found in paths(item, (*path, key)))]


VALUE = json.loads(GOOD)
PATHS = paths(VALUE)
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("x" * 70_000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def canonical_text(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def put(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    if not path:
        return junk
    copy = value.copy()
    copy[path[0]] = put(value[path[0]], path[1:], junk)
    return copy


def take(value: Any, path: tuple[Any, ...]) -> Any:
    copy = value.copy()
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = take(value[path[0]], path[1:])
    return copy


def test_the_certificate_is_what_the_fuzzing_starts_from() -> None:
    assert canonical_text(VALUE) == GOOD
    assert len(PATHS) > 40


@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(PATHS), JUNK)
def test_a_value_of_any_other_type_or_content_is_refused(path: tuple[Any, ...], junk: Any) -> None:
    data = canonical_text(put(VALUE, path, junk))
    if data != GOOD:
        refused(data)


@pytest.mark.parametrize("path", PATHS[1:], ids=str)
def test_any_part_left_out_is_refused(path: tuple[Any, ...]) -> None:
    refused(canonical_text(take(VALUE, path)))


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_cut_and_spliced_certificates_are_refused(data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(GOOD)), st.integers(0, len(GOOD)))))
    spliced = GOOD[:start] + data.draw(st.binary(max_size=40)) + GOOD[end:]
    if spliced != GOOD:
        refused(spliced)


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(["proof", "leaf"]), st.text(max_size=300), st.data())
def test_any_other_text_in_place_of_proof_or_entry_is_refused(part: str, junk: str, data: st.DataObject) -> None:
    path: tuple[Any, ...] = ("proof",) if part == "proof" else ("entries", data.draw(st.integers(0, 4)), "leaf")
    old = VALUE["proof"] if part == "proof" else VALUE["entries"][path[1]]["leaf"]
    cut = data.draw(st.integers(0, len(old)))
    text = data.draw(st.sampled_from([junk, old[:cut] + junk, junk + old[cut:], old[:cut] + junk + old[cut + 1 :]]))
    if text != old:
        refused(canonical_text(put(VALUE, path, text)))


def attempt(call: Callable[[], object]) -> int:
    """The exit code that a call would end with; anything but an error of Ebbtide's fails the test."""
    try:
        call()
    except EbbtideError as error:
        return error.exit_code
    return 0


@settings(deadline=None)
@given(st.binary(max_size=500) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_key_files_of_any_bytes_are_read_or_unreadable(data: bytes) -> None:
    for content in (data, ERASURE.ledger.signer.key.encode().encode() + b"\n" + data):
        assert attempt(lambda content=content: Trust.parse(content)) in (0, 2)  # type: ignore[misc]


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_a_changed_note_is_refused_or_says_the_same(data: st.DataObject) -> None:
    text = ERASURE.ledger.checkpoint().text
    good = ERASURE.ledger.checkpoint().encode()
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(good)), st.integers(0, len(good)))))
    changed = good[:start] + data.draw(st.binary(max_size=20)) + good[end:]
    code = attempt(lambda: TRUST.verify(Note.parse(changed)))
    assert code in (1, 2) or Note.parse(changed).text == text
