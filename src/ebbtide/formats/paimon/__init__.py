"""Apache Paimon, read with its own Java library on the driver: append-only and primary-key tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ebbtide.formats.base import Depth
from ebbtide.formats.paimon.discover import discover
from ebbtide.formats.paimon.read import read
from ebbtide.model.capabilities import YES, Capability, Support, no
from ebbtide.model.dataset import Catalog, NotFound, Reading, TableHandle
from ebbtide.model.ids import DatasetId
from ebbtide.model.removal import Committed, FileDeletion, Removal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Paimon:
    name = "paimon"
    reads_in_tasks = False
    capabilities: Mapping[Capability, Support] = {
        Capability.BRANCHES: YES,
        Capability.TAGS: YES,
        Capability.STAGING: no("Paimon has no snapshots that wait to be published"),
        Capability.CHERRY_PICK: no("Paimon publishes a whole branch (fast_forward), never one snapshot"),
        Capability.ROLLBACK: YES,
        Capability.REPLACE_TABLE: no("CREATE OR REPLACE drops a Paimon table with its history and makes a new one"),
        Capability.MERGE_ON_READ: YES,
        Capability.PARTITION_EVOLUTION: no("a Paimon table keeps the partition columns that it was created with"),
        Capability.SCHEMA_EVOLUTION: YES,
        Capability.EMPTY_TABLE: YES,
        Capability.DROPS_FILES: no(
            "Ebbtide drops whole Paimon partitions; a transaction's files alone only on Iceberg"
        ),
        Capability.DROPS_PARTITIONS: YES,
        Capability.DELETES_ROWS: YES,
        Capability.DROPS_BRANCHES: YES,
        Capability.DROPS_TABLES: YES,
        Capability.EXPIRES: YES,
        Capability.ANY_ORDER: no("Paimon expires snapshots from the earliest on"),
        Capability.UNLISTS: no("Paimon removes a snapshot together with its files"),
        Capability.FORGETS: YES,
        Capability.SINGLE_FILES: YES,
        Capability.NEW_ROWS: YES,
        Capability.REWRITES_FILES: YES,
        Capability.REWRITES_REFS: YES,
        Capability.CLEANSES_METADATA: YES,
        Capability.ODD_NAMES: YES,
    }

    def discover(self, catalog: Catalog) -> Iterable[TableHandle | NotFound]:
        return discover(catalog)

    def read(self, found: TableHandle, catalog: Catalog, depth: Depth, spark: SparkSession | None) -> Reading:
        return read(found, catalog, depth, spark)

    def commit(self, removal: Removal, catalog: Catalog, spark: SparkSession) -> Committed:
        from ebbtide.formats.paimon.remove import commit

        return commit(removal, catalog, spark)

    def delete_files(
        self,
        removal: Removal,
        paths: Collection[str],
        catalog: Catalog,
        spark: SparkSession,
        before_batch: Callable[[], None],
    ) -> FileDeletion:
        from ebbtide.formats.paimon.remove import delete_files

        return delete_files(removal, paths, catalog, spark, before_batch)

    def rows(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> DataFrame:
        from ebbtide.spark.session import quote

        return spark.table(quote(catalog.name, *id_.namespace, id_.table))

    def stored_rows(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> DataFrame | None:
        from ebbtide.formats.paimon.stored import stored_rows

        return stored_rows(id_, spark)

    def identity(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> str | None:
        from ebbtide.formats.paimon.identity import identity_by_name

        return identity_by_name(id_, catalog, spark)


FORMAT = Paimon()
