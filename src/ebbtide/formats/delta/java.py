"""A Delta table in the session's JVM: its own transactions, and VACUUM by a list of files."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from ebbtide.errors import RefusedError
from ebbtide.formats.delta.actions import DeltaDataFile, Metadata, data_file, metadata, resolve
from ebbtide.model.dataset import Catalog
from ebbtide.model.paths import local_path, normalise
from ebbtide.spark.session import activate, parts_of, quote, quote_text, sibling

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
class LiveAction:
    """A live data file: Delta's own action, and the same as a value."""

    java: Any
    file: DeltaDataFile


class Attempt:
    """One of Delta's optimistic transactions, which has read the whole table: any write after that is a conflict."""

    def __init__(self, transaction: Any, spark: SparkSession, location: str) -> None:
        self._transaction, self._spark, self._location = transaction, spark, location
        self._jvm: Any = spark._jvm

    @property
    def metadata(self) -> Metadata:
        return metadata(json.loads(self._transaction.metadata().json())["metaData"])

    def live_files(self) -> Iterator[LiveAction]:
        files = self._transaction.filterFiles().iterator()
        while files.hasNext():
            java = files.next()
            yield LiveAction(java, data_file(json.loads(java.json())["add"], self._location))

    def bounds(self, columns: Collection[str]) -> dict[str, dict[str, tuple[str | None, str | None]]]:
        """The lowest and highest value of these columns in each live file that says them, by physical names."""
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as F

        texts = StructType([StructField(name, StringType()) for name in columns])
        said = StructType([StructField("minValues", texts), StructField("maxValues", texts)])
        files = DataFrame(self._transaction.snapshot().allFiles().toDF(), self._spark)
        found: dict[str, dict[str, tuple[str | None, str | None]]] = {}
        for path, stats in files.select("path", F.from_json("stats", said)).collect():
            low, high = (stats[0], stats[1]) if stats is not None else (None, None)
            if low is not None and high is not None:
                found[resolve(path, self._location)] = {name: (low[name], high[name]) for name in columns}
        return found

    def remove(self, files: Collection[LiveAction]) -> None:
        """Commit the removal of exactly these files. No predicate is recorded: there was none."""
        self._commit([file.java.remove() for file in files])

    def rows(self, files: Collection[LiveAction], *, hidden: bool) -> DataFrame:
        """The rows of exactly these files; those that vectors hide only where they are asked for."""
        from pyspark.sql import DataFrame

        java = [_without(self._jvm, file.java, "deletionVector") if hidden else file.java for file in files]
        snapshot, none = self._transaction.snapshot(), self._jvm.scala.Option.empty()
        frame = self._transaction.deltaLog().createDataFrame(snapshot, self._seq(java), False, none)
        return DataFrame(frame, self._spark)

    def write(self, rows: DataFrame) -> list[LiveAction]:
        """Write rows as files that no version has yet."""
        files: Any = rows
        actions, written = self._transaction.writeFiles(files._jdf).iterator(), []
        while actions.hasNext():
            java = actions.next()
            said = json.loads(java.json())
            if "add" not in said:
                raise RefusedError("Delta would write rows into files beside the data: nothing was changed")
            written.append(LiveAction(java, data_file(said["add"], self._location)))
        return written

    def replace(self, files: Collection[LiveAction], by: Collection[LiveAction]) -> None:
        """Commit files in the place of others. What is said of those that go is where they are, and no bounds."""
        gone = [_without(self._jvm, file.java.remove(), "stats") for file in files]
        self._commit([*gone, *(file.java for file in by)])

    def commit_nothing(self) -> int:
        """A version that says nothing: the same files as the one before it."""
        return self._commit([])

    def _commit(self, actions: Collection[Any]) -> int:
        delta = self._jvm.org.apache.spark.sql.delta
        # Delta's own operations want the numbers of their statement; this one is for commits by its interface.
        operation = getattr(getattr(delta, "DeltaOperations$ManualUpdate$"), "MODULE$")
        return int(self._transaction.commit(self._seq(actions), operation))

    def _seq(self, items: Collection[Any]) -> Any:
        listed = self._jvm.java.util.ArrayList()
        for item in items:
            listed.add(item)
        return self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(listed)


def _without(jvm: Any, action: Any, name: str) -> Any:
    """One of Delta's actions without one of its fields."""
    said = json.loads(action.json())
    for body in said.values():
        body.pop(name, None)
    return getattr(getattr(jvm.org.apache.spark.sql.delta.actions, "Action$"), "MODULE$").fromJson(json.dumps(said))


class DeltaJavaTable:
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
        return Attempt(self._transaction(self.place), self._spark, self._location)

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

    def checkpoint(self, version: int) -> None:
        """Let Delta write a checkpoint of this version. Tombstones that are past their retention are not in it."""
        activate(self._spark)
        none = self._jvm.scala.Option.empty()
        log = self._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._spark._jsparkSession, self.place)
        head = log.update(False, none, none)
        log.checkpoint(head if head.version() == version else log.getSnapshotAt(version, none, none), none)

    def set_properties(self, properties: Mapping[str, str | None]) -> None:
        """Set properties of the table, or unset those that are None."""
        given = ", ".join(
            f"{quote_text(key)} = {quote_text(value)}" for key, value in properties.items() if value is not None
        )
        if given:
            self._spark.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ({given})")
        if none := ", ".join(quote_text(key) for key, value in properties.items() if value is None):
            self._spark.sql(f"ALTER TABLE {self.name} UNSET TBLPROPERTIES IF EXISTS ({none})")

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
