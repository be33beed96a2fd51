"""Partitions of which single rows were deleted before: what says so is not theirs (spec §2, "its data files").

Iceberg 2 leaves a dangling delete file in the head. Hudi's log files hold rows, and go with their partition.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ebbtide.spark.session import formats_of_session
from tests.tide import Tide

POLICIES = """
policies:
  - name: days
    select: {tables: ["**"]}
    partitions: {older_than: 30d}
    versions: {older_than: 1d, keep_min: 3}
"""
OLD, NEW = "2026-01-01", "2099-01-01"
TABLES = {"iceberg": "v2", "hudi": "mor"}


@pytest.mark.parametrize("format_", [name for name in TABLES if name in formats_of_session()])
def test_it_goes_and_the_newest_versions_stay(spark: SparkSession, tmp_path: Path, format_: str) -> None:
    tide = Tide(spark, tmp_path / "p", format_, policies=POLICIES)
    driver = tide.drivers[format_]
    table = driver.create("days", variant=TABLES[format_], partitioned=True)
    driver.append(table, [(1, "gone", OLD), (2, "old", OLD), (3, "new", NEW)])
    driver.delete(table, "id = 1")
    (day,) = {key.object for key in tide.mark(40).marked if key.target == "partitions"}
    first = tide.sweep(48)
    assert [result.state for result in first.results if result.key.object == day] == ["waiting"], first.results
    assert [row.id for row in driver.rows(table)] == [3]
    for number in (4, 5):
        driver.append(table, [(number, "later", NEW)])
    newest = {id_: driver.rows(table, version=id_) for id_ in driver.native_ids(table)[-3:]}
    second, rows = tide.sweep(50), [3, 4, 5]
    if format_ == "hudi":
        # Its cleaner keeps the files of one version more than it keeps versions: the next one must be due too.
        assert [result.state for result in second.results if result.key.object == day] == ["waiting"], second.results
        driver.append(table, [(6, "later", NEW)])
        newest = {id_: driver.rows(table, version=id_) for id_ in driver.native_ids(table)[-3:]}
        tide.mark(52)
        second, rows = tide.sweep(60), [3, 4, 5, 6]
    assert [result.state for result in second.results if result.key.object == day] == ["swept"], second.results
    assert {id_: driver.rows(table, version=id_) for id_ in newest} == newest, "they never held the partition"
    assert [row.id for row in driver.rows(table)] == rows
    assert not any(OLD in path and path.endswith(".parquet") for path in tide.files() if "deletes" not in path)
