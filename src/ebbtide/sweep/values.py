"""What a sweep works on: objects of the plan with their marks and files, gathered into a batch per act."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ebbtide.acts.act import ActResult, NamedFile
from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.state.values import Mark, ObjectKey

ELSEWHERE = "another dataset"
"""What has the files of a transaction that is gone, where it is none of its own dataset's transactions."""


@dataclass(frozen=True, slots=True)
class ExpiringObject:
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

    def with_mark(self, mark: Mark) -> ExpiringObject:
        return replace(self, mark=mark)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectBatch:
    """The objects of one dataset that go by one act, and what is known of the dataset."""

    id: str
    """The act's."""
    dataset: str
    catalog: Catalog
    objects: tuple[ExpiringObject, ...]
    found: TableHandle | None = None
    """What opens the dataset; None where no catalog lists it."""
    homes: tuple[str, ...] = ()
    """The folders of the dataset, as far as anybody knows them; the one where it is now, or was last, first."""
    root: str | None = None
    """The folder that stays when everything in it has gone."""
    head: tuple[str, datetime] | None = None
    """Main's head as the plan saw it, and when it was committed."""
    leftover: bool = False
    """Whether an earlier act left these: they are gone but for files."""
    along: bool = False
    """Their table goes whole, by an act of its own that names all of its files: nothing is done but to look."""
    went_as_versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For what an earlier act left: transactions whose versions our own policy on versions took, each with those that
    have its files now.
    """
    called_now: str | None = None
    """The name of the table now, where somebody renamed it."""
    took_its_name: bool = False
    """Whether another table has the dataset's name since then."""
    called_before: tuple[str, ...] = ()
    """Names that the dataset had: people may have held or rescued it by one of them."""


@dataclass(frozen=True, slots=True)
class ObjectOutcome:
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


def freed_by(results: Iterable[ActResult]) -> dict[str, tuple[int, int]]:
    """Files and bytes that went, by dataset."""
    removed: dict[str, dict[str, int]] = {}
    for result in results:
        removed.setdefault(result.act.dataset, {}).update(result.removed)
    return {dataset: (len(files), sum(files.values())) for dataset, files in removed.items()}


@dataclass(frozen=True, slots=True)
class DatasetOutcome:
    """What a sweep did to one dataset, in objects by what became of them. `rows` were in what went; None where nobody
    counted them. `next_sweep` is when the next grace of it ends.
    """

    dataset: str
    swept: int
    waiting: int
    failed: int
    sent_back: int
    rows: int | None
    files: int
    bytes: int
    waits_for: tuple[str, ...]
    next_sweep: str | None


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did. `findings` is what the proof after it found wrong: never empty and quiet. `warnings` are the
    plan's, `unread` is what could not be read before it: nothing of that goes. `stages` are those that a dry run would
    walk, by dataset. `freed` are files and bytes, and `datasets` the whole of it, by dataset.
    """

    run: str | None
    results: tuple[ObjectOutcome, ...] = ()
    removed_files: int = 0
    removed_bytes: int = 0
    errors: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    stages: tuple[tuple[str, tuple[str, ...]], ...] = ()
    freed: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    datasets: tuple[DatasetOutcome, ...] = ()
