"""The history of a table, replayed commit by commit over its file groups.

A file group is `(partition path, file id)`. A base file takes the place of what its group held; log files are added
beside it until a compaction does; `replaced` groups go whole. From this follow kinds, views and who removed what.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from ebbtide.formats.hudi.timeline import HudiCommit, Timeline, Write
from ebbtide.model.history import FileChange, Transaction, TransactionKind, kind_of, starts_view

Group = tuple[str, str]

# Hudi's own naming of log files: .<file id>_<instant>.log.<version>_<write token>[.cdc]
LOG_NAME = re.compile(r"^\.([^._]+)_([^.]*)\.(?:log|archive)\.\d+(?:_\d+-\d+-\d+(\.cdc)?)?$")
_REWRITES = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT"})
# What adds rows, or changes and deletes some: the counts of the files say which.
_WRITES = frozenset({"INSERT", "INSERT_PREPPED", "BULK_INSERT", "BULK_INSERT_PREPPED", "UPSERT", "UPSERT_PREPPED"})
_DELETES = frozenset({"DELETE", "DELETE_PREPPED"})
_BEFORE = -(2**63)


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a group: `order` is the index of the commit that brought it, negative before the first one known."""

    path: str
    is_log: bool
    instant: str
    completed: str
    order: int
    rows: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class ReplayedInstant:
    """What took the place of a group's files: the commit's index and id, and whether the group went whole."""

    order: int
    id: str
    whole: bool


@dataclass(slots=True)
class HudiReplay:
    """The outcome: transactions in order, the files of the head, and what happened to each group."""

    transactions: list[Transaction] = field(default_factory=list)
    live: dict[Group, dict[str, Member]] = field(default_factory=dict)
    steps: dict[Group, list[ReplayedInstant]] = field(default_factory=dict)
    written: dict[str, Member] = field(default_factory=dict)
    last_touch: dict[str, str] = field(default_factory=dict)
    members: dict[str, tuple[Group, Member]] = field(default_factory=dict)

    def remover(self, group: Group, member: Member) -> str | None:
        """The commit that took a file out of the table, None while it is live."""
        for step in self.steps.get(group, ()):
            if step.order > member.order and (step.whole or _superseded(member, step.id)):
                return step.id
        return None

    def expire(self, there: Collection[str]) -> None:
        """Mark the versions of which a file is not there any more: the cleaner took it, and they cannot be read."""
        order = {transaction.id: position for position, transaction in enumerate(self.transactions)}
        expired: set[int] = set()
        for path, (group, member) in self.members.items():
            remover = self.remover(group, member) if path not in there else None
            if remover is not None:
                expired.update(range(max(member.order, 0), order[remover]))
        for position in expired:
            self.transactions[position] = replace(self.transactions[position], expired=True)


def replay(timeline: Timeline, earlier: Iterable[tuple[str, Write]] = ()) -> HudiReplay:
    """Replay all commits. `earlier` are files on disk, with their instant, from before the first commit known."""
    result = HudiReplay()
    for group in _groups_before(timeline.commits):
        result.live[group] = {"": Member("", False, "", "", _BEFORE, None, None)}
    older = sorted(earlier, key=lambda pair: (pair[0], pair[1].path))
    for order, (instant, write) in enumerate(older, start=-len(older)):
        result.live.get(write.group, {}).pop("", None)
        _apply(result, _Batch(instant, instant, order, (write,)))
    count = sum(len(files) for files in result.live.values())
    named_by_commit = timeline.logs_named_by_commit
    parent: str | None = None
    for order, commit in enumerate(timeline.commits):
        before = count
        batch = _Batch(commit.id, commit.completed, order, commit.writes, commit.replaced, named_by_commit)
        added, gone = _apply(result, batch)
        count = before + len(added) - len(gone)
        rewrite = commit.operation in _REWRITES or _is_unnamed_compaction(commit, timeline)
        change = _change(commit, removed=len(gone), keeps=before > len(gone), rewrite=rewrite)
        result.transactions.append(
            Transaction(
                id=commit.id,
                parent_id=parent,
                kind=kind_of(change),
                committed_at=commit.at,
                starts_view=parent is None or starts_view(change),
                operation=commit.operation.lower(),
                rows_added=_total(m.rows for m in added),
                rows_removed=_total(m.rows for m in gone),
                files_added=len(added),
                files_removed=len(gone),
                bytes_added=_total(m.bytes for m in added),
                bytes_removed=_total(m.bytes for m in gone),
                rows_kind=_rows_kind(commit)
                if kind_of(change) in (TransactionKind.UPDATE, TransactionKind.SNAPSHOT)
                else None,
            )
        )
        parent = commit.id
    return result


def _is_unnamed_compaction(commit: HudiCommit, timeline: Timeline) -> bool:
    """Old versions of Hudi did not name the operation; on merge-on-read only a compaction is a plain commit."""
    return commit.operation in ("", "UNKNOWN") and commit.action == "commit" and timeline.merge_on_read


def _change(commit: HudiCommit, *, removed: int, keeps: bool, rewrite: bool) -> FileChange:
    logs = [w for w in commit.writes if _is_log(w.path)]
    return FileChange(
        # Log files with nothing but deletes are delete files, not data files (formats.md).
        added=len(commit.writes) - len(logs) + sum(1 for w in logs if w.rows),
        removed=removed,
        keeps=keeps,
        adds_deletes=not rewrite and any(w.deletes or w.updates for w in logs),
        rewrite=rewrite,
    )


def _rows_kind(commit: HudiCommit) -> TransactionKind | None:
    """What a commit that wrote files anew did to rows; None where it changed some, or where nothing tells.

    Hudi packs new rows into small files, and deletes single rows, by a new file in the place of the old one.
    """
    if commit.replaced or any(w.updates for w in commit.writes):
        return None
    if commit.operation in _DELETES:
        return TransactionKind.DELETE
    return TransactionKind.APPEND if commit.operation in _WRITES and not any(w.deletes for w in commit.writes) else None


@dataclass(frozen=True, slots=True)
class _Batch:
    """What one instant wrote and replaced."""

    id: str
    completed: str
    order: int
    writes: tuple[Write, ...]
    replaced: tuple[Group, ...] = ()
    named_by_commit: bool = True


def _apply(result: HudiReplay, batch: _Batch) -> tuple[list[Member], list[Member]]:
    """Bring one instant into the state: the files that came and the files that went."""
    added: list[Member] = []
    gone: list[Member] = []
    for group in batch.replaced:
        result.steps.setdefault(group, []).append(ReplayedInstant(batch.order, batch.id, whole=True))
        result.last_touch[group[0]] = batch.id
        gone.extend(result.live.pop(group, {}).values())
    for write in batch.writes:
        result.last_touch[write.group[0]] = batch.id
        files = result.live.setdefault(write.group, {})
        member = _member(write, batch)
        if not member.is_log:
            result.steps.setdefault(write.group, []).append(ReplayedInstant(batch.order, batch.id, whole=False))
            old = [path for path, m in files.items() if path != write.path and _superseded(m, batch.id)]
            gone.extend(files.pop(path) for path in old)
        if write.path not in result.written:  # before version 8 a commit may append to a log file that is there
            result.written[write.path] = files[write.path] = member
            result.members[write.path] = (write.group, member)
            added.append(member)
    return added, gone


def _member(write: Write, batch: _Batch) -> Member:
    name = LOG_NAME.match(write.path.rsplit("/", 1)[-1])
    completed = batch.completed if name is None or batch.named_by_commit else name.group(2)
    return Member(write.path, name is not None, batch.id, completed, batch.order, write.rows, write.bytes)


def _is_log(path: str) -> bool:
    return LOG_NAME.match(path.rsplit("/", 1)[-1]) is not None


def _superseded(member: Member, by: str) -> bool:
    """Whether a base file of instant `by` holds what this file held.

    A log file that was completed after a compaction had been requested is not in it, and belongs to the new base file.
    """
    return not member.is_log or member.completed < by


def _groups_before(commits: Sequence[HudiCommit]) -> list[Group]:
    """Groups that were there before the first commit that is known: their first mention is not their creation."""
    seen: set[Group] = set()
    before: list[Group] = []
    for commit in commits:
        writes = {w.group: w for w in commit.writes}
        for group in (*commit.replaced, *writes):
            if group in seen:
                continue
            seen.add(group)
            write = writes.get(group)
            if group in commit.replaced or (write is not None and _continues(write)):
                before.append(group)
    return before


def _continues(write: Write) -> bool:
    if _is_log(write.path):
        return bool(write.updates or write.deletes)
    return write.replaces


def _total(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
