"""A partition that goes by another name since it was marked is none that this sweep deleted (spec §2)."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.tide import Tide

POLICIES = """
policies:
  - name: days
    select: {tables: ["**"]}
    partitions: {older_than: 30d}
    versions: {older_than: 1d, keep_min: 1}
"""


def test_a_live_partition_under_another_name_is_sent_back_and_marked_anew(spark: SparkSession, tmp_path: Path) -> None:
    tide = Tide(spark, tmp_path / "p", "delta", policies=POLICIES)
    driver = tide.drivers["delta"]
    table = driver.create("days", partitioned=True, properties={"delta.columnMapping.mode": "name"})
    driver.append(table, [(1, "old", "2026-01-01")])
    driver.append(table, [(2, "new", "2099-01-01")])
    (day,) = {key.object for key in tide.mark(40).marked if key.target == "partitions"}
    spark.sql(f"ALTER TABLE {table.sql} RENAME COLUMN day TO dt")
    (result,) = [result for result in tide.sweep(48).results if result.key.object == day]
    assert (result.state, result.because) == ("unmarked", "it is gone: someone else removed it")
    assert sorted(row.id for row in driver.rows(table)) == [1, 2]
    (anew,) = {key.object for key in tide.mark(49).marked if key.target == "partitions"}
    assert anew != day
