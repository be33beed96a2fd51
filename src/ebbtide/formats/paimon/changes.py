"""What every commit did to the data files: kinds and views, who added and removed each file, what is live.

Each stretch of commits without a gap is walked once, from the files that its first commit stood on; after that only
what a commit changed is looked at (formats.md, "Kind of a transaction").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from operator import or_

from ebbtide.errors import UnreadableError
from ebbtide.formats.paimon.lines import MAIN, BranchLine, BranchLines, PaimonCommit
from ebbtide.formats.paimon.manifests import Files, Manifests
from ebbtide.model.history import FileChange, Transaction, TransactionKind, kind_of, starts_view

Stay = tuple[str, int, int]
"""A file, the position of the first version that holds it, and that of the first one that does not any more."""


@dataclass(slots=True)
class Tracks:
    """What the walk found. Files are known only where the walk was given them (`Depth.FILES`)."""

    transactions: dict[str, Transaction] = field(default_factory=dict)
    referenced: Files = field(default_factory=dict)
    """Data files that some retained version reads."""

    added_by: dict[str, str] = field(default_factory=dict)
    removed_by: dict[str, list[str]] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    """Data files that the head of any branch reads."""

    current: Files = field(default_factory=dict)
    """Data files that main reads."""

    touched: dict[int, str] = field(default_factory=dict)
    """The last transaction of main that changed each partition."""

    stays: list[tuple[list[str], list[Stay]]] = field(default_factory=list)
    """For each stretch of transactions, how long each file stayed in it."""

    def ordered(self) -> list[Transaction]:
        """The transactions, oldest first."""
        return sorted(self.transactions.values(), key=lambda t: (t.committed_at, int(t.id.rpartition("/")[2])))

    def bits(self) -> dict[str, int]:
        """The bit that stands for each transaction's version: the n-th for the n-th in order."""
        return {transaction.id: 1 << n for n, transaction in enumerate(self.ordered())}

    def versions(self) -> dict[str, int]:
        """Which transactions' versions hold each data file."""
        bit = self.bits()
        masks: dict[str, int] = {}
        for ids, stays in self.stays:
            until = list(accumulate((bit[id_] for id_ in ids), or_, initial=0))
            for path, first, end in stays:
                masks[path] = masks.get(path, 0) | (until[end] & ~until[first])
        return masks


def walk(subject: str, lines: BranchLines, manifests: Manifests, *, files: bool) -> Tracks:
    """Walk every line. Without `files` only transactions are found, and only the deltas' entries are needed."""
    tracks = Tracks()
    for line in lines.lines:
        for run in line.runs():
            _walk_run(subject, line, run, lines, manifests, tracks, files)
    for id_, commit in lines.changelogs():
        # No branch reaches it: it goes with every policy that selects the table, by its age.
        found = Transaction(
            id_, None, TransactionKind.METADATA, commit.committed_at, starts_view=False, operation="CHANGELOG"
        )
        tracks.transactions[id_] = found
    return tracks


def _walk_run(
    subject: str,
    line: BranchLine,
    run: list[PaimonCommit],
    lines: BranchLines,
    manifests: Manifests,
    tracks: Tracks,
    files: bool,
) -> None:
    live = manifests.net([run[0].base])[0] if files else {}
    vectors: frozenset[str] | None = frozenset() if run[0].number == 1 else None
    count = manifests.count(run[0].base)
    since = dict.fromkeys(live, 0)
    stays: list[Stay] = []
    for position, commit in enumerate(run):
        id_ = lines.id_of_commit(line.name, commit)
        step = _Step(commit, *manifests.net([commit.delta]), _new_vectors(commit, vectors, manifests))
        vectors = manifests.vectors(commit.index)
        if id_ not in tracks.transactions:
            keeps = count > len(step.removed)
            tracks.transactions[id_] = _transaction(id_, lines.parent_of(id_), step, keeps, manifests)
            for path in step.added:
                tracks.added_by.setdefault(path, id_)
            for path in step.removed:
                tracks.removed_by.setdefault(path, []).append(id_)
        count += len(step.added) - len(step.removed)
        if line.name == MAIN:
            tracks.touched.update(dict.fromkeys(_partitions(step, manifests), id_))
        if not files:
            continue
        _check_count(subject, id_, manifests.count(commit.base) + len(step.added) - len(step.removed), count)
        for path in step.removed:
            if live.pop(path, None) is None:
                raise _not_a_sum(subject, id_, manifests.count(commit.base), len(live))
            first = since.pop(path)
            if position:  # what the first one removed, no version of this stretch holds
                stays.append((path, first, position))
        live.update(step.added)
        since.update(dict.fromkeys(step.added, position))
        tracks.referenced.update(live if commit is run[0] else step.added)
        if commit.number == line.head and not commit.apart:
            _check_head(subject, id_, commit, live, manifests)
            tracks.live.update(live)
            if line.name == MAIN:
                tracks.current = dict(live)
    stays += [(path, first, len(run)) for path, first in since.items()]
    tracks.stays.append(([lines.id_of_commit(line.name, commit) for commit in run], stays))


@dataclass(frozen=True, slots=True)
class _Step:
    """What one commit changed: data files, and files of deletion vectors that were not there before."""

    commit: PaimonCommit
    added: Files
    removed: Files
    vectors: frozenset[str]


def _deletes_rows(commit: PaimonCommit, manifests: Manifests) -> bool:
    """Whether what calls itself a compaction is a delete: one by deletion vectors is committed so, and moves no file.

    A compaction proper lists files, if only at another level.
    """
    return commit.operation == "COMPACT" and not any(True for _ in manifests.mentioned(commit.delta))


def _new_vectors(commit: PaimonCommit, before: frozenset[str] | None, manifests: Manifests) -> frozenset[str]:
    vectors = manifests.vectors(commit.index)
    if before is not None:
        return vectors - before
    # The parent is gone, and with it what says which vectors are new: a delete always brings some.
    return vectors if _deletes_rows(commit, manifests) else frozenset()


def _partitions(step: _Step, manifests: Manifests) -> set[int]:
    files = {file.partition for file in (*step.added.values(), *step.removed.values())}
    indexes = manifests.indexes.get(step.commit.index or "", ()) if step.vectors else ()
    return files | {index.partition for index in indexes if index.path in step.vectors}


def _transaction(id_: str, parent: str | None, step: _Step, keeps: bool, manifests: Manifests) -> Transaction:
    added, removed = step.added.values(), step.removed.values()
    change = FileChange(
        added=len(added),
        removed=len(removed),
        keeps=keeps,
        adds_deletes=bool(step.vectors) or any(file.deletes for file in added),
        rewrite=step.commit.operation == "COMPACT" and not _deletes_rows(step.commit, manifests),
    )
    return Transaction(
        id_,
        parent,
        kind_of(change),
        step.commit.committed_at,
        starts_view(change),
        operation=step.commit.operation,
        rows_added=sum(file.rows for file in added),
        rows_removed=sum(file.rows for file in removed),
        files_added=len(added),
        files_removed=len(removed),
        bytes_added=sum(file.bytes for file in added),
        bytes_removed=sum(file.bytes for file in removed),
    )


def _check_count(subject: str, id_: str, said: int, walked: int) -> None:
    if said != walked:
        raise _not_a_sum(subject, id_, said, walked)


def _check_head(subject: str, id_: str, commit: PaimonCommit, live: Files, manifests: Manifests) -> None:
    """The sum of all changes must be what a reader of the head sees: whatever differs was not understood."""
    whole, _ = manifests.net([commit.base, commit.delta])
    if whole.keys() != live.keys():
        raise _not_a_sum(subject, id_, len(whole), len(live))


def _not_a_sum(subject: str, id_: str, said: int, walked: int) -> UnreadableError:
    return UnreadableError(
        subject,
        f"{id_} has {said} files by its manifests and {walked} by its history",
        hint="a snapshot or manifest was changed by hand, or two tables write to this folder",
    )
