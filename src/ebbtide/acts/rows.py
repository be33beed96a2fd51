"""What only a look at rows tells, which no file list names: how many match, and whether they are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebbtide.errors import OverLimitError
from ebbtide.formats.registry import load_format
from ebbtide.formats.row_deletes import rows_of
from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.model.removal import RowDelete

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def refuse_more(found: TableHandle, catalog: Catalog, delete: RowDelete, most: float, spark: SparkSession) -> None:
    """Only a look at the rows tells how many match: a plan cannot know it. Made before anything is committed."""
    from pyspark.sql import functions as F

    table = load_format(catalog.format).rows(found.id, catalog, spark)
    matching = rows_of(delete, table)
    if isinstance(matching, str):
        return  # nothing that fits: the delete itself says why
    counted = table.agg(F.count("*").alias("all"), F.count_if(F.expr(matching.predicate)).alias("matching")).first()
    assert counted is not None
    if counted["matching"] > counted["all"] * most:
        raise OverLimitError(
            f"limit: {counted['matching']:,} of {counted['all']:,} rows match, more than {most:.0%}",
            hint="look at the predicate; if it is right, pass a larger --max-share",
        )


def still_match(found: TableHandle, catalog: Catalog, delete: RowDelete, spark: SparkSession) -> bool:
    """Whether the head has a row that was to go: a delete may hit nothing, and a restore brings rows back."""
    matching = rows_of(delete, load_format(catalog.format).rows(found.id, catalog, spark))
    return isinstance(matching, str) or not matching.frame.isEmpty()


def lie_in_files(found: TableHandle, catalog: Catalog, delete: RowDelete, spark: SparkSession) -> bool:
    """Whether a data file of the head holds a row that was to go, though no reader is shown it."""
    stored = load_format(catalog.format).stored_rows(found.id, catalog, spark)
    if stored is None:
        return False
    matching = rows_of(delete, stored)
    return isinstance(matching, str) or not matching.frame.isEmpty()
