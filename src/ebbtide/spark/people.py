"""Values of people as a DataFrame, in the driver's memory alone.

`createDataFrame` of a list writes its rows to a file for Java to read, and a literal stands in the query's plan, in
Spark's event log and in a table's own log. As rows of a `LocalRelation`, made through py4j, they stand in neither; what
is shuffled, spilled or sent to executors is encrypted (`spark.io.encryption.enabled`, which a context is started with).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ebbtide.errors import SetupError

ENCRYPTED = "spark.io.encryption.enabled"


def refuse_unencrypted(spark: SparkSession) -> None:
    """A context that would write values of people in the clear, where memory does not suffice, is not used for them."""
    if str(spark.sparkContext.getConf().get(ENCRYPTED, "false")).lower() != "true":
        raise SetupError(
            "this Spark context writes what it spills in the clear", hint=f"start it with {ENCRYPTED}=true"
        )


def people_frame(spark: SparkSession, rows: Iterable[Sequence[str]], columns: Sequence[str]) -> DataFrame:
    """Rows of texts. No value of them stands in a statement, a plan or a file."""
    refuse_unencrypted(spark)
    any_: Any = spark
    jvm, new = any_._jvm, any_.sparkContext._gateway.new_array
    made = jvm.java.util.ArrayList()
    for values in rows:
        row = new(jvm.java.lang.Object, len(columns))
        for n, value in enumerate(values):
            row[n] = value
        made.add(jvm.org.apache.spark.sql.RowFactory.create(row))
    schema = jvm.org.apache.spark.sql.types.StructType()
    for column in columns:
        schema = schema.add(column, "string")
    return DataFrame(any_._jsparkSession.createDataFrame(made, schema), spark)
