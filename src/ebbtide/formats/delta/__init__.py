"""Delta Lake: read from the log alone, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ebbtide.formats.base import YES, Capability, Depth, Support, no
from ebbtide.model.dataset import Catalog, Found, NotFound, Reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Delta:
    """The reading adapter of Delta Lake (formats.md)."""

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
        Capability.ODD_NAMES: YES,
    }

    def discover(self, catalog: Catalog) -> Iterable[Found | NotFound]:
        from ebbtide.formats.delta.discover import discover_tables

        return discover_tables(catalog)

    def read(self, found: Found, catalog: Catalog, depth: Depth, spark: SparkSession | None) -> Reading:
        from ebbtide.formats.delta.read import read_table

        return read_table(found, catalog, depth)


FORMAT = Delta()
