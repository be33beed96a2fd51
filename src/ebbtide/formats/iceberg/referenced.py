"""Every file that the versions of an Iceberg table need, and the metadata files that its log names."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ebbtide.formats.iceberg.avro import Status
from ebbtide.formats.iceberg.metadata import MetadataFiles
from ebbtide.model.dataset import Catalog
from ebbtide.model.paths import normalise
from ebbtide.storage.files import open_store


def referenced(files: MetadataFiles, *, without: Collection[int] = ()) -> dict[str, int]:
    """Paths, with their bytes where metadata says them. `without` are versions that do not count."""
    table = files.table
    found = {normalise(entry.metadata_file): 0 for entry in table.metadata_log}
    for statistics in (*table.statistics, *table.partition_statistics):
        if statistics.snapshot_id not in without:
            found[normalise(statistics.statistics_path)] = statistics.file_size_in_bytes
    seen: set[str] = set()
    for snapshot in table.snapshots:
        if snapshot.snapshot_id in without:
            continue
        found[normalise(snapshot.manifest_list or "")] = 0
        for manifest in files.manifests(snapshot):
            if manifest.path not in seen:
                seen.add(manifest.path)
                found[normalise(manifest.path)] = manifest.length
                found |= {e.path: e.bytes for e in files.entries(manifest) if e.status is not Status.DELETED}
    return found


def sizes_in(files: MetadataFiles, named: Mapping[str, int], catalog: Catalog) -> dict[str, int]:
    """The same, with the bytes of metadata files as the store has them."""
    if all(named.values()):
        return dict(named)
    store, folders = (
        open_store(files.location, catalog.options),
        {path.rpartition("/")[0] for path, n in named.items() if not n},
    )
    there = {entry.path: entry.bytes for folder in folders for entry in store.list(folder) if not entry.is_folder}
    return {path: size or there.get(path, 0) for path, size in named.items()}
