"""Signed envelopes (DSSE 1.0.2) around in-toto statements (version 1).

The signature covers the payload's type and its exact bytes; what is verified is what is handed on, never parsed out
of the envelope a second time.
"""

from __future__ import annotations

from typing import NamedTuple

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger.note import Signer, VerifierKey
from ebbtide.model.canonical import Json, base64_bytes, base64_text

STATEMENT_TYPE = "application/vnd.in-toto+json"


class Envelope(NamedTuple):
    """A payload with one signature: parsed and not yet believed."""

    payload_type: str
    payload: bytes
    key_id: str
    signature: bytes

    def to_json(self) -> dict[str, Json]:
        """The envelope in DSSE's own JSON shape."""
        return {
            "payload": base64_text(self.payload),
            "payloadType": self.payload_type,
            "signatures": [{"keyid": self.key_id, "sig": base64_text(self.signature)}],
        }

    @classmethod
    def from_json(cls, value: Json) -> Envelope:
        """Read an envelope of exactly one signature, as Ebbtide writes it."""
        match value:
            case {
                "payload": str(payload),
                "payloadType": str(payload_type),
                "signatures": [{"keyid": str(key_id), "sig": str(signature), **more}],
                **rest,
            } if not rest and not more:
                return cls(payload_type, base64_bytes(payload), key_id, base64_bytes(signature))
        raise InputError("not a DSSE envelope", hint="payload, payloadType and one signature with its keyid")

    def verify(self, key: VerifierKey, payload_type: str) -> bytes:
        """The payload, if this key signed it as this type; else refused."""
        key_id = key.key_hash.hex()
        if self.key_id != key_id:
            raise ProofError("key of the envelope", expected=key_id, found=self.key_id)
        if self.payload_type != payload_type:
            raise ProofError("type of the envelope's payload", expected=payload_type, found=self.payload_type)
        key.verify_bytes(pae(self.payload_type, self.payload), self.signature)
        return self.payload


def pae(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed: DSSE's pre-authentication encoding."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign(payload_type: str, payload: bytes, signer: Signer) -> Envelope:
    """Put a payload into an envelope."""
    key_id = signer.key.key_hash.hex()
    return Envelope(payload_type, payload, key_id, signer.sign_bytes(pae(payload_type, payload)))
