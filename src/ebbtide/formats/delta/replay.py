"""Walks the retained commits in order and tells what each one did to the files (formats.md, "Kind of a transaction").

A **run** is an unbroken series of versions. The one that ends at the head must be anchored: at version 0, or at a
checkpoint. Where log cleanup took the beginning, the state before the first commit is found by undoing commits from
the checkpoint backwards, so that kinds stay exact.
Data files are compared by path: the same path in add and remove is a changed deletion vector, not a change of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ebbtide.errors import UnreadableError
from ebbtide.formats.delta.actions import Actions, DeltaDataFile, Metadata, Protocol, Tombstone, Values, Vector
from ebbtide.formats.delta.log import DeltaLog
from ebbtide.model.history import FileChange

ReadCheckpoint = Callable[[int], Actions]


@dataclass(slots=True)
class Life:
    """What is known of one file over all retained versions. `bytes` is None where the log does not say."""

    bytes: int | None
    first: int | None
    rows: int | None = None
    values: Values = ()
    removed_by: list[int] = field(default_factory=list)
    referenced: bool = True


@dataclass(frozen=True, slots=True)
class ReplayedVersion:
    """What one commit did. Sums are None where the log does not know every term."""

    version: int
    parent: int | None
    change: FileChange
    rows_added: int | None
    rows_removed: int | None
    bytes_added: int | None
    bytes_removed: int | None
    whole: bool
    """Whether every file that the version needs still lies there."""


@dataclass(slots=True)
class DeltaReplay:
    """What the walk has found so far; at its end `live` is the head's state.

    `metadata` and `protocol` are what was in force, oldest first.
    `touched` is the last commit that changed the files of a partition, `landed` the last one that brought new data
    into it (a compaction does not).
    `is_missing` tells of a file whether it is gone; `missing` are those of the state that is walked through.
    `tombstones` are what was removed before all of it, as far as a checkpoint remembers.
    """

    is_missing: Callable[[str], bool]
    missing: set[str] = field(default_factory=set)
    live: dict[str, DeltaDataFile] = field(default_factory=dict)
    live_vectors: dict[str, int] = field(default_factory=dict)
    data: dict[str, Life] = field(default_factory=dict)
    vectors: dict[str, Life] = field(default_factory=dict)
    steps: list[ReplayedVersion] = field(default_factory=list)
    metadata: list[Metadata] = field(default_factory=list)
    protocol: list[Protocol] = field(default_factory=list)
    touched: dict[Values, int] = field(default_factory=dict)
    landed: dict[Values, int] = field(default_factory=dict)
    tombstones: list[Tombstone] = field(default_factory=list)

    def enter(self, file: DeltaDataFile, first: int | None, *, referenced: bool = True) -> None:
        """A file becomes live, or gets another deletion vector."""
        self.live[file.path] = file
        self.missing.update(path for path in parts_of(file) if self.is_missing(path))
        life = self.data.setdefault(file.path, Life(file.bytes, first, referenced=False))
        life.rows, life.values = file.rows, file.values
        life.referenced |= referenced
        if (vector := file.vector) and vector.path:
            self.live_vectors[vector.path] = self.live_vectors.get(vector.path, 0) + 1
            known = self.vectors.setdefault(vector.path, Life(None, first, referenced=False))
            known.referenced |= referenced
            if known.first is not None:  # all vectors of a file are written by one commit, so the last one ends it
                known.bytes = max(known.bytes or 0, vector.end)

    def leave(self, path: str) -> DeltaDataFile:
        file = self.live.pop(path)
        self.missing.discard(path)
        if file.vector and file.vector.path:
            self.live_vectors[file.vector.path] -= 1
            if not self.live_vectors[file.vector.path]:
                self.missing.discard(file.vector.path)
        return file


def runs_of(log: DeltaLog) -> list[range]:
    """The unbroken runs of commits, oldest first; the last one is empty where only a checkpoint is left of the head."""
    runs: list[range] = []
    for version in sorted(log.commits):
        if runs and runs[-1].stop == version:
            runs[-1] = range(runs[-1].start, version + 1)
        else:
            runs.append(range(version, version + 1))
    head = log.head
    if head is not None and head not in log.commits:
        runs.append(range(head + 1, head + 1))
    return runs


def anchor_of(run: range, log: DeltaLog) -> int | None:
    """The first version of a run whose state is known: -1 (nothing, before version 0) or that of a checkpoint."""
    if run.start == 0:
        return -1
    return min((v for v in log.checkpoints if run.start - 1 <= v < run.stop), default=None)


def replay(
    log: DeltaLog,
    commits: Mapping[int, Actions],
    read_checkpoint: ReadCheckpoint,
    subject: str,
    is_missing: Callable[[str], bool],
) -> DeltaReplay:
    """Replay every run. A head that cannot be reached raises `UnreadableError`."""
    runs = runs_of(log)
    if not runs or anchor_of(runs[-1], log) is None:
        raise UnreadableError(
            subject,
            f"{log.folder}/{runs[-1].start - 1 if runs else 0:020d}.json is missing and no checkpoint stands for it",
            hint="restore the commit file from a backup",
        )
    outcome = DeltaReplay(is_missing=is_missing)
    for run in runs:
        _replay_run(outcome, run, anchor_of(run, log), commits, read_checkpoint)
    return outcome


def _replay_run(
    outcome: DeltaReplay,
    run: range,
    anchor: int | None,
    commits: Mapping[int, Actions],
    read_checkpoint: ReadCheckpoint,
) -> None:
    checkpoint = None if anchor is None or anchor < 0 else read_checkpoint(anchor)
    state = dict(checkpoint.adds) if checkpoint else {}
    outcome.tombstones += checkpoint.tombstones if checkpoint else ()
    # Without an anchor the undoing still finds what the run's commits removed: those files were there before.
    for version in reversed(range(run.start, (run.stop if anchor is None else anchor + 1))):
        undo(state, commits[version])
    outcome.live.clear()
    outcome.live_vectors.clear()
    outcome.missing.clear()
    for file in state.values():
        # What was gone before the first version that can be opened is referenced by none; it counts only for the
        # kind of the commit that removed it.
        outcome.enter(file, None, referenced=checkpoint is None or checkpoint.adds.get(file.path) is file)
    walk = _Walk(outcome, truncated=run.start > 0, complete=anchor is not None)
    walk.read_settings(checkpoint)
    for version in run:
        walk.read_settings(commits[version])
        # Log cleanup may have taken the parent: it was there, and who reads on from before it must be told.
        walk.step(version, version - 1 if version else None, commits[version])


def undo(state: dict[str, DeltaDataFile], commit: Actions) -> None:
    """Take one commit back. Adds without new data beside no remove at all only brought new statistics."""
    for path, file in commit.adds.items():
        if file.data_change or commit.removes:
            state.pop(path, None)
    state.update(commit.removes)


@dataclass(slots=True)
class _Walk:
    """One run's way forward. `truncated`: there were versions before it; `complete`: its first state is known."""

    outcome: DeltaReplay
    truncated: bool
    complete: bool
    change_feed: bool = False

    def read_settings(self, actions: Actions | None) -> None:
        if actions and actions.protocol:
            self.outcome.protocol.append(actions.protocol)
        if actions and actions.metadata:
            self.outcome.metadata.append(actions.metadata)
            wanted = actions.metadata.configuration.get("delta.enableChangeDataFeed", "")
            self.change_feed = wanted.lower() == "true"

    def step(self, version: int, parent: int | None, commit: Actions) -> None:
        outcome, before = self.outcome, len(self.outcome.live)
        removed = [outcome.leave(path) for path in commit.removes if path in outcome.live and path not in commit.adds]
        # A restore may bring back files that were added before anything that is left of the log.
        first = None if self.truncated and commit.operation == "RESTORE" else version
        added: list[DeltaDataFile] = []
        changed: list[tuple[DeltaDataFile, DeltaDataFile]] = []
        revives = new_vectors = False
        for path, file in commit.adds.items():
            new_vectors |= file.vector is not None and file.vector.path not in outcome.vectors
            if path not in outcome.live:
                added.append(file)
                revives |= first is None or path in outcome.data
            elif _key((old := outcome.leave(path)).vector) != _key(file.vector):
                changed.append((old, file))
            outcome.enter(file, first)
        for file in removed:
            outcome.data[file.path].removed_by.append(version)
        self._leave_vectors(version, [*removed, *(old for old, _ in changed)])
        self._date_partitions(version, added, [*removed, *(new for _, new in changed)])
        files = (*commit.adds.values(), *commit.removes.values())
        change = FileChange(
            added=len(added),
            removed=len(removed),
            keeps=before > len(removed) or not self.complete,
            adds_deletes=bool(changed) or (bool(added) and new_vectors),
            rewrite=bool(files) and not any(file.data_change for file in files),
            revives=revives,
        )
        whole = not outcome.missing
        outcome.steps.append(_summed(version, parent, change, added, removed, changed, whole=whole))

    def _leave_vectors(self, version: int, left: list[DeltaDataFile]) -> None:
        """Note what went. The change feed of a version also reads the files and vectors that it took away."""
        gone: set[str] = set()
        for file in left:
            self.outcome.data[file.path].referenced |= self.change_feed
            if file.vector and (path := file.vector.path):
                self.outcome.vectors[path].referenced |= self.change_feed
                if not self.outcome.live_vectors[path]:
                    gone.add(path)
        for path in sorted(gone):
            self.outcome.vectors[path].removed_by.append(version)

    def _date_partitions(self, version: int, added: list[DeltaDataFile], others: list[DeltaDataFile]) -> None:
        for file in (*added, *others):
            self.outcome.touched[file.values] = version
        for file in added:
            if file.data_change:
                self.outcome.landed[file.values] = version


def parts_of(file: DeltaDataFile) -> tuple[str, ...]:
    """The files that reading one data file needs."""
    return (file.path, file.vector.path) if file.vector and file.vector.path else (file.path,)


def _key(vector: Vector | None) -> str | None:
    return vector.key if vector else None


def _summed(
    version: int,
    parent: int | None,
    change: FileChange,
    added: list[DeltaDataFile],
    removed: list[DeltaDataFile],
    changed: list[tuple[DeltaDataFile, DeltaDataFile]],
    *,
    whole: bool,
) -> ReplayedVersion:
    # Rows that a vector hides went with this commit; a restore to a smaller vector brings them back.
    hidden = [
        (new.vector.cardinality if new.vector else 0) - (old.vector.cardinality if old.vector else 0)
        for old, new in changed
    ]
    return ReplayedVersion(
        version,
        parent,
        change,
        rows_added=_sum([*(file.live_rows for file in added), *(-rows for rows in hidden if rows < 0)]),
        rows_removed=_sum([*(file.live_rows for file in removed), *(rows for rows in hidden if rows > 0)]),
        bytes_added=_sum(file.bytes for file in added),
        bytes_removed=_sum(file.bytes for file in removed),
        whole=whole,
    )


def _sum(terms: Iterable[int | None]) -> int | None:
    total = 0
    for term in terms:
        if term is None:
            return None
        total += term
    return total
