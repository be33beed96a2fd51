"""Every physical file that a retained version of an Iceberg table references (formats.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ebbtide.formats.iceberg.avro import Manifest, ManifestContent, ManifestEntry, Status
from ebbtide.formats.iceberg.metadata import MetadataFiles
from ebbtide.formats.iceberg.partitions import IcebergPartitionNames
from ebbtide.model.dataset import FileRef, Role
from ebbtide.model.history import Ref, RefKind, Transaction
from ebbtide.model.paths import normalise
from ebbtide.storage.files import Store

_DELETES_OLD = "write.metadata.delete-after-commit.enabled"


def files_of(
    files: MetadataFiles,
    refs: tuple[Ref, ...],
    transactions: tuple[Transaction, ...],
    names: IcebergPartitionNames,
    store: Store,
) -> tuple[FileRef, ...]:
    folder = normalise(files.location).rsplit("/", 1)[0]
    sizes = {entry.path: entry.bytes for entry in store.list(folder) if not entry.is_folder}
    heads = {int(ref.head) for ref in refs if ref.kind is RefKind.BRANCH and ref.head}
    masks = {int(t.id): 1 << n for n, t in enumerate(transactions)}
    found = [
        *_metadata_files(files, sizes),
        *_statistics(files, masks),
        *_manifests(files, heads, sizes, masks),
        *_content_files(files, heads, names, masks),
    ]
    return _merged(found)


def _merged(found: Iterable[FileRef]) -> tuple[FileRef, ...]:
    """One reference per file: whoever names it, however it is spelled, needs it."""
    merged: dict[str, FileRef] = {}
    for ref in found:
        if (known := merged.get(ref.path)) is not None:
            both = (known.versions or 0) | (ref.versions or 0)
            ref = replace(known, live=known.live or ref.live, versions=both)
        merged[ref.path] = ref
    return tuple(merged[path] for path in sorted(merged))


def _metadata_files(files: MetadataFiles, sizes: dict[str, int]) -> Iterator[FileRef]:
    """The current metadata file, every earlier one that the logs still name, and Hadoop's version hint.

    What the current log names is referenced, there or not, unless the table lets Iceberg delete old ones after a
    commit. Those before it are referenced where they are there: nothing tells whether Iceberg deleted the others.
    """
    current = normalise(files.location)
    folder = current.rsplit("/", 1)[0]
    yield FileRef(current, Role.METADATA, sizes.get(current), None, True, versions=0)
    seen = {current}
    log = files.table.metadata_log
    kept = files.table.properties.get(_DELETES_OLD, "false").lower() != "true"
    while log:
        there: list[str] = []
        for entry in log:
            path = normalise(entry.metadata_file)
            if path in seen:
                continue
            seen.add(path)
            # One that was written to another folder is not in the listing.
            if path in sizes or (path.rsplit("/", 1)[0] != folder and files.is_there(entry.metadata_file)):
                there.append(entry.metadata_file)
            elif not kept:
                continue
            yield FileRef(path, Role.METADATA, sizes.get(path), None, False, versions=0)
        # A log keeps the last hundred; the oldest of them knows those before.
        log = files.open(there[0]).metadata_log if there else []
        kept = False
    hint = f"{folder}/version-hint.text"
    if hint in sizes:
        yield FileRef(hint, Role.METADATA, sizes[hint], None, True, versions=0)


def _statistics(files: MetadataFiles, masks: dict[int, int]) -> Iterator[FileRef]:
    for statistics in (*files.table.statistics, *files.table.partition_statistics):
        path, snapshot = normalise(statistics.statistics_path), str(statistics.snapshot_id)
        live = any(str(ref.snapshot_id) == snapshot for ref in files.table.refs.values())
        mask = masks.get(statistics.snapshot_id, 0)
        yield FileRef(path, Role.STATISTICS, statistics.file_size_in_bytes, snapshot, live, versions=mask)


def _manifests(
    files: MetadataFiles, heads: set[int], sizes: dict[str, int], masks: dict[int, int]
) -> Iterator[FileRef]:
    manifests: dict[str, tuple[Manifest, bool, int]] = {}
    for snapshot in files.table.snapshots:
        id_ = snapshot.snapshot_id
        path, live = normalise(snapshot.manifest_list or ""), id_ in heads
        for manifest in files.manifests(snapshot):
            _, was_live, mask = manifests.get(manifest.path, (None, False, 0))
            manifests[manifest.path] = (manifest, live or was_live, mask | masks[id_])
        yield FileRef(path, Role.MANIFEST_LIST, sizes.get(path), str(id_), live, versions=masks[id_])
    for path, (manifest, live, mask) in manifests.items():
        added_by = None if manifest.added_by is None else str(manifest.added_by)
        yield FileRef(normalise(path), Role.MANIFEST, manifest.length, added_by, live, versions=mask)


def _content_files(
    files: MetadataFiles, heads: set[int], names: IcebergPartitionNames, masks: dict[int, int]
) -> Iterator[FileRef]:
    """Data files, delete files and deletion vectors, from each distinct manifest once."""
    manifests: dict[str, Manifest] = {}
    versions_of: dict[str, int] = {}
    in_heads: set[str] = set()
    for snapshot in files.table.snapshots:
        for manifest in files.manifests(snapshot):
            path = manifest.path
            manifests[path] = manifest
            versions_of[path] = versions_of.get(path, 0) | masks[snapshot.snapshot_id]
            if snapshot.snapshot_id in heads:
                in_heads.add(path)
    known: dict[str, ManifestEntry] = {}
    specs: dict[str, int] = {}
    added: dict[str, int] = {}
    removed: dict[str, set[int]] = {}
    live: set[str] = set()
    versions: dict[str, int] = {}
    for manifest in manifests.values():
        for entry in files.entries(manifest):
            path, by = entry.path, entry.by
            if entry.status is Status.DELETED:
                if by is not None:
                    removed.setdefault(path, set()).add(by)
                continue
            known[path], specs[path] = entry, manifest.spec_id
            versions[path] = versions.get(path, 0) | versions_of[manifest.path]
            if manifest.path in in_heads:
                live.add(path)
            # A file that was added twice (cherry-pick) belongs to the first; an expired adder is older than any other.
            if by is not None and (path not in added or masks.get(by, 0) < masks.get(added[path], 0)):
                added[path] = by
    for path, entry in known.items():
        yield FileRef(
            path=path,
            role=_role(entry),
            bytes=entry.bytes,
            first_transaction=str(added[path]) if path in added else None,
            live=path in live,
            removed_by=tuple(str(by) for by in sorted(removed.get(path, ()))),
            partition=names.id_of(specs[path], entry.values),
            rows=entry.rows,
            versions=versions[path],
        )


def _role(entry: ManifestEntry) -> Role:
    if entry.content is ManifestContent.DATA:
        return Role.DATA
    return Role.DELETION_VECTOR if entry.format == "PUFFIN" else Role.DELETE_FILE
