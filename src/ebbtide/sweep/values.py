"""What a sweep works on: objects of the plan with their marks and files, gathered into one act per dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ebbtide.model.dataset import Catalog, Found
from ebbtide.model.removal import Committed, Freed, Place, Removal
from ebbtide.state.values import Mark, ObjectKey

UNREAD = "its dataset could not be read again"
"""Why a file stays that may or may not be referenced: nobody could tell."""
ELSEWHERE = "another dataset"
"""What has the files of a transaction that is gone, where it is none of its own dataset's transactions."""
OUTSIDE = "it lies outside of its dataset's folder"
"""Why a file stays that a dataset references and may not be its own (Iceberg's `add_files`, a clone)."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that an object names. `in_heads` are the branches whose head references it.

    `modified` is when an orphan was written, in microseconds since 1970: one that was written since stays.
    """

    path: str
    bytes: int
    role: str | None = None
    in_heads: tuple[str, ...] = ()
    modified: int | None = None


@dataclass(frozen=True, slots=True)
class Going:
    """One object that goes now. `row` is what the plan says of it; a version under a partition's mark has no mark."""

    key: ObjectKey
    row: Mapping[str, Any]
    mark: Mark | None
    files: tuple[NamedFile, ...] = ()
    facts: str | None = None
    in_head: Mapping[str, int] = field(default_factory=dict)
    """The files that main's head gives up with a partition, with their sizes: those that others keep included."""
    tried_at: tuple[str, datetime] | None = None
    """For rows that an earlier act may have deleted: main's head before that act, and when main's head of now was made.
    The delete is made again; where it matches nothing, what is older than that may hold the rows.
    """

    @property
    def kept_by_others(self) -> int:
        """How many of them no plan has named yet, because a tag, a branch or another dataset references them."""
        return len({*self.in_head} - {file.path for file in self.files})

    def with_mark(self, mark: Mark) -> Going:
        return replace(self, mark=mark)


@dataclass(slots=True)
class Act:
    """What is done to one dataset under one intent, and what came of it."""

    id: str
    dataset: str
    catalog: Catalog
    objects: tuple[Going, ...]
    found: Found | None = None
    """What opens the dataset; None where no catalog lists it."""
    removal: Removal | None = None
    """What is asked of the format, made of the objects that the intent was written for. None for orphans, which no
    format owns, for what an earlier act left, and for what goes along with its table.
    """
    leftover: bool = False
    homes: tuple[str, ...] = ()
    """The folders of the dataset, as far as anybody knows them; the one where it is now, or was last, first."""
    places: tuple[Place, ...] = ()
    """Those folders, and the ones around them, as they were when the sweep began."""
    head: tuple[str, datetime] | None = None
    """Main's head as the plan saw it, and when it was committed."""
    root: str | None = None
    """The folder that stays when everything in it has gone."""
    went_as_versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For what an earlier act left: transactions whose versions our own policy on versions took, each with those that
    have its files now.
    """
    called_now: str | None = None
    """The name of its table now, where somebody renamed it."""
    took_its_name: bool = False
    """Whether another table has the dataset's name since then."""
    called_before: tuple[str, ...] = ()
    """Names that the dataset had: people may have held or rescued it by one of them."""
    along: bool = False
    """Its table goes whole, by an act of its own that names all of its files: nothing is done here but to look."""

    most_rows: float | None = None
    """The largest share of its rows that may be deleted; None where all of them may."""

    committed: Committed = field(default_factory=Committed)
    unhit: set[str] = field(default_factory=set)
    """Row objects of which the head still had rows after the commit that deleted them."""
    freed: Freed = field(default_factory=Freed)
    needed: Mapping[str, str] = field(default_factory=dict)
    unread: str | None = None
    """Who could not be read after the commit, and may reference any file: then none goes."""
    also: tuple[str, ...] = ()
    """Files that an earlier act named and left, and that the format may remove with those of this one."""
    there: frozenset[str] = frozenset()
    error: str | None = None
    over: bool = False
    """Whether the error is a limit of the run: then nothing failed, and the dataset is left out."""

    @property
    def paths(self) -> dict[str, int]:
        return {file.path: file.bytes for going in self.objects for file in going.files}

    @property
    def named(self) -> dict[str, int]:
        """What the intent lists: the files that go, and those that a partition leaves behind because others keep them.

        Those go when the others let go of them; nothing but this list knows them then.
        """
        return {path: size for going in self.objects for path, size in going.in_head.items()} | self.paths

    @property
    def removed(self) -> dict[str, int]:
        """What nothing needed, and a listing no longer shows."""
        return (
            {}
            if self.along
            else {p: size for p, size in self.paths.items() if p not in self.needed and p not in self.there}
        )

    @property
    def left(self) -> dict[str, int]:
        """What nothing needed, and is still there."""
        return {p: size for p, size in self.paths.items() if p not in self.needed and p in self.there}


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one object: `swept`, `waiting`, `unmarked` (sent back) or `failed`, and why.

    `acted_at` is the commit that deleted rows under it: versions from before still hold them. `again` asks for that
    delete once more: rows came back. `carried_into` are those that have its files now, though it is swept.
    """

    key: ObjectKey
    state: str
    because: str
    acted_at: datetime | None = None
    again: bool = False
    carried_into: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did. `findings` is what the proof after it found wrong: never empty and quiet. `warnings` are the
    plan's, `unread` is what could not be read before it: nothing of that goes.
    """

    run: str | None
    results: tuple[Result, ...] = ()
    removed_files: int = 0
    removed_bytes: int = 0
    errors: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
