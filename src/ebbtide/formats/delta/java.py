"""A Delta table in the session's JVM: its own transactions, and VACUUM by a list of files."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from ebbtide.formats.delta.actions import DataFile, Metadata, data_file, metadata
from ebbtide.model.dataset import Catalog
from ebbtide.model.paths import local_path, normalise
from ebbtide.spark.session import activate, parts_of, quote, sibling

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONFLICTS = frozenset(
    {
        "CommitFailedException",
        "ConcurrentAppendException",
        "ConcurrentDeleteDeleteException",
        "ConcurrentDeleteReadException",
        "ConcurrentTransactionException",
        "ConcurrentWriteException",
        "MetadataChangedException",
        "ProtocolChangedException",
    }
)
# Nullable, all of them: Delta compares this schema with its own.
_INVENTORY = StructType(
    [
        StructField("path", StringType()),
        StructField("length", LongType()),
        StructField("isDir", BooleanType()),
        StructField("modificationTime", LongType()),
    ]
)


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A live data file: Delta's own action, and the same as a value."""

    java: Any
    file: DataFile


class Attempt:
    """One of Delta's optimistic transactions, which has read the whole table: any write after that is a conflict."""

    def __init__(self, transaction: Any, jvm: Any, location: str) -> None:
        self._transaction, self._jvm, self._location = transaction, jvm, location

    @property
    def metadata(self) -> Metadata:
        return metadata(json.loads(self._transaction.metadata().json())["metaData"])

    def live_files(self) -> Iterator[LiveFile]:
        files = self._transaction.filterFiles().iterator()
        while files.hasNext():
            java = files.next()
            yield LiveFile(java, data_file(json.loads(java.json())["add"], self._location))

    def remove(self, files: Collection[LiveFile]) -> None:
        """Commit the removal of exactly these files. No predicate is recorded: there was none."""
        actions = self._jvm.java.util.ArrayList()
        for file in files:
            actions.add(file.java.remove())
        delta = self._jvm.org.apache.spark.sql.delta
        # Delta's own operations want the numbers of their statement; this one is for commits by its interface.
        operation = getattr(getattr(delta, "DeltaOperations$ManualUpdate$"), "MODULE$")
        self._transaction.commit(self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(actions), operation)


class JavaTable:
    def __init__(self, location: str, catalog: Catalog, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._location = normalise(location)
        # The engine wants the warehouse's own spelling (`s3a`): a path of another scheme is silently no file of it.
        warehouse = normalise(catalog.warehouse)
        plain = local_path(catalog.warehouse)
        self._spelled = (warehouse, "file:" + plain if plain else catalog.warehouse.rstrip("/"))
        self.place = self.spell(self._location).removeprefix("file:")

    @property
    def name(self) -> str:
        """The table's name in SQL, quoted."""
        return quote("delta", self.place)

    def identity(self) -> str | None:
        """The id of the table that statements change by this name; None where there is none."""
        _, place = parts_of(self._spark, self.name)
        transaction = self._transaction(place)
        return str(transaction.metadata().id()) if transaction.readVersion() >= 0 else None

    def begin(self) -> Attempt:
        return Attempt(self._transaction(self.place), self._jvm, self._location)

    def _transaction(self, place: str) -> Any:
        # Delta reads checkpoints in the name of this thread's session, and a thread of a sweep has none of its own.
        activate(self._spark)
        none = self._jvm.scala.Option.empty()
        log = self._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._spark._jsparkSession, place)
        return log.startTransaction(none, none)

    def rows_of(self, adds: Collection[Mapping[str, Any]]) -> DataFrame:
        """The rows of exactly these files, each as the log would add it, with the head's columns."""
        from pyspark.sql import DataFrame

        activate(self._spark)
        delta, none = self._jvm.org.apache.spark.sql.delta, self._jvm.scala.Option.empty()
        log = delta.DeltaLog.forTable(self._spark._jsparkSession, self.place)
        action, files = getattr(getattr(delta.actions, "Action$"), "MODULE$"), self._jvm.java.util.ArrayList()
        for add in adds:
            files.add(action.fromJson(json.dumps({"add": add})))
        listed = self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(files)
        return DataFrame(log.createDataFrame(log.update(False, none, none), listed, False, none), self._spark)

    def forget(self) -> None:
        """Drop what the engine remembers of a table that is gone."""
        path = self._jvm.org.apache.hadoop.fs.Path(self.place)
        self._jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(self._spark._jsparkSession, path)

    def vacuum(self, paths: Collection[str]) -> None:
        """Let Delta remove these files, those of its current version excepted.

        Without a list VACUUM takes whatever it finds, and `RETAIN 0 HOURS` is only bearable with one: the plan proved
        the ages. So the check is off in a session of its own, which nobody else ever sees.
        """
        if not paths:
            raise ValueError("VACUUM commits twice even for nothing")
        session = sibling(self._spark)
        session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        rows = [(self.spell(path), 0, False, 0) for path in sorted(paths)]
        listed = "SELECT path, length, isDir, modificationTime FROM named_by_the_plan"
        session.createDataFrame(rows, _INVENTORY).createOrReplaceTempView("named_by_the_plan")
        session.sql(f"VACUUM {self.name} USING INVENTORY ({listed}) RETAIN 0 HOURS")

    def spell(self, path: str) -> str:
        """A normalised path as the engine wants it."""
        normalised, spelled = self._spelled
        return spelled + path.removeprefix(normalised)
