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


def rows_proved(act: Act, result: Result, asked: Mapping[str, Rows], spark: SparkSession) -> Result:
    """Rows are gone when the head shows none, never because they were deleted once (spec §2)."""
    if result.key.target == "rows" and result.key.object in act.unhit:
        return Result(result.key, "failed", "failed: rows match after they were deleted")
    if result.key.target != "rows" or result.state != "swept" or act.found is None or act.along:
        return result
    if act.removal is not None and result.key.object in {delete.object for delete in act.removal.rows}:
        return result  # asked when this act deleted them
    (going,) = (going for going in act.objects if going.key == result.key)
    try:
        if not still_match(act.found, act.catalog, row_delete(going, asked), spark):
            return result
    except Exception as error:
        return Result(result.key, "failed", f"failed: {told(error)}", result.acted_at)
    return Result(result.key, "waiting", "rows that match came back: they are deleted again", again=True)
