"""Whose a file is: what a tag keeps, what another table lent, what nobody owns, and the folders that they leave."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ebbtide.model.paths import local_path
from ebbtide.sweep.values import SweepReport
from tests.conformance.driver import Table
from tests.tide import Tide

POLICIES = """
policies:
  - name: all
    select: {tables: ["**"]}
    partitions: {older_than: 30d}
    versions: {older_than: 1d, keep_min: 1}
    orphans: {older_than: 3d}
"""
OLD, NEW = "2026-01-01", "2099-01-01"


@pytest.fixture(scope="module")
def tide(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tide:
    return Tide(spark, tmp_path_factory.mktemp("whose") / "p", "iceberg", policies=POLICIES)


def _state(report: SweepReport, table: Table, target: str) -> set[str]:
    return {r.state for r in report.results if (r.key.dataset, r.key.target) == (str(table.id), target)}


def test_files_go_from_where_they_belong_and_from_nowhere_else(tide: Tide, tmp_path: Path) -> None:
    driver = tide.drivers["iceberg"]
    tagged, partly = (driver.create(name, partitioned=True) for name in ("tagged", "partly"))
    for table in (tagged, partly):
        driver.append(table, [(1, "old", OLD), (2, "new", NEW)])
        driver.create_tag(table, "keep")
    driver.append(partly, [(3, "more", OLD)])
    lent = tmp_path / "lent"
    lent.mkdir()
    pq.write_table(pa.table({"id": [7], "name": ["x"], "day": [NEW]}), lent / "x.parquet")
    added = driver.create("added")
    driver.spark.sql(
        f"CALL {driver.catalog.name}.system.add_files(table => 'db.added', source_table => '`parquet`.`{lent}`')"
    )
    driver.overwrite(added, [(8, "y", NEW)])
    lends = driver.create("lends", partitioned=True)
    driver.append(lends, [(1, "old", OLD), (2, "new", NEW)])
    shared = next(Path(local_path(lends.location) or "").rglob(f"*{OLD}*/*.parquet"))
    borrows = driver.create("borrows")
    driver.spark.sql(
        f"CALL {driver.catalog.name}.system.add_files(table => 'db.borrows', source_table => '`parquet`.`{shared}`')"
    )
    stray = Path(local_path(tagged.location) or "") / "data" / "left" / "behind" / "stray.parquet"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"x")
    os.utime(stray, (then := time.time() - 10 * 86_400, then))

    tide.mark(40)
    first = tide.sweep(48)
    assert not first.errors
    assert [row.id for row in driver.rows(tagged)] == [2], "it leaves the head, whoever else keeps its files"
    assert [row.id for row in driver.rows(partly)] == [2], "those that the tag does not keep are no late write"
    for table in (tagged, partly, lends):
        assert _state(first, table, "partitions") == {"waiting"}
    assert [row.id for row in driver.rows(lends)] == [2]
    assert _state(first, added, "versions") == {"waiting"}, "its file is left, outside of the table"
    assert (lent / "x.parquet").is_file(), "nobody said that the table owns what it was given"
    assert _state(first, tagged, "orphans") == {"swept"}
    assert not stray.parent.parent.exists(), "empty folders go"

    second = tide.sweep(50)
    of_lends = f"reference:{borrows.id}"
    for result in second.results:
        if result.key.target == "partitions":
            assert (of_lends if result.key.dataset == str(lends.id) else "tag:keep") in result.because
    read = driver.spark.read.format("iceberg").option("tag", "keep").load(partly.sql).collect()
    assert sorted(row.id for row in read) == [1, 2]
    for table in (tagged, partly):
        driver.drop_tag(table, "keep")
    third = tide.sweep(52)
    assert _state(third, tagged, "partitions") == _state(third, partly, "partitions") == {"swept"}
    assert _state(third, lends, "partitions") == {"waiting"}, "no version of its own has the file, another table has"
    assert [row.id for row in driver.rows(borrows)] == [1]
    driver.drop(borrows)
    fourth = tide.sweep(54)
    assert _state(fourth, lends, "partitions") == {"swept"}
    assert not shared.exists()
    assert not [path for path in tide.files() if OLD in path]
    assert not list(Path(local_path(partly.location) or "").rglob(f"*{OLD}*")), "nor is its folder left"
    assert [row.id for row in driver.rows(partly)] == [2]
