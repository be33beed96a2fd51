"""What transactions of an Iceberg table appended, by Iceberg's own incremental scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ebbtide.errors import FullReadNeededError
from ebbtide.formats.base import NewRows
from ebbtide.model.dataset import Catalog, Reading, TableHandle
from ebbtide.model.history import Transaction
from ebbtide.spark.session import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _rows(
    found: TableHandle,
    catalog: Catalog,  # noqa: ARG001 the session knows it by name
    spark: SparkSession,
    reading: Reading,  # noqa: ARG001 the scan has the table's own schema
    branch: str,  # noqa: ARG001 snapshots are known by their ids on every branch
    transactions: Sequence[Transaction],
) -> DataFrame:
    """Iceberg's scan leaves out what it does not call an append, in silence: such a transaction is refused here."""
    id_ = found.id
    name = quote(id_.catalog, *id_.namespace, id_.table)
    spark.catalog.refreshTable(name)  # the session does not see what other processes committed since it read it
    if not transactions:
        return spark.table(name).limit(0)
    if other := [t for t in transactions if t.operation != "append"]:
        raise FullReadNeededError(
            f"{id_}: transaction {other[0].id} added files by {other[0].operation}, which Iceberg does not read as new",
            hint="read the whole table once",
        )
    reader = spark.read.format("iceberg").option("end-snapshot-id", transactions[-1].id)
    first = transactions[0]
    if first.parent_id is None:
        # Everything since the beginning is the version itself: an incremental scan needs something to begin after.
        return spark.table(f"{name}.`snapshot_id_{transactions[-1].id}`")
    return reader.option("start-snapshot-id", first.parent_id).load(name)


NEW_ROWS = NewRows(_rows)
