"""What the verbs of the ledger answer. Hashes are hexadecimal; notes, keys and proofs are texts that others check."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ebbtide.app.results.shown import Shown

if TYPE_CHECKING:
    from ebbtide.ledger.audit import AuditReport
    from ebbtide.ledger.note import Note, VerifierKey
    from ebbtide.ledger.prune import Pruning


@dataclass(frozen=True, slots=True, repr=False)
class LedgerKey(Shown):
    """The key that verifies the ledger's signatures."""

    origin: str
    key: str

    @classmethod
    def of(cls, key: VerifierKey) -> LedgerKey:
        return cls(key.name, key.encode())


@dataclass(frozen=True, slots=True, repr=False)
class SignedCheckpoint(Shown):
    """The size and the root that were signed; `note` is the text with the signatures."""

    origin: str
    size: int
    root: str
    note: str

    @classmethod
    def of(cls, note: Note) -> SignedCheckpoint:
        origin, size, root = note.text.splitlines()[:3]
        return cls(origin, int(size), root, note.encode().decode())


@dataclass(frozen=True, slots=True, repr=False)
class Leaf(Shown):
    """The exact bytes of an entry, as text, and their leaf hash."""

    index: int
    leaf_hash: str
    leaf: str


@dataclass(frozen=True, slots=True, repr=False)
class Inclusion(Shown):
    """The proof that an entry is in a ledger of this size (C2SP tlog-proof)."""

    index: int
    size: int
    proof: str


@dataclass(frozen=True, slots=True, repr=False)
class LedgerEntry(Shown):
    """An entry of the ledger, and what it says; a pruned one says nothing any more."""

    index: int
    kind: str | None
    at: str | None
    says: Mapping[str, Any]

    @classmethod
    def of(cls, index: int, body: bytes | None) -> LedgerEntry:
        says = {} if body is None else json.loads(body)
        kind, at = says.pop("kind", None), says.pop("at", None)
        return cls(index, kind, at, says)


@dataclass(frozen=True, slots=True, repr=False)
class Difference(Shown):
    where: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True, repr=False)
class Audit(Shown):
    """Everything in the database against everything that was signed; true where nothing differs."""

    ok: bool
    entries: int
    checkpoints: int
    attachments: int
    pruned: int
    unsigned: int
    copies: tuple[str, ...]
    findings: tuple[Difference, ...]

    @classmethod
    def of(cls, report: AuditReport) -> Audit:
        findings = tuple(Difference(item.where, item.expected, item.found) for item in report.findings)
        return cls(
            bool(report), report.entries, report.checkpoints, report.attachments, report.pruned, report.unsigned,
            tuple(report.copies), findings,
        )  # fmt: skip

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True, slots=True, repr=False)
class Pruned(Shown):
    """Bodies that went, or would; `ranges` are first and last indexes."""

    bodies: int
    ranges: tuple[tuple[int, int], ...]
    attachments: tuple[str, ...]

    @classmethod
    def of(cls, done: Pruning) -> Pruned:
        return cls(done.bodies, tuple((item.first, item.last) for item in done.ranges), tuple(done.attachments))


@dataclass(frozen=True, slots=True, repr=False)
class Export(Shown):
    """Tiles that were written; entries are served from `minimum_index` on."""

    folder: str
    written: int
    minimum_index: int
