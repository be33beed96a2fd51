"""Delta Lake: read from the log alone, without Spark, and changed through it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ebbtide.formats.base import Depth
from ebbtide.formats.warehouse import place_of
from ebbtide.model.capabilities import YES, Capability, Support, no
from ebbtide.model.dataset import Catalog, NotFound, Reading, TableHandle
from ebbtide.model.ids import DatasetId
from ebbtide.model.removal import Committed, FileDeletion, Removal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Delta:
    """The adapter of Delta Lake (formats.md)."""

    name = "delta"
    reads_in_tasks = True
    capabilities: Mapping[Capability, Support] = {
        Capability.BRANCHES: no("Delta has one line of versions"),
        Capability.TAGS: no("Delta cannot pin a version by name"),
        Capability.STAGING: no("Delta publishes every commit at once"),
        Capability.CHERRY_PICK: no("Delta has no staged commits to pick"),
        Capability.ROLLBACK: YES,
        Capability.REPLACE_TABLE: YES,
        Capability.MERGE_ON_READ: YES,
        Capability.PARTITION_EVOLUTION: no("Delta changes partition columns only by rewriting the whole table"),
        Capability.SCHEMA_EVOLUTION: YES,
        Capability.EMPTY_TABLE: no("a Delta table begins with the commit that creates it"),
        Capability.DROPS_FILES: no("after log cleanup Delta does not tell which transaction added a file"),
        Capability.DROPS_PARTITIONS: YES,
        Capability.DELETES_ROWS: YES,
        Capability.DROPS_BRANCHES: no("Delta has one line of versions"),
        Capability.DROPS_TABLES: YES,
        Capability.EXPIRES: YES,
        Capability.ANY_ORDER: YES,
        Capability.UNLISTS: no("Delta's log lists a version until the log itself is cleaned"),
        Capability.FORGETS: no("Delta's log lists a version until the log itself is cleaned"),
        Capability.SINGLE_FILES: YES,
        Capability.NEW_ROWS: YES,
        Capability.REWRITES_FILES: YES,
        Capability.REWRITES_REFS: no("Ebbtide does not change commits of Delta's log: versions end"),
        Capability.CLEANSES_METADATA: YES,
        Capability.ODD_NAMES: YES,
    }

    def discover(self, catalog: Catalog) -> Iterable[TableHandle | NotFound]:
        from ebbtide.formats.delta.discover import discover_tables

        return discover_tables(catalog)

    def read(self, found: TableHandle, catalog: Catalog, depth: Depth, spark: SparkSession | None) -> Reading:
        from ebbtide.formats.delta.read import read_table

        return read_table(found, catalog, depth)

    def commit(self, removal: Removal, catalog: Catalog, spark: SparkSession) -> Committed:
        from ebbtide.formats.delta.remove import commit

        return commit(removal, catalog, spark)

    def delete_files(
        self,
        removal: Removal,
        paths: Collection[str],
        catalog: Catalog,
        spark: SparkSession,
        before_batch: Callable[[], None],
    ) -> FileDeletion:
        from ebbtide.formats.delta.remove import delete_files

        return delete_files(removal, paths, catalog, spark, before_batch)

    def rows(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> DataFrame:
        return spark.read.format("delta").load(place_of(id_, catalog))

    def stored_rows(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> DataFrame | None:
        return None

    def identity(self, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> str | None:
        from ebbtide.formats.delta.java import DeltaJavaTable

        return DeltaJavaTable(place_of(id_, catalog), catalog, spark).identity()


FORMAT = Delta()
