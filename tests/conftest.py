"""One Spark session per pytest worker, with one catalog per format under a folder of its own.

With `--cluster` the session talks to a standalone cluster of separate processes on loopback instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import pytest
from pyspark.sql import SparkSession

from ebbtide.model.dataset import Catalog
from ebbtide.spark.session import FEW_ROWS, formats_of_session, session
from tests.cluster import standalone_cluster

# Sessions of tests live for minutes: the optimising compiler and a parallel collector cost more than they bring.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cluster", action="store_true", help="run against a standalone cluster (use with -m cluster)")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one module share its lake, so they stay on one worker unless they say where they belong."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


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
def spark(
    catalogs: Mapping[str, Catalog], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    if not request.config.getoption("--cluster"):
        spark = session(catalogs.values(), master="local[1]", conf=FEW_ROWS)
        yield spark
        spark.stop()
        return
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as master:
        conf = {"spark.driver.memory": "2g", "spark.executor.memory": "900m", "spark.sql.shuffle.partitions": "2"}
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        spark = session(catalogs.values(), master=master, conf=conf)
        yield spark
        spark.stop()
