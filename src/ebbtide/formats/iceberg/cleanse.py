"""New manifests and lists for versions that keep their ids: people's files replaced, and what entries say of them gone.

An entry of a file that is gone loses its bounds, or goes where its partition may be called by somebody. A manifest's
bounds of partitions go as a whole: none at all says that anything may be in it, an empty one that nothing is.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ebbtide.errors import RefusedError
from ebbtide.formats.iceberg.avro import ManifestContent, Status
from ebbtide.formats.iceberg.edits import FIRST_ROW_ID, AvroRecords, EntryRecord, Record, entries_of
from ebbtide.formats.iceberg.going import DeleteKey
from ebbtide.formats.iceberg.metadata import MetadataFiles
from ebbtide.formats.iceberg.traces import LOWER, UPPER, Traces
from ebbtide.model.paths import normalise

_CONTENT, _PATH, _ROWS, _BYTES, _OFFSET = 134, 100, 103, 104, 144
_LIST_PATH, _LENGTH, _SPEC, _PARTITIONS, _KEY, _FIRST = 500, 501, 502, 507, 519, 520
_COUNTED = {Status.ADDED: (504, 512), Status.EXISTING: (505, 513), Status.DELETED: (506, 514)}
"""Fields of a manifest list that count entries of a status, and their rows."""

Described = tuple[AvroRecords, Record]
"""A file as some manifest describes it."""


@dataclass(frozen=True, slots=True)
class VersionChange:
    """What becomes of one version: files by what is left of them, which may be nothing, and deletes that go.

    `variants` tells what is left of a file here from what is left of it in another version.
    """

    swaps: Mapping[str, Sequence[Described]] = field(default_factory=dict)
    variants: Mapping[str, object] = field(default_factory=dict)
    dropped: Collection[DeleteKey] = ()


@dataclass(frozen=True, slots=True)
class _Edited:
    """A manifest that was written anew. Without entries it is in no list any more."""

    path: str
    length: int
    entries: tuple[EntryRecord, ...]


@dataclass(slots=True)
class Cleanser:
    """Writes what is new beside what there is. `written` are these files; nothing refers to them yet."""

    files: MetadataFiles
    traces: Traces
    hits: Collection[str]
    place_of: Callable[[str], str]
    written: list[str] = field(default_factory=list)
    _done: dict[object, _Edited | None] = field(default_factory=dict)
    _paths: dict[str, frozenset[str]] = field(default_factory=dict)

    def version(self, snapshot: Mapping[str, Any], change: VersionChange) -> dict[str, Any] | None:
        """A version in the words of a metadata file; None where there is nothing to change."""
        listed = AvroRecords.of(self.files.content(snapshot["manifest-list"]))
        names, rows, edited = listed.names, list[Record](), False
        entries: list[Iterable[EntryRecord]] = []
        for record in listed.records:
            row = dict(record)
            new = self._manifest(row, names, change)
            theirs = self.traces.in_summary(row[names[_SPEC]], row.get(names[_PARTITIONS]))
            edited = edited or theirs or new is not None
            if theirs or new is not None:
                row[names[_PARTITIONS]] = None
            if new is not None:
                _describe(row, names, new)
            if new is None or new.entries:
                rows.append(row)
                entries.append(self._entries(row[names[_LIST_PATH]], new))
        summary = self.traces.without_partitions(snapshot.get("summary") or {})
        if change.swaps or change.dropped:
            summary |= {key: value for key, value in _totals(entries).items() if key in summary}
        if not edited and summary == (snapshot.get("summary") or {}):
            return None
        changed = {**snapshot, "summary": summary} if "summary" in snapshot else dict(snapshot)
        if edited:
            changed["manifest-list"] = self._write(
                f"snap-{snapshot['snapshot-id']}-1-{uuid.uuid4()}.avro", listed.written(rows)
            )
        return changed

    def _entries(self, path: str, new: _Edited | None) -> Iterator[EntryRecord]:
        yield from new.entries if new is not None else entries_of(AvroRecords.of(self.files.content(path)))

    def _manifest(self, row: Record, names: Mapping[int, str], change: VersionChange) -> _Edited | None:
        """A manifest as a version has it from now on; None where it stays. Versions share it where they can."""
        if row.get(names.get(_KEY, "")) is not None:
            raise RefusedError("a manifest is encrypted: nothing of it is written anew")
        path = row[names[_LIST_PATH]]
        if path not in self._paths:
            entries = entries_of(AvroRecords.of(self.files.content(path)))
            self._paths[path] = frozenset(normalise(entry.get(_PATH)) for entry in entries)
        mine = self._paths[path]
        swapped = frozenset((each, change.variants.get(each)) for each in mine & change.swaps.keys())
        dropped = frozenset(key for key in change.dropped if key[0] in mine)
        if (path, swapped, dropped) not in self._done:
            container = AvroRecords.of(self.files.content(path))
            first = row.get(names.get(_FIRST, ""))
            self._done[path, swapped, dropped] = self._edit(container, row[names[_SPEC]], first, change)
        return self._done[path, swapped, dropped]

    def _edit(self, container: AvroRecords, spec_id: int, first: int | None, change: VersionChange) -> _Edited | None:
        container = container if first is None else container.knowing_row_ids()
        kept, changed, next_id = list[EntryRecord](), False, first
        for entry in entries_of(container):
            if next_id is not None and entry.status != Status.DELETED and entry.get(FIRST_ROW_ID) is None:
                # Inherited by counting the rows of entries before it, and those change: said of each from now on.
                entry.put(FIRST_ROW_ID, next_id)
                next_id += int(entry.get(_ROWS))
            become = self._become(entry, container, spec_id, change)
            changed = changed or len(become) != 1 or become[0] is not entry
            kept += become
        if not changed:
            return None
        content = container.written([entry.record for entry in kept]) if kept else b""
        path = self._write(f"{uuid.uuid4()}-m0.avro", content) if kept else ""
        return _Edited(path, len(content), tuple(kept))

    def _become(
        self, entry: EntryRecord, container: AvroRecords, spec_id: int, change: VersionChange
    ) -> list[EntryRecord]:
        """The entries that there are in place of one; itself where it stays as it is."""
        path = normalise(entry.get(_PATH))
        if entry.status == Status.DELETED:
            if self.traces.in_partition(spec_id, entry, container.partition_names):
                return []
            if (entry.get(LOWER) or entry.get(UPPER)) and (path in self.hits or self.traces.in_bounds(entry)):
                return [entry.with_file({**entry.file, **{entry.file_names[id_]: None for id_ in (LOWER, UPPER)}})]
            return [entry]
        if (entry.get(_CONTENT) or 0) != ManifestContent.DATA:
            return [] if (path, entry.get(_OFFSET)) in change.dropped else [entry]
        if path not in change.swaps:
            return [entry]
        made = [entry.with_file(container.file_like(other, file)) for other, file in change.swaps[path]]
        for each in made:
            if FIRST_ROW_ID in each.file_names:
                each.put(FIRST_ROW_ID, entry.get(FIRST_ROW_ID))
        return made

    def _write(self, name: str, content: bytes) -> str:
        path = self.place_of(name)
        self.files.write(path, content)
        self.written.append(path)
        return path


def _describe(row: Record, names: Mapping[int, str], new: _Edited) -> None:
    """What a list says of a manifest, of what is in it now."""
    row[names[_LIST_PATH]], row[names[_LENGTH]] = new.path, new.length
    for status, (files, rows) in _COUNTED.items():
        mine = [entry for entry in new.entries if entry.status == status]
        if row.get(names.get(files, "")) is not None:
            row[names[files]] = len(mine)
        if row.get(names.get(rows, "")) is not None:
            row[names[rows]] = sum(int(entry.get(_ROWS)) for entry in mine)


def _totals(manifests: Iterable[Iterable[EntryRecord]]) -> dict[str, str]:
    """What a version's summary counts, and the next commit counts on from."""
    total = dict.fromkeys(
        ("data-files", "records", "files-size", "delete-files", "position-deletes", "equality-deletes"), 0
    )
    for entries in manifests:
        for entry in entries:
            if entry.status == Status.DELETED:
                continue
            content, rows = int(entry.get(_CONTENT) or 0), int(entry.get(_ROWS))
            total["files-size"] += int(entry.get(_BYTES))
            if content == ManifestContent.DATA:
                total["data-files"] += 1
                total["records"] += rows
            else:
                total["delete-files"] += 1
                total["position-deletes" if content == ManifestContent.POSITION_DELETES else "equality-deletes"] += rows
    return {f"total-{name}": str(count) for name, count in total.items()}
