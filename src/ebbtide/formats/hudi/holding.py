"""Which files and versions of a Hudi table hold people, and how far its history has to end for them to go.

A version is a place in the order of commits, and a file is part of those from the one that brought it up to the one
that took it out. Hudi ends the oldest versions first, so what ends is always the history up to some version.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.errors import IllegalArgumentException

from ebbtide.formats.hudi.clean import Prefix, prefix_of
from ebbtide.formats.hudi.files import explain
from ebbtide.formats.hudi.replay import Group
from ebbtide.formats.hudi.timeline import java_path
from ebbtide.formats.hudi.writer import Writer
from ebbtide.formats.versions import PART, decoded
from ebbtide.model.dataset import Reading, Role, TableHandle
from ebbtide.model.history import RefKind
from ebbtide.model.paths import normalise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ebbtide.formats.erasing import People

ROWS = frozenset({Role.DATA, Role.LOG, Role.CHANGE_DATA})
"""The roles of files of a group."""
HIDING = frozenset({Role.LOG, Role.CHANGE_DATA})
"""Those that hold rows of which the group's readers see nothing: only a new slice of it leaves them behind."""

_BUCKET = re.compile(r"\d{8}-")


@dataclass(frozen=True, slots=True)
class FileSpan:
    """A file of a group, and the places of the versions that it is part of: `end` is the first without it."""

    group: Group
    role: Role
    bytes: int
    begin: int
    end: int
    live: bool


@dataclass(frozen=True, slots=True)
class Hits:
    """Where people were found: data files, groups of files, and whole versions where only a reader can merge them."""

    files: frozenset[str] = frozenset()
    groups: frozenset[Group] = frozenset()
    versions: frozenset[str] = frozenset()

    def __or__(self, other: Hits) -> Hits:
        return Hits(self.files | other.files, self.groups | other.groups, self.versions | other.versions)


@dataclass(frozen=True)
class TableSpans:
    """A table's versions and the files of its groups, as one reading has them."""

    found: TableHandle
    reading: Reading

    @property
    def merged(self) -> bool:
        return self.reading.properties.get("hoodie.table.type") == "MERGE_ON_READ"

    @property
    def hides(self) -> bool:
        """Whether slices hold rows that their readers do not see: merged on read, or with change data."""
        return self.merged or self.reading.properties.get("hoodie.table.cdc.enabled", "").lower() == "true"

    @cached_property
    def order(self) -> Mapping[str, int]:
        return {transaction.id: position for position, transaction in enumerate(self.reading.transactions)}

    @cached_property
    def savepoints(self) -> frozenset[str]:
        return frozenset(ref.head for ref in self.reading.refs if ref.kind is RefKind.TAG and ref.head is not None)

    @property
    def head(self) -> str | None:
        return self.reading.refs[0].head

    @cached_property
    def spans(self) -> Mapping[str, FileSpan]:
        order, spans = self.order, {}
        for file in self.reading.files:
            group = group_of(self.reading.location, file.path) if file.role in ROWS else None
            if group is None:
                continue
            begin = order.get(file.first_transaction or "", 0)
            end = min((order[id_] for id_ in file.removed_by if id_ in order), default=len(order))
            spans[file.path] = FileSpan(group, file.role, file.bytes or 0, begin, end, file.live)
        return spans

    @property
    def readable(self) -> list[str]:
        return [transaction.id for transaction in self.reading.transactions if not transaction.expired]

    @property
    def by_bucket(self) -> bool:
        """Whether the names of groups say which keys they are of: each begins with the number of its bucket."""
        names = {id_ for _, id_ in (span.group for span in self.spans.values())}
        return bool(names) and all(_BUCKET.match(name) for name in names)

    def hidden_in(self, groups: Collection[Group], roles: Collection[Role] = HIDING) -> frozenset[Group]:
        """Those of these groups whose live slice holds more than its readers see, in files of these roles."""
        there = {span.group for span in self.spans.values() if span.live and span.role in roles}
        return frozenset(there.intersection(groups))

    def live_in(self, groups: Collection[Group]) -> dict[str, int]:
        return {path: span.bytes for path, span in self.spans.items() if span.live and span.group in groups}

    def held(self, hits: Hits) -> dict[str, FileSpan]:
        """The files that hold somebody, or where that cannot be told of one, may."""
        return {
            path: span
            for path, span in self.spans.items()
            if path in hits.files or (self.hides and span.group in hits.groups and not span.live)
        }

    def holding(self, hits: Hits) -> set[int]:
        """The places of versions that can be read and show somebody."""
        shown = {self.order[id_] for id_ in hits.versions if id_ in self.order}
        exact = (self.spans[path] for path in hits.files if path in self.spans)
        shown |= {position for span in exact for position in range(span.begin, span.end)}
        return {position for position in shown if not self.reading.transactions[position].expired}

    def ending(self, hits: Hits, kept: Collection[str]) -> Prefix:
        """The versions that have to end for every file that holds somebody to go, as far as these may."""
        until = max((span.end for span in self.held(hits).values() if not span.live), default=0)
        until = max([until, *(position + 1 for position in self.holding(hits))])
        wanted = [t.id for t in self.reading.transactions[:until] if not t.expired and t.id not in kept]
        prefix = prefix_of(self.reading.transactions, wanted, self.savepoints)
        back = {id_: why for id_, why in prefix.sent_back.items() if id_ in wanted}
        return Prefix(prefix.versions, prefix.kept, back)

    def saved(self, hits: Hits) -> set[str]:
        """The savepoints that keep a file that holds somebody."""
        held = self.held(hits).values()
        return {id_ for id_ in self.savepoints if any(self._is_at(id_, span) for span in held)}

    def left_over(self, unread: Collection[str]) -> dict[str, FileSpan]:
        """The files that are part of no version that can be read: what a clean left, or a savepoint keeps alone."""
        at = [n for n, t in enumerate(self.reading.transactions) if not t.expired and t.id not in unread]
        return {
            path: span
            for path, span in self.spans.items()
            if not span.live and bisect_left(at, span.begin) == bisect_left(at, span.end)
        }

    def beneath_logs(self) -> set[str]:
        """The live base files of which log files hide rows."""
        logged = {span.group for span in self.spans.values() if span.live and span.role is Role.LOG}
        spans = self.spans.items()
        return {path for path, span in spans if span.live and span.role is Role.DATA and span.group in logged}

    def _is_at(self, id_: str, span: FileSpan) -> bool:
        return id_ in self.order and span.begin <= self.order[id_] < span.end

    def first_that_stays(self, ending: Collection[str]) -> str:
        """The version that the table's history begins with once these have ended: at the latest, the head."""
        last = max((self.order[id_] for id_ in ending if id_ in self.order), default=-1)
        after = (t.id for t in self.reading.transactions[last + 1 :] if not t.expired)
        return next(after, self.reading.transactions[-1].id)

    def freed(self, ending: Collection[str]) -> dict[str, int]:
        """The files, with their sizes, that no version holds once these have ended, and no savepoint."""
        if not self.order:
            return {}
        begins = self.order[self.first_that_stays(ending)]
        return {
            path: span.bytes
            for path, span in self.spans.items()
            if not span.live and span.end <= begins and not any(self._is_at(id_, span) for id_ in self.savepoints)
        }


def group_of(location: str, path: str) -> Group | None:
    listed = explain(path.removeprefix(f"{normalise(location)}/"), 0)
    return listed.group if listed is not None else None


def named_before(line: TableSpans, files: Collection[str]) -> Hits:
    """What an earlier look found, by data files."""
    groups = {group_of(line.reading.location, path) for path in files}
    return Hits(frozenset(files), frozenset(group for group in groups if group is not None))


def in_versions(line: TableSpans, people: People, spark: SparkSession) -> tuple[Hits, frozenset[str]]:
    """Versions and groups of files in which readers see somebody, one job for all of them; and the versions that Hudi
    lets nobody travel to any more, though their files are there.
    """
    from pyspark.sql import functions as F

    parts: DataFrame | None = None
    unread = _unread(line, spark)
    for id_ in line.readable:
        if id_ in unread:
            continue
        rows = spark.read.format("hudi").option("as.of.instant", id_).load(java_path(line.found.location))
        theirs = people.among(rows).select(F.lit(id_).alias(PART), "_hoodie_partition_path", "_hoodie_file_name")
        parts = theirs if parts is None else parts.unionByName(theirs)
    places = set() if parts is None else {tuple(row) for row in parts.distinct().collect()}
    hits = Hits(groups=frozenset(_groups(places)), versions=frozenset(id_ for id_, _, _ in places))
    return hits, unread


def _unread(line: TableSpans, spark: SparkSession) -> frozenset[str]:
    writer, unread = Writer.open(line.found, spark), set()
    for id_ in line.readable:
        try:
            writer.hudi.common.table.timeline.TimelineUtils.validateTimestampAsOf(writer.meta, id_)
        except IllegalArgumentException:
            unread.add(id_)
    return frozenset(unread)


def in_files(line: TableSpans, unread: Collection[str], people: People, spark: SparkSession) -> Hits:
    """Files in which somebody lies that no reader of a version sees there: log files hide them, or no version is left
    that needs the file. What a log file of the latter holds is not looked at, and may be anybody.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    from ebbtide.spark.frames import escaped

    left = line.left_over(unread)
    base = {path for path, span in left.items() if span.role is Role.DATA} | line.beneath_logs()
    untold = left.keys() - base
    there: set[str] = set()
    if base:
        place = java_path(line.found.location)
        table = spark.read.format("hudi").load(place)
        columns = StructType([column for column in table.schema if not column.name.startswith("_hoodie_")])
        inside = normalise(place)
        named = [escaped(place + path.removeprefix(inside)) for path in sorted(base)]
        frame = spark.read.schema(columns).parquet(*named).withColumn(PART, F.input_file_name())
        there = {decoded(row[0]) for row in people.among(frame).select(PART).distinct().collect()}
    return Hits(frozenset(there | untold), frozenset(line.spans[path].group for path in there if path in line.spans))


def _groups(places: Collection[tuple[str, ...]]) -> Iterator[Group]:
    for _, folder, name in places:
        yield group_named(folder, name)


def group_named(folder: str, name: str) -> Group:
    """The group that a row says it is of. A row of a log file names its group, one of a base file that file."""
    listed = explain(f"{folder}/{name}" if folder else name, 0)
    return listed.group if listed is not None and listed.group is not None else (folder, name)
