"""Apache Iceberg, read with pyiceberg. Format versions 1, 2 and 3."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ebbtide.formats.base import YES, Capability, Depth
from ebbtide.formats.iceberg.discover import discover
from ebbtide.formats.iceberg.read import read
from ebbtide.model.dataset import Catalog, Found, NotFound, Reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Iceberg:
    name = "iceberg"
    reads_in_tasks = True
    capabilities = dict.fromkeys(Capability, YES)

    def discover(self, catalog: Catalog) -> Iterable[Found | NotFound]:
        return discover(catalog)

    def read(self, found: Found, catalog: Catalog, depth: Depth, spark: SparkSession | None) -> Reading:
        return read(found, catalog, depth)


FORMAT = Iceberg()
