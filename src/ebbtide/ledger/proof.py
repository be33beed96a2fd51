"""A proof that one entry is in a ledger, as text (C2SP tlog-proof, version 1).

It holds the entry's index, the inclusion proof and the signed checkpoint, so it is checked offline with the ledger's
verifier key and the leaf. The `extra` line is read and written back, and never believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger.note import MAX_NOTE_BYTES, Checkpoint, Note, VerifiedSignature, VerifierKey, parse_decimal
from ebbtide.ledger.tree import HASH_BYTES, verify_inclusion
from ebbtide.model.canonical import base64_bytes, base64_text

HEADER = "c2sp.org/tlog-proof@v1"

# A tree of 2^63 leaves has 63 levels above them.
_MAX_HASHES = 63
_MAX_EXTRA_CHARACTERS = 100_000
_MAX_BYTES = MAX_NOTE_BYTES + _MAX_EXTRA_CHARACTERS + 10_000


class TlogProof(NamedTuple):
    """An inclusion proof with the signed checkpoint that it leads to: parsed and not yet believed."""

    leaf_index: int
    hashes: tuple[bytes, ...]
    note: Note
    extra: bytes | None = None

    @property
    def checkpoint(self) -> Checkpoint:
        """The head of the ledger that the proof leads to."""
        return Checkpoint.parse(self.note.text)

    def encode(self) -> bytes:
        """The proof as it is stored, in a file that ends in `.tlog-proof` or in a certificate."""
        lines = [HEADER, f"index {self.leaf_index}", *(base64_text(item) for item in self.hashes), ""]
        if self.extra is not None:
            lines.insert(1, f"extra {base64_text(self.extra)}")
        return "".join(f"{line}\n" for line in lines).encode() + self.note.encode()

    @classmethod
    def parse(cls, data: bytes) -> TlogProof:
        """Read a proof; of the texts that mean the same only the one that `encode` writes is taken."""
        if len(data) > _MAX_BYTES:
            raise InputError(f"a tlog-proof of more than {_MAX_BYTES} bytes", hint="no ledger writes so much")
        head, separator, note = data.partition(b"\n\n")
        try:
            header, *lines = head.decode("ascii").split("\n")
        except UnicodeDecodeError as error:
            raise InputError(
                f"tlog-proof: not ASCII at byte {error.start}", hint="only its checkpoint may be"
            ) from None
        if header != HEADER:
            raise InputError("not a tlog-proof of version 1", hint=f"its first line reads {HEADER}")
        extra = base64_bytes(lines.pop(0).removeprefix("extra ")) if lines and lines[0].startswith("extra ") else None
        if not separator or not lines or not lines[0].startswith("index "):
            raise InputError("not a tlog-proof", hint="an index, the hashes, an empty line and a checkpoint")
        if len(lines) > 1 + _MAX_HASHES:
            raise InputError(f"a tlog-proof of more than {_MAX_HASHES} hashes", hint="no tree is so high")
        hashes = tuple(base64_bytes(line) for line in lines[1:])
        if any(len(item) != HASH_BYTES for item in hashes):
            raise InputError("tlog-proof: a hash that has not 32 bytes", hint="the tree is hashed with SHA-256")
        proof = cls(parse_decimal(lines[0].removeprefix("index ")), hashes, Note.parse(note), extra)
        Checkpoint.parse(proof.note.text)
        return proof

    def verify(self, leaf: bytes, origin: str, keys: Iterable[VerifierKey]) -> tuple[VerifiedSignature, ...]:
        """Refuse unless a ledger of this origin, signed by a known key, holds the leaf hash at the index."""
        verified = self.note.verify(keys)
        checkpoint = self.checkpoint
        if checkpoint.origin != origin:
            raise ProofError("origin of the checkpoint", expected=origin, found=checkpoint.origin)
        verify_inclusion(leaf, self.leaf_index, checkpoint.size, self.hashes, checkpoint.root)
        return verified
