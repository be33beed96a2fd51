"""The same work on several parts of a whole: here one after the other, or side by side in Spark tasks.

Workers need our package and the paths that the work names; nothing else of the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Tasks:
    """Where work on more than `rows` rows is done: in tasks of a session, which write below `folder`."""

    rows: int
    folder: Path
    session: Callable[[], SparkSession]
    memory: str = "1GiB"


def run_parts(
    work: Callable[[_Part], _Result], parts: Sequence[_Part], spark: SparkSession | None = None
) -> list[_Result]:
    """The result of each part, in order."""
    if spark is None:
        return [work(part) for part in parts]
    found: list[_Result] = spark.sparkContext.parallelize(parts, len(parts)).map(work).collect()
    return found
