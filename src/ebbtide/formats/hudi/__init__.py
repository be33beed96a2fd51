"""Apache Hudi, read through Hudi's own Java library. Copy-on-write and merge-on-read tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ebbtide.formats.base import Depth
from ebbtide.formats.hudi.discover import discover
from ebbtide.formats.hudi.read import read
from ebbtide.formats.warehouse import place_of
from ebbtide.model.capabilities import YES, Capability, Support, no
from ebbtide.model.dataset import Catalog, NotFound, Reading, TableHandle
from ebbtide.model.ids import DatasetId
from ebbtide.model.removal import Committed, FileDeletion, Removal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Hudi:
    name = "hudi"
    reads_in_tasks = False
    capabilities: Mapping[Capability, Support] = {
        Capability.BRANCHES: no("Hudi has one timeline per table"),
        Capability.TAGS: YES,
        Capability.STAGING: no("a Hudi commit is published when it completes"),
        Capability.CHERRY_PICK: no("Hudi has no staged commits to pick from"),
        Capability.ROLLBACK: YES,
        Capability.REPLACE_TABLE: no("Hudi has no CREATE OR REPLACE TABLE"),
        Capability.MERGE_ON_READ: YES,
        Capability.PARTITION_EVOLUTION: no("a Hudi table's partition fields are fixed when it is created"),
        Capability.SCHEMA_EVOLUTION: YES,
        Capability.EMPTY_TABLE: YES,
        Capability.DROPS_FILES: no("Hudi replaces file groups, and drops them only with their partition"),
        Capability.DROPS_PARTITIONS: YES,
        Capability.DELETES_ROWS: YES,
        Capability.DROPS_BRANCHES: no("Hudi has one timeline per table"),
        Capability.DROPS_TABLES: YES,
        Capability.EXPIRES: YES,
        Capability.ANY_ORDER: no("Hudi's cleaner takes the oldest file slices first"),
        Capability.UNLISTS: no("Hudi's timeline lists an instant until it is archived"),
        Capability.FORGETS: no("Hudi's timeline lists an instant until it is archived"),
        Capability.SINGLE_FILES: no("Hudi's cleaner keeps them for queries that still run, until a later version goes"),
        Capability.NEW_ROWS: YES,
        Capability.REWRITES_FILES: YES,
        Capability.REWRITES_REFS: no("Hudi rewrites no version: older ones end, and savepoints keep their files"),
        Capability.CLEANSES_METADATA: no("Hudi's timeline names partitions for good; indexes are built anew"),
        Capability.ODD_NAMES: YES,
    }

    def discover(self, catalog: Catalog) -> Iterable[TableHandle | NotFound]:
        return discover(catalog)

    def read(self, found: TableHandle, catalog: Catalog, depth: Depth, spark: SparkSession | None) -> Reading:
        return read(found, catalog, depth, spark)

    def commit(self, removal: Removal, catalog: Catalog, spark: SparkSession) -> Committed:
        from ebbtide.formats.hudi.remove import commit

        return commit(removal, catalog, spark)

    def delete_files(
        self,
        removal: Removal,
        paths: Collection[str],
        catalog: Catalog,
        spark: SparkSession,
        before_batch: Callable[[], None],
    ) -> FileDeletion:
        from ebbtide.formats.hudi.remove import delete_files

        return delete_files(removal, paths, catalog, spark, before_batch)

    def rows(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> DataFrame:
        frame = spark.read.format("hudi").load(place_of(id_, catalog))
        return frame.drop(*(name for name in frame.columns if name.startswith("_hoodie_")))

    def stored_rows(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> DataFrame | None:
        return None

    def identity(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> str | None:
        from ebbtide.formats.hudi.identity import identity_at

        return identity_at(TableHandle(id_, place_of(id_, catalog), ""), catalog, spark)


FORMAT = Hudi()
