"""Erasing people from one Hudi table (spec §4; `formats.erasing`).

1. `erase` deletes their rows by Hudi's keys, or writes them redacted in their place, and gives a new slice to every
   group whose slice keeps what its readers do not see. Then it looks again: what a writer brought meanwhile goes, too.
2. `purge` lets the history up to the last version that holds somebody end, and builds the indexes anew.

Hudi rewrites no version: older ones end. A savepoint keeps its files, and the timeline the paths of partitions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ebbtide.errors import ConflictError, RefusedError
from ebbtide.formats.base import Depth
from ebbtide.formats.conflicts import ATTEMPTS, WriterWasFasterError, retry_on_conflict
from ebbtide.formats.erasing import Erased, Erasing, Erasure, Fate, ForeseenVersion, Intend, VersionFate
from ebbtide.formats.hudi import rewrite
from ebbtide.formats.hudi.cleanse import end_versions, finish_clean, index_anew, indexed
from ebbtide.formats.hudi.head import Theirs, theirs_in_head
from ebbtide.formats.hudi.holding import Hits, TableSpans, in_files, in_versions, named_before
from ebbtide.formats.hudi.read import read
from ebbtide.formats.hudi.untried import cannot_redact, in_partitions, untried
from ebbtide.model.dataset import Catalog, Role
from ebbtide.model.removal import FileDeletion
from ebbtide.storage.files import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONFLICTS = ("HoodieWriteConflictException", "HoodieHeartbeatException")
_PAUSE = 0.2
SAVED = "a savepoint keeps its files: delete it, and the next run takes them"
OLDEST_FIRST = "it holds nobody, and Hudi ends the oldest versions first"
_BY_BUCKET = (
    "change data of it holds them, and groups of buckets are found by their names: none is written under another"
)
UNCHANGED = "versions of this dataset are not to be changed"


@dataclass(slots=True)
class _EraseCount:
    """What the commits of one call did, over all of its attempts."""

    hits: Hits = field(default_factory=Hits)
    files: int = 0
    bytes: int = 0
    retained: dict[str, str] = field(default_factory=dict)

    def count(self, before: TableSpans, after: TableSpans, groups: int) -> None:
        """A commit that wrote groups anew."""
        self.files += groups
        self.bytes += sum(span.bytes for path, span in after.spans.items() if span.live and path not in before.spans)


class _HudiErasing(Erasing):
    def foresee(self, erasure: Erasure, catalog: Catalog, spark: SparkSession) -> Mapping[str, ForeseenVersion]:
        line = _line(erasure, catalog, spark)
        if (reason := untried(line, erasure, spark)) is not None:
            return dict.fromkeys(line.readable, ForeseenVersion(Fate.STAYS, reason))
        hits = named_before(line, erasure.files)
        if line.hides:  # only its rows could tell; of a table that is asked about, all may hold somebody
            hits |= Hits(versions=frozenset(line.readable))
        return _foreseen(line, hits, erasure)

    def erase(self, erasure: Erasure, catalog: Catalog, spark: SparkSession, intend: Intend) -> Erased:
        found = erasure.found
        line = _line(erasure, catalog, spark)
        if (reason := untried(line, erasure, spark)) is not None:
            return Erased(version=line.head, retained={"branch:main": reason})
        if line.head is None:
            return Erased()
        work = _EraseCount(named_before(line, erasure.files))
        unread: frozenset[str] = frozenset()
        if line.hides:
            # Nobody can travel to what came after an instant that is not completed.
            _alone(erasure, spark, work)
            line = _line(erasure, catalog, spark)
            seen, unread = in_versions(line, erasure.people, spark)
            work.hits |= seen
        work.hits |= in_files(line, unread, erasure.people, spark)
        retry_on_conflict(str(found.id), _CONFLICTS, lambda: _attempt(erasure, catalog, spark, intend, work))
        line = _line(erasure, catalog, spark)
        ending, retained = _history(line, work.hits, erasure)
        retained |= work.retained
        if (kept := in_partitions(line, erasure.people, spark)) is not None:
            retained["timeline"] = kept
        if ending or line.left_over(unread).keys() & work.hits.files:
            intend(line.freed(ending))
        return Erased(
            version=line.head, rewritten_files=work.files, written_bytes=work.bytes, ending=ending, retained=retained
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
        found = erasure.found
        line = _line(erasure, catalog, spark)
        ending = _still_may(line, erased.ending, erasure)
        going = line.freed(ending).keys() & set(paths)
        reason = untried(line, erasure, spark) or finish_clean(found, line.spans.keys(), going, spark, before_batch)
        if reason is not None:
            return FileDeletion(because=reason)
        failed: dict[str, str] = {}
        if going:
            failed = end_versions(found, line.first_that_stays(ending), going, spark, before_batch)
        because: str | None = None
        if indexed(found, spark):
            before_batch()
            intend(_index_files(erasure, catalog))
            because = index_anew(found, spark)
        return FileDeletion(failed=failed, because=because)


def _line(erasure: Erasure, catalog: Catalog, spark: SparkSession) -> TableSpans:
    reading = read(erasure.found, catalog, Depth.FILES, spark)
    return TableSpans(erasure.found, reading)


def _foreseen(line: TableSpans, hits: Hits, erasure: Erasure) -> dict[str, ForeseenVersion]:
    """The head's own version ends, too, where it holds somebody: another one takes its place."""
    ending, retained = _history(line, hits, erasure)
    holding = {line.reading.transactions[position].id for position in line.holding(hits)}
    fates: dict[str, ForeseenVersion] = {}
    for id_ in line.readable:
        why = retained.get(f"version:{id_}") or retained.get(f"tag:{id_}")
        if id_ == line.head:
            fates[id_] = ForeseenVersion(Fate.REWRITTEN if id_ in holding else Fate.CLEAN)
        elif why is not None:
            fates[id_] = ForeseenVersion(Fate.STAYS, why)
        elif id_ in ending or line.head in holding:
            fates[id_] = ForeseenVersion(Fate.EXPIRES, None if id_ in holding else OLDEST_FIRST)
        else:
            fates[id_] = ForeseenVersion(Fate.CLEAN)
    return fates


def _history(line: TableSpans, hits: Hits, erasure: Erasure) -> tuple[tuple[str, ...], dict[str, str]]:
    """The versions that end, and what holds somebody and stays, each with why."""
    holding = {line.reading.transactions[position].id for position in line.holding(hits)}
    prefix = line.ending(hits, erasure.kept)
    ending = () if erasure.history is VersionFate.REFUSE else prefix.versions
    held_by_savepoint = line.saved(hits)
    retained = {f"tag:{id_}": SAVED for id_ in held_by_savepoint}
    for id_ in holding - held_by_savepoint - set(ending) - {line.head}:
        if (why := erasure.kept.get(id_)) is not None:
            retained[f"version:{id_}"] = why.text
            continue
        otherwise = UNCHANGED if erasure.history is VersionFate.REFUSE else prefix.sent_back.get(id_)
        retained[f"version:{id_}"] = otherwise or "Hudi ends the oldest versions first"
    return ending, retained


def _still_may(line: TableSpans, ending: Collection[str], erasure: Erasure) -> tuple[str, ...]:
    """Of versions that were to end, the oldest up to one that is held by now."""
    may: list[str] = []
    for transaction in line.reading.transactions:
        if transaction.id in erasure.kept or transaction.id == line.head:
            break
        if transaction.id in ending:
            may.append(transaction.id)
    return tuple(may)


def _attempt(erasure: Erasure, catalog: Catalog, spark: SparkSession, intend: Intend, work: _EraseCount) -> None:
    """Take them out of the head as it is now. Where somebody is in it again afterwards, a writer was faster."""
    found = erasure.found
    _alone(erasure, spark, work)
    theirs = theirs_in_head(found, erasure.people, spark)
    work.hits |= theirs.hits
    if theirs.is_somebody:
        _commit(erasure, catalog, spark, intend, work, theirs)
    _new_slices(erasure, catalog, spark, intend, work)
    left = theirs_in_head(found, erasure.people, spark) if theirs.is_somebody else theirs
    if left.keys & theirs.keys and left.oldest <= theirs.newest:
        raise RefusedError(
            f"{found.id}: Hudi did not find all rows by their keys: its index does not look into log files",
            hint="compact the table, then run again",
        )
    if left.is_somebody:
        raise WriterWasFasterError


def _commit(
    erasure: Erasure, catalog: Catalog, spark: SparkSession, intend: Intend, work: _EraseCount, theirs: Theirs
) -> None:
    """Delete, or write what takes their place."""
    found, line = erasure.found, _line(erasure, catalog, spark)
    reason = theirs.cannot
    if reason is None and theirs.redacted is not None:
        reason = cannot_redact(found, theirs, spark)
    if reason is not None:
        raise RefusedError(f"{found.id}: {reason}; nothing was changed")
    intend(line.live_in(theirs.hits.groups))
    if theirs.redacted is not None:
        rewrite.upsert(found, theirs.redacted, spark, after=theirs.after)
    else:
        rewrite.delete_keys(found, theirs.keys, spark, after=theirs.after)
    work.count(line, _line(erasure, catalog, spark), len(theirs.hits.groups))


def _new_slices(erasure: Erasure, catalog: Catalog, spark: SparkSession, intend: Intend, work: _EraseCount) -> None:
    """Leave behind what slices of theirs hide. What a compaction does not is left to a clustering."""
    line = _line(erasure, catalog, spark)
    steps = (rewrite.compact, rewrite.cluster) if line.merged else (rewrite.cluster,)
    for step in steps:
        groups = line.hidden_in(work.hits.groups)
        if not groups:
            return
        if step is rewrite.cluster and line.hidden_in(groups, {Role.LOG}):
            raise WriterWasFasterError  # what a writer appended is not in the slice that would be written anew
        if step is rewrite.cluster and line.by_bucket:
            work.retained["branch:main"] = _BY_BUCKET
            return
        intend(line.live_in(groups))
        step(erasure.found, groups, spark)
        before, line = line, _line(erasure, catalog, spark)
        work.count(before, line, len(groups))
    if line.hidden_in(work.hits.groups):
        raise WriterWasFasterError


def _alone(erasure: Erasure, spark: SparkSession, work: _EraseCount) -> None:
    """Nothing is begun beside another writer, nor beside what one left: which of them it is cannot be told. What an
    erasure left that died is finished.
    """
    if rewrite.finish(erasure.found, spark):
        work.files += 1
    for n in range(ATTEMPTS):
        busy = rewrite.writing(erasure.found, spark)
        if not busy:
            return
        time.sleep(_PAUSE * 2**n)
    id_, action = busy[0]
    raise ConflictError(
        f"{erasure.found.id}: instant {id_} ({action}) is not completed; nothing was changed",
        hint="wait for its writer, or roll it back where that one died",
    )


def _index_files(erasure: Erasure, catalog: Catalog) -> dict[str, int]:
    """The files of the metadata table that go for good. Those of its making have names that come again."""
    folder = f"{erasure.found.location}/.hoodie/metadata"
    entries = open_store(folder, catalog.options).list(folder, recursive=True)
    return {each.path: each.bytes for each in entries if not each.is_folder and "_2" in each.name}


ERASING = _HudiErasing()
