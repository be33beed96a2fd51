"""A partition from before the Gregorian calendar is old, and nothing else: it stops no plan of the project."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.tide import Tide

POLICIES = """
policies:
  - {name: old, select: {tables: ["**"]}, partitions: {older_than: 30d}, grace: 1d}
"""


def test_a_partition_of_the_year_1_is_planned_marked_and_swept(spark: SparkSession, tmp_path: Path) -> None:
    tide = Tide(spark, tmp_path / "p", "delta", policies=POLICIES)
    driver = tide.drivers["delta"]
    table = driver.create("ancient", partitioned=True)
    driver.append(table, [(1, "a", "0001-01-01"), (2, "b", "2999-01-01")])
    found = tide.plan(1)
    assert {key.rsplit("=", 1)[1]: row["decision"] for key, row in found.items()} == {
        "0001-01-01": "mark",
        "2999-01-01": "keep",
    }
    tide.mark(1)
    assert not tide.sweep(3).errors
    assert [row.day for row in spark.read.format("delta").load(table.location).collect()] == ["2999-01-01"]
