"""The tlog-proof text: what it says is checked, what it is not is refused."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.errors import EbbtideError, InputError, ProofError
from ebbtide.ledger.note import Signer
from ebbtide.ledger.proof import TlogProof
from ebbtide.ledger.tree import leaf_hash
from tests.ledger.forest import ORIGIN, MemoryLedger


@pytest.fixture(scope="module")
def ledger() -> MemoryLedger:
    ledger = MemoryLedger()
    ledger.append_leaves([b'{"n":%d}' % number for number in range(11)])
    return ledger


def test_the_text_has_the_lines_of_the_specification(ledger: MemoryLedger) -> None:
    note = ledger.checkpoint()
    proof = ledger.prove(4, note)
    lines = proof.encode().decode().split("\n")
    assert lines[:2] == ["c2sp.org/tlog-proof@v1", "index 4"]
    assert [base64.b64decode(line) for line in lines[2:6]] == list(proof.hashes)
    assert "\n".join(lines[6:]) == "\n" + note.encode().decode()


def test_every_entry_of_the_ledger_is_proved(ledger: MemoryLedger) -> None:
    for index, leaf in enumerate(ledger.leaves):
        proof = TlogProof.parse(ledger.prove(index).encode())
        assert proof.verify(leaf_hash(leaf), ORIGIN, [ledger.signer.key]) == ((ledger.signer.key, None),)


def test_a_ledger_of_one_entry_needs_no_hashes() -> None:
    ledger = MemoryLedger()
    ledger.append_leaves([b"{}"])
    proof = TlogProof.parse(ledger.prove(0).encode())
    assert proof.hashes == ()
    proof.verify(leaf_hash(b"{}"), ORIGIN, [ledger.signer.key])


def test_extra_data_is_kept_and_not_believed(ledger: MemoryLedger) -> None:
    proof = ledger.prove(3)._replace(extra=b"anything")
    assert proof.encode().split(b"\n")[1] == b"extra YW55dGhpbmc="
    assert TlogProof.parse(proof.encode()) == proof
    proof.verify(leaf_hash(ledger.leaves[3]), ORIGIN, [ledger.signer.key])


def test_another_leaf_index_origin_or_key_is_refused(ledger: MemoryLedger) -> None:
    proof, leaf, keys = ledger.prove(4), leaf_hash(ledger.leaves[4]), [ledger.signer.key]
    with pytest.raises(ProofError):
        proof.verify(leaf_hash(ledger.leaves[5]), ORIGIN, keys)
    with pytest.raises(ProofError):
        proof._replace(leaf_index=5).verify(leaf, ORIGIN, keys)
    with pytest.raises(ProofError, match="origin"):
        proof.verify(leaf, "example.org/other", keys)
    with pytest.raises(ProofError, match="signatures"):
        proof.verify(leaf, ORIGIN, [Signer.generate(ORIGIN).key])


def test_any_changed_byte_is_refused(ledger: MemoryLedger) -> None:
    data, leaf = ledger.prove(4).encode(), leaf_hash(ledger.leaves[4])
    for position in range(len(data)):
        for flip in (0x01, 0x02, 0x20, 0x80):
            changed = bytearray(data)
            changed[position] ^= flip
            with pytest.raises(EbbtideError):
                TlogProof.parse(bytes(changed)).verify(leaf, ORIGIN, [ledger.signer.key])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"@v1", b"@v2"),
        (b"index 4", b"index 04"),
        (b"index 4", b"index -4"),
        (b"index 4", b"index"),
        (b"index 4\n", b""),
        (b"index 4\n", b"extra !\nindex 4\n"),
        (b"index 4\n", b"index 4\nAAAA\n"),
        (b"index 4\n", b"index 4\n" + 64 * (base64.b64encode(bytes(32)) + b"\n")),
        (b"index 4\n", "index ٤\n".encode()),
        (b"\n\n", b"\n"),
        (b"\n\n", b"\r\n\r\n"),
    ],
)
def test_what_is_no_proof_is_refused(ledger: MemoryLedger, old: bytes, new: bytes) -> None:
    data = ledger.prove(4).encode()
    assert old in data
    with pytest.raises(InputError):
        TlogProof.parse(data.replace(old, new))


def test_an_oversized_proof_is_refused_before_it_is_read() -> None:
    with pytest.raises(InputError, match="more than"):
        TlogProof.parse(b"c2sp.org/tlog-proof@v1\nextra " + b"A" * 2_000_000)


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(0, 400))
def test_arbitrary_bytes_are_refused(junk: bytes, keep: int) -> None:
    ledger = MemoryLedger()
    ledger.append_leaves([b"{}", b"[]"])
    for data in (junk, ledger.prove(1).encode()[:keep] + junk):
        try:
            assert TlogProof.parse(data).encode() == data
        except InputError:
            continue
