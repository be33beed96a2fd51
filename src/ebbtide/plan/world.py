"""What a plan is made from: the information schema and the state, as DataFrames that others hand in (spec §2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

MARKS = (
    "table_id string, target string, object_id string, policy string, fingerprint string, marked_at timestamp, "
    "grace_until timestamp, cutoff string, acted_at timestamp, act string"
)
UNMARKS = "table_id string, target string, object_id string, until timestamp, reason string"
HOLDS = "table_id string, partition_from date, partition_to date, owner string, reason string"
MARKED_DAYS = "table_id string, partition string, first_day date, last_day date"
ORPHANS = "table_id string, folder string, path string, bytes long, modified_at timestamp"

DROPS_FILES = "drop exact data files"
"""The capability of dropping named data files from a head; `allow_latest_view` rests on it."""
ANY_ORDER = "remove versions in any order"
"""The capability of removing versions by id or their files by list. Without it removal is oldest first (spec §2)."""

ORPHANS_ONLY = "frees bytes by orphan removal only"
"""Declared by a format that leaves files to orphan removal when it expires versions; promises then take longer."""

CONTENT = ("data", "delete file", "deletion vector", "changelog", "change data", "index")
"""Roles of files that carry rows, or say which of them are deleted."""
OF_PARTITIONS = ("data", "log", "changelog", "change data")
"""Roles of files that hold a partition's rows: Hudi's logs among them; Delta's log lies in no partition. What says that
rows are deleted may stay in the head when they are gone (Iceberg 2), and goes with the versions that reference it.
"""
HELD_BY_HEAD = ("data", "log")
"""Roles of the files that a head gives up with a partition."""


@dataclass(frozen=True, slots=True)
class World:
    """The information schema of one scan.

    An ancestor's `transactions.position` is less than its descendants'. `orphans` are files that the caller's listing
    found and no dataset references, with the area's owner; `listed_at` is that listing's time by the store's clock.
    `former` are owners that are no datasets any more, in the columns of `tables`. `errors` are the reasons why nothing
    is an orphan for now; `unread` names who may reference files of others unknown to anybody, as `unread:NAME`: while
    there is one, no file of a dataset goes (spec §7).
    `marked_days` are the days that marked partitions covered when they were marked: a sweep's own commit takes them out
    of `partitions`.
    """

    tables: DataFrame
    columns: DataFrame
    partitions: DataFrame
    branches: DataFrame
    transactions: DataFrame
    files: DataFrame
    orphans: DataFrame | None = None
    listed_at: datetime | None = None
    errors: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    former: DataFrame | None = None
    marked_days: DataFrame | None = None

    def only(self, table_id: str) -> World:
        """The same, with the objects of one dataset. Files stay whole: other datasets' references still count."""
        mine = F.col("table_id") == table_id
        return World(
            self.tables.where(mine),
            self.columns.where(mine),
            self.partitions.where(mine),
            self.branches.where(mine),
            self.transactions.where(mine),
            self.files,
            None if self.orphans is None else self.orphans.where(mine),
            self.listed_at,
            self.errors,
            self.unread,
            None if self.former is None else self.former.where(mine),
            None if self.marked_days is None else self.marked_days.where(mine),
        )


def settled(frame: DataFrame) -> DataFrame:
    """The frame computed now, and without its past: what builds on it is neither computed nor analysed again.

    Where the session is prepared for few rows (`spark.session.FEW_ROWS`) they become a local relation: an optimiser
    that sees the rows leaves out what joins with none of them, and there is no block to be kept.
    """
    spark: Any = frame.sparkSession
    if not has_few_rows(frame):
        return frame.localCheckpoint()
    java = frame._jdf
    return DataFrame(spark._jsparkSession.createDataFrame(java.collectAsList(), java.schema()), spark)


def settled_if_few(frame: DataFrame) -> DataFrame:
    """The frame settled where the session is prepared for few rows, and as it is elsewhere."""
    return settled(frame) if has_few_rows(frame) else frame


def has_few_rows(frame: DataFrame) -> bool:
    """Whether the frame's session is prepared for few rows."""
    return frame.sparkSession.conf.get("spark.ebbtide.fewRows", "false") == "true"


def texts(*values: str) -> Column:
    """A constant array of texts, typed also where it is empty."""
    return F.array(*(F.lit(value) for value in values)).cast("array<string>")


def no_texts() -> Column:
    return F.array().cast("array<string>")


def joined(*arrays: Column) -> Column:
    """The elements of several arrays of texts, sorted, each once. An array may be NULL, its elements not."""
    whole = F.concat(*(F.coalesce(array, no_texts()) for array in arrays))
    return F.when(F.size(whole) == 0, no_texts()).otherwise(F.sort_array(F.array_distinct(whole)))


def only_if(condition: Column, value: Column | str) -> Column:
    """An array with the text where the condition holds, an empty one elsewhere."""
    return F.when(condition, F.array(F.lit(value) if isinstance(value, str) else value)).otherwise(no_texts())


def instant_text(instant: Column) -> Column:
    """An instant as `YYYY-MM-DDTHH:MM:SSZ`, whatever the session's time zone is."""
    micros = F.unix_micros(instant)
    second = F.pmod(micros, F.lit(86_400_000_000)) / F.lit(1_000_000)
    day = F.date_from_unix_date(F.round((micros - F.pmod(micros, F.lit(86_400_000_000))) / 86_400_000_000).cast("int"))
    whole = F.floor(second).cast("int")
    parts = [F.floor(whole / 3600), F.floor(whole / 60) % 60, whole % 60]
    clock = F.concat_ws(":", *(F.lpad(part.cast("int").cast("string"), 2, "0") for part in parts))
    return F.concat(day.cast("string"), F.lit("T"), clock, F.lit("Z"))
