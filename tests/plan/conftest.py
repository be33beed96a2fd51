"""A small plain session: the plan sees DataFrames, never a table format."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # A session that another room's tests started serves as well; only one that is started here is stopped here.
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    from ebbtide.spark.gateway import remember_classes
    from ebbtide.spark.java import launch_environment
    from ebbtide.spark.session import FEW_ROWS

    os.environ.update(launch_environment())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]").appName("ebbtide-plan-tests")
    settings = {
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **FEW_ROWS,
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    remember_classes(session)
    yield session
    session.stop()
