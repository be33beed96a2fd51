"""What a sweep knows of rows, which no file list names: how many may go, and whether they are gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from ebbtide.config.policies import Rows
from ebbtide.config.project import Limits
from ebbtide.errors import OverLimitError, told
from ebbtide.formats.registry import load_format
from ebbtide.formats.row_deletes import rows_of
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.dataset import Catalog, Found
from ebbtide.model.removal import RowDelete
from ebbtide.sweep.gather import row_delete
from ebbtide.sweep.values import Act, Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_FILES = "deleted from the head, whose files hold rows that match: compact the table"


def most_rows(inventory: Inventory, dataset: str, limits: Limits) -> float | None:
    """The largest share of a head's rows that a run may delete; None where all of them may go.

    The limits speak of bytes: each row is taken for as large as the others.
    """
    files = inventory.table("files", table_id=dataset).select(["live", "role", "bytes"])
    live = pc.sum(files.filter(pc.field("live") & pc.field("role").isin(["data", "log"]))["bytes"]).as_py() or 0
    share = limits.max_share if live == 0 else max(limits.max_share, limits.min_bytes / live)
    return None if share >= 1 else share


def refuse_more(found: Found, catalog: Catalog, delete: RowDelete, most: float, spark: SparkSession) -> None:
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


def still_match(found: Found, catalog: Catalog, delete: RowDelete, spark: SparkSession) -> bool:
    """Whether the head has a row that was to go: a delete may hit nothing, and a restore brings rows back."""
    matching = rows_of(delete, load_format(catalog.format).rows(found.id, catalog, spark))
    return isinstance(matching, str) or not matching.frame.isEmpty()


def lie_in_files(found: Found, catalog: Catalog, delete: RowDelete, spark: SparkSession) -> bool:
    """Whether a data file of the head holds a row that was to go, though no reader is shown it."""
    stored = load_format(catalog.format).stored_rows(found.id, catalog, spark)
    if stored is None:
        return False
    matching = rows_of(delete, stored)
    return isinstance(matching, str) or not matching.frame.isEmpty()


def rows_proved(act: Act, result: Result, asked: Mapping[str, Rows], spark: SparkSession) -> Result:
    """Rows are gone when the head shows none and its files hold none, not because they were deleted (spec §2)."""
    if result.key.target == "rows" and result.key.object in act.unhit:
        return Result(result.key, "failed", "failed: rows match after they were deleted")
    if result.key.target != "rows" or result.state != "swept" or act.found is None or act.along:
        return result
    (going,) = (going for going in act.objects if going.key == result.key)
    # Asked already when this act deleted them.
    deleted_now = act.removal is not None and result.key.object in {delete.object for delete in act.removal.rows}
    try:
        delete = row_delete(going, asked)
        if not deleted_now and still_match(act.found, act.catalog, delete, spark):
            return Result(result.key, "waiting", "rows that match came back: they are deleted again", again=True)
        if lie_in_files(act.found, act.catalog, delete, spark):
            return Result(result.key, "unmarked", IN_FILES, result.acted_at)
    except Exception as error:
        return Result(result.key, "failed", f"failed: {told(error)}", result.acted_at)
    return result
