"""Erasing people from Delta tables (`formats.erasing`).

1. The head's files are rewritten by one transaction (`rewrite`). Versions cannot be rewritten: they end.
2. A reader's window later VACUUM takes exactly the files that were named, and the log is cut off (`truncate`): commits
   hold predicates, bounds and change data, and checkpoints the bounds of all files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ebbtide.formats.delta.ending import cannot, changes_before, course_of, has_feed, needed_from, versions_with
from ebbtide.formats.delta.java import DeltaJavaTable
from ebbtide.formats.delta.log import FOLDER
from ebbtide.formats.delta.read import Replayed, replayed
from ebbtide.formats.delta.remove import free_files
from ebbtide.formats.delta.rewrite import rewrite
from ebbtide.formats.delta.truncate import Truncation, first_of_both, in_flight, mend, say_nothing
from ebbtide.formats.erasing import Erased, Erasing, Erasure, Fate, ForeseenVersion, Intend
from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.model.paths import is_inside
from ebbtide.model.removal import FileDeletion, Removal
from ebbtide.storage.files import open_store
from ebbtide.storage.remove import remove_empty_folders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENDS = "a Delta version cannot be rewritten: it ends when the log is cut off behind the new head"


class _DeltaErasing(Erasing):
    def mend(self, found: TableHandle, catalog: Catalog, spark: SparkSession) -> None:
        mend(replayed(found, catalog), DeltaJavaTable(found.location, catalog, spark))

    def foresee(self, erasure: Erasure, catalog: Catalog, spark: SparkSession) -> Mapping[str, ForeseenVersion]:  # noqa: ARG002
        table = replayed(erasure.found, catalog)
        if (why := cannot(table)) is not None:
            return {str(version): ForeseenVersion(Fate.STAYS, why) for version in table.commits}
        course, holding = course_of(table, erasure), versions_with(table, erasure.files)

        def fate_of(version: int) -> ForeseenVersion:
            if version == max(table.commits):
                return ForeseenVersion(Fate.REWRITTEN if version in holding else Fate.CLEAN)
            if (stays := course.stays(version)) is None:
                return ForeseenVersion(Fate.EXPIRES, _ENDS)
            return ForeseenVersion(Fate.STAYS, stays) if version in holding else ForeseenVersion(Fate.CLEAN)

        return {str(version): fate_of(version) for version in table.commits}

    def erase(self, erasure: Erasure, catalog: Catalog, spark: SparkSession, intend: Intend) -> Erased:
        table = replayed(erasure.found, catalog)
        if (why := cannot(table)) is not None:
            return Erased(version=_head(table), retained=_retained(table, erasure.files, lambda _: why, head=True))
        java = DeltaJavaTable(erasure.found.location, catalog, spark)
        mend(table, java)
        done = rewrite(erasure, catalog, spark, intend)
        table = replayed(erasure.found, catalog)
        if (done.gone or erasure.files) and has_feed(table) and table.commits[max(table.commits)].removes:
            # The feed of this version shows what it took away. A floor would keep it until something follows it.
            say_nothing(table.subject, java)
            table = replayed(erasure.found, catalog)
        course = course_of(table, erasure)
        if changes := changes_before(table, max(table.commits) if course.first is None else course.first):
            intend(changes)
        return Erased(
            version=_head(table), rewritten_files=len(done.gone), written_bytes=sum(done.made.values()),
            ending=course.ending, retained=_retained(table, erasure.files | done.gone, course.stays),
        )  # fmt: skip

    def purge(
        self,
        erasure: Erasure,
        erased: Erased,  # noqa: ARG002 - what ends is asked of the table as it is by now
        paths: Collection[str],
        catalog: Catalog,
        spark: SparkSession,
        before_batch: Callable[[], None],
        intend: Intend,
    ) -> FileDeletion:
        table, java = replayed(erasure.found, catalog), DeltaJavaTable(erasure.found.location, catalog, spark)
        if (why := cannot(table)) is not None:
            return FileDeletion(because=why)
        if mend(table, java):
            table = replayed(erasure.found, catalog)
        course = course_of(table, erasure)
        first = first_of_both(course.first, in_flight(table, erasure))
        needed = needed_from(table, first)
        # The log's own files go by the cut, whoever named them.
        named = {path for path in paths if not is_inside(path, f"{table.location}/{FOLDER}")}
        failed = {path: _NEEDED for path in named if path in needed}
        failed |= {path: _OUTSIDE for path in named if not is_inside(path, table.location)}
        going = named - failed.keys()
        if course.first is None:
            # The head ends, too, for one that says nothing, and so does what a writer committed since and is done with.
            changes = changes_before(table, max(table.commits) + 1 if first is None else first)
            intend(changes)
            going |= changes.keys()
        removal = Removal(found=erasure.found, files=dict.fromkeys(going, 0), places=erasure.places)
        failed |= free_files(removal, sorted(going), catalog, spark, before_batch).failed
        cut = Truncation(erasure, catalog, java, intend, before_batch).run(course.first)
        return replace(cut, failed=failed | dict(cut.failed) | _empty_folders(table, erasure, catalog, going))


def _head(table: Replayed) -> str:
    return str(max(table.commits))


def _retained(
    table: Replayed, files: Collection[str], why: Callable[[int], str | None], *, head: bool = False
) -> dict[str, str]:
    """Versions that hold one of the files and stay, with why; of the head only where it was not rewritten."""
    found: dict[str, str] = {}
    newest = max(table.commits)
    for version in sorted(versions_with(table, files)):
        reason = why(version)
        if reason is not None and (head or version != newest):
            found["branch:main" if version == newest else f"version:{version}"] = reason
    if head and not found and (reason := why(newest)) is not None:
        found["branch:main"] = reason  # what a search saw there stays as well
    return found


def _empty_folders(table: Replayed, erasure: Erasure, catalog: Catalog, gone: Collection[str]) -> dict[str, str]:
    """Folders of partitions have their values in their names."""
    entries = open_store(table.location, catalog.options).list(table.location, recursive=True)
    there = {entry.path for entry in entries if entry.is_folder}
    folders = {path.rpartition("/")[0] for path in gone} & there
    return remove_empty_folders(folders, table.location, erasure.places)


_NEEDED = "a version that stays references it"
_OUTSIDE = "it lies outside of the table"
ERASING: Erasing = _DeltaErasing()
