"""What transactions of a Delta table appended: the files of their commits, read by Delta itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ebbtide.formats.base import NewRows
from ebbtide.model.dataset import Catalog, Reading, TableHandle
from ebbtide.model.history import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _rows(
    found: TableHandle,
    catalog: Catalog,  # noqa: ARG001 a Delta table is opened by its path
    spark: SparkSession,
    reading: Reading,  # noqa: ARG001 Delta knows its schema
    branch: str,  # noqa: ARG001 there is only main
    transactions: Sequence[Transaction],
) -> DataFrame:
    """Delta makes the frame, so that partition values, column mapping and deletion vectors are its own affair."""
    from pyspark.sql import DataFrame

    session: Any = spark
    jvm = session._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, found.location)
    wanted = {int(t.id) for t in transactions}
    files = jvm.java.util.ArrayList()
    changes = log.getChanges(min(wanted), False) if wanted else None
    while changes is not None and changes.hasNext():
        commit = changes.next()
        if commit._1() > max(wanted):
            break
        if commit._1() in wanted:
            actions = commit._2().iterator()
            while actions.hasNext():
                action = actions.next()
                if action.getClass().getSimpleName() == "AddFile":
                    files.add(action)
    frame = log.createDataFrame(log.update(False, jvm.scala.Option.empty(), jvm.scala.Option.empty()),
                                jvm.PythonUtils.toSeq(files), False, jvm.scala.Option.empty())  # fmt: skip
    return DataFrame(frame, spark)


NEW_ROWS = NewRows(_rows)
