"""Taking data files out of the heads of branches: all drops of a branch in one commit, by their exact list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ebbtide.formats.conflicts import retry_on_conflict
from ebbtide.formats.iceberg.avro import Status
from ebbtide.formats.iceberg.java import CONFLICTS, Base, IcebergJavaTable
from ebbtide.formats.iceberg.partitions import IcebergPartitionNames
from ebbtide.model.removal import Drop


@dataclass(frozen=True, slots=True)
class _Live:
    """A data file of a head: the path as the manifest spells it, which manifest that is, and the file's partition."""

    raw: str
    manifest: str
    partition: str | None


def drop_files(table: IcebergJavaTable, drops: Sequence[Drop]) -> dict[str, str]:
    """Commit the drops, branch by branch; gives those that were sent back, by object."""
    by_branch: dict[str, list[Drop]] = {}
    for drop in drops:
        by_branch.setdefault(drop.branch, []).append(drop)
    sent_back: dict[str, str] = {}
    for branch, each in sorted(by_branch.items()):
        subject = f"{table.found.id} on {branch}"
        sent_back |= retry_on_conflict(subject, CONFLICTS, lambda branch=branch, each=each: _drop(table, branch, each))  # type: ignore[misc]
    return sent_back


def _drop(table: IcebergJavaTable, branch: str, drops: Sequence[Drop]) -> dict[str, str]:
    base = table.refresh()
    ref = base.files.table.refs.get(branch)
    if ref is None or ref.snapshot_ref_type != "branch":
        return {drop.object: f"there is no branch {branch} any more" for drop in drops}
    live = _live_files(base, ref.snapshot_id)
    named = {path for drop in drops for path in drop.paths}
    late: dict[str, int] = {}
    for path, spellings in live.items():
        for partition in {file.partition for file in spellings}:
            if partition is not None and path not in named:
                late[partition] = late.get(partition, 0) + 1
    sent_back = {
        drop.object: f"{late[drop.partition]} files came into the partition since the plan"
        for drop in drops
        if drop.partition in late and drop.partition is not None
    }
    paths = {path for drop in drops if drop.object not in sent_back for path in drop.paths}
    going = [file for path in sorted(paths) for file in live.get(path, ())]
    if going:  # else it was done before, or a writer was first
        manifests = {file.manifest for file in going}
        table.delete_files(base, branch, ref.snapshot_id, manifests, {file.raw for file in going})
    return sent_back


def _live_files(base: Base, head: int) -> dict[str, list[_Live]]:
    """The data files of a head, by their one spelling; a file that was added under two is there twice."""
    names = IcebergPartitionNames(base.files.table)
    snapshot = base.files.table.snapshot_by_id(head)
    live: dict[str, list[_Live]] = {}
    for manifest in base.files.manifests(snapshot) if snapshot else ():
        if manifest.holds_data:
            for entry in base.files.entries(manifest):
                if entry.status is not Status.DELETED:
                    partition = names.id_of(manifest.spec_id, entry.values)
                    live.setdefault(entry.path, []).append(_Live(entry.raw, manifest.path, partition))
    return live
