"""Apache Iceberg, read with pyiceberg and changed through Spark. Format versions 1, 2 and 3."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ebbtide.formats.base import Depth
from ebbtide.formats.iceberg.discover import discover
from ebbtide.formats.iceberg.read import read
from ebbtide.model.capabilities import YES, Capability, Support
from ebbtide.model.dataset import Catalog, NotFound, Reading, TableHandle
from ebbtide.model.ids import DatasetId
from ebbtide.model.removal import Committed, FileDeletion, Removal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Iceberg:
    name = "iceberg"
    reads_in_tasks = True
    capabilities: Mapping[Capability, Support] = {
        **dict.fromkeys(Capability, YES),
    }

    def discover(self, catalog: Catalog) -> Iterable[TableHandle | NotFound]:
        return discover(catalog)

    def read(self, found: TableHandle, catalog: Catalog, depth: Depth, spark: SparkSession | None) -> Reading:
        return read(found, catalog, depth)

    def commit(self, removal: Removal, catalog: Catalog, spark: SparkSession) -> Committed:
        from ebbtide.formats.iceberg.remove import commit

        return commit(removal, catalog, spark)

    def delete_files(
        self,
        removal: Removal,
        paths: Collection[str],
        catalog: Catalog,
        spark: SparkSession,
        before_batch: Callable[[], None],
    ) -> FileDeletion:
        from ebbtide.formats.iceberg.remove import delete_files

        return delete_files(removal, paths, catalog, spark, before_batch)

    def rows(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> DataFrame:
        from ebbtide.spark.session import quote

        name = quote(catalog.name, *id_.namespace, id_.table)
        spark.catalog.refreshTable(name)  # the session's catalog may remember the table as it was
        return spark.table(name)

    def stored_rows(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> DataFrame | None:
        return None

    def identity(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> str | None:
        from ebbtide.formats.iceberg.java import identity_of

        return identity_of(id_, spark)


FORMAT = Iceberg()
