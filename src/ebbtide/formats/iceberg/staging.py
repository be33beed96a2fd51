"""Data files handed to Iceberg's own reader and writer in Spark as tasks, whatever version they are of.

What is staged lies in caches of Iceberg's that are the session's: it is taken out of them when `until` closes.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ebbtide.model.paths import normalise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WHOLE = str(1 << 40)
"""More bytes than a file has: no two files share a partition of Spark, and none is split."""


class Staging:
    """One table in the session's JVM, and the tasks of its versions."""

    def __init__(self, spark: SparkSession, table: Any, until: ExitStack) -> None:
        self.spark, self.table, self._until = spark, table, until
        self.jvm: Any = spark._jvm

    def tasks(self, snapshot: int) -> Iterator[tuple[str, Any]]:
        """The data files of a version, each with the deletes that apply to it; none where it went since."""
        if self.table.snapshot(snapshot) is None:
            return
        planned = self.table.newScan().useSnapshot(snapshot).planFiles()
        try:
            tasks = planned.iterator()
            while tasks.hasNext():
                task = tasks.next()
                yield normalise(task.file().location()), task
        finally:
            planned.close()

    def bare(self, task: Any) -> Any:
        """The same file without its deletes."""
        return self.bare_of(task.file(), task.spec())

    def bare_of(self, file: Any, spec: Any) -> Any:
        """A file without deletes, whatever plans it."""
        iceberg, gateway = self.jvm.org.apache.iceberg, self.spark.sparkContext._gateway
        none = gateway.new_array(iceberg.DeleteFile, 0)  # type: ignore[union-attr]
        schema = iceberg.SchemaParser.toJson(self.table.schema())
        spec = iceberg.PartitionSpecParser.toJson(spec)
        always = iceberg.expressions.ResidualEvaluator.unpartitioned(iceberg.expressions.Expressions.alwaysTrue())
        return iceberg.BaseFileScanTask(file, none, schema, spec, always)

    def stage(self, tasks: Collection[Any]) -> str:
        """Give these tasks a name that Spark reads them by."""
        name, items = str(uuid.uuid4()), self.jvm.java.util.ArrayList()
        for task in tasks:
            items.add(task)
        manager = self.jvm.org.apache.iceberg.spark.ScanTaskSetManager.get()
        self._cache().add(name, self.table)
        self._until.callback(self._cache().remove, name)
        manager.stageTasks(self.table, name, items)
        self._until.callback(manager.removeTasks, self.table, name)
        return name

    def read(self, name: str, *, whole_files: bool = False) -> DataFrame:
        reader = self.spark.read.format("iceberg").option("scan-task-set-id", name)
        if whole_files:
            reader = reader.option("split-size", _WHOLE).option("file-open-cost", _WHOLE)
        return reader.load(name)

    def write(self, frame: DataFrame, name: str, spec_id: int) -> list[Any]:
        """Write what is left of a set of tasks, a file for each partition of Spark; nothing is committed."""
        written = self.jvm.org.apache.iceberg.spark.FileRewriteCoordinator.get()
        self._until.callback(written.clearRewrite, self.table, name)
        writer = frame.write.format("iceberg").option("rewritten-file-scan-task-set-id", name)
        writer = writer.option("output-spec-id", str(spec_id)).option("target-file-size-bytes", _WHOLE)
        writer = writer.option("distribution-mode", "none").option("fanout-enabled", "true")
        writer.mode("append").save(name)
        return list(written.fetchNewFiles(self.table, name))

    def _cache(self) -> Any:
        """py4j does not find the static `get()` beside the instance's `get(String)`: it is asked for by reflection."""
        lang: Any = self.jvm.java.lang
        gateway: Any = self.spark.sparkContext._gateway
        loader = lang.Thread.currentThread().getContextClassLoader()
        cache = lang.Class.forName("org.apache.iceberg.spark.SparkTableCache", True, loader)
        return cache.getMethod("get", gateway.new_array(lang.Class, 0)).invoke(None, gateway.new_array(lang.Object, 0))


def deletes_of(task: Any) -> tuple[str, ...]:
    """The deletes of a task by name. Several vectors may lie in one file."""
    return tuple(sorted(f"{delete.location()}@{delete.contentOffset()}" for delete in task.deletes()))
