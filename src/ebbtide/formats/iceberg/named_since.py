"""What the plan could not see: references that came, or moved, between it and the commit."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRef, SnapshotRefType

from ebbtide.formats.iceberg.position import needed_for_position


def refs_now(table: TableMetadata) -> dict[int, list[str]]:
    """The snapshots that a branch or tag names, with the names."""
    named: dict[int, list[str]] = {}
    for name, ref in table.refs.items():
        named.setdefault(ref.snapshot_id, []).append(f"{ref.snapshot_ref_type} {name}")
    if table.current_snapshot_id not in (None, -1, *named):
        named[int(table.current_snapshot_id or 0)] = ["the current version"]
    return named


def kept_now(planned: TableMetadata, now: TableMetadata) -> dict[str, str]:
    """Snapshots that may not go any more, each with the reason: `now` against what the plan looked at.

    A name protects its snapshot, whenever it was made. One that the plan did not know, or that moved to another line,
    protects that whole line, because the plan did not weigh it; a branch that only grew was weighed. A staged snapshot
    that was published since is no longer only staged.
    """
    kept: dict[str, str] = {}
    for name, ref in now.refs.items():
        if not _only_grew(planned.refs.get(name), ref, now):
            for id_ in _line(ref.snapshot_id, now):
                kept[str(id_)] = f"{ref.snapshot_ref_type} {name} was made or moved since the plan, and reaches it"
    known = {snapshot.snapshot_id for snapshot in planned.snapshots}
    fresh = [s.summary.additional_properties for s in now.snapshots if s.snapshot_id not in known and s.summary]
    picked = {properties.get("source-snapshot-id") for properties in fresh}
    published = {properties["published-wap-id"] for properties in fresh if "published-wap-id" in properties}
    for snapshot in now.snapshots:
        staged_as = snapshot.summary.additional_properties.get("wap.id") if snapshot.summary else None
        if str(snapshot.snapshot_id) in picked or staged_as in published:
            kept[str(snapshot.snapshot_id)] = "it was published since the plan"
    for id_ in needed_for_position(now):
        kept[str(id_)] = "a mirror knows by it how far the log is in the table"
    for id_, names in refs_now(now).items():
        kept[str(id_)] = f"{', '.join(sorted(names))} names it"
    return kept


def _only_grew(before: SnapshotRef | None, ref: SnapshotRef, now: TableMetadata) -> bool:
    if before is None or before.snapshot_ref_type != ref.snapshot_ref_type:
        return False
    if before.snapshot_id == ref.snapshot_id:
        return True
    return ref.snapshot_ref_type == SnapshotRefType.BRANCH and before.snapshot_id in _line(ref.snapshot_id, now)


def _line(head: int, table: TableMetadata) -> Iterator[int]:
    """A snapshot and those before it, as far as they are kept."""
    parents = {snapshot.snapshot_id: snapshot.parent_snapshot_id for snapshot in table.snapshots}
    at: int | None = head
    while at in parents:
        yield at
        at = parents[at]
