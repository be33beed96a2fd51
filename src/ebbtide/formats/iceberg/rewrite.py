"""Finding people in data files of Iceberg tables, and writing these files again without them; nothing is committed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ebbtide.errors import ProofError
from ebbtide.formats.erasing import People
from ebbtide.formats.iceberg.staging import Staging
from ebbtide.model.paths import normalise
from ebbtide.spark.session import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FROM, _AT, _ROWS = "__ebbtide_from", "__ebbtide_at", "__ebbtide_rows"
_VOID = "void"
# In layouts for object stores there may be a hash before it, of digits and a dash.
_NUMBERED = re.compile(r"(\d+)-\d+-[0-9a-f]{8}-[0-9a-f]{4}-")


Discard = Callable[[BaseException | None, Collection[str]], None]
"""Removes new files that a commit which failed this way did not take; where none was tried, there is no error."""


@dataclass(frozen=True, slots=True)
class IcebergRewriter:
    """One table in a session, and those who are to leave it."""

    spark: SparkSession
    table: Any
    people: People

    def found_in(self, tasks: Mapping[str, Any]) -> set[str]:
        """Those of these files that hold one of them, rows that deletes hide included."""
        with ExitStack() as until:
            return _files_of(self.people.among(self._bare(tasks, until))) & tasks.keys() if tasks else set()

    def changing(self, tasks: Mapping[str, Any]) -> set[str]:
        """Those of these with rows that are not to stay as they are: one that was redacted is still about somebody."""
        from pyspark.sql import functions as F

        def shown(frame: DataFrame) -> DataFrame:
            whole = F.to_json(F.struct(*(F.col(quote(name)) for name in frame.columns)))
            return frame.select(F.col(_FROM), whole.alias(_ROWS))

        with ExitStack() as until:
            theirs = self.people.among(self._bare(tasks, until)) if tasks else None
            kept = _files_of(self.people.without(theirs)) & tasks.keys() if theirs is not None else set[str]()
            if not kept:  # none of their rows is left of these: no more of them is read than who they are about
                return set(tasks)
            theirs = self.people.among(self._bare({path: tasks[path] for path in kept}, until))
            changed = _files_of(shown(theirs).exceptAll(shown(self.people.without(theirs)))) & kept
            return (tasks.keys() - kept) | changed

    def _bare(self, tasks: Mapping[str, Any], until: ExitStack) -> DataFrame:
        """The rows of files as they are stored, each with its file."""
        from pyspark.sql import functions as F

        staging = Staging(self.spark, self.table, until)
        rows = staging.read(staging.stage([staging.bare(task) for task in tasks.values()]))
        return rows.withColumn(_FROM, F.input_file_name())

    def left_of_each(self, tasks: Mapping[str, Any], discard: Discard) -> dict[str, list[Any]]:
        """New files with what is to be left of these, which deletes leave, by the file that each of them stands for."""
        made: dict[str, list[Any]] = {path: [] for path in tasks}
        for spec_id, some in self._by_spec(tasks.values()).items():
            with ExitStack() as until:
                staging = Staging(self.spark, self.table, until)
                name = staging.stage(some)
                rows = staging.read(name, whole_files=True)
                came_from = self._came_from(rows)
                counted: dict[int, int] = {}
                for file in staging.write(self.people.without(rows), name, spec_id):
                    at = _number_of(str(file.location()))
                    source, _ = came_from.get(at, ("", 0))
                    made.setdefault(source, []).append(file)
                    counted[at] = counted.get(at, 0) + int(file.recordCount())
                if counted != {at: rows for at, (_, rows) in came_from.items()} or "" in made:
                    discard(None, [path for files in made.values() for path in locations(files)])
                    raise ProofError(
                        "files that were written anew", expected="the rows of each file of before", found="others"
                    )
        return made

    def _by_spec(self, tasks: Iterable[Any]) -> dict[int, list[Any]]:
        """Files by the spec that what is left of them is written with: their own, or where a column of it is gone the
        table's.
        """
        found: dict[int, list[Any]] = {}
        for task in tasks:
            found.setdefault(int(task.spec().specId()), []).append(task)
        schema, own = self.table.schema(), int(self.table.spec().specId())
        for id_ in list(found):
            fields = self.table.specs().get(id_).fields()
            if id_ != own and any(
                schema.findField(f.sourceId()) is None and str(f.transform()) != _VOID for f in fields
            ):
                found.setdefault(own, []).extend(found.pop(id_))
        return found

    def _came_from(self, rows: DataFrame) -> dict[int, tuple[str, int]]:
        """By the number of a partition of Spark: the file that is in it, and how many of its rows are to be left."""
        from pyspark.sql import functions as F

        left = self.people.without(rows.withColumn(_FROM, F.input_file_name()))
        counted = (
            left.select(_FROM, F.spark_partition_id().alias(_AT)).groupBy(_FROM, _AT).agg(F.count("*").alias(_ROWS))
        )
        found: dict[int, tuple[str, int]] = {}
        for row in counted.collect():
            if row[_AT] in found:
                raise ProofError("a partition of Spark", expected="one file", found="several")
            found[row[_AT]] = (normalise(row[_FROM]), row[_ROWS])
        return found


def _files_of(rows: DataFrame) -> set[str]:
    return {normalise(row[0]) for row in rows.select(_FROM).distinct().collect()}


def locations(files: Iterable[Any]) -> list[str]:
    return [normalise(str(file.location())) for file in files]


def _number_of(location: str) -> int:
    """The partition of Spark that wrote a file, by which Iceberg's writers name it."""
    named = _NUMBERED.search(location.rpartition("/")[2])
    return int(named[1]) if named else -1
