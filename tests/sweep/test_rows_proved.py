"""Rows are swept when the head shows none and no file holds them: not because a delete was committed once."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.conformance.driver import Table
from tests.tide import Tide

POLICIES = """
policies:
  - name: gone
    select: {tables: ["**"]}
    rows: {where: "name = 'old'"}
    versions: {older_than: 1d, keep_min: 1}
"""


def _state(tide: Tide, days: int) -> tuple[str, str]:
    tide.mark(days - 1)
    results = [result for result in tide.sweep(days).results if result.key.target == "rows"]
    return (results[0].state, results[0].because) if results else ("", "")


@pytest.fixture
def tide(spark: SparkSession, tmp_path: Path) -> Tide:
    return Tide(spark, tmp_path / "p", "delta", policies=POLICIES)


def test_rows_that_a_restore_brought_back_are_deleted_again(tide: Tide) -> None:
    driver = tide.drivers["delta"]
    table = driver.create("restored")
    driver.append(table, [(1, "old", "d"), (2, "new", "d")])
    driver.append(table, [(3, "new", "d")])
    tide.mark(40)
    assert _state(tide, 48)[0] == "waiting", "versions from before the delete hold them"
    driver.spark.sql(f"RESTORE TABLE {table.sql} TO VERSION AS OF 2")
    driver.compact(table)

    said = []
    for days in (60, 75, 90, 105):
        before = [row.id for row in driver.rows(table)]
        said.append(_state(tide, days))
        after = [row.id for row in driver.rows(table)]
        assert said[-1][0] != "swept" or 1 not in after, (days, before, said)
    assert ("waiting", "rows that match came back: they are deleted again") in said
    assert sorted(row.id for row in driver.rows(table)) == [2, 3]
    assert said[-1][0] in ("swept", "")


def test_rows_that_deletion_vectors_only_hide_are_not_swept(tide: Tide) -> None:
    driver = tide.drivers["delta"]
    table = driver.create("hidden", variant="vectors")
    driver.append(table, [(1, "old", "d")])
    driver.append(table, [(2, "old", "d"), (3, "new", "d")])
    tide.mark(40)
    _state(tide, 48)
    assert [row.id for row in driver.rows(table)] == [3]
    said = [_state(tide, days) for days in (60, 75)]
    assert "old" in _names(table)
    assert [state for state, because in said if "only hide rows" in because] == ["unmarked"], said
    assert not [because for state, because in said if state == "swept" and because != "no row matched"], said

    driver.append(table, [(4, "old", "d"), (5, "new", "d")])
    tide.mark(76)
    _state(tide, 90)
    assert sorted(row.id for row in driver.rows(table)) == [3, 5], "the next mark deletes what came later"
    driver.spark.sql(f"REORG TABLE {table.sql} APPLY (PURGE)")
    said = [_state(tide, days) for days in (105, 120, 135)]
    assert "swept" in {state for state, _ in said}, said
    assert _names(table) == {"new"}


def _names(table: Table) -> set[str]:
    """What lies in the table's files, whoever references them."""
    folder = Path(table.location.removeprefix("file:"))
    return {
        name for path in folder.glob("*.parquet") for name in pq.read_table(path, columns=["name"])["name"].to_pylist()
    }


def test_a_delete_that_hits_nothing_is_a_failure(spark: SparkSession, tmp_path: Path) -> None:
    """Hudi looks for keys by an index that no table remembers: by another one it finds none of these in log files."""
    tide = Tide(spark, tmp_path / "p", "hudi", policies=POLICIES)
    location = f"{tide.drivers['hudi'].catalog.warehouse}/db/bucketed"
    settings = {
        "hoodie.table.name": "bucketed", "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1", "hoodie.metadata.enable": "false",
        "hoodie.embed.timeline.server": "false", "hoodie.write.markers.type": "DIRECT",
        "hoodie.clean.automatic": "false", "hoodie.compact.inline": "false",
    }  # fmt: skip
    for rows in ([(1, "new"), (2, "new")], [(3, "old")]):
        frame = spark.createDataFrame(rows, "id long, name string").coalesce(1)
        frame.write.format("hudi").options(**settings).mode("append").save(location)
    tide.mark(40)
    assert _state(tide, 48) == ("failed", "failed: rows match after they were deleted")
    assert {row.id for row in spark.read.format("hudi").load(location).collect()} == {1, 2, 3}
