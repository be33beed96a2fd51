"""One Spark session per pytest worker, with one catalog per format under a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from pyspark.sql import SparkSession

from ebbtide.model.dataset import Catalog
from ebbtide.spark.session import formats_of_session, session


def lake_catalogs(root: str) -> dict[str, Catalog]:
    """The catalogs of a test lake, by name. `lake` and `ice` are Iceberg's two catalog types."""
    catalogs = [
        Catalog("lake", "iceberg", f"{root}/lake", "jdbc", {"uri": f"jdbc:sqlite:{root}/catalog.db"}),
        Catalog("ice", "iceberg", f"{root}/ice", "hadoop"),
        Catalog("events", "delta", f"{root}/delta"),
        Catalog("cdc", "hudi", f"{root}/hudi"),
        Catalog("stream", "paimon", f"{root}/paimon"),
    ]
    return {c.name: c for c in catalogs if c.format in formats_of_session()}


@pytest.fixture(scope="session")
def catalogs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Catalog]:
    return lake_catalogs(str(tmp_path_factory.mktemp("lake")))


@pytest.fixture(scope="session")
def spark(catalogs: Mapping[str, Catalog]) -> Iterator[SparkSession]:
    spark = session(catalogs.values(), master="local[1]")
    yield spark
    spark.stop()
