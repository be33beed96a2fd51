"""What the state holds, as frozen values (spec §1–§4).

Times are what the writer's clock said; `active` takes the time as an argument. Nothing here carries an identifier of a
person: requests and holds on a subject have commitments, and bytes that only their key opens. What people wrote freely
is never shown by `repr`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import TypeAlias

Salt: TypeAlias = bytes
"""Kept beside a text whose hash is in the ledger, so that the hash cannot be tried out."""


class MarkState(StrEnum):
    """`marked`, `waiting` and `sweeping` are open; `swept` and `unmarked` are final.

    `sweeping` is between intent and outcome: a person can no longer rescue the object, because it may be gone.
    """

    MARKED = "marked"
    WAITING = "waiting"
    SWEEPING = "sweeping"
    SWEPT = "swept"
    UNMARKED = "unmarked"


class HoldScope(StrEnum):
    """What a hold covers."""

    DATASET = "dataset"
    PARTITIONS = "partitions"
    SUBJECT = "subject"


class RequestState(StrEnum):
    """The life of an erasure request (spec §4). An extension is a later deadline, not a state."""

    IDENTITY_PENDING = "identity pending"
    RECEIVED = "received"
    PLANNED = "planned"
    DELETED = "deleted"
    PURGED = "purged"
    VERIFIED = "verified"
    CERTIFIED = "certified"
    CERTIFIED_WITH_EXCEPTIONS = "certified with exceptions"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"


_OUT = frozenset({RequestState.REFUSED, RequestState.WITHDRAWN})
NEXT_STATES: dict[RequestState, frozenset[RequestState]] = {
    RequestState.IDENTITY_PENDING: _OUT | {RequestState.RECEIVED},
    # Of a person who is nowhere there is nothing to plan: a search that reads everything is enough.
    RequestState.RECEIVED: _OUT | {RequestState.IDENTITY_PENDING, RequestState.PLANNED, RequestState.VERIFIED},
    # A plan may be made again before anything was deleted, and bytes that turn up at verification go back to purge.
    RequestState.PLANNED: _OUT | {RequestState.PLANNED, RequestState.DELETED},
    RequestState.DELETED: frozenset({RequestState.PURGED}),
    RequestState.PURGED: frozenset({RequestState.VERIFIED, RequestState.DELETED}),
    # A later search that finds something takes the verification back.
    RequestState.VERIFIED: frozenset(
        {RequestState.RECEIVED, RequestState.CERTIFIED, RequestState.CERTIFIED_WITH_EXCEPTIONS}
    ),
    RequestState.CERTIFIED: frozenset(),
    # It resumes by itself when the last exception ends, and a later search counts as it does for one that is verified.
    RequestState.CERTIFIED_WITH_EXCEPTIONS: frozenset(
        {RequestState.PLANNED, RequestState.VERIFIED, RequestState.RECEIVED}
    ),
    RequestState.REFUSED: frozenset(),
    RequestState.WITHDRAWN: frozenset(),
}
"""Which state may follow which; a state without followers is closed."""


def after_search(state: RequestState, *, found: bool) -> RequestState:
    """What a search makes of a request: clean is verified where that may follow, found takes a verification back; what
    was purged, and is found, is purged again.

    Elsewhere the search is on record, and the request stays where it is: its deletion is not over, or its person not
    known yet.
    """
    if state is RequestState.IDENTITY_PENDING:
        return state
    if found:
        back = RequestState.DELETED if state is RequestState.PURGED else RequestState.RECEIVED
        return back if back in NEXT_STATES[state] else state
    return RequestState.VERIFIED if RequestState.VERIFIED in NEXT_STATES[state] else state


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """`dataset#target:object`. The native id is text, whatever the format makes of it."""

    dataset: str
    target: str
    object: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a plan wants marked. `days` are the first and last day covered, where they are known."""

    key: ObjectKey
    policy: str
    because: str
    fingerprint: str
    grace_until: datetime
    rows: int
    bytes: int
    days: tuple[date, date] | None = None
    frozen: str | None = None
    files: str | None = None
    facts: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condemnation:
    """A person's word that a folder is no table any more. `dataset` is the name that plans know it by."""

    id: str
    path: str
    dataset: str
    actor: str
    condemned_at: datetime
    salt: Salt = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActRecord:
    """What the ledger holds of an act in keyed forms only. `head` is main's head when it was begun."""

    id: str
    head: str | None
    salt: Salt = field(repr=False)


class DeclarationKind(StrEnum):
    """Whom a declaration of the project file is about: a catalog that shares no files, a dataset that is ignored."""

    CATALOG = "catalog"
    DATASET = "dataset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What the project file said, under which a verb acted (spec §7). It ends when the file no longer says it."""

    id: str
    kind: DeclarationKind
    name: str
    reason: str = field(repr=False)
    until: datetime | None
    salt: Salt = field(repr=False)
    actor: str
    declared_at: datetime
    ended_at: datetime | None = None
    ended_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An object that goes after its grace. `frozen` is a row policy's cutoff, `files` the digest of its file list.

    `act` is the last act of the ledger that was to remove it, `acted_at` when rows were deleted under it (versions from
    before still hold them). `facts` is JSON: what history tells of a transaction that is no longer there, or the days
    of a partition, which nobody can ask for once it left the head.
    """

    id: str
    key: ObjectKey
    policy: str
    because: str
    fingerprint: str
    frozen: str | None
    files: str | None
    rows: int
    bytes: int
    run: str
    marked_at: datetime
    grace_until: datetime
    state: MarkState
    waits_for: tuple[str, ...]
    closed_at: datetime | None
    closed_because: str | None
    salt: Salt = field(repr=False)
    act: str | None = None
    acted_at: datetime | None = None
    facts: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether the object is still to go."""
        return self.closed_at is None

    @property
    def days(self) -> tuple[date, date] | None:
        """The first and last day that a partition covered when it was marked, where they were known."""
        if self.key.target != "partitions" or self.facts is None:
            return None
        first, last = json.loads(self.facts)["days"]
        return date.fromisoformat(first), date.fromisoformat(last)

    @property
    def carried_into(self) -> tuple[str, ...]:
        """Who had files of a transaction when its version was swept."""
        return tuple(json.loads(self.facts).get("carried_into", ())) if self.facts else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Marking:
    """The answer to one proposal: a new mark, the first one kept, or none because of what pins the object."""

    proposal: Proposal
    mark: Mark | None
    is_new: bool
    pinned_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmark:
    """A person's rescue: it pins the native id for every target until it is released or expires (spec §1)."""

    id: str
    dataset: str
    object: str
    actor: str
    reason: str = field(repr=False)
    salt: Salt = field(repr=False)
    created_at: datetime
    until: datetime | None
    released_at: datetime | None
    released_by: str | None

    def active(self, now: datetime) -> bool:
        """Whether it still pins the object."""
        return self.released_at is None and (self.until is None or now < self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A litigation hold: open-ended, with owner and reason (spec §3). A missing day leaves that side open."""

    id: str
    scope: HoldScope
    dataset: str | None
    first_day: date | None
    last_day: date | None
    commitments: tuple[str, ...]
    sealed: bytes | None = field(repr=False)
    owner: str
    reason: str = field(repr=False)
    salt: Salt = field(repr=False)
    created_at: datetime
    released_at: datetime | None
    released_by: str | None

    @property
    def active(self) -> bool:
        """A hold ends only when a person releases it."""
        return self.released_at is None

    def covers(self, dataset: str, days: tuple[date, date] | None) -> bool:
        """Whether an object of this dataset lies inside. Unknown days count as inside.

        A hold on a subject answers False here: which objects carry its rows is found by tracing, not by name.
        """
        if not self.active or self.dataset != dataset:
            return False
        if self.scope is HoldScope.DATASET or days is None:
            return True
        first, last = days
        return (self.last_day is None or first <= self.last_day) and (self.first_day is None or self.first_day <= last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An erasure request. Who it is about lies in `sealed`, which the request's own key opens while it exists."""

    id: str
    law: str
    state: RequestState
    commitments: tuple[str, ...]
    sealed: bytes | None = field(repr=False)
    note: str = field(repr=False)
    salt: Salt = field(repr=False)
    received_at: datetime
    due_at: datetime
    extended_to: datetime | None
    updated_at: datetime
    closed_at: datetime | None
    key_slot: int | None = None
    """Where its key lies in the file of requests' keys; None when it was destroyed, or is a file of its own still."""

    @property
    def deadline(self) -> datetime:
        """When it must be done, the extension included."""
        return self.extended_to or self.due_at


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run of a verb. Without `finished_at` it is at work, or it died: `seen_at` says when it was last heard of.

    `fence` is that of its lease, 0 where it has none. `cancel_requested` is the actor who asked it to stop.
    """

    id: str
    verb: str
    fence: int
    started_at: datetime
    finished_at: datetime | None
    exit_code: int | None
    summary: str | None
    actor: str | None = None
    step: str | None = None
    done: int | None = None
    total: int | None = None
    seen_at: datetime | None = None
    cancel_requested: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """Who may sweep, until when. `fence` only grows."""

    fence: int
    holder: str
    acquired_at: datetime
    expires_at: datetime
    released_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a plan needs of the state, read in one transaction."""

    marks: tuple[Mark, ...]
    unmarks: tuple[Unmark, ...]
    holds: tuple[Hold, ...]
