"""Transactions, branches, tags and views (spec §1, formats.md "Kind of a transaction").

Adapters say what each transaction did to the data files; the rules here turn that into kinds and views, the same way
for every format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

CONTENT = ("data", "delete file", "deletion vector", "changelog", "change data", "index")
"""Roles of files that carry rows, or say which of them are deleted."""
OF_PARTITIONS = ("data", "log", "changelog", "change data")
"""Roles of files that hold a partition's rows: Hudi's logs among them; Delta's log lies in no partition. What says that
rows are deleted may stay in the head when they are gone (Iceberg 2), and goes with the versions that reference it.
"""
HELD_BY_HEAD = ("data", "log")
"""Roles of the files that a head gives up with a partition."""


class TransactionKind(StrEnum):
    APPEND = "APPEND"
    SNAPSHOT = "SNAPSHOT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    REWRITE = "REWRITE"
    METADATA = "METADATA"


class RefKind(StrEnum):
    BRANCH = "branch"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class FileChange:
    """What one transaction did to the data files, against its parent.

    `added` and `removed` are counts of data files; `keeps` says whether any data file from before is still live;
    `adds_deletes` whether it brought delete files or deletion vectors; `rewrite` whether the format calls it a
    compaction; `revives` whether a live file was added by an earlier transaction (restore, cherry-pick).
    """

    added: int
    removed: int
    keeps: bool
    adds_deletes: bool = False
    rewrite: bool = False
    revives: bool = False


def kind_of(change: FileChange) -> TransactionKind:
    """The kind of a transaction: the first rule that matches (formats.md)."""
    if not (change.added or change.removed or change.adds_deletes):
        return TransactionKind.METADATA
    if change.rewrite:
        return TransactionKind.REWRITE
    if change.removed and not change.keeps and change.added:
        return TransactionKind.SNAPSHOT
    if change.added and not change.removed and not change.adds_deletes:
        return TransactionKind.APPEND
    if not change.added:
        return TransactionKind.DELETE
    return TransactionKind.UPDATE


def starts_view(change: FileChange) -> bool:
    """Whether a new view begins here: files went and none stayed, of any kind, unless an earlier one came back.

    A transaction without a parent begins one too, whatever this says: there is nothing before it.
    """
    return bool(change.removed) and not change.keeps and not change.revives


@dataclass(frozen=True, slots=True)
class Transaction:
    """One commit on a dataset. Counts are None where the format no longer knows them.

    `expired` says that the format still lists it, while its version cannot be read any more because files of it are
    gone (Delta after a VACUUM, Hudi after a clean): there is nothing left to protect or to remove. `rows_kind` is what
    it did to rows, where the format tells that apart from what it did to files: Hudi adds rows to a file by a new one.
    """

    id: str
    parent_id: str | None
    kind: TransactionKind
    committed_at: datetime
    starts_view: bool
    staged: bool = False
    expired: bool = False
    operation: str = ""
    rows_added: int | None = None
    rows_removed: int | None = None
    files_added: int | None = None
    files_removed: int | None = None
    bytes_added: int | None = None
    bytes_removed: int | None = None
    rows_kind: TransactionKind | None = None


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch or a tag. `head` is None for a branch without a commit. `main` marks the branch that always exists."""

    name: str
    kind: RefKind
    head: str | None
    main: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """The latest view of a branch, or the view that ends at a tag: its first transaction and its members."""

    ref: Ref
    line: tuple[str, ...]
    members: frozenset[str]

    @property
    def start(self) -> str | None:
        return next((id_ for id_ in self.line if id_ in self.members), None)


@dataclass(frozen=True, slots=True)
class DatasetHistory:
    """The transactions of one dataset with what its refs make of them. Lines run from oldest to newest."""

    transactions: Mapping[str, Transaction]
    views: tuple[View, ...]

    def branch_names(self) -> dict[str, list[str]]:
        """Which branches reach each transaction, sorted by name."""
        return _names_by_member((v.ref.name, v.line) for v in self.views if v.ref.kind is RefKind.BRANCH)

    def view_refs(self) -> dict[str, list[str]]:
        """Which refs hold each transaction in their (latest) view, as `branch:x` and `tag:y`, sorted."""
        return _names_by_member((f"{v.ref.kind}:{v.ref.name}", v.members) for v in self.views)

    def latest_view(self) -> frozenset[str]:
        """Every transaction that lies in the latest view of any branch."""
        branches = (v.members for v in self.views if v.ref.kind is RefKind.BRANCH)
        return frozenset().union(*branches)


def _names_by_member(named: Iterable[tuple[str, Iterable[str]]]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, members in sorted(named, key=lambda pair: pair[0]):
        for member in members:
            names.setdefault(member, []).append(name)
    return names


def build_history(transactions: Sequence[Transaction], refs: Sequence[Ref]) -> DatasetHistory:
    """Walk every ref back to its first retained transaction and find where its last view begins.

    A parent that is no longer retained ends the walk: the view then starts at the oldest transaction that is left.
    """
    by_id = {t.id: t for t in transactions}
    return DatasetHistory(by_id, tuple(_view(ref, by_id) for ref in refs))


def _view(ref: Ref, by_id: Mapping[str, Transaction]) -> View:
    line: list[str] = []
    members: set[str] = set()
    seen: set[str] = set()
    at, open_ = ref.head, True
    while at is not None and at in by_id and at not in seen:
        seen.add(at)
        line.append(at)
        if open_:
            members.add(at)
            open_ = not by_id[at].starts_view
        at = by_id[at].parent_id
    line.reverse()
    return View(ref, tuple(line), frozenset(members))
