"""What is done to one dataset under one intent: a list of stages, and a result that grows with each of them.

Both are frozen. A stage says what, never how: that is the executor's (`owner.Executor`), one per kind of act.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum
from typing import ClassVar

from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.model.reasons import Reason
from ebbtide.model.removal import CheckedFolder, Committed, FileDeletion, Removal


class Phase(IntEnum):
    """What a stage is to all acts of a run: all of them pass one phase before any begins the next."""

    METADATA = 1
    REFERENCES = 2
    FILES = 3


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that is named. `in_heads` are the branches whose head references it.

    `modified` is when an orphan was written, in microseconds since 1970: one that was written since stays.
    """

    path: str
    bytes: int
    role: str | None = None
    in_heads: tuple[str, ...] = ()
    modified: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One thing that an act does. Before `not_before` it is not begun: the act pauses, and a later run goes on."""

    phase: ClassVar[Phase]
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRemoval(Stage):
    """The dataset's metadata changes, through its format's own operations; no file goes."""

    phase: ClassVar[Phase] = Phase.METADATA
    removal: Removal
    most_rows: float | None = None
    """The largest share of its rows that may be deleted; None where all of them may."""

    def __str__(self) -> str:
        asked = self.removal
        counts = {
            "branches": len(asked.branches), "drops": len(asked.drops), "deletes of rows": len(asked.rows),
            "versions": len(asked.versions),
        }  # fmt: skip
        told = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
        return f"metadata: {'the whole table' if asked.table else told or 'nothing'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReferences(Stage):
    """Whatever anything references by now stays, whoever named it. One reading serves all acts."""

    phase: ClassVar[Phase] = Phase.REFERENCES

    def __str__(self) -> str:
        return "references: read again, of every dataset"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFiles(Stage):
    """These files go, but for those that something needs."""

    phase: ClassVar[Phase] = Phase.FILES
    files: tuple[NamedFile, ...]

    def __str__(self) -> str:
        paths = {file.path: file.bytes for file in self.files}
        return f"files: {len(paths):,} with {sum(paths.values()):,} bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchFiles(Stage):
    """These files go by another act, with their whole table: this one only looks what became of them."""

    phase: ClassVar[Phase] = Phase.FILES
    files: tuple[NamedFile, ...]

    def __str__(self) -> str:
        return f"files: {len({file.path for file in self.files}):,} go with their table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What is to be done to one dataset under one intent."""

    id: str
    dataset: str
    catalog: Catalog
    stages: tuple[Stage, ...]
    kind: str = "remove"
    """Who carries it out: the executor of that name."""
    found: TableHandle | None = None
    """What opens the dataset; None where no catalog lists it."""
    marks: tuple[str, ...] = ()
    """What of its owner the intent names."""
    keeps: Mapping[str, int] = field(default_factory=dict)
    """Files that the intent lists though others keep them for now: when those let go, only its list knows them."""
    homes: tuple[str, ...] = ()
    """The folders of the dataset, as far as anybody knows them; the one where it is now, or was last, first."""
    places: tuple[CheckedFolder, ...] = ()
    """Those folders, and the ones around them, as they were when the run began."""
    root: str | None = None
    """The folder that stays when everything in it has gone."""
    head: str | None = None
    """Main's head when the act was planned; or, where it tries again, when that was tried first."""
    leftover: bool = False
    """Whether it finishes what an earlier act left: then there is nothing to ask of the format."""
    forgotten: bool = False
    """Whether an earlier act let the catalog forget the table, and ended before all of its files were gone."""
    anywhere: bool = False
    """Whether its files were found by where they lie (orphans), and not because the dataset references them."""
    paused: bool = False
    """Whether an earlier run began it, and this one goes on: its intent is in the ledger already."""
    target: str | None = None
    """What its intent says of the object, where it names one: its target, and its id, which the ledger keys."""
    object: str | None = None
    forced_by: str | None = None
    """Who told it to pass a gate."""
    requests: tuple[str, ...] = ()
    """The people's requests that it serves, where its entries name them."""

    @property
    def told(self) -> str:
        """As a log names it. A folder that no catalog lists may be called after somebody."""
        return f"act {self.id} on {'a folder' if '/' in self.dataset else self.dataset}"

    @property
    def removal(self) -> Removal | None:
        """What is asked of the format. None for orphans, which no format owns, and for what an earlier act left."""
        return next((stage.removal for stage in self.stages if isinstance(stage, CommitRemoval)), None)

    @property
    def files(self) -> tuple[NamedFile, ...]:
        stages = (stage for stage in self.stages if isinstance(stage, (DeleteFiles, WatchFiles)))
        return tuple(file for stage in stages for file in stage.files)

    @property
    def paths(self) -> dict[str, int]:
        return {file.path: file.bytes for file in self.files}

    @property
    def named(self) -> dict[str, int]:
        """What the intent lists."""
        return {**self.keeps, **self.paths}

    def within(self, places: tuple[CheckedFolder, ...]) -> Act:
        """The act with its folders as they were when the run began."""
        stages = (
            replace(stage, removal=replace(stage.removal, places=places)) if isinstance(stage, CommitRemoval) else stage
            for stage in self.stages
        )
        return replace(self, places=places, stages=tuple(stages))

    def freeing(self, files: Mapping[str, int], *, not_before: datetime | None) -> Act:
        """The act as its first stage left it: these files are to go, and not before that."""
        named = tuple(NamedFile(path, size) for path, size in sorted(files.items()))
        stages = (
            replace(stage, files=named, not_before=not_before) if isinstance(stage, DeleteFiles) else stage
            for stage in self.stages
        )
        return replace(self, stages=tuple(stages))

    def stage(self, phase: Phase) -> Stage | None:
        """What it does in a phase; an act has at most one stage of each."""
        return next((stage for stage in self.stages if stage.phase is phase), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActResult:
    """What came of an act so far. Every stage makes another one of it."""

    act: Act
    committed: Committed = field(default_factory=Committed)
    ending: tuple[str, ...] = ()
    """Versions that are still listed and end with the files: they need none of these."""
    unhit: frozenset[str] = frozenset()
    """Row objects of which the head still had rows after the commit that deleted them."""
    needed: Mapping[str, Reason] = field(default_factory=dict)
    """Files that stay, each with who or what needs it."""
    unread: str | None = None
    """Who could not be read after the commit, and may reference any file: then none goes."""
    deletion: FileDeletion = field(default_factory=FileDeletion)
    there: frozenset[str] = frozenset()
    """The files that a listing still shows."""
    findings: int | None = None
    """What the proof found wrong with the dataset; None where it was not proved."""
    error: str | None = None
    over: bool = False
    """Whether the error is a limit of the run: then nothing failed, and the dataset is left out."""
    paused: bool = False
    """Whether the next stage is for a later run."""

    @property
    def deletes(self) -> dict[str, int]:
        """The files that were to go by this act and that nothing needs."""
        stage = self.act.stage(Phase.FILES)
        files = stage.files if isinstance(stage, DeleteFiles) else ()
        return {file.path: file.bytes for file in files if file.path not in self.needed}

    @property
    def removed(self) -> dict[str, int]:
        """What nothing needed, and a listing no longer shows."""
        return {path: size for path, size in self.deletes.items() if path not in self.there}

    @property
    def left(self) -> dict[str, int]:
        """What nothing needed, and is still there."""
        return {p: size for p, size in self.act.paths.items() if p not in self.needed and p in self.there}

    @property
    def drops_table(self) -> bool:
        """Whether the whole table goes: Delta and a Hadoop catalog list it until its last file is gone."""
        removal = self.act.removal
        return (
            removal is not None
            and removal.table
            and self.error is None
            and not self.paused
            and not self.committed.sent_back
        )
