"""Which keys are trusted, and up to which size (spec §5, rotation).

A key file holds one verifier key a line; empty lines and lines that begin with `#` are skipped:

    example.org/acme+7f3a0c11+AQ…               the ledger's key
    example.org/acme+19d2e0aa+AQ… until 1234    a rotated key: trusted for checkpoints of at most 1234 entries
    witness.example/w1+5b1c9e02+BA…             a witness (algorithm 0x04)

All keys of the ledger have its origin as their name, so one file is about one ledger.
"""

from __future__ import annotations

from typing import NamedTuple

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger.note import COSIGNATURE, Checkpoint, Note, VerifiedSignature, VerifierKey, parse_decimal

MAX_KEY_FILE_BYTES = 100_000


class TrustedKey(NamedTuple):
    """A key of the ledger; after a rotation it is trusted up to a size only."""

    key: VerifierKey
    until: int | None = None

    def line(self) -> str:
        """The key's line in a key file, without newline."""
        return self.key.encode() + ("" if self.until is None else f" until {self.until}")


class Trust(NamedTuple):
    """The keys that a check starts from; nothing in what it checks can add to them."""

    ledger: tuple[TrustedKey, ...]
    witnesses: tuple[VerifierKey, ...] = ()

    @property
    def origin(self) -> str:
        """Whose ledger the keys are about."""
        return self.ledger[0].key.name

    @classmethod
    def parse(cls, data: bytes) -> Trust:
        """Read a key file. One without a key of a ledger is refused: it would trust nothing."""
        if len(data) > MAX_KEY_FILE_BYTES:
            raise InputError(f"a key file of more than {MAX_KEY_FILE_BYTES} bytes", hint="it holds one key a line")
        try:
            lines = [line.strip() for line in data.decode().splitlines()]
        except UnicodeDecodeError as error:
            raise InputError(f"not UTF-8 at byte {error.start}", hint="a key file is text") from None
        ledger: list[TrustedKey] = []
        witnesses: list[VerifierKey] = []
        for line in lines:
            if not line or line.startswith("#"):
                continue
            text, until, size = line.partition(" until ")
            key = VerifierKey.parse(text)
            if key.algorithm != COSIGNATURE:
                ledger.append(TrustedKey(key, parse_decimal(size) if until else None))
            elif until:
                raise InputError(f"the key of witness {key.name} has an `until`", hint="only ledgers' keys rotate")
            else:
                witnesses.append(key)
        names = {trusted.key.name for trusted in ledger}
        if len(names) != 1:
            found = f"keys of {len(names)} ledgers" if names else "no key of a ledger"
            raise InputError(f"the key file holds {found}", hint="give the file of one, as `ledger key` prints it")
        return cls(tuple(ledger), tuple(witnesses))

    def verify(self, note: Note) -> tuple[Checkpoint, tuple[VerifiedSignature, ...]]:
        """The checkpoint of a note that a key of the ledger signed while it was trusted, with all good signatures."""
        checkpoint = Checkpoint.parse(note.text)
        if checkpoint.origin != self.origin:
            raise ProofError("origin of the checkpoint", expected=self.origin, found=checkpoint.origin)
        trusted = {trusted.key: trusted.until for trusted in self.ledger}
        verified = note.verify([*trusted, *self.witnesses])
        limits = [trusted[item.key] for item in verified if item.key in trusted]
        if not limits:
            raise ProofError(
                "signature of the ledger",
                expected=" or ".join(f"{key.name}+{key.key_hash.hex()}" for key in trusted),
                found="witnesses only",
            )
        if all(limit is not None and checkpoint.size > limit for limit in limits):
            raise ProofError(
                "size of a checkpoint that a rotated key signed",
                expected=f"at most {max(limit for limit in limits if limit is not None)}",
                found=str(checkpoint.size),
                hint="the key was rotated at that size; ask for the ledger's present key",
            )
        return checkpoint, verified
