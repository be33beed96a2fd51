"""Small files of a cold table: a mirror writes some with every batch, and Iceberg's own rewrite joins them.

A rewrite commits only where every file that it read is still there, so a merge that came meanwhile is never undone; and
a mirror commits only on the head that it read. What was joined is the same rows: the summary of the head counts them.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ebbtide.errors import UnreadableError, kind_of
from ebbtide.formats.iceberg.cold import ColdTable
from ebbtide.formats.iceberg.java import CONFLICTS, load_table
from ebbtide.formats.iceberg.position import PREFIX
from ebbtide.model.ids import DatasetId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COMPACTED = f"{PREFIX}compacted"
_TARGET, _DEFAULT = "write.target-file-size-bytes", 512 << 20
_SMALL = 0.75
_FEWEST = 5
"""What the rewrite takes for small, and how many of a partition it joins: its own defaults."""


def compacted_at(cold: ColdTable) -> datetime | None:
    """When it was compacted last, by the schedule."""
    said = cold.table.properties.get(_COMPACTED)
    return None if said is None else datetime.fromisoformat(said)


def has_small_files(cold: ColdTable) -> bool:
    """Whether the rewrite would find a partition with something to join."""
    small = int(cold.table.properties.get(_TARGET, _DEFAULT)) * _SMALL
    files = (task.file for task in cold.table.scan().plan_files())
    of_partition = Counter(str(file.partition) for file in files if file.file_size_in_bytes < small)
    return max(of_partition.values(), default=0) >= _FEWEST


def join_small_files(cold: ColdTable, dataset: DatasetId, spark: SparkSession, *, now: datetime) -> tuple[int, int]:
    """Let Iceberg rewrite them, and the head say again how far the log is; gives how many files went, and came."""
    table = load_table(dataset, spark)
    if table is None:
        raise UnreadableError(str(dataset), "its catalog does not list it any more", hint="run again")
    before = cold.counted()
    went, came = _rewritten(table, dataset, spark)
    cold.refresh()
    if (after := cold.counted()) != before:
        raise UnreadableError(
            str(dataset), f"it had {before} rows before its files were joined, and has {after}",
            hint="somebody else wrote to it meanwhile, or its history tells what happened",
        )  # fmt: skip
    cold.restate({_COMPACTED: now.isoformat()})
    return went, came


def _rewritten(table: Any, dataset: DatasetId, spark: SparkSession) -> tuple[int, int]:
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark._jvm
    actions = jvm.org.apache.iceberg.spark.actions.SparkActions.get(spark._jsparkSession)
    try:
        result = actions.rewriteDataFiles(table).execute()
    except Py4JJavaError as error:
        kind = str(error.java_exception.getClass().getSimpleName())
        why = "somebody else committed to it meanwhile" if kind in CONFLICTS else kind_of(error)
        raise UnreadableError(
            str(dataset), f"its small files were not joined: {why}", hint="the next run tries again"
        ) from None
    return int(result.rewrittenDataFilesCount()), int(result.addedDataFilesCount())
