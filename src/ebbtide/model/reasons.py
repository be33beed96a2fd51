"""Reasons: a code that programs may rely on, and a text for people (docs/reasons.md).

Decisions are taken by codes, never by the words of a sentence. Texts are what plans, digests and the ledger have had
from the beginning; codes stand beside them. A code is never renamed and never gets another meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """Every code, with what it says of an object."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Code:
        self = str.__new__(cls, value)
        self._value_ = value
        self.meaning = meaning
        return self

    # Who protects it, or what it waits for (`protected_by`, `waits_for`).
    BRANCH = "branch", "a branch's head or latest view has it"
    TAG = "tag", "a tag, or a savepoint, names it"
    STAGED = "staged", "a staged snapshot that is not published yet references it"
    VIEWS = "views", "the policy's `keep_views` keeps it on a branch"
    KEEP_MIN = "keep_min", "the policy's `keep_min` keeps it on a branch"
    MAIN_BRANCH = "main_branch", "the main branch is never dropped"
    HOLD = "hold", "a person holds it"
    FLOOR = "floor", "a statutory floor, a consumer or a setting of the table keeps it"
    REFERENCE = "reference", "another dataset references a file of it"
    LOCKED = "locked", "its dataset shares its location with another one"
    UNKNOWN = "unknown", "what its dataset references is not fully known"
    UNREAD = "unread", "somebody who may reference its files could not be read"
    GRACE = "grace", "its grace period is not over"
    VERSION = "version", "a version that is retained references a file of it"
    OLDEST_FIRST = "oldest_first", "its format removes the oldest first, and an older version is kept"
    CHANGELOG = "changelog", "a changelog that outlives its snapshot references a file of it"
    UNEXPIRED_VERSIONS = "unexpired_versions", "versions that no policy expires reference a file of it"
    VERSIONS_TARGET = "versions_target", "its policy has no `versions` target that would free its files"
    PROOF = "proof", "it is no longer in the inventory, and no sweep has shown yet that its files are gone"
    LIMIT = "limit", "more of its dataset would go than a limit allows"
    GATE = "gate", "the gate is shut: the chunk is not proven durable in the lake"

    # Why the plan decides as it does (`code`, beside `because`).
    OLD = "old", "it is older than its policy says"
    CROWDED = "crowded", "more versions are there than `keep_max`"
    PREDICATE = "predicate", "its rows match the policy's predicate"
    UNREFERENCED = "unreferenced", "files that nothing references, older than the guard age"
    DELETED = "deleted", "a sweep deleted it from the head, and what is left of it is to go"
    ALONG = "along", "the version goes under the mark of something that a sweep deleted"
    YOUNG = "young", "it is not older than its policy says"
    CURRENT = "current", "the version is current: nothing superseded it"
    FEW = "few", "the policy has only `keep_max`, and no more versions than that are there"
    MIXED_AGE = "mixed_age", "it lies in the latest view and holds rows of mixed age"
    CANNOT_DROP = "cannot_drop", "its format cannot drop exactly its files from the head"
    GRAIN = "grain", "the policy's retention is not longer than the table's time grain"
    NO_DATE = "no_date", "the partition has no date: it is never due"
    NO_COMMIT = "no_commit", "nobody ever wrote to it: it is never due"
    NO_COLUMN = "no_column", "the table has no such column"
    NO_TIME = "no_time", "the column is neither a date nor a timestamp"
    SCHEDULED = "scheduled", "the table has a schedule: only ad hoc tables go whole"
    PARTITIONED = "partitioned", "the table is partitioned: its partitions go by their dates"
    NO_LABEL = "no_label", "nobody gave the table itself the label that the policy asks for"
    PROTECTED = "protected", "it would go, but something protects it"
    RESCUED = "rescued", "a person unmarked it"
    LIMIT_PER_RUN = "limit_per_run", "the policy's `limit` of versions a run is reached"
    NO_POLICY = "no_policy", "no policy owns it"
    UNSELECTED = "unselected", "the mark is sent back: no policy selects the object any more"
    OTHER_POLICY = "other_policy", "the mark is sent back: another policy owns the object now"
    CHANGED = "changed", "the mark is sent back: the object changed since"
    REMOVED_ELSEWHERE = "removed_elsewhere", "the mark is sent back: somebody else removed the object"
    NOT_LISTED = "not_listed", "it is marked, and no longer in the inventory"
    TIERED = "tiered", "the chunk is in the lake, and not older than `drop_after`"
    MISSING = "missing", "another tool dropped the chunk"

    # Why a file stays while a sweep removes others.
    REFERENCED = "referenced", "something still references the file"
    UNREADABLE = "unreadable", "the file's dataset could not be read again"
    OUTSIDE = "outside", "the file lies outside of its dataset's folder"


@dataclass(frozen=True, slots=True, order=True)
class Reason:
    """Why. In order of the texts, as people read them."""

    text: str
    code: Code

    @property
    def setting(self) -> str | None:
        """The setting of the table that a floor is (`floor:NAME=VALUE`), by its name; None for whatever else it is."""
        name, equals, _ = self.text.removeprefix("floor:").partition("=")
        return name if self.code is Code.FLOOR and equals else None


PROOF = "the proof that its files are gone"
"""What a marked object waits for that is no longer in the inventory."""
CHANGELOG = "a changelog"
"""What keeps a file beside the versions (`model.dataset.BESIDE`)."""

SENTENCES: Mapping[Code, str] = {
    Code.PROOF: PROOF,
    Code.CHANGELOG: CHANGELOG,
    Code.STAGED: "staged",
    Code.MAIN_BRANCH: "main branch",
    Code.UNEXPIRED_VERSIONS: "versions that no policy expires",
    Code.VERSIONS_TARGET: "a versions target in the policy",
}
"""The texts of those that say the same of every object."""
PREFIXES: Mapping[str, Code] = {
    "branch:": Code.BRANCH, "tag:": Code.TAG, "staged:": Code.STAGED, "views:": Code.VIEWS, "keep_min:": Code.KEEP_MIN,
    "hold:": Code.HOLD, "floor:": Code.FLOOR, "reference:": Code.REFERENCE, "locked:": Code.LOCKED,
    "unknown:": Code.UNKNOWN, "unread:": Code.UNREAD, "grace until ": Code.GRACE, "version:": Code.VERSION,
    "oldest first:": Code.OLDEST_FIRST, "limit:": Code.LIMIT, "gate:": Code.GATE,
}  # fmt: skip
"""How the texts of the others begin, before the name of who it is."""


def code_of(who: str) -> Code | None:
    """The code of a text that names who it is: `floor:` and a setting, `hold:` and an id."""
    return next((code for begins, code in PREFIXES.items() if who.startswith(begins)), None)
