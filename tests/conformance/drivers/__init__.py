"""Drivers by format, loaded when asked for."""

from importlib import import_module

from pyspark.sql import SparkSession

from ebbtide.model.dataset import Catalog
from tests.conformance.driver import Driver


def load_driver(spark: SparkSession, catalog: Catalog) -> Driver:
    module = import_module(f"tests.conformance.drivers.{catalog.format}")
    driver: Driver = module.DRIVER(spark, catalog)
    return driver
