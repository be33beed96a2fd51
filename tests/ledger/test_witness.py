"""Witnesses: they see the ledger grow, say when, and notice what a restored backup lost."""

from __future__ import annotations

import pytest
from sqlalchemy import delete

from ebbtide.errors import EbbtideError, InputError, ProofError, RefusedError, RewoundError, UnreadableError
from ebbtide.ledger.audit import audit
from ebbtide.ledger.ledger import Ledger
from ebbtide.ledger.note import Signer
from ebbtide.ledger.tree import leaf_hash
from ebbtide.ledger.witness import ask_witness
from ebbtide.state.tables import ledger_checkpoints, ledger_entries
from tests.ledger.samples import said
from tests.ledger.witness_server import Witness, serve


def _append(ledger: Ledger, count: int = 1) -> None:
    with ledger.writing() as step:
        step.append(*(said(number) for number in range(count)))


def test_a_witness_cosigns_each_checkpoint_and_the_cosignature_is_kept(ledger: Ledger) -> None:
    key = ledger.open()
    witness = Witness({key.name: key})
    with serve(witness) as url:
        for count in (1, 300, 7):
            _append(ledger, count)
            note = ask_witness(ledger, url, witness.signer.key)
            verified = note.verify([key, witness.signer.key])
            assert [(item.key, item.time) for item in verified] == [(key, None), (witness.signer.key, witness.time)]
            with ledger.reading() as log:
                assert log.checkpoint() == note
                assert witness.seen[key.name] == (log.size, log.root(log.size))
            assert ledger.home.copy(key).path.read_bytes() == note.encode()
            assert ledger.sign() == note
    assert audit(ledger)


def test_asking_again_keeps_the_newer_cosignature_only(ledger: Ledger) -> None:
    key = ledger.open()
    witness = Witness({key.name: key})
    with serve(witness) as url:
        ask_witness(ledger, url, witness.signer.key)
        witness.time += 60
        note = ask_witness(ledger, url, witness.signer.key)
    assert len(note.signatures) == 2
    assert [item.time for item in note.verify([witness.signer.key])] == [witness.time]
    assert audit(ledger)


def test_two_witnesses_stand_beside_each_other(ledger: Ledger) -> None:
    key = ledger.open()
    one, two = Witness({key.name: key}), Witness({key.name: key}, signer=Signer.generate("w.example/2", algorithm=4))
    with serve(one) as first, serve(two) as second:
        ask_witness(ledger, first, one.signer.key)
        note = ask_witness(ledger, second, two.signer.key)
    assert len(note.verify([key, one.signer.key, two.signer.key])) == 3


def test_a_witness_that_saw_more_than_the_ledger_holds_stops_it(ledger: Ledger) -> None:
    key = ledger.open()
    witness = Witness({key.name: key})
    with serve(witness) as url:
        _append(ledger, 2)
        kept = {path: path.read_bytes() for path in (ledger.home.copy(key).path, ledger.home.frontier(key.name).path)}
        _append(ledger, 3)
        ask_witness(ledger, url, witness.signer.key)
        # Everything of this host's is from the same old backup.
        for path, content in kept.items():
            path.write_bytes(content)
        with ledger.database.writer() as state:
            state.connection.execute(delete(ledger_entries).where(ledger_entries.c.idx > 2))
            state.connection.execute(delete(ledger_checkpoints).where(ledger_checkpoints.c.size > 3))
        with pytest.raises(RewoundError, match="at least 6, found 3"):
            ask_witness(ledger, url, witness.signer.key)


def test_a_witness_that_saw_another_ledger_stops_it(ledger: Ledger) -> None:
    key = ledger.open()
    witness = Witness({key.name: key})
    for size in (1, 3):
        witness.seen[key.name] = (size, leaf_hash(b"another first entry"))
        with serve(witness) as url:
            _append(ledger)
            with pytest.raises(RewoundError):
                ask_witness(ledger, url, witness.signer.key)
    with ledger.reading() as log:
        note = log.checkpoint()
        assert note
        assert len(note.signatures) == 1


@pytest.mark.parametrize(
    ("logs", "said"), [({}, "origin"), ({"example.org/acme": Signer.generate("example.org/acme").key}, "key")]
)
def test_a_witness_that_does_not_know_us_says_so(ledger: Ledger, logs: dict[str, object], said: str) -> None:
    witness = Witness(logs)  # type: ignore[arg-type]
    ledger.open()
    with serve(witness) as url, pytest.raises(RefusedError, match=said) as refused:
        ask_witness(ledger, url, witness.signer.key)
    assert refused.value.hint


@pytest.mark.parametrize(
    "answer",
    [
        (200, b""),
        (200, b"\xff\xfe"),
        (200, b"nonsense\n"),
        (200, b"x" * 100_000),
        (200, Signer.generate("witness.example/w1", algorithm=4).cosign("x\n", time=1).line().encode()),
        (409, b"many\n"),
        (409, b"\xff"),
        (409, b"1\n"),
        (500, b""),
        (301, b""),
    ],
)
def test_an_answer_that_is_no_cosignature_is_refused_and_nothing_is_kept(
    ledger: Ledger, answer: tuple[int, bytes]
) -> None:
    key = ledger.open()
    before = ledger.sign()
    witness = Witness({key.name: key}, answer=answer)
    with serve(witness) as url, pytest.raises(EbbtideError):
        ask_witness(ledger, url, witness.signer.key)
    assert ledger.sign() == before


def test_a_cosignature_that_does_not_verify_is_refused(ledger: Ledger) -> None:
    key = ledger.open()
    witness = Witness({key.name: key})
    witness.answer = (200, witness.signer.cosign("another text\n", time=1).line().encode())
    with serve(witness) as url, pytest.raises(ProofError):
        ask_witness(ledger, url, witness.signer.key)


def test_a_witness_that_does_not_answer_is_an_error(ledger: Ledger) -> None:
    key = ledger.open()
    witness = Witness({key.name: key})
    with serve(witness) as url:
        pass
    with pytest.raises(UnreadableError):
        ask_witness(ledger, url, witness.signer.key)


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://host", "host/path", ""])
def test_a_witness_is_reached_by_http_only(ledger: Ledger, address: str) -> None:
    ledger.open()
    with pytest.raises(InputError):
        ask_witness(ledger, address, Witness({}).signer.key)


def test_a_key_that_is_no_witness_s_is_refused(ledger: Ledger) -> None:
    with pytest.raises(InputError):
        ask_witness(ledger, "http://127.0.0.1:1", ledger.open())
