"""Where a ledger keeps what must not be in its database: its keys, what it appended, and its last checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ebbtide.errors import ProofError
from ebbtide.ledger.frontier import FrontierFile
from ebbtide.ledger.note import Signer, VerifierKey
from ebbtide.ledger.outside import OutsideCopy
from ebbtide.state.keys import KeyFolder
from ebbtide.state.request_keys import RequestKeys

_KEY_PREFIX = "ledger-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where a ledger keeps what must not be in its database, and what its project says about it."""

    keys: KeyFolder
    folder: Path
    """The user's state folder, for checkpoints."""
    project: str
    origin: str | None = None
    checkpoint: Path | None = None

    @property
    def request_keys(self) -> RequestKeys:
        """The keys of erasure requests: in the key folder, so that what keeps the one safe keeps the other."""
        return RequestKeys(self.keys.path / "requests.keys")

    def signers(self) -> list[Signer]:
        """The ledger's keys that lie here; those of the project's origin, where it has set one."""
        names = [name for name in self.keys.names() if name.startswith(_KEY_PREFIX)]
        signers = [self._read(name) for name in names]
        return [signer for signer in signers if self.origin in (None, signer.key.name)]

    def signer(self, key: VerifierKey) -> Signer:
        """The private half of a key; refused when another one lies in its place."""
        signer = self._read(_name(key))
        if signer.key != key:
            raise ProofError(f"key in {_name(key)}", expected=key.encode(), found=signer.key.encode())
        return signer

    def store(self, signer: Signer) -> None:
        """Keep a new key."""
        self.keys.store(_name(signer.key), signer.encode().encode())

    def copy(self, key: VerifierKey) -> OutsideCopy:
        """Where the last checkpoint that this key signed is kept."""
        return OutsideCopy(self.checkpoint) if self.checkpoint else OutsideCopy.of(self.folder, key)

    def copies(self, keys: Iterable[VerifierKey]) -> set[OutsideCopy]:
        """Every place where a copy may lie: a project that names one now may have kept it with the user before."""
        found = {OutsideCopy.of(self.folder, key) for key in keys}
        return found | {OutsideCopy(self.checkpoint)} if self.checkpoint else found

    def frontier(self, origin: str) -> FrontierFile:
        """What was appended here to the ledger of this origin."""
        return FrontierFile.of(self.keys.path, origin)

    def is_only(self, origin: str) -> bool:
        """Whether what was appended with the keys of this folder was appended to the ledger of this origin alone."""
        return {self.frontier(origin).path} == set(self.keys.path.glob(f"*{self.frontier(origin).path.suffix}"))

    def _read(self, name: str) -> Signer:
        signer = Signer.parse(self.keys.read(name).decode(errors="replace"))
        if name != _name(signer.key):
            raise ProofError(f"key in {name}", expected="the key of that name", found=signer.key.encode())
        return signer


def _name(key: VerifierKey) -> str:
    return f"{_KEY_PREFIX}{key.key_hash.hex()}"
