"""Erasing people from Iceberg tables: heads by overwrites, versions of before under their ids, then the bytes.

Readers and the next writers see one more version of each branch that held somebody. Time travel goes on: what a version
showed it shows, but for them. Where it cannot be (`survey.fates`), versions end and tags stay, each with why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from pyiceberg.table.metadata import TableMetadata

from ebbtide.errors import ConflictError, EbbtideError, RefusedError, UnreadableError
from ebbtide.formats.conflicts import ATTEMPTS, WriterWasFasterError, causes, retry_on_conflict
from ebbtide.formats.erasing import Erased, Erasing, Erasure, Fate, ForeseenVersion, Intend
from ebbtide.formats.iceberg.heads import Heads, Known
from ebbtide.formats.iceberg.history import TableVersions
from ebbtide.formats.iceberg.java import CONFLICTS, IcebergJavaTable, open_table
from ebbtide.formats.iceberg.metadata import MetadataFiles
from ebbtide.formats.iceberg.named_since import refs_now
from ebbtide.formats.iceberg.referenced import referenced, sizes_in
from ebbtide.formats.iceberg.rewrite import Discard
from ebbtide.formats.iceberg.survey import IN_PLACE, Survey, fates
from ebbtide.formats.iceberg.tags import Tags
from ebbtide.formats.iceberg.traces import Traces
from ebbtide.model.dataset import Catalog
from ebbtide.model.paths import is_inside, normalise
from ebbtide.model.removal import FileDeletion
from ebbtide.storage.files import open_store
from ebbtide.storage.remove import remove_empty_folders, remove_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NONE = (None, -1)
_METADATA = (".metadata.json", ".metadata.json.gz")
_REFUSALS = ("CommitFailedException", "ValidationException")


class _IcebergErasing(Erasing):
    def foresee(self, erasure: Erasure, catalog: Catalog, spark: SparkSession) -> Mapping[str, ForeseenVersion]:  # noqa: ARG002 - metadata only
        files = MetadataFiles(erasure.found, catalog)
        survey = Survey(files, Traces(erasure.people, files.table))
        found = fates(survey, survey.holding(erasure.files), erasure, catalog)
        return {str(id_): each for id_, each in found.items()}

    def erase(self, erasure: Erasure, catalog: Catalog, spark: SparkSession, intend: Intend) -> Erased:
        table = _open(erasure, catalog, spark)
        known = Known(set(_looked_through(erasure, catalog) - erasure.files), set(erasure.files))
        discard = _discarding(table, erasure, catalog)
        heads = Heads(table, erasure, spark, known, intend, discard)
        tags = Tags(table, erasure, catalog, heads)
        tags.clear()
        for _ in range(ATTEMPTS):
            heads.rewrite()
            tags.rewrite()
            if (found := TableVersions(table, erasure, catalog, spark, known, intend, discard).rewrite()) is not None:
                break
        else:
            raise ConflictError(f"{erasure.found.id}: rows of these people came again {ATTEMPTS} times")
        now = table.refresh().files.table
        return Erased(
            version=None if now.current_snapshot_id in _NONE else str(now.current_snapshot_id),
            rewritten_files=len(known.rewritten),
            written_bytes=known.written_bytes,
            rewritten_versions=_of(found, Fate.REWRITTEN),
            ending=_of(found, Fate.EXPIRES),
            retained=_traces_left(catalog)
            | {
                name: each.because or "it stays"
                for id_, each in found.items()
                if each.fate is Fate.STAYS
                for name in _names(id_, now)
            },
        )

    def purge(
        self,
        erasure: Erasure,
        erased: Erased,
        paths: Collection[str],
        catalog: Catalog,
        spark: SparkSession,
        before_batch: Callable[[], None],
        intend: Intend,
    ) -> FileDeletion:
        table = _open(erasure, catalog, spark)
        told: dict[str, int] = {}

        def tell(files: Mapping[str, int]) -> None:
            intend(files)
            told.update(files)

        def end() -> str | None:
            return _end(table, erasure, erased, catalog, tell)

        if (why := retry_on_conflict(f"{erasure.found.id} versions", CONFLICTS, end)) is not None:
            return FileDeletion(because=why)
        if erased.ending:  # the metadata before this one still tells of them
            _cleanse(table, erasure, catalog, spark, tell)
        base = table.refresh()
        here = normalise(base.location)
        needed = referenced(base.files).keys() | {here}
        own = normalise(base.files.table.location)
        going = {path for path in paths if path not in needed}
        # What only a commit of this call let go of is metadata; data files were named before others were asked.
        going |= {path for path in told if path not in needed and is_inside(path, here.rpartition("/")[0])}
        going -= _in_flight(going, erasure, catalog)
        failed = remove_files(going, catalog.options, before_batch, erasure.places)
        folders = {folder for path in going if is_inside(folder := path.rpartition("/")[0], own)}
        failed |= remove_empty_folders(folders, own, erasure.places)
        failed |= {path: "a version names it again" for path in paths if path in needed}
        return FileDeletion(failed=failed)


def _end(
    table: IcebergJavaTable,
    erasure: Erasure,
    erased: Erased,
    catalog: Catalog,
    tell: Callable[[Mapping[str, int]], None],
) -> str | None:
    """Let versions end that hold somebody; or why they cannot, and with them no file."""
    if not erased.ending:
        return None
    base = table.refresh()
    there = {snapshot.snapshot_id for snapshot in base.files.table.snapshots}
    ending = {int(id_) for id_ in erased.ending} & there
    named = refs_now(base.files.table)
    for id_ in sorted(ending):
        if (kept := erasure.kept.get(str(id_))) is not None:
            return kept.text
        if id_ in named:
            return f"{', '.join(sorted(named[id_]))} names a version that was to end"
    if ending:
        left = referenced(base.files, without=ending)
        tell(sizes_in(base.files, {p: n for p, n in referenced(base.files).items() if p not in left}, catalog))
        table.remove_snapshots(base, [str(id_) for id_ in sorted(ending)])
    return None


def _cleanse(
    table: IcebergJavaTable,
    erasure: Erasure,
    catalog: Catalog,
    spark: SparkSession,
    tell: Callable[[Mapping[str, int]], None],
) -> None:
    """Metadata alone: rows that came since are the next erasure's."""
    files = table.refresh().files
    known = Known(set(Survey(files, Traces(erasure.people, files.table)).every - erasure.files), set(erasure.files))
    TableVersions(table, erasure, catalog, spark, known, tell, _discarding(table, erasure, catalog)).rewrite()


def _discarding(table: IcebergJavaTable, erasure: Erasure, catalog: Catalog) -> Discard:
    unknown: list[BaseException] = []

    def discard(error: BaseException | None, paths: Collection[str]) -> None:
        # A commit whose outcome is not known may have come to be, or may still: from then on every file stays.
        if error is not None and not _is_refusal(error):
            unknown.append(error)
        if paths and not unknown:
            needed = referenced(table.refresh().files)
            remove_files([path for path in paths if path not in needed], catalog.options, _nobody, erasure.places)

    return discard


def _is_refusal(error: BaseException) -> bool:
    """Whether a commit that ended this way was not made. A time-out, or an end of the call alone, does not say so."""
    said = next(causes(error), None)
    if said is None:
        return isinstance(error, (EbbtideError, WriterWasFasterError))  # ours, and none of them follows a commit
    return said in _REFUSALS


def _in_flight(going: Collection[str], erasure: Erasure, catalog: Catalog) -> set[str]:
    """Metadata files of which a writer in flight may be about to write the next: in a catalog of folders they are
    numbered, and nothing refuses a commit but that its number is there already.
    """
    since = erasure.in_flight_since
    numbered = {path for path in going if path.endswith(_METADATA)}
    if since is None or (catalog.type or "hadoop") != "hadoop":
        return set()
    folders = {path.rpartition("/")[0] for path in numbered}
    store = open_store(erasure.found.location, catalog.options)
    there = (entry for folder in folders for entry in store.list(folder) if entry.path in numbered)
    return {entry.path for entry in there if entry.modified is None or entry.modified > since}


def _open(erasure: Erasure, catalog: Catalog, spark: SparkSession) -> IcebergJavaTable:
    table = open_table(erasure.found, catalog, spark)
    if table is None:
        raise RefusedError(f"{erasure.found.id}: the catalog has no such table any more", hint="scan again")
    return table


def _looked_through(erasure: Erasure, catalog: Catalog) -> frozenset[str]:
    """The data files of all versions that the search of these people looked through; none where that is not known."""
    files = MetadataFiles(erasure.found, catalog)
    try:
        return Survey(files, Traces(erasure.people, files.table)).every
    except UnreadableError:
        return frozenset()


def _names(id_: int, table: TableMetadata) -> list[str]:
    """What a version is called by: its branches and tags, or itself."""
    refs = sorted(f"{r.snapshot_ref_type}:{name}" for name, r in table.refs.items() if r.snapshot_id == id_)
    return refs or [f"version:{id_}"]


def _traces_left(catalog: Catalog) -> dict[str, str]:
    """What no version shows and this catalog lets nobody take out."""
    type_ = catalog.type or "hadoop"
    if type_ in IN_PLACE:
        return {}
    return {"manifests": f"a catalog of the type {type_} keeps what manifests say of files that are gone"}


def _nobody() -> None:
    """What is removed was written by this very call: no lease is asked for."""


def _of(found: Mapping[int, ForeseenVersion], fate: Fate) -> tuple[str, ...]:
    return tuple(str(id_) for id_, each in sorted(found.items()) if each.fate is fate)


ERASING = _IcebergErasing()
