"""The days of partitions where `tables/*.yml` says which column is the date, or how it is written (spec §3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ebbtide.config.tables import PartitionDate, TableSettings
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.partition_dates import parse_day

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DAYS = "table_id string, partition string, declared_first date, declared_last date, declared boolean"


def dated_partitions(spark: SparkSession, inventory: Inventory, settings: Mapping[str, TableSettings]) -> DataFrame:
    """The section `partitions`, with the days that people declared in place of those that the scan guessed."""
    from pyspark.sql import functions as F

    from ebbtide.spark.frames import small_frame

    partitions = inventory.frame(spark, "partitions")
    declared = {table_id: about.partition_date for table_id, about in settings.items() if about.partition_date}
    rows = list(_days(inventory, declared))
    if not rows:
        return partitions
    days = partitions.join(small_frame(spark, rows, _DAYS), ["table_id", "partition"], "left")
    said = F.coalesce("declared", F.lit(False))
    return days.withColumns(
        {
            "_date": F.when(said, F.col("declared_first")).otherwise(F.col("_date")),
            "first_day": F.when(said, F.col("declared_first")).otherwise(F.col("first_day")),
            "last_day": F.when(said, F.col("declared_last")).otherwise(F.col("last_day")),
        }
    ).drop("declared_first", "declared_last", "declared")


Row = tuple[str, str, date | None, date | None, bool]


def _days(inventory: Inventory, declared: Mapping[str, PartitionDate]) -> Iterator[Row]:
    """A partition whose value cannot be read as declared has no date, and is never due.

    Values of a time transform are numbers to nobody but the scan, which has read them: they stay as they are.
    """
    for table_id, about in declared.items():
        for row in inventory.rows("partitions", table_id=table_id):
            values = dict(segment.partition("=")[::2] for segment in row["partition"].split("/")[1:])
            text = {unquote(name): unquote(value) for name, value in values.items()}.get(about.column)
            if text is None or (about.format is None and parse_day(text) is None and row["first_day"] is not None):
                continue
            days = None if text == "\0" else parse_day(text, about.format)
            yield table_id, row["partition"], *(days or (None, None)), True
