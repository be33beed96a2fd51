"""What retention knows of rows, which no file list names: how many may go, and whether they are gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from ebbtide.acts.act import ActResult
from ebbtide.acts.rows import lie_in_files, still_match
from ebbtide.config.policies import Rows
from ebbtide.config.project import Limits
from ebbtide.errors import told
from ebbtide.inventory.information_schema import Inventory
from ebbtide.sweep.act_planning import row_delete
from ebbtide.sweep.values import ObjectBatch, ObjectOutcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_FILES = "deleted from the head, whose files hold rows that match: compact the table"


def most_rows(inventory: Inventory, batch: ObjectBatch, limits: Limits) -> float | None:
    """The largest share of a head's rows that a run may delete; None where all of them may go, or none is to go.

    The limits speak of bytes: each row is taken for as large as the others.
    """
    if all(object_.key.target != "rows" for object_ in batch.objects):
        return None
    files = inventory.table("files", table_id=batch.dataset).select(["live", "role", "bytes"])
    live = pc.sum(files.filter(pc.field("live") & pc.field("role").isin(["data", "log"]))["bytes"]).as_py() or 0
    share = limits.max_share if live == 0 else max(limits.max_share, limits.min_bytes / live)
    return None if share >= 1 else share


def rows_proved(
    batch: ObjectBatch,
    act: ActResult,
    result: ObjectOutcome,
    asked: Mapping[str, Rows],
    session: Callable[[], SparkSession],
) -> ObjectOutcome:
    """Rows are gone when the head shows none and its files hold none, not because they were deleted (spec §2)."""
    if result.key.target == "rows" and result.key.object in act.unhit:
        return ObjectOutcome(result.key, "failed", "failed: rows match after they were deleted")
    handle, catalog, removal = batch.found, batch.catalog, act.act.removal
    if result.key.target != "rows" or result.state != "swept" or handle is None or batch.along:
        return result
    (rows,) = (object_ for object_ in batch.objects if object_.key == result.key)
    # Asked already when this act deleted them.
    deleted_now = removal is not None and result.key.object in {delete.object for delete in removal.rows}
    try:
        delete = row_delete(rows, asked)
        if not deleted_now and still_match(handle, catalog, delete, session()):
            return ObjectOutcome(result.key, "waiting", "rows that match came back: they are deleted again", again=True)
        if lie_in_files(handle, catalog, delete, session()):
            return ObjectOutcome(result.key, "unmarked", IN_FILES, result.acted_at)
    except Exception as error:
        return ObjectOutcome(result.key, "failed", f"failed: {told(error)}", result.acted_at)
    return result
