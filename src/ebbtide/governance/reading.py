"""Reading rows of many tables in one job. A table that cannot be read is named, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeVar

from ebbtide.errors import keep_trace
from ebbtide.formats.registry import load_format
from ebbtide.model.ids import DatasetId
from ebbtide.spark.session import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ebbtide.model.dataset import Catalog

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, order=True)
class UnreadPlace:
    """A place that could not be looked at. `because` never quotes what was read; `failed` means: try again."""

    place: str
    because: str
    failed: bool = True


def rows_of(spark: SparkSession, catalogs: Mapping[str, Catalog], table_id: str) -> DataFrame:
    """The rows of a table's main branch; nothing is read yet."""
    id_ = DatasetId.parse(table_id)
    catalog = catalogs[id_.catalog]
    return load_format(catalog.format).rows(id_, catalog, spark)


def column_name(frame: DataFrame, column: str) -> str:
    """A column, or a field of a struct as `parent.child`, quoted for Spark."""
    return quote(column) if column in frame.columns else quote(*column.split("."))


def together(
    parts: Mapping[str, DataFrame], ask: Callable[[DataFrame], Answer]
) -> tuple[Answer | None, list[UnreadPlace]]:
    """The answer about all parts at once; None where none is left.

    Only when the job fails are the parts tried one by one, to find and name those that it failed for.
    """
    if not parts:
        return None, []
    try:
        return ask(_union(parts)), []
    except Exception as error:
        broken = {place: fault for place, part in parts.items() if (fault := _fault(part)) is not None}
        if not broken:
            raise
        unread = [UnreadPlace(place, fault) for place, fault in sorted(broken.items())]
        good = {place: part for place, part in parts.items() if place not in broken}
        if len(broken) == len(parts):
            return None, unread
        answer, more = together(good, ask)
        del error  # its text may quote what was read
        return answer, [*unread, *more]


def fault_of(error: Exception) -> str:
    """What may be said of an error: its kind, never its text, which may quote values or partitions' paths."""
    keep_trace(error)
    return f"it cannot be read ({type(error).__name__})"


def _fault(part: DataFrame) -> str | None:
    try:
        part.write.format("noop").mode("overwrite").save()
    except Exception as error:
        return fault_of(error)
    return None


def _union(parts: Mapping[str, DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), parts.values())
