"""Removing from Delta tables (formats.md).

A version is no thing of its own in Delta: it is gone when files that it needs are, so there is nothing to commit for
one, and its entry in the log goes by Delta's log cleanup, which is left alone. Files go by a list, through VACUUM.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ebbtide.errors import RefusedError
from ebbtide.formats.base import Depth
from ebbtide.formats.conflicts import retry_on_conflict
from ebbtide.formats.delta.drops import drop_partitions
from ebbtide.formats.delta.java import CONFLICTS, DeltaJavaTable
from ebbtide.formats.delta.log import FOLDER, DeltaLog, list_log
from ebbtide.formats.delta.read import read_table
from ebbtide.formats.row_deletes import delete_rows
from ebbtide.model.dataset import Catalog
from ebbtide.model.paths import is_inside, normalise
from ebbtide.model.removal import Committed, FileDeletion, Removal
from ebbtide.storage.files import open_store
from ebbtide.storage.remove import remove_empty_folders, remove_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BATCH = 5000  # VACUUM takes seconds to begin with


def commit(removal: Removal, catalog: Catalog, spark: SparkSession) -> Committed:
    subject = str(removal.found.id)
    log = _log(removal, catalog)
    if removal.table:
        # Nothing to commit: the folder is the table, and its log goes last, in `delete_files`.
        return Committed(sent_back={subject: _WRITTEN}) if _is_written(removal, log) else Committed(done=(subject,))
    if log.head is None:
        raise RefusedError(f"{subject}: there is no Delta table any more", hint="scan again")
    table = DeltaJavaTable(removal.found.location, catalog, spark)
    sent_back: dict[str, str] = {}
    if removal.drops:
        sent_back |= retry_on_conflict(subject, CONFLICTS, lambda: drop_partitions(table, removal.drops))
    for rows in removal.rows:
        why = retry_on_conflict(f"{subject} rows", CONFLICTS, lambda rows=rows: delete_rows(spark, table.name, rows))  # type: ignore[misc]
        if why is not None:
            sent_back[rows.object] = why
    sent_back |= dict.fromkeys(removal.branches, "Delta has one line of versions")
    head = str(_log(removal, catalog).head)
    sent_back |= {id_: "it is the current version" for id_ in removal.versions if id_ == head}
    asked = (*(drop.object for drop in removal.drops), *(rows.object for rows in removal.rows), *removal.versions)
    done = tuple(dict.fromkeys(object_ for object_ in asked if object_ not in sent_back))
    return Committed(version=head, done=done, sent_back=sent_back)


def delete_files(
    removal: Removal, paths: Collection[str], catalog: Catalog, spark: SparkSession, before_batch: Callable[[], None]
) -> FileDeletion:
    location = normalise(removal.found.location)
    if unnamed := set(paths) - removal.files.keys():
        raise RefusedError(f"{removal.found.id}: the plan did not name {len(unnamed)} of the files")
    if outside := [path for path in paths if not is_inside(path, location)]:
        raise RefusedError(f"{removal.found.id}: {len(outside)} of the files lie outside the table")
    of_log = {path for path in paths if is_inside(path, f"{location}/{FOLDER}")}
    log = _log(removal, catalog)
    if removal.table:
        return _free_table(removal, paths, of_log, log, catalog, spark, before_batch)
    if of_log:
        raise RefusedError(f"{removal.found.id}: the log goes by Delta's own cleanup only")
    if log.head is None:
        return FileDeletion(because="there is no Delta table any more")
    return free_files(removal, sorted(paths), catalog, spark, before_batch)


def free_files(
    removal: Removal, paths: list[str], catalog: Catalog, spark: SparkSession, before_batch: Callable[[], None]
) -> FileDeletion:
    """VACUUM by list; what it leaves and the current version does not need is removed by its name (hazard 5)."""
    location = normalise(removal.found.location)
    table, store = DeltaJavaTable(removal.found.location, catalog, spark), open_store(location, catalog.options)

    def left() -> list[str]:
        there = {entry.path for entry in store.list(location, recursive=True)}
        return [path for path in paths if path in there]

    wanted = left()
    errors: dict[str, str] = {}
    for start in range(0, len(wanted), _BATCH):
        batch = wanted[start : start + _BATCH]
        before_batch()
        try:
            table.vacuum(batch)
        except (Py4JJavaError, PySparkException) as error:
            errors |= dict.fromkeys(batch, f"VACUUM failed: {type(error).__name__}")
    if not (still := left()):
        return FileDeletion()
    live = {file.path for file in read_table(removal.found, catalog, Depth.FILES).files if file.live}
    failed = {path: _LIVE if path in live else errors[path] for path in still if path in live or path in errors}
    rest = set(still) - failed.keys()
    return FileDeletion(failed=failed | remove_files(rest, catalog.options, before_batch, removal.places))


def _free_table(
    removal: Removal,
    paths: Collection[str],
    of_log: set[str],
    log: DeltaLog,
    catalog: Catalog,
    spark: SparkSession,
    before_batch: Callable[[], None],
) -> FileDeletion:
    """Everything of the table that was named, its newest commit last: until then the rest can be found."""
    if _is_written(removal, log):
        return FileDeletion(because=_WRITTEN)
    newest = {log.commits[max(log.commits)].path} if log.commits else set()
    failed: dict[str, str] = {}
    for part in (set(paths) - of_log, of_log - newest, of_log & newest):
        if part and not failed:
            failed = remove_files(part, catalog.options, before_batch, removal.places)
    # Delta makes folders that stay empty (`_delta_log/_commits`), and where there is a log's folder there is a table.
    location = normalise(removal.found.location)
    entries = open_store(location, catalog.options).list(location, recursive=True)
    failed |= remove_empty_folders({entry.path for entry in entries if entry.is_folder}, location, removal.places)
    DeltaJavaTable(removal.found.location, catalog, spark).forget()
    return FileDeletion(failed=failed)


def _log(removal: Removal, catalog: Catalog) -> DeltaLog:
    location = normalise(removal.found.location)
    return list_log(open_store(location, catalog.options), location)


def _is_written(removal: Removal, log: DeltaLog) -> bool:
    """Whether there is a file in the log that the plan did not see."""
    return any(entry.path not in removal.files for entry in log.entries)


_WRITTEN = "it was written to since the plan"
_LIVE = "the current version references it"
