"""Which versions of an Iceberg table hold some data files, and what an erasure may make of each of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import VoidTransform

from ebbtide.formats.erasing import Erasure, Fate, ForeseenVersion, VersionFate
from ebbtide.formats.iceberg.avro import Manifest, ManifestContent, Status
from ebbtide.formats.iceberg.edits import AvroRecords, entries_of
from ebbtide.formats.iceberg.metadata import MetadataFiles
from ebbtide.formats.iceberg.traces import Traces
from ebbtide.formats.iceberg.transactions import refs_of, staged_of
from ebbtide.model.dataset import Catalog
from ebbtide.model.paths import normalise

IN_PLACE = ("jdbc", "hadoop")
"""Catalogs in which versions were seen to be rewritten under their ids. A REST catalog is sent changes only."""
_PATH, _FORMAT, _CONTENT = 100, 101, 134
_ENCRYPTED = "encryption.key-id"
_VECTORS = "PUFFIN"
"""What has positions alone."""


class Survey:
    """The versions of one table as its metadata has them. Every manifest is opened once, and its files are kept once,
    however many versions have it: no version has a list of its own.
    """

    def __init__(self, files: MetadataFiles, traces: Traces) -> None:
        self.files, self.traces = files, traces
        self._live: dict[str, frozenset[str]] = {}
        self._deleting: dict[str, frozenset[str]] = {}

    @property
    def table(self) -> TableMetadata:
        return self.files.table

    @cached_property
    def every(self) -> frozenset[str]:
        """The live data files of all versions, by their one spelling."""
        return frozenset[str]().union(*(live for each in self.table.snapshots for live in self._live_of(each)))

    def among(self, id_: int, paths: Collection[str]) -> set[str]:
        """Those of these paths that are live data files of a version."""
        wanted = frozenset(paths)
        return set[str]().union(*(live & wanted for live in self._live_of(self._version(id_))))

    def beside(self, id_: int, paths: Collection[str]) -> set[str]:
        """The live data files of a version that are none of these."""
        known = frozenset(paths)
        return set[str]().union(*(live - known for live in self._live_of(self._version(id_))))

    @cached_property
    def outdated(self) -> frozenset[int]:
        """Partition specs by which nothing can be written any more: a column of theirs was dropped."""
        there = self.table.schema()._lazy_id_to_name.keys()
        return frozenset(
            spec.spec_id
            for spec in self.table.partition_specs
            if any(not isinstance(f.transform, VoidTransform) and f.source_id not in there for f in spec.fields)
        )

    def deleting(self, snapshot: Snapshot) -> frozenset[str]:
        """The live files of deletes of a version that may hold somebody: keys, or rows that older writers put beside
        positions.
        """
        found = frozenset[str]()
        for manifest in self.files.manifests(snapshot):
            if not manifest.holds_data:
                found |= self._deleting_of(manifest)
        return found

    def called(self, snapshot: Snapshot) -> frozenset[str]:
        """The live data files of a version whose partition may be called by somebody: their paths name it."""
        if not self.traces.by_partition:
            return frozenset()
        return frozenset(
            entry.path
            for manifest in self.files.manifests(snapshot)
            if manifest.holds_data
            for entry in self.files.entries(manifest)
            if entry.status is not Status.DELETED and self.traces.in_values(manifest.spec_id, entry.values)
        )

    def holding(self, hits: Collection[str]) -> set[int]:
        """The versions that hold one of these data files, or a delete by the key of somebody."""
        wanted = frozenset(hits)
        return {
            each.snapshot_id
            for each in self.table.snapshots
            if any(live & wanted for live in self._live_of(each)) or self.deleting(each)
        }

    def _version(self, id_: int) -> Snapshot:
        found = self.table.snapshot_by_id(id_)
        assert found is not None
        return found

    def _live_of(self, snapshot: Snapshot) -> Iterator[frozenset[str]]:
        for manifest in self.files.manifests(snapshot):
            if manifest.holds_data:
                if manifest.path not in self._live:
                    entries = self.files.entries(manifest)
                    self._live[manifest.path] = frozenset(e.path for e in entries if e.status is not Status.DELETED)
                yield self._live[manifest.path]

    def _deleting_of(self, manifest: Manifest) -> frozenset[str]:
        if manifest.path not in self._deleting:
            live = (
                entry
                for entry in entries_of(AvroRecords.of(self.files.content(manifest.path)))
                if entry.status != Status.DELETED
                and entry.get(_CONTENT) != ManifestContent.DATA
                and str(entry.get(_FORMAT)).upper() != _VECTORS
            )
            self._deleting[manifest.path] = frozenset(
                normalise(entry.get(_PATH)) for entry in live if self.traces.in_deleting(entry)
            )
        return self._deleting[manifest.path]


def fates(
    survey: Survey, holding: Collection[int], erasure: Erasure, catalog: Catalog
) -> Mapping[int, ForeseenVersion]:
    """What becomes of each version; the head of a branch is a version of before once the branch was rewritten."""
    table, tags = survey.table, set(tags_of(survey.table).values())
    staged = staged_of(table.snapshots, refs_of(survey.files))
    found: dict[int, ForeseenVersion] = {}
    for snapshot in table.snapshots:
        id_ = snapshot.snapshot_id
        if id_ not in holding:
            found[id_] = ForeseenVersion(Fate.CLEAN)
        elif (why := erasure.kept.get(str(id_))) is not None:
            found[id_] = ForeseenVersion(Fate.STAYS, why.text)
        else:
            found[id_] = _fate(snapshot, survey, erasure.history, id_ in tags, catalog)
            if id_ in staged and found[id_].fate is Fate.EXPIRES:
                found[id_] = ForeseenVersion(Fate.STAYS, "it is staged: before it is published it may not end")
    return found


def _fate(snapshot: Snapshot, survey: Survey, history: VersionFate, tagged: bool, catalog: Catalog) -> ForeseenVersion:
    if history is VersionFate.REFUSE:
        return ForeseenVersion(Fate.STAYS, "its table says that versions stay until retention takes them")
    wanted = history is VersionFate.REWRITE or (history is VersionFate.REFS and tagged)
    why = _not_in_place(snapshot, survey, catalog) if wanted else None
    if wanted and why is None:
        return ForeseenVersion(Fate.REWRITTEN)
    if tagged and wanted and _is_as_now(snapshot, survey.table):
        return ForeseenVersion(Fate.EXPIRES, f"{why}; its tags are put on a version without them")
    if tagged:
        return ForeseenVersion(Fate.STAYS, why or "its table says that tags are not rewritten")
    return ForeseenVersion(Fate.EXPIRES, why)


def _not_in_place(snapshot: Snapshot, survey: Survey, catalog: Catalog) -> str | None:
    """Why a version cannot be rewritten under its id."""
    table = survey.table
    type_ = catalog.type or "hadoop"
    if type_ not in IN_PLACE:
        return f"a catalog of the type {type_} does not let a version be rewritten under its id"
    if _ENCRYPTED in table.properties:
        return "the table is encrypted"
    if not _has_schema_of_now(snapshot, table):
        return "it has another schema than the table has now"
    if any(m.holds_data and m.spec_id in survey.outdated for m in survey.files.manifests(snapshot)):
        return "it has files partitioned by a column that the table has no more"
    return None


def _is_as_now(snapshot: Snapshot, table: TableMetadata) -> bool:
    """Whether a version that is made of this one now reads as this one did."""
    return _ENCRYPTED not in table.properties and _has_schema_of_now(snapshot, table)


def _has_schema_of_now(snapshot: Snapshot, table: TableMetadata) -> bool:
    of = snapshot.schema_id
    return of == table.current_schema_id or (of is None and len(table.schemas) == 1)


def tags_of(table: TableMetadata) -> dict[str, int]:
    """The versions that tags name."""
    return {name: ref.snapshot_id for name, ref in table.refs.items() if ref.snapshot_ref_type == "tag"}
