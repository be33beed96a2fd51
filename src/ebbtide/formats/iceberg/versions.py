"""Rows of every retained version of an Iceberg table, by scan tasks that are staged for Iceberg's own reader.

A data file is planned by one version that holds it, and read without its deletes; only a file in which somebody was
found is read again, once for each set of deletes that some version has for it. A file whose bounds say that it holds
none of those who are looked for is not read at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ebbtide.errors import UnreadableError
from ebbtide.formats.iceberg.edits import AvroRecords, EntryRecord, entries_of
from ebbtide.formats.iceberg.java import load_table
from ebbtide.formats.iceberg.key_deletes import keys_in, may_tell
from ebbtide.formats.iceberg.metadata import MetadataFiles
from ebbtide.formats.iceberg.staging import Staging, deletes_of
from ebbtide.formats.iceberg.traces import PATH, Traces
from ebbtide.formats.versions import PART, Retained, VersionLook, VersionRows
from ebbtide.model.paths import normalise


class _IcebergVersionTable:
    """One table in the session's JVM, and the tasks of its versions."""

    def __init__(self, look: VersionLook) -> None:
        found = load_table(look.retained.found.id, look.spark)
        if found is None:
            id_ = str(look.retained.found.id)
            raise UnreadableError(id_, "its catalog does not list it any more", hint="scan again")
        self._staging = Staging(look.spark, found, look.until)
        self._files = MetadataFiles(look.retained.found, look.catalog)

    def tasks(self, snapshot: str) -> Iterator[tuple[str, Any]]:
        """The data files of a version; none where it went since: then its files went, or another version has them."""
        return self._staging.tasks(int(snapshot))

    def bare(self, task: Any) -> Any:
        return self._staging.bare(task)

    def keys_in(self, deletes: dict[str, EntryRecord]) -> Iterator[VersionRows]:
        return keys_in(self._staging, self._files, deletes)

    def staged(self, tasks: Collection[Any], held: dict[str, int]) -> VersionRows:
        """The rows of these tasks; of each file no more than one."""
        from pyspark.sql import functions as F

        frame = self._staging.read(self._staging.stage(tasks))
        return VersionRows(frame.withColumn(PART, F.input_file_name()), held)


class _IcebergVersions:
    def stored(self, look: VersionLook, /) -> tuple[VersionRows, ...]:
        tasks, held = list[Any](), dict[str, int]()
        retained, (clear, keys) = look.retained, _told(look)
        if retained.data and retained.data.keys() <= clear and not keys:
            return ()
        table = _IcebergVersionTable(look)
        for position, mine in retained.covering():
            wanted = mine - clear
            for path, task in table.tasks(retained.ids[position]) if wanted else ():
                if path in wanted and path not in held:
                    held[path] = retained.data[path]
                    tasks.append(table.bare(task))
        known = held.keys() | clear
        lost = sum(1 for path, bits in retained.data.items() if bits & retained.readable and path not in known)
        if lost:
            raise UnreadableError(str(retained.found.id), f"{lost} data files are in no version now", hint="scan again")
        by_key = table.keys_in(keys) if keys else ()
        return (*((table.staged(tasks, held),) if tasks else ()), *by_key)

    def visible(self, look: VersionLook, parts: Collection[str], /) -> tuple[VersionRows, ...]:
        retained = look.retained
        bits = retained.hiding & retained.readable & _any_of(retained, parts)
        if not bits:
            return ()
        table, found = _IcebergVersionTable(look), dict[tuple[str, ...], tuple[str, Any, int]]()
        for position in retained.positions(bits):
            for path, task in table.tasks(retained.ids[position]):
                deletes = deletes_of(task) if path in parts else ()
                if deletes:
                    _, first, before = found.get((path, *deletes), (path, task, 0))
                    found[(path, *deletes)] = (path, first, before | 1 << position)
        layers: list[dict[str, tuple[Any, int]]] = []
        for (
            path,
            task,
            versions,
        ) in found.values():  # of each file one set of deletes in a frame: rows say the file only
            layer = next((layer for layer in layers if path not in layer), None)
            if layer is None:
                layers.append(layer := {})
            layer[path] = (task, versions)
        return tuple(
            table.staged(
                [task for task, _ in layer.values()], {path: versions for path, (_, versions) in layer.items()}
            )
            for layer in layers
        )


def _told(look: VersionLook) -> tuple[frozenset[str], dict[str, EntryRecord]]:
    """What metadata says of those who are looked for: the data files that hold none of them, by their bounds in every
    manifest that has them, and deletes that may be by the key of one.
    """
    if look.people is None:
        return frozenset(), {}
    files = MetadataFiles(look.retained.found, look.catalog)
    try:
        traces = Traces(look.people, files.table)
        clear = _clear(files, traces) if traces.by_bounds and not look.all_parts else frozenset[str]()
        return clear, may_tell(files, traces)
    except UnreadableError:  # what was retained is read, or is told of, by who reads rows
        return frozenset(), {}


def _clear(files: MetadataFiles, traces: Traces) -> frozenset[str]:
    clear, others, opened = set[str](), set[str](), set[str]()
    for snapshot in files.table.snapshots:
        for manifest in files.manifests(snapshot):
            if manifest.holds_data and manifest.path not in opened:
                opened.add(manifest.path)
                for entry in entries_of(AvroRecords.of(files.content(manifest.path))):
                    (others if traces.may_hold(entry) else clear).add(normalise(entry.get(PATH)))
    return frozenset(clear - others)


def _any_of(retained: Retained, parts: Collection[str]) -> int:
    found = 0
    for part in parts:
        found |= retained.data.get(part, 0)
    return found


VERSIONS = _IcebergVersions()
