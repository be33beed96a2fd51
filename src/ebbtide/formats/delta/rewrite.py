"""Data files of a Delta table are rewritten without people, in one commit of Delta's own.

Files are looked through as they are stored: what a vector hides of somebody is in the file, too. No predicate is given
to Delta, which would write it into the log, and no change data is written: it would hold those who go. The commit says
that data changed, as it did: streams and change feeds must not take it for a compaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ebbtide.errors import ConflictError
from ebbtide.formats.conflicts import retry_on_conflict
from ebbtide.formats.delta.java import CONFLICTS, Attempt, DeltaJavaTable, LiveAction
from ebbtide.formats.delta.read import replayed
from ebbtide.formats.delta.replay import parts_of
from ebbtide.formats.delta.skipping import Skipping
from ebbtide.formats.erasing import Erasure, Intend, People
from ebbtide.formats.versions import PART, decoded
from ebbtide.model.dataset import Catalog
from ebbtide.model.paths import is_inside, normalise
from ebbtide.spark.session import quote
from ebbtide.storage.remove import remove_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Files that left the head, and those that are there in their place."""

    gone: frozenset[str] = frozenset()
    made: Mapping[str, int] = field(default_factory=dict)


def rewrite(erasure: Erasure, catalog: Catalog, spark: SparkSession, intend: Intend) -> Rewritten:
    """Rewrite every live file that holds somebody; where there is none, nothing is committed."""
    table, subject = DeltaJavaTable(erasure.found.location, catalog, spark), str(erasure.found.id)
    work = _HeadRewrite(erasure, catalog, table, intend)
    try:
        return retry_on_conflict(subject, CONFLICTS, work.attempt)
    except ConflictError:
        work.discard()
        raise


@dataclass(slots=True)
class _HeadRewrite:
    """Several attempts at one commit. A file never changes: it is looked through once, and what was written in the
    place of some files is there for the next attempt where it is to take the place of the same ones.
    """

    erasure: Erasure
    catalog: Catalog
    table: DeltaJavaTable
    intend: Intend
    looked: set[str] = field(default_factory=set)
    hits: set[str] = field(default_factory=set)
    source: object = None
    written: list[LiveAction] = field(default_factory=list)
    told: Rewritten = field(default_factory=Rewritten)

    def attempt(self) -> Rewritten:
        attempt = self.table.begin()
        live = {each.file.path: each for each in attempt.live_files()}
        if self.written and all(each.file.path in live for each in self.written):
            return self.told  # the answer of the commit was lost, and not the commit
        fresh = [each for path, each in live.items() if path not in self.looked]
        self._look(attempt, self._candidates(attempt, fresh))
        self.looked |= live.keys()
        gone = [each for path, each in sorted(live.items()) if path in self.hits]
        if not gone:
            # Where nothing was left to write, an answer that was lost looks like this.
            done = Rewritten() if self.written else self.told
            self.discard()
            return done
        # The schema is part of it: rows are written anew where somebody changed it meanwhile.
        source = (attempt.metadata, tuple(each.file for each in gone))
        if source != self.source:
            self.discard()
            self.written = attempt.write(self.erasure.people.without(attempt.rows(gone, hidden=False)))
            self.source = source
        made = {each.file.path: each.file.bytes or 0 for each in self.written}
        self.told = Rewritten(frozenset(each.file.path for each in gone), made)
        stays = [each for path, each in live.items() if path not in self.hits]
        self.intend(self._let_go(gone, stays))
        attempt.replace(gone, self.written)
        return self.told

    def _candidates(self, attempt: Attempt, files: Collection[LiveAction]) -> list[LiveAction]:
        """Files in which a search found somebody, and of others those that may hold somebody by their bounds."""
        known, skipping = self.erasure.files, Skipping(self.erasure.people, attempt.metadata)
        others = any(each.file.path not in known for each in files)
        bounds = attempt.bounds(columns) if others and (columns := skipping.columns) else {}
        return [
            each
            for each in files
            if each.file.path in known or skipping.may_hold(each.file, bounds.get(each.file.path, {}))
        ]

    def _look(self, attempt: Attempt, files: Collection[LiveAction]) -> None:
        from pyspark.sql import functions as F

        if not files:
            return
        people, rows = self.erasure.people, attempt.rows(files, hidden=True).withColumn(PART, F.input_file_name())
        narrow = rows.select(PART, *_columns_of(people, rows))
        found = {decoded(row[PART]) for row in people.among(narrow).select(PART).distinct().collect()}
        if hits := [each for each in files if each.file.path in found]:
            rows = attempt.rows(hits, hidden=True).withColumn(PART, F.input_file_name())
            self.hits |= {decoded(name) for name in _parts_that_change(people, rows)}

    def _let_go(self, gone: Collection[LiveAction], stays: Collection[LiveAction]) -> dict[str, int]:
        """What the commit lets go of, by size: of a shallow clone nothing that is its source's."""
        location = normalise(self.erasure.found.location)
        shared = {path for each in stays for path in parts_of(each.file)}
        files: dict[str, int] = {}
        for each in gone:
            files[each.file.path] = each.file.bytes or 0
            if (vector := each.file.vector) is not None and vector.path is not None:
                files[vector.path] = max(vector.end, files.get(vector.path, 0))
        return {path: size for path, size in files.items() if path not in shared and is_inside(path, location)}

    def discard(self) -> None:
        """Remove what was written for an attempt that failed, where no version has it."""
        mine, self.written, self.source = {each.file.path for each in self.written}, [], None
        if mine:
            has = replayed(self.erasure.found, self.catalog).outcome.data
            remove_files(mine - has.keys(), self.catalog.options, lambda: self.intend({}), self.erasure.places)


def _columns_of(people: People, rows: DataFrame) -> list[str]:
    """The top columns that may hold somebody: only these are read of files in which nobody is."""
    paths = [path.lower() for path in people.columns]
    return [
        quote(name)
        for name in rows.columns
        if any(path == name.lower() or path.startswith(f"{name.lower()}.") for path in paths)
    ]


def _parts_that_change(people: People, rows: DataFrame) -> list[str]:
    """The files with rows that are not to stay as they are: a row that was redacted is still about somebody."""
    from pyspark.sql import functions as F

    theirs = people.among(rows)

    def shown(frame: DataFrame) -> DataFrame:
        whole = F.to_json(F.struct(*(F.col(quote(name)) for name in frame.columns)))
        return frame.select(F.col(PART), whole.alias("row"))

    changed = shown(theirs).exceptAll(shown(people.without(theirs)))
    return [row[PART] for row in changed.select(PART).distinct().collect()]
