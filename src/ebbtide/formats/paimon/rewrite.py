"""Rewriting heads and tags of a Paimon table without some people (`Rewriting.java`).

1. One pass over the data files of all of them finds those that hold somebody, as they are stored: rows that a deletion
   vector or a later row hides are looked at, too. Files whose bounds have no room for anybody are left out.
2. What is read again is such a file, or the whole bucket where there is a key. What is left of it is written by Spark.
3. A head gets it in one commit on top of the very snapshot that was looked at; where a writer came between, all of it
   is done again. A second commit merges the manifests: nothing in them speaks of files that are not live.
4. A tag gets manifests of its own, under its name, its snapshot's number and its times.

Levels of its own: what is written for a bucket is as if it was compacted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

from ebbtide.errors import RefusedError
from ebbtide.formats.conflicts import WriterWasFasterError, retry_on_conflict
from ebbtide.formats.erasing import Intend, People
from ebbtide.formats.paimon.java import PaimonRewriter
from ebbtide.formats.paimon.old_days import would_move
from ebbtide.model.dataset import TableHandle
from ebbtide.model.paths import normalise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILE = "__ebbtide_file"
Bounds = Mapping[str, Sequence[Sequence[str | None]]]


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """A branch's head, or one of the tags in its folder."""

    branch: str
    tag: str = ""


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file of a target; `path` is below the table's folder, `bucket` a number that means nothing elsewhere."""

    path: str
    bytes: int
    bucket: int
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class OpenedTarget:
    """A target as it was when it was looked at. `more` are the bounds of what its manifests say of other files."""

    target: Target
    state: Any
    id: int | None
    key: Sequence[str]
    files: Mapping[str, LiveFile]
    sharing: Sequence[Collection[str]]
    more: Sequence[Bounds]
    statistics: frozenset[str]
    fixed: bool
    """Whether a row's key says its bucket. Otherwise an index does, and only that of the head is at hand."""

    def with_others(self, names: Collection[str]) -> frozenset[str]:
        """What has to be read again where these files do: whole buckets of a key, all that an index file is about."""
        if self.key:
            buckets = {self.files[name].bucket for name in names}
            return frozenset(name for name, file in self.files.items() if file.bucket in buckets)
        found = set(names)
        for shared in self.sharing:
            if not found.isdisjoint(shared):
                found |= set(shared) & self.files.keys()
        return frozenset(found)


@dataclass(slots=True)
class Rewriting:
    """One call of an erasure. `hits` says of each file that was looked through whether it holds somebody."""

    found: TableHandle
    people: People
    rewriter: PaimonRewriter
    spark: SparkSession
    intend: Intend
    hits: dict[str, bool] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)
    """The normalised paths of files that held somebody."""
    files: int = 0
    bytes: int = 0
    like: dict[tuple[int, datetime], str] = field(default_factory=dict)
    """The texts of tags that were rewritten, by the number and the time of their snapshot."""

    def open(self, target: Target) -> OpenedTarget:
        state = self.rewriter.open(target.branch, target.tag)
        said = self.rewriter.told("describe", state, self._columns())
        files = {name: LiveFile(*rest) for name, *rest in said["files"]}
        return OpenedTarget(
            target, state, said["id"], said["key"], files, said["hiding"], said["more"],
            frozenset(said["statistics"]), said["fixed"],
        )  # fmt: skip

    def shape(self, opened: OpenedTarget) -> str:
        """The columns that may hold somebody, as a target's schema has them: a name may have been another column's."""
        shape: str = self.rewriter.ask("shape", opened.state, "\n".join(sorted(self.people.columns)))
        return shape

    def unfit(self, opened: OpenedTarget) -> str | None:
        """Why rows of a target cannot be written anew."""
        reason: str | None = self.rewriter.ask("unfit", opened.state)
        return reason

    def holds_nobody(self, opened: OpenedTarget) -> bool:
        """Whether files that were all looked through for others are all that a target has."""
        says_more = bool(opened.more) or bool(opened.statistics)
        return not says_more and all(self.hits.get(name) is False for name in opened.files)

    def look(self, opened: Collection[OpenedTarget]) -> None:
        """Find out which files of theirs hold somebody: one job for all of them."""
        from pyspark.sql import functions as F

        new: dict[str, bool] = {}
        frames: list[DataFrame] = []
        for each in opened:
            names = [name for name in each.files if name not in self.hits and name not in new]
            asked = [name for name in names if self._may_hold(each.files[name].bounds)]
            new |= dict.fromkeys(names, False)
            if asked:
                splits = self.rewriter.ask("bare", each.state, "\n".join(asked))
                stored = self._scan(self.rewriter.ask("keyless", each.state), splits)
                theirs = self.people.among(stored.withColumn(_FILE, F.input_file_name()))
                frames.append(theirs.select(_FILE))
        if frames:
            rows = reduce(lambda one, other: one.unionByName(other), frames).distinct().collect()
            new |= {row[0].rpartition("/")[2]: True for row in rows}
        self.hits |= new
        for each in opened:
            self._look_at_keys(each)

    def _look_at_keys(self, opened: OpenedTarget) -> None:
        """A file that holds nobody may still be said to begin or end with somebody's key."""
        columns = set(opened.key).intersection(self.people.columns)
        asked = [
            name
            for name, file in opened.files.items()
            if not self.hits[name] and any(self._names_one(column, file.bounds) for column in columns)
        ]
        if asked:
            wrong: str = self.rewriter.ask("misnamed", opened.state, "\n".join(asked))
            self.hits |= dict.fromkeys(wrong.split(), True)

    def _names_one(self, column: str, bounds: Bounds) -> bool:
        """Whether a bound of a column may be a value of theirs, whole."""
        low_and_high = [_typed(*pair) for pair in bounds.get(column, ())]
        return any(self.people.may_lie(column, bound, bound) for pair in low_and_high for bound in pair)

    def theirs(self, opened: OpenedTarget) -> frozenset[str]:
        """The files of a target that hold somebody."""
        return frozenset(name for name in opened.files if self.hits.get(name))

    def says_more(self, opened: OpenedTarget) -> bool:
        """Whether its metadata may say something of one of them, beside the files that hold them."""
        columns = {column.partition(".")[0] for column in self.people.columns}
        return not columns.isdisjoint(opened.statistics) or any(map(self._may_hold, opened.more))

    def head(self, opened: OpenedTarget, *, anyway: bool = False) -> bool:
        """Rewrite a branch's head, and cleanse its manifests; with `anyway` cleanse them in any case. Whether either
        was done.
        """
        first: list[OpenedTarget] = [opened]
        branch = opened.target.branch
        done = False

        def attempt() -> bool:
            now = first.pop() if first else self._again(opened.target)
            names = self.theirs(now)
            if names:
                self._replace(now, names)
            return bool(names)

        def cleanse() -> bool:
            now = self._again(opened.target)
            if self.theirs(now):
                # A writer brought somebody back.
                self._replace(now, self.theirs(now))
                raise WriterWasFasterError
            if not (done or anyway or self.says_more(now)):
                return False
            if not self.rewriter.ask("cleanse", now.state, self._columns()):
                raise WriterWasFasterError
            return True

        if opened.id is None:
            return False
        subject = f"{self.found.id} branch {branch}"
        done = retry_on_conflict(subject, (), attempt)
        if done or anyway or self.says_more(opened):
            return retry_on_conflict(subject, (), cleanse)
        return False

    def tag(self, opened: OpenedTarget, number: int, at: datetime) -> None:
        """Rewrite a tag; one of a snapshot of which another tag was rewritten before gets what that one has."""

        def attempt() -> bool:
            now = self.open(opened.target)
            self.look([now])
            names = self.theirs(now)
            gone = now.with_others(names)
            known = self.like.get((number, at))
            messages = self._written(now, gone if known is None else frozenset())
            if known is None:
                text = self.rewriter.ask("tagged", now.state, messages, "\n".join(sorted(gone)))
            else:
                text = self.rewriter.ask("like", now.state, known)
            if not self.rewriter.ask("retag", now.state, text):
                self.rewriter.ask("abort", now.state, messages)
                raise WriterWasFasterError
            self._count(now, names, messages)
            self.like[number, at] = text
            return True

        retry_on_conflict(f"{self.found.id} tag {opened.target.tag}", (), attempt)

    def _columns(self) -> str:
        """The columns that may hold somebody, or hold what may; one a line."""
        return "\n".join(sorted({column.partition(".")[0] for column in self.people.columns}))

    def _again(self, target: Target) -> OpenedTarget:
        now = self.open(target)
        self.look([now])
        return now

    def _replace(self, now: OpenedTarget, names: frozenset[str]) -> None:
        gone = now.with_others(names)
        self.intend({self.path_of(now.files[name]): now.files[name].bytes for name in sorted(gone)})
        messages = self._written(now, gone)
        if not self.rewriter.ask("replace", now.state, messages, "\n".join(sorted(gone))):
            self.rewriter.ask("abort", now.state, messages)
            raise WriterWasFasterError
        self._count(now, names, messages)

    def _count(self, now: OpenedTarget, names: frozenset[str], messages: Any) -> None:
        self.paths |= {self.path_of(now.files[name]) for name in names}
        said = self.rewriter.told("written", messages)
        self.files += len(names)
        self.bytes += said["bytes"]

    def path_of(self, file: LiveFile) -> str:
        return normalise(f"{self.found.location}/{file.path}")

    def _written(self, now: OpenedTarget, gone: frozenset[str]) -> Any:
        """What is left of the rows of these files, in files that nothing names yet."""
        jvm: Any = self.spark._jvm
        if not gone:
            return jvm.java.util.ArrayList()
        rows = self._scan(self.rewriter.ask("table", now.state), self._seen(now, gone))
        left = self.people.without(rows)
        if would_move(left):
            raise RefusedError(
                f"{self.found.id}: rows of others hold days of before 1582-10-15, which Paimon's writer moves;"
                " nothing was changed",
                hint="write them anew by an engine that keeps them, or take the rows out by that engine",
            )
        writer = jvm.org.apache.paimon.spark.commands.PaimonSparkWriter(self.rewriter.ask("writer", now.state))
        if now.key:
            # Rows are numbered from 0, not after what the bucket has: a writer who began before counts on from there,
            # and what he commits later is to win.
            writer.writeBuilder().withOverwrite(jvm.java.util.HashMap())
        written = writer.write(left._jdf)
        messages = jvm.scala.collection.JavaConverters.seqAsJavaListConverter(written).asJava()
        if now.key and self.rewriter.told("written", messages)["rows"] != left.count():
            self.rewriter.ask("abort", now.state, messages)
            raise RefusedError(
                f"{self.found.id}: rows would have one key when columns of it are replaced; nothing was changed",
                hint="replace columns that are not of the primary key, or delete the rows",
            )
        return messages

    def _seen(self, now: OpenedTarget, gone: frozenset[str]) -> Any:
        return self.rewriter.ask("seen", now.state, "\n".join(sorted(gone)))

    def _scan(self, table: Any, splits: Any) -> DataFrame:
        """The rows of exactly these splits."""
        from pyspark.sql import DataFrame

        any_: Any = self.spark
        jvm = any_._jvm.org.apache
        nobody = any_._jvm.scala.Option.empty()
        v2 = jvm.spark.sql.execution.datasources.v2
        relation = v2.DataSourceV2Relation.create(jvm.paimon.spark.SparkTable(table), nobody, nobody)
        scan = jvm.paimon.spark.PaimonSplitScan.apply(table, splits)
        read = jvm.paimon.spark.catalyst.Compatibility.createDataSourceV2ScanRelation(relation, scan, relation.output())
        return DataFrame(jvm.spark.sql.Dataset.ofRows(any_._jsparkSession, read), self.spark)

    def _may_hold(self, bounds: Bounds) -> bool:
        """Whether a file of these bounds may hold one of them: a column without any may hold anybody."""
        return any(self._may_lie(column, bounds.get(column.partition(".")[0])) for column in self.people.columns)

    def _may_lie(self, column: str, pairs: Sequence[Sequence[str | None]] | None) -> bool:
        if not pairs or "." in column:
            return True
        return any(self.people.may_lie(column, *_typed(*pair)) for pair in pairs)


def _typed(type_: str | None, low: str | None, high: str | None) -> tuple[object, object]:
    """Bounds in Python's types; None where there is none."""
    if low is None or high is None:
        return None, None
    if type_ == "int":
        return int(low), int(high)
    return (Decimal(low), Decimal(high)) if type_ == "decimal" else (low, high)
