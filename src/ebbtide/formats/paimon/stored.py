"""The rows that lie in a key table's files, whoever is to see them.

A delete on a table with a primary key writes the row once more, as deleted, and both stay in live files until Paimon
compacts them. No file says that it hides rows of others, so nothing but a look at all of them tells what they hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from ebbtide.errors import UnreadableError
from ebbtide.formats.paimon.identity import table_by_name
from ebbtide.model.ids import DatasetId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What says where and how files lie; the rest speaks of keys, merging and deletion vectors.
_OF_FILES = ("path", "partition.default-name")


def stored_rows(id_: DatasetId, spark: SparkSession) -> DataFrame | None:
    """Every record in the data files of main's head, merged with nothing; None for a table without a key.

    Paimon itself reads them, as an append-only table that has the same folder and columns: whatever their format, and
    whichever schema they were written with.
    """
    any_: Any = spark
    table = table_by_name(id_, spark)
    if table is None:
        raise UnreadableError(str(id_), "its catalog does not list it any more", hint="scan, then run it again")
    schema = table.schema()
    if not len(schema.primaryKeys()):
        return None
    java, paimon, sql = any_._jvm.java.util, any_._jvm.org.apache.paimon, any_._jvm.org.apache.spark.sql
    options = java.HashMap()
    for name, value in dict(schema.options()).items():
        if name in _OF_FILES:
            options.put(name, value)
    options.put("bucket", "-1")
    keyless = paimon.schema.TableSchema(
        schema.id(), schema.fields(), schema.highestFieldId(), schema.partitionKeys(), java.ArrayList(), options,
        schema.comment(),
    )  # fmt: skip
    plain = paimon.table.FileStoreTableFactory.create(table.fileIO(), table.location(), keyless)
    nobody = any_._jvm.scala.Option.empty()
    relation = sql.execution.datasources.v2.DataSourceV2Relation
    read = relation.create(paimon.spark.SparkTable(plain), nobody, nobody)
    return DataFrame(sql.Dataset.ofRows(any_._jsparkSession, read), spark)
