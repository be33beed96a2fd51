"""Our own tables as DataFrames: small ones of the driver, and Parquet files that we wrote.

`createDataFrame` makes a list of tuples into a Python RDD, whose rows pass through a Python worker in every query that
uses them. As Arrow they are handed over once, and stay in the JVM.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType, _parse_datatype_string

from ebbtide.no_pandas import show_pandas

show_pandas()
import pandas as pd  # noqa: E402 - only now it is there


def small_frame(spark: SparkSession, rows: Iterable[Sequence[object]], schema: str | StructType) -> DataFrame:
    """The rows with this schema (DDL, or a struct). Values are plain Python values, times with their zone."""
    parsed = schema if isinstance(schema, StructType) else _parse_datatype_string(schema)
    assert isinstance(parsed, StructType)
    struct = parsed
    values = list(rows)
    if not values:
        # As a local relation, which the optimiser knows to be empty, and leaves out with all that hangs on it.
        any_: Any = spark
        java = any_._jsparkSession.createDataFrame(any_._jvm.java.util.ArrayList(), _in_java(spark, struct))
        return DataFrame(java, spark)
    # Objects, so that an integer column with a NULL in it stays one.
    columns = {name: pd.Series([row[n] for row in values], dtype=object) for n, name in enumerate(struct.names)}
    return spark.createDataFrame(pd.DataFrame(columns), struct)


def own_parquet(spark: SparkSession, *files: Path, schema: StructType | None = None) -> DataFrame:
    """Parquet files that Ebbtide wrote. Arrow's days are those of one calendar, also before 1582-10-15.

    Spark asks for a decision where it finds such a day, or fails; users' tables are left to their session's settings.
    """
    reader = spark.read.option("datetimeRebaseMode", "CORRECTED")
    return (reader if schema is None else reader.schema(schema)).parquet(*map(_spelled, files))


def _spelled(file: Path) -> str:
    """A local file as Spark wants to be told of it: no escape of an address in it is undone, and a folder that is
    called `a[b]` or `*` is a name and not a pattern. (With patterns switched off Spark reads each of several such files
    once for every one of them.)
    """
    return "file://" + escaped(str(file.resolve()))


def escaped(path: str) -> str:
    """A path in which nothing is a pattern."""
    return _PATTERN.sub(r"\\\g<0>", path)


_PATTERN = re.compile(r"[\\*?{}\[\]]")


def _in_java(spark: SparkSession, schema: StructType) -> Any:
    any_: Any = spark
    return any_._jsparkSession.parseDataType(schema.json())
