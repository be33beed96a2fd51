"""The entries of people's requests: received, searched, certified. What holds for all entries: `entries.py`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from ebbtide.ledger import leaf
from ebbtide.ledger.codec import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierEntry:
    """An earlier entry: its index, and its leaf hash as hexadecimal text."""

    index: int
    leaf: str


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
    """A request took a step; or `actor` gave it a later deadline, and `because` is the salted hash of why."""

    KIND = leaf.MOVED

    request: str
    state: str
    deadline: datetime | None = None
    because: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified(Entry):
    """At that time `scanner` read the objects of `inventory` in `place` for `commitments`, and found `found`.

    `inventory` is the digest of an attachment, and so is `untold`: the `unread` objects, each with the reason why
    nobody can tell what is in it; `unlisted` of them are places as a whole. It began to list them at `began_at`. What
    it makes of the request: `state.values.after_search`.
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
    unlisted: int | None = None
    began_at: datetime | None = None


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
