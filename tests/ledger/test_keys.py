"""Which keys are trusted: one ledger's, each up to its size, and witnesses."""

from __future__ import annotations

import pytest

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger.keys import Trust, TrustedKey
from ebbtide.ledger.note import COSIGNATURE, Note, Signer
from tests.ledger.forest import ORIGIN, MemoryLedger

OLD, NEW = Signer.generate(ORIGIN), Signer.generate(ORIGIN)
WITNESS = Signer.generate("witness.example/w1", algorithm=COSIGNATURE)


def key_file(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def ledger_of(signer: Signer, size: int) -> MemoryLedger:
    ledger = MemoryLedger(signer)
    ledger.append_leaves([b'{"n":%d}' % number for number in range(size)])
    return ledger


def test_a_key_file_is_read_with_comments_limits_and_witnesses() -> None:
    old = TrustedKey(OLD.key, 12)
    trust = Trust.parse(key_file("# our ledger", "", NEW.key.encode(), f"  {old.line()}  ", WITNESS.key.encode()))
    assert trust == Trust((TrustedKey(NEW.key), old), (WITNESS.key,))
    assert trust.origin == ORIGIN


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"# nothing\n",
        b"\xff\n",
        b"x\n",
        key_file(WITNESS.key.encode()),
        key_file(OLD.key.encode(), Signer.generate("example.org/other").key.encode()),
        key_file(OLD.key.encode() + " until"),
        key_file(OLD.key.encode() + " until x"),
        key_file(OLD.key.encode() + " until 012"),
        key_file(OLD.key.encode() + " since 12"),
        key_file(OLD.key.encode(), WITNESS.key.encode() + " until 3"),
        b"#" * 100_001,
    ],
)
def test_a_key_file_that_says_nothing_sure_is_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        Trust.parse(data)


def test_old_and_new_keys_are_good_for_their_own_sizes() -> None:
    trust = Trust((TrustedKey(NEW.key), TrustedKey(OLD.key, 5)))
    for signer, size in ((OLD, 1), (OLD, 5), (NEW, 5), (NEW, 6), (NEW, 1)):
        checkpoint, verified = trust.verify(ledger_of(signer, size).checkpoint())
        assert (checkpoint.size, verified[0].key) == (size, signer.key)


def test_an_old_key_is_refused_beyond_its_size() -> None:
    trust = Trust((TrustedKey(NEW.key), TrustedKey(OLD.key, 5)))
    with pytest.raises(ProofError, match="expected at most 5, found 6"):
        trust.verify(ledger_of(OLD, 6).checkpoint())


def test_a_checkpoint_signed_by_both_is_good_beyond_the_old_keys_size() -> None:
    trust = Trust((TrustedKey(NEW.key), TrustedKey(OLD.key, 5)))
    checkpoint, verified = trust.verify(ledger_of(OLD, 6).checkpoint(NEW))
    assert (checkpoint.size, len(verified)) == (6, 2)


def test_who_has_only_the_old_key_cannot_check_what_only_the_new_one_signed() -> None:
    with pytest.raises(ProofError, match="signatures"):
        Trust((TrustedKey(OLD.key),)).verify(ledger_of(NEW, 6).checkpoint())


def test_a_witness_alone_does_not_speak_for_the_ledger() -> None:
    head = ledger_of(OLD, 3).head()
    note = Note(head.text(), (WITNESS.cosign(head.text(), time=1_800_000_000),))
    with pytest.raises(ProofError, match="witnesses only"):
        Trust((TrustedKey(OLD.key),), (WITNESS.key,)).verify(note)


def test_a_checkpoint_of_another_origin_is_refused_though_a_trusted_key_signed_it() -> None:
    head = ledger_of(OLD, 3).head()._replace(origin="example.org/other")
    note = Note(head.text(), (OLD.sign(head.text()),))
    with pytest.raises(ProofError, match="origin"):
        Trust((TrustedKey(OLD.key),)).verify(note)
