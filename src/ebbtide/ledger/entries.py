"""The entries of the ledger, typed; `leaf.py` says what all of them share (spec §5), `request_entries.py` has those of
requests.

- An act that changes data is two entries with one id: `Intent` before it, `Outcome` after it. Everything else is one
  entry, written in the transaction that changes the state.
- No personal data: people are opaque ids, subjects commitments, free text a salted hash (`salted`). Paths,
  fingerprints, and native ids that may name a person, likewise (`redaction.py`): a hash without a key hides nothing.
- Lists of files are attachments, a keyed path and a size a line; an entry holds their digest, `sha256:<hex>`.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import date, datetime

from ebbtide.errors import InputError
from ebbtide.ledger import leaf
from ebbtide.ledger.codec import Entry, decode
from ebbtide.ledger.request_entries import (
    CertificateKey,
    RequestBatch,
    RequestCertified,
    RequestListed,
    RequestMoved,
    RequestReceived,
    Verified,
)


def salted(salt: bytes, text: str) -> str:
    """What the ledger holds of a text that stays in the state, beside its salt."""
    return f"hmac-sha256:{hmac.digest(salt, text.encode(), 'sha256').hex()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """A set of files: how many, their bytes, and the digest of the attachment that names them."""

    count: int
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexes:
    """The entries from `first` to `last`, both included."""

    first: int
    last: int


# The ledger's own life.


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCreated(Entry):
    """The first entry: whose ledger it is, and the key that signs it."""

    KIND = "ledger.created"
    LASTING = True

    origin: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRotated(Entry):
    """From the next checkpoint on, `new` signs; `old` is trusted up to the size that ends with this entry."""

    KIND = "ledger.rotated"
    LASTING = True

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BodiesPruned(Entry):
    """Bodies from before a time were removed; their hashes stay. Of `batches` the leaves of closed requests were."""

    KIND = "ledger.pruned"
    LASTING = True

    before: datetime
    ranges: tuple[Indexes, ...] = ()
    batches: tuple[int, ...] = ()


# Retention.


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked(Entry):
    """An object is scheduled for deletion."""

    KIND = "mark.made"

    mark: str
    run: str
    dataset: str
    target: str
    object: str
    policy: str
    because: str
    fingerprint: str
    grace_until: datetime
    files: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkSentBack(Entry):
    """The sweep could not prove again what the mark saw."""

    KIND = "mark.sent-back"

    mark: str
    run: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRebound(Entry):
    """An erasure rewrote what the mark saw, and nobody else changed it: the mark is of what is there now."""

    KIND = "mark.rebound"

    mark: str
    run: str
    act: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmarked(Entry):
    """A person rescued an object; `marks` were closed by it."""

    KIND = "unmark.made"

    unmark: str
    dataset: str
    object: str
    actor: str
    reason: str
    until: datetime | None = None
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmarkReleased(Entry):
    """Policies may act on the object again."""

    KIND = "unmark.released"

    unmark: str
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldPlaced(Entry):
    """A litigation hold by dataset, partition range or subject."""

    KIND = "hold.placed"

    hold: str
    scope: str
    owner: str
    reason: str
    dataset: str | None = None
    first_day: date | None = None
    last_day: date | None = None
    commitments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldReleased(Entry):
    """A person ended a hold."""

    KIND = "hold.released"

    hold: str
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderCondemned(Entry):
    """A person said of a folder that looks like a table, and that no catalog lists, that it may go."""

    KIND = "orphans.condemned"

    condemned: str
    dataset: str
    path: str
    actor: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogDeclared(Entry):
    """A run acts under `shares_files: false` of a catalog; with `ended`, the project file no longer says so."""

    KIND = "catalog.declared"

    declaration: str
    catalog: str
    actor: str
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetIgnored(Entry):
    """A run acts under an `ignore` of the project file; with `ended`, the file no longer says so."""

    KIND = "dataset.ignored"

    declaration: str
    dataset: str
    actor: str
    reason: str
    until: datetime | None = None
    ended: bool = False


# Acts: what changes data.


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent(Entry):
    """What is about to be done. `version` and `metadata` are the table's version and metadata hash before."""

    KIND = "act.intent"

    act: str
    verb: str
    run: str | None = None
    fence: int | None = None
    dataset: str | None = None
    target: str | None = None
    object: str | None = None
    marks: tuple[str, ...] = ()
    request: str | None = None
    requests: tuple[str, ...] = ()
    version: str | None = None
    metadata: str | None = None
    files: Files | None = None
    forced_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Entry):
    """What came of an intent: `done`, `partial`, `failed` or `nothing`. What is left is said, never only logged.

    `findings` is how many things the proof after it found wrong with the dataset: files that are referenced and are not
    there, or cannot be read. It is absent where nothing was proved, as of a table that went.
    """

    KIND = "act.outcome"

    act: str
    result: str
    request: str | None = None
    requests: tuple[str, ...] = ()
    version: str | None = None
    metadata: str | None = None
    removed: Files | None = None
    left: Files | None = None
    findings: int | None = None
    because: str | None = None

    def __post_init__(self) -> None:
        if self.result not in RESULTS:
            raise InputError(f"an outcome cannot be {self.result}", hint=f"it is one of {', '.join(RESULTS)}")


RESULTS = ("done", "partial", "failed", "nothing")


_ALL: tuple[type[Entry], ...] = (
    LedgerCreated,
    KeyRotated,
    BodiesPruned,
    Marked,
    MarkSentBack,
    MarkRebound,
    Unmarked,
    UnmarkReleased,
    HoldPlaced,
    HoldReleased,
    FolderCondemned,
    CatalogDeclared,
    DatasetIgnored,
    Intent,
    Outcome,
    RequestReceived,
    RequestMoved,
    Verified,
    RequestBatch,
    CertificateKey,
    RequestListed,
    RequestCertified,
)
KINDS: dict[str, type[Entry]] = {kind.KIND: kind for kind in _ALL}


def attachments_of(entry: Entry) -> set[str]:
    """The digests of the attachments that an entry names."""
    match entry:
        case Marked(files=str(digest)):
            return {digest}
        case Intent(files=Files(digest=digest)):
            return {digest}
        case Outcome(removed=removed, left=left):
            return {files.digest for files in (removed, left) if files}
        case Verified(inventory=inventory, untold=untold):
            return {digest for digest in (inventory, untold) if digest and leaf.is_digest(digest)}
        case RequestBatch(attachments=attachments):
            return set(attachments)
    return set()


def parse_entry(data: bytes) -> Entry:
    """The entry of a leaf; refused unless it is exactly what this version would write for it."""
    return decode(data, KINDS)
