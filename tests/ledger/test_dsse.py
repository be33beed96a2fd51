"""DSSE envelopes: the published encoding, and signatures over type and payload together."""

from __future__ import annotations

import pytest

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger.dsse import STATEMENT_TYPE, Envelope, pae, sign
from ebbtide.ledger.note import Signer
from ebbtide.model.canonical import Json

PAYLOAD = b'{"_type":"https://in-toto.io/Statement/v1"}'


@pytest.fixture(scope="module")
def signer() -> Signer:
    return Signer.generate("example.org/acme/certificates")


def test_the_published_example_of_the_encoding() -> None:
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_lengths_count_bytes_so_that_type_and_payload_never_run_together() -> None:
    assert pae("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "
    assert pae("a 1 b", b"") != pae("a", b"b")


def test_the_envelope_has_the_shape_of_dsse_and_is_read_back(signer: Signer) -> None:
    envelope = sign(STATEMENT_TYPE, PAYLOAD, signer)
    value = envelope.to_json()
    assert set(value) == {"payload", "payloadType", "signatures"}
    assert Envelope.from_json(value) == envelope
    assert envelope.verify(signer.key, STATEMENT_TYPE) == PAYLOAD


def test_another_key_type_payload_or_signature_is_refused(signer: Signer) -> None:
    envelope = sign(STATEMENT_TYPE, PAYLOAD, signer)
    other = Signer.generate(signer.key.name)
    for bad in (
        envelope._replace(payload=PAYLOAD + b" "),
        envelope._replace(payload_type="application/json"),
        envelope._replace(key_id=other.key.key_hash.hex()),
        envelope._replace(signature=bytes(64)),
        envelope._replace(signature=envelope.signature[:63]),
        sign(STATEMENT_TYPE, PAYLOAD, other)._replace(key_id=envelope.key_id),
    ):
        with pytest.raises(ProofError):
            bad.verify(signer.key, STATEMENT_TYPE)
    with pytest.raises(ProofError):
        sign("application/json", PAYLOAD, signer).verify(signer.key, STATEMENT_TYPE)


GOOD: dict[str, Json] = {"payload": "", "payloadType": "t", "signatures": [{"keyid": "k", "sig": "AA=="}]}


@pytest.mark.parametrize(
    "change",
    [
        {"payload": 1},
        {"payload": "%"},
        {"payloadType": []},
        {"signatures": []},
        {"signatures": {}},
        {"signatures": [{"keyid": "k", "sig": "AA=="}, {"keyid": "k", "sig": "AA=="}]},
        {"signatures": [{"keyid": "k"}]},
        {"signatures": [{"keyid": "k", "sig": "AA==", "more": 1}]},
        {"more": 1},
    ],
)
def test_what_is_no_envelope_is_refused(change: dict[str, Json]) -> None:
    assert Envelope.from_json(GOOD)
    with pytest.raises(InputError):
        Envelope.from_json({**GOOD, **change})
    others: list[Json] = [[], "", 1, True, {}]
    for value in others:
        with pytest.raises(InputError):
            Envelope.from_json(value)
