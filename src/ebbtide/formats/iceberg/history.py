"""Versions of before without people, under their own ids: one commit of the whole metadata, nothing of it twice.

A file of theirs is written again for each set of deletes that some version has for it, with the rows that these leave;
a version then names the new file where it named the old one. What metadata says of files that are gone, and older
metadata files that say it, go with the same commit (`cleanse`). Readers in flight have the files of before.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyiceberg.table.metadata import TableMetadataUtil

from ebbtide.formats.conflicts import retry_on_conflict
from ebbtide.formats.erasing import Erasure, Fate, ForeseenVersion, Intend
from ebbtide.formats.iceberg.cleanse import Cleanser, Described, VersionChange
from ebbtide.formats.iceberg.edits import AvroRecords
from ebbtide.formats.iceberg.going import DeleteKey, going_from
from ebbtide.formats.iceberg.heads import Known, Variant
from ebbtide.formats.iceberg.java import CONFLICTS, Base, IcebergJavaTable
from ebbtide.formats.iceberg.logged import naming_people, with_log
from ebbtide.formats.iceberg.referenced import referenced, sizes_in
from ebbtide.formats.iceberg.rewrite import Discard, IcebergRewriter, locations
from ebbtide.formats.iceberg.staging import Staging, deletes_of
from ebbtide.formats.iceberg.survey import IN_PLACE, Survey, fates
from ebbtide.formats.iceberg.traces import Traces
from ebbtide.model.dataset import Catalog
from ebbtide.model.paths import normalise

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class _Wanted:
    """What a version is to lose, and the tasks that it is read by."""

    variants: dict[str, Variant] = field(default_factory=dict)
    dropped: set[DeleteKey] = field(default_factory=set)


@dataclass(slots=True)
class TableVersions:
    """The versions of one table. `made` are files that were written for it, by what they stand for, and `shared` those
    that a version of now has already: every version with the same deletes for a file has the same rows of it.
    """

    table: IcebergJavaTable
    erasure: Erasure
    catalog: Catalog
    spark: SparkSession
    known: Known
    intend: Intend
    discard: Discard
    made: dict[Variant, list[Any]] = field(default_factory=dict)
    shared: dict[Variant, list[Any]] = field(default_factory=dict)
    _tries: int = 0

    def rewrite(self) -> Mapping[int, ForeseenVersion] | None:
        """Change what is to be changed, and say what became of each version; None, and nothing is changed, where the
        head of a branch holds somebody again: writers build on it, so it is not rewritten under its id.
        """
        subject = f"{self.table.found.id} versions"
        try:
            found = retry_on_conflict(subject, CONFLICTS, self._rewrite)
        except BaseException:
            self._discard()
            raise
        if found is None or self._tries > 1:
            self._discard()
        return found

    def _discard(self) -> None:
        """What of a commit is not known was said where it was made."""
        self.discard(None, [path for files in self.made.values() for path in locations(files)])

    def _rewrite(self) -> Mapping[int, ForeseenVersion] | None:
        self._tries += 1
        base = self.table.refresh()
        survey = Survey(base.files, Traces(self.erasure.people, base.files.table))
        self.shared = self.known.shared(survey)
        tasks = self._look(survey)
        holding = survey.holding(self.known.hits)
        if holding & set(base.branches.values()):
            return None
        found = fates(survey, holding, self.erasure, self.catalog)
        going = {id_ for id_, each in found.items() if each.fate is Fate.REWRITTEN}
        wanted = {id_: self._wanted(survey, id_, tasks) for id_ in sorted(going)}
        self._write(wanted, tasks)
        cleanser = Cleanser(base.files, survey.traces, self.known.hits, self.table.place_of)
        try:
            document = self._document(base, survey, found, self._changes(wanted), cleanser)
            ending = {id_ for id_, each in found.items() if each.fate is Fate.EXPIRES}
            self._tell(base, document, ending, survey.traces)
        except BaseException:
            self.discard(None, [normalise(path) for path in cleanser.written])
            raise
        if document is not None:
            try:
                self.table.replace_metadata(base, json.dumps(document))
            except BaseException as error:
                self.discard(error, [normalise(path) for path in cleanser.written])
                raise
            self.known.rewritten |= {path for each in wanted.values() for path in each.variants}
            self.known.written_bytes += sum(int(f.fileSizeInBytes()) for files in self.made.values() for f in files)
        return found

    def _look(self, survey: Survey) -> dict[tuple[str, tuple[str, ...]], Any]:
        """Look through what came since in any version; gives a bare task for each file of somebody."""
        rewriter = IcebergRewriter(self.spark, self.table.java, self.erasure.people)
        found: dict[Variant, Any] = {}
        with ExitStack() as until:
            staging = Staging(self.spark, self.table.java, until)
            fresh: dict[str, Any] = {}
            for snapshot in survey.table.snapshots:
                unseen = survey.beside(snapshot.snapshot_id, self.known.seen) - fresh.keys()
                if unseen:
                    fresh |= {p: task for p, task in staging.tasks(snapshot.snapshot_id) if p in unseen}
            self.known.look(rewriter, fresh)
            hits = self.known.hits & survey.every
            for snapshot in survey.table.snapshots:
                if survey.among(snapshot.snapshot_id, hits) - {path for path, _ in found}:
                    for path, task in staging.tasks(snapshot.snapshot_id):
                        if path in hits:
                            found.setdefault((path, ()), staging.bare(task))
        return found

    def _wanted(self, survey: Survey, id_: int, tasks: dict[Variant, Any]) -> _Wanted:
        """The files of a version that hold somebody, and the deletes that go with them."""
        snapshot = survey.table.snapshot_by_id(id_)
        assert snapshot is not None
        wanted = _Wanted()
        if all(manifest.holds_data for manifest in survey.files.manifests(snapshot)):
            wanted.variants = {path: (path, ()) for path in survey.among(id_, self.known.hits)}
            return wanted
        with ExitStack() as until:
            planned = dict(Staging(self.spark, self.table.java, until).tasks(id_))
        going = going_from(survey, snapshot, planned, self.known.hits)
        for path in going.files:
            wanted.variants[path] = (path, deletes_of(planned[path]))
            tasks.setdefault(wanted.variants[path], planned[path])
        wanted.dropped = {*going.deletes, *((path, None) for path in going.deleting)}
        return wanted

    def _write(self, wanted: Mapping[int, _Wanted], tasks: Mapping[Variant, Any]) -> None:
        """The files of all versions, of each one set of deletes at a time: rows say only what file they are of."""
        layers: list[dict[str, Variant]] = []
        missing = {each for one in wanted.values() for each in one.variants.values()}
        missing -= {*self.made, *self.shared}
        for variant in sorted(missing):
            layer = next((layer for layer in layers if variant[0] not in layer), None)
            if layer is None:
                layers.append(layer := {})
            layer[variant[0]] = variant
        rewriter = IcebergRewriter(self.spark, self.table.java, self.erasure.people)
        for layer in layers:
            made = rewriter.left_of_each({path: tasks[v] for path, v in layer.items()}, self.discard)
            self.made |= {layer[path]: files for path, files in made.items()}
            self.known.seen |= {path for files in made.values() for path in locations(files)}

    def _changes(self, wanted: Mapping[int, _Wanted]) -> dict[int, VersionChange]:
        described = self._described({each for one in wanted.values() for each in one.variants.values()})
        return {
            id_: VersionChange(
                {path: described[variant] for path, variant in one.variants.items()}, one.variants, one.dropped
            )
            for id_, one in wanted.items()
        }

    def _described(self, variants: Iterable[Variant]) -> dict[Variant, list[Described]]:
        """New files as manifests describe them."""
        made = {**self.shared, **self.made}
        by_spec: dict[int, dict[str, Any]] = {}
        found: dict[Variant, list[Described]] = {}
        for variant in variants:
            for file in made[variant]:
                by_spec.setdefault(int(file.specId()), {})[normalise(str(file.location()))] = file
        records: dict[str, Described] = {}
        for spec_id, files in by_spec.items():
            container = AvroRecords.of(self.table.described(spec_id, files.values()))
            names, file_names = container.names, container.file_names
            for record in container.records:
                records[normalise(record[names[2]][file_names[100]])] = (container, record[names[2]])
        for variant in variants:
            found[variant] = [records[path] for path in locations(made[variant])]
        return found

    def _document(
        self,
        base: Base,
        survey: Survey,
        found: Mapping[int, ForeseenVersion],
        changes: Mapping[int, VersionChange],
        cleanser: Cleanser,
    ) -> dict[str, Any] | None:
        """The table's metadata as it is to be; None where there is nothing to change."""
        if (self.catalog.type or "hadoop") not in IN_PLACE:
            return None
        document: dict[str, Any] = json.loads(self.table.document(base))
        changed = False
        for n, snapshot in enumerate(document.get("snapshots", ())):
            id_ = snapshot["snapshot-id"]
            if str(id_) in self.erasure.kept or found[id_].fate in (Fate.STAYS, Fate.EXPIRES):
                continue
            new = cleanser.version(snapshot, changes.get(id_, VersionChange()))
            if new is not None:
                document["snapshots"][n], changed = new, True
        for kind in ("statistics", "partition-statistics"):
            left = [each for each in document.get(kind, ()) if each["snapshot-id"] not in changes]
            if len(left) != len(document.get(kind, ())):
                document[kind], changed = left, True
        naming = naming_people(base.files, survey.traces)
        return with_log(document, base, naming) if changed or naming else None

    def _tell(self, base: Base, document: Mapping[str, Any] | None, ending: Collection[int], traces: Traces) -> None:
        """Say which files this commit lets go of, and the end of versions that end later."""
        after = base.files
        gone = referenced(base.files)
        if document is not None:
            after = base.files.beside(TableMetadataUtil.parse_obj(dict(document)))
            gone |= dict.fromkeys(naming_people(base.files, traces), 0)
        left = referenced(after, without=ending)
        # Those that are only too many for the log are still known to those before them (`files._metadata_files`).
        logged = {normalise(entry.metadata_file) for entry in base.files.table.metadata_log}
        stays = logged - set(naming_people(base.files, traces))
        self.intend(
            sizes_in(base.files, {p: n for p, n in gone.items() if p not in left and p not in stays}, self.catalog)
        )
