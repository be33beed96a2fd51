"""Signed notes and checkpoints (C2SP signed-note, tlog-checkpoint and tlog-cosignature, version 1).

A note is text, an empty line, and signature lines. Keys are Ed25519: algorithm 0x01 signs the text itself (the
ledger's key), 0x04 is a witness's timestamped cosignature. A key is known by its name and its key hash together:

1. A signature of an unknown key is ignored, so that rotation and witnesses need no new format.
2. A signature of a known key that does not verify refuses the whole note.
3. A note without any signature of a known key is refused.

Input is bounded: a note has at most 1,000,000 bytes and 100 signatures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ebbtide.errors import InputError, ProofError
from ebbtide.ledger.tree import HASH_BYTES, MAX_SIZE
from ebbtide.model.canonical import base64_bytes, base64_text

ED25519 = 0x01
COSIGNATURE = 0x04

MAX_NOTE_BYTES = 1_000_000
MAX_SIGNATURES = 100

_DASH = "— "
_KEY_HASH_BYTES = 4
_PUBLIC_BYTES = 32
_TIME_BYTES = 8
_PRIVATE_PREFIX = "PRIVATE+KEY+"
_CONTROLS = bytes(code for code in range(32) if code != ord("\n"))


class Signature(NamedTuple):
    """One signature line: whose it claims to be, and its bytes."""

    name: str
    key_hash: bytes
    signature: bytes

    def line(self) -> str:
        """The line as it stands in a note, with its newline."""
        return f"{_DASH}{self.name} {base64_text(self.key_hash + self.signature)}\n"


class VerifierKey(NamedTuple):
    """The public half of a key. Its text is `name+hash+base64(algorithm ‖ public key)`."""

    name: str
    algorithm: int
    public: bytes

    @property
    def key_hash(self) -> bytes:
        """The key id: it tells keys apart and proves nothing."""
        return sha256(f"{self.name}\n".encode() + bytes([self.algorithm]) + self.public).digest()[:_KEY_HASH_BYTES]

    def encode(self) -> str:
        """The verifier key as text."""
        return f"{self.name}+{self.key_hash.hex()}+{base64_text(bytes([self.algorithm]) + self.public)}"

    @classmethod
    def parse(cls, text: str) -> VerifierKey:
        """Read a verifier key; a hash that is not the key's own is refused."""
        parts = text.split("+", 2)
        if len(parts) != 3:
            raise InputError("not a verifier key", hint="it reads name+hash+base64, as `ledger key` prints it")
        material = base64_bytes(parts[2])
        if len(material) != 1 + _PUBLIC_BYTES or material[0] not in (ED25519, COSIGNATURE):
            raise InputError("a verifier key that is not Ed25519", hint="algorithms 0x01 and 0x04 are known")
        key = cls(check_name(parts[0]), material[0], material[1:])
        if key.encode() != text:
            raise InputError(f"the verifier key of {key.name} has a wrong hash", hint="it was changed or cut")
        return key

    def verify(self, text: str, signature: bytes) -> int | None:
        """Refuse a signature that is not this key's on this text. Gives the time of a cosignature, in seconds."""
        if self.algorithm != COSIGNATURE:
            self.verify_bytes(text.encode(), signature)
            return None
        time = int.from_bytes(signature[:_TIME_BYTES])
        self.verify_bytes(_cosigned(text, time), signature[_TIME_BYTES:] if time <= MAX_SIZE else b"")
        return time

    def verify_bytes(self, message: bytes, signature: bytes) -> None:
        """Refuse a bare signature that is not this key's on these bytes."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except InvalidSignature:
            raise ProofError(
                "signature", expected=f"one of {self.name}+{self.key_hash.hex()}", found="it does not verify"
            ) from None


class Signer:
    """The private half of a key. It never prints itself."""

    __slots__ = ("_private", "key")

    def __init__(self, name: str, private: Ed25519PrivateKey, *, algorithm: int = ED25519) -> None:
        self._private = private
        self.key = VerifierKey(check_name(name), algorithm, private.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"Signer({self.key.encode()})"

    @classmethod
    def generate(cls, name: str, *, algorithm: int = ED25519) -> Signer:
        """A new key."""
        return cls(name, Ed25519PrivateKey.generate(), algorithm=algorithm)

    @classmethod
    def parse(cls, text: str) -> Signer:
        """Read what `encode` wrote."""
        name, _, rest = text.removeprefix(_PRIVATE_PREFIX).partition("+")
        key_hash, _, material = rest.partition("+")
        seed = base64_bytes(material)
        if not text.startswith(_PRIVATE_PREFIX) or len(seed) != 1 + _PUBLIC_BYTES or seed[0] != ED25519:
            raise InputError("not a signing key", hint="it is the file that `ledger init` wrote")
        signer = cls(name, Ed25519PrivateKey.from_private_bytes(seed[1:]))
        if signer.key.key_hash.hex() != key_hash:
            raise InputError(f"the signing key of {name} has a wrong hash", hint="the file was changed or cut")
        return signer

    def encode(self) -> str:
        """The private key as text, as Go's sumdb/note writes it: a secret, for a file that only its owner reads."""
        seed = bytes([self.key.algorithm]) + self._private.private_bytes_raw()
        return f"{_PRIVATE_PREFIX}{self.key.name}+{self.key.key_hash.hex()}+{base64_text(seed)}"

    def sign(self, text: str) -> Signature:
        """Sign a note's text."""
        return Signature(self.key.name, self.key.key_hash, self._private.sign(text.encode()))

    def cosign(self, text: str, *, time: int) -> Signature:
        """Sign a checkpoint's text as a witness who saw it at `time` (seconds since 1970)."""
        signature = self._private.sign(_cosigned(text, time))
        return Signature(self.key.name, self.key.key_hash, time.to_bytes(_TIME_BYTES) + signature)

    def sign_bytes(self, message: bytes) -> bytes:
        """The bare signature over other bytes than a note's (DSSE)."""
        return self._private.sign(message)


class VerifiedSignature(NamedTuple):
    """A signature that holds: whose, and for a witness, when (seconds since 1970)."""

    key: VerifierKey
    time: int | None


class Note(NamedTuple):
    """A text with signatures, parsed and not yet believed."""

    text: str
    signatures: tuple[Signature, ...]

    @classmethod
    def parse(cls, data: bytes) -> Note:
        """Read a signed note."""
        if len(data) > MAX_NOTE_BYTES:
            raise InputError(f"a signed note of more than {MAX_NOTE_BYTES} bytes", hint="no ledger signs so much")
        try:
            note = data.decode()
        except UnicodeDecodeError as error:
            raise InputError(f"signed note: not UTF-8 at byte {error.start}", hint="a note is text") from None
        check_text(note)
        text, separator, lines = note.rpartition("\n\n")
        if not separator or not lines.endswith("\n"):
            raise InputError("not a signed note", hint="text, an empty line, and signature lines")
        return cls(text + "\n", parse_signatures(lines))

    def encode(self) -> bytes:
        """The note as it is stored."""
        return f"{self.text}\n{''.join(signature.line() for signature in self.signatures)}".encode()

    def verify(self, keys: Iterable[VerifierKey]) -> tuple[VerifiedSignature, ...]:
        """The signatures of known keys, at least one and all of them good; else refused."""
        known = {(key.name, key.key_hash): key for key in keys}
        verified = tuple(
            VerifiedSignature(key, key.verify(self.text, signature.signature))
            for signature in self.signatures
            if (key := known.get((signature.name, signature.key_hash)))
        )
        if not verified:
            raise ProofError(
                "signatures",
                expected=" or ".join(f"{key.name}+{key.key_hash.hex()}" for key in known.values()) or "a known key",
                found=", ".join(f"{item.name}+{item.key_hash.hex()}" for item in self.signatures),
            )
        return verified


class Checkpoint(NamedTuple):
    """The head of a ledger: whose it is, how many entries it has, and their root hash."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def text(self) -> str:
        """The text that is signed."""
        return "".join(f"{line}\n" for line in (self.origin, self.size, base64_text(self.root), *self.extensions))

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Read a note's text as a checkpoint."""
        lines = text.split("\n")
        if len(lines) < 4 or lines.pop() or not all(lines):
            raise InputError("not a checkpoint", hint="origin, size and root hash, a line each")
        checkpoint = cls(lines[0], parse_decimal(lines[1]), base64_bytes(lines[2]), tuple(lines[3:]))
        if len(checkpoint.root) != HASH_BYTES:
            raise InputError("a checkpoint whose root hash has not 32 bytes", hint="the tree is hashed with SHA-256")
        return checkpoint


def sign(text: str, signers: Sequence[Signer]) -> Note:
    """A note over this text, signed by each."""
    check_text(text)
    if not text.endswith("\n"):
        raise InputError("a note's text does not end with a newline", hint="end its last line")
    return Note(text, tuple(signer.sign(text) for signer in signers))


def parse_signatures(lines: str) -> tuple[Signature, ...]:
    """Read signature lines, as they stand below a note's text and in a witness's answer."""
    signatures: list[Signature] = []
    for line in lines.removesuffix("\n").split("\n"):
        name, _, encoded = line.removeprefix(_DASH).partition(" ")
        if not line.startswith(_DASH):
            raise InputError("not a signature line", hint="it reads `— name base64`")
        material = base64_bytes(encoded)
        if len(material) <= _KEY_HASH_BYTES:
            raise InputError(f"the signature of {check_name(name)} is too short", hint="4 bytes of key hash come first")
        if len(signatures) == MAX_SIGNATURES:
            raise InputError(f"a note with more than {MAX_SIGNATURES} signatures", hint="keep those of known keys")
        signatures.append(Signature(check_name(name), material[:_KEY_HASH_BYTES], material[_KEY_HASH_BYTES:]))
    return tuple(signatures)


def parse_decimal(text: str) -> int:
    """A count or index as these formats write it: ASCII digits without leading zeros, below 2^63."""
    if text.isascii() and text.isdigit() and len(text) < 20 and str(number := int(text)) == text and number <= MAX_SIZE:
        return number
    raise InputError("not a decimal number", hint="digits without leading zeros, below 2^63")


def check_name(name: str) -> str:
    """A key name or origin: not empty, without spaces, control characters or a plus."""
    if not name or any(character.isspace() or character < " " or character == "+" for character in name):
        raise InputError("not a key name", hint="a schema-less URL such as example.org/ledger, without spaces or +")
    return name


def check_text(text: str) -> None:
    """Refuse what no note may hold: control characters but the newline, and lone surrogates."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise InputError("a lone surrogate in a note", hint="a note is valid Unicode") from None
    if len(data.translate(None, _CONTROLS)) != len(data):
        raise InputError("a control character in a note", hint="newlines only")


def _cosigned(text: str, time: int) -> bytes:
    return f"cosignature/v1\ntime {time}\n{text}".encode()
