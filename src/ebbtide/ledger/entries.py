"""The entries of the ledger, typed; `leaf.py` says what all of them share (spec §5).

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


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierEntry:
    """An earlier entry: its index, and its leaf hash as hexadecimal text."""

    index: int
    leaf: str


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


# Erasure.


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReceived(Entry):
    """An erasure request came in. The subject is known by its commitments only."""

    KIND = leaf.RECEIVED

    request: str
    law: str
    commitments: tuple[str, ...]
    received_at: datetime
    due_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMoved(Entry):
    """A request took a step, or got a later deadline."""

    KIND = leaf.MOVED

    request: str
    state: str
    deadline: datetime | None = None
    because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified(Entry):
    """At that time `scanner` read the objects of `inventory` in `place` for `commitments`, and found `found`.

    `inventory` is the digest of an attachment, and so is `untold`: the `unread` objects, each with the reason why
    nobody can tell what is in it. What it makes of the request: `state.values.after_search`.
    """

    KIND = leaf.VERIFIED

    request: str
    place: str
    scanner: str
    inventory: str
    commitments: tuple[str, ...]
    found: int
    unread: int | None = None
    objects: int | None = None
    bytes: int | None = None
    untold: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBatch(Entry):
    """Many requests' entries of kind `of` as one: the root of the tree over them (`batch.py`)."""

    KIND = leaf.BATCH

    of: str
    count: int
    root: str
    attachments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateKey(Entry):
    """The key that signs certificates."""

    KIND = leaf.CERTIFICATE_KEY
    LASTING = True

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestListed(Entry):
    """Earlier entries of a long request, for the entry that certifies it."""

    KIND = leaf.LISTED

    request: str
    entries: tuple[EarlierEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Excepted:
    """What of a person is left in a place, or may be: why, on which basis, and until when (spec §4)."""

    place: str
    outcome: str
    basis: str
    until: date | None = None

    def __post_init__(self) -> None:
        leaf.check_exception(self.place, self.outcome, self.basis, None if self.until is None else str(self.until))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCertified(Entry):
    """The last entry of a request: it lists all earlier ones, so that one proof covers them."""

    KIND = leaf.CERTIFIED

    request: str
    state: str
    commitments: tuple[str, ...]
    entries: tuple[EarlierEntry, ...]
    exceptions: tuple[Excepted, ...] = ()


_ALL: tuple[type[Entry], ...] = (
    LedgerCreated,
    KeyRotated,
    BodiesPruned,
    Marked,
    MarkSentBack,
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
