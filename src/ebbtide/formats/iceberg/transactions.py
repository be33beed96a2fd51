"""Iceberg snapshots as transactions: kinds, views and staging (formats.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from pyiceberg.table.snapshots import Operation, Snapshot

from ebbtide.formats.iceberg.avro import Manifest, Status
from ebbtide.formats.iceberg.metadata import MetadataFiles
from ebbtide.model.history import FileChange, Ref, RefKind, Transaction, kind_of, starts_view

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAIN = "main"


def refs_of(files: MetadataFiles) -> tuple[Ref, ...]:
    """Branches and tags. `main` is always there, without a head while the table has no commit of its own."""
    refs = [
        Ref(name, RefKind(ref.snapshot_ref_type), str(ref.snapshot_id), name == _MAIN)
        for name, ref in files.table.refs.items()
    ]
    if _MAIN not in files.table.refs:
        current = files.table.current_snapshot_id
        refs.append(Ref(_MAIN, RefKind.BRANCH, None if current in (None, -1) else str(current), True))
    return tuple(sorted(refs, key=lambda ref: (ref.kind, ref.name)))


def transactions_of(files: MetadataFiles, refs: tuple[Ref, ...]) -> tuple[Transaction, ...]:
    snapshots = sorted(files.table.snapshots, key=lambda s: (s.sequence_number or 0, s.timestamp_ms))
    staged = staged_of(snapshots, refs)
    return tuple(_transaction(files, snapshot, snapshots, snapshot.snapshot_id in staged) for snapshot in snapshots)


def staged_of(snapshots: Sequence[Snapshot], refs: tuple[Ref, ...]) -> set[int]:
    """Snapshots that were written but not published: they have a `wap.id`, and neither a ref nor a copy of theirs."""
    parents = {s.snapshot_id: s.parent_snapshot_id for s in snapshots}
    reached: set[int] = set()
    for ref in refs:
        at = int(ref.head) if ref.head else None
        while at is not None and at in parents and at not in reached:
            reached.add(at)
            at = parents[at]
    summaries = [_properties(s) for s in snapshots]
    published = {p["published-wap-id"] for p in summaries if "published-wap-id" in p}
    picked = {p["source-snapshot-id"] for p in summaries if "source-snapshot-id" in p}
    return {
        s.snapshot_id
        for s, properties in zip(snapshots, summaries, strict=True)
        if (wap := properties.get("wap.id")) is not None
        and s.snapshot_id not in reached
        and wap not in published
        and str(s.snapshot_id) not in picked
    }


def _transaction(files: MetadataFiles, snapshot: Snapshot, all_: list[Snapshot], staged: bool) -> Transaction:
    properties = _properties(snapshot)
    change = _change(files, snapshot, all_)
    deleted = _number(properties, "deleted-records") + _number(properties, "added-position-deletes")
    return Transaction(
        id=str(snapshot.snapshot_id),
        parent_id=None if snapshot.parent_snapshot_id is None else str(snapshot.parent_snapshot_id),
        kind=kind_of(change),
        committed_at=_EPOCH + timedelta(milliseconds=snapshot.timestamp_ms),
        starts_view=starts_view(change),
        staged=staged,
        operation=str(snapshot.summary.operation.value) if snapshot.summary else "",
        rows_added=_number(properties, "added-records"),
        # Position deletes that go with their data file, or that a newer vector replaces, were counted before.
        rows_removed=max(0, deleted - _number(properties, "removed-position-deletes")),
        files_added=change.added,
        files_removed=change.removed,
        bytes_added=_number(properties, "added-files-size"),
        bytes_removed=_number(properties, "removed-files-size"),
    )


def _change(files: MetadataFiles, snapshot: Snapshot, all_: list[Snapshot]) -> FileChange:
    properties = _properties(snapshot)
    if snapshot.summary is None or not any(key in properties for key in _COUNTS):
        added, removed, deletes = _counts_from_manifests(files, snapshot)
    else:
        added, removed = _number(properties, "added-data-files"), _number(properties, "deleted-data-files")
        deletes = _number(properties, "added-delete-files")
    # Only a transaction that removed files can end a view; the others need no manifest list.
    keeps = True if not removed else _keeps(files, snapshot)
    rewrite = snapshot.summary is not None and snapshot.summary.operation == Operation.REPLACE
    revives = bool(removed) and not keeps and _revives(files, snapshot, all_)
    return FileChange(added, removed, keeps, bool(deletes), rewrite, revives)


_COUNTS = ("added-data-files", "deleted-data-files", "total-data-files", "added-delete-files")


def _counts_from_manifests(files: MetadataFiles, snapshot: Snapshot) -> tuple[int, int, int]:
    """Added and removed data files and added delete files, for snapshots whose summary does not count them."""
    own = [m for m in files.manifests(snapshot) if m.added_by == snapshot.snapshot_id]
    data = [m for m in own if m.holds_data]
    deletes = [m for m in own if not m.holds_data]
    return (
        sum(_count(files, m, Status.ADDED, m.added) for m in data),
        sum(_count(files, m, Status.DELETED, m.deleted) for m in data),
        sum(_count(files, m, Status.ADDED, m.added) for m in deletes),
    )


def _count(files: MetadataFiles, manifest: Manifest, status: Status, counted: int | None) -> int:
    """Entries of a status, by the list's count where an old writer did not leave it out."""
    return sum(1 for e in files.entries(manifest) if e.status is status) if counted is None else counted


def _keeps(files: MetadataFiles, snapshot: Snapshot) -> bool:
    """Whether a data file from before is live: some live data manifest is older, or has existing entries."""
    for manifest in files.manifests(snapshot):
        if not manifest.holds_data:
            continue
        if manifest.added is None or manifest.existing is None:  # old writers leave them out
            statuses = {e.status for e in files.entries(manifest)}
            added, existing = Status.ADDED in statuses, Status.EXISTING in statuses
        else:
            added, existing = bool(manifest.added), bool(manifest.existing)
        if existing or (added and manifest.added_by != snapshot.snapshot_id):
            return True
    return False


def _revives(files: MetadataFiles, snapshot: Snapshot, all_: list[Snapshot]) -> bool:
    """Whether a file that this snapshot added had been added by an earlier one (a cherry-pick, a file added again)."""
    if "source-snapshot-id" in _properties(snapshot):
        return True
    added = {path for m in files.manifests(snapshot) for path in _added_paths(files, m)}
    seen: set[str] = set()
    for other in all_[: all_.index(snapshot)]:
        for manifest in files.manifests(other):
            if manifest.path not in seen:
                seen.add(manifest.path)
                if not added.isdisjoint(e.path for e in files.entries(manifest)):
                    return True
    return False


def _added_paths(files: MetadataFiles, manifest: Manifest) -> Iterator[str]:
    if manifest.holds_data:
        yield from (e.path for e in files.entries(manifest) if e.status is Status.ADDED)


def _properties(snapshot: Snapshot) -> dict[str, str]:
    return snapshot.summary.additional_properties if snapshot.summary else {}


def _number(properties: dict[str, str], key: str) -> int:
    return int(properties.get(key) or 0)
