"""Rows are swept when the head shows none and no file holds them: not because a delete was committed once."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ebbtide.sweep.rows import IN_FILES
from tests.conformance.driver import Table
from tests.tide import Tide

POLICIES = """
policies:
  - name: gone
    select: {tables: ["**"]}
    rows: {where: "name = 'old'"}
    versions: {older_than: 1d, keep_min: 1}
"""


Said = dict[str, tuple[str, str]]


def _round(tide: Tide, days: int) -> Said:
    """What a mark and, a day later, a sweep say of the rows of each table."""
    tide.mark(days - 1)
    results = [result for result in tide.sweep(days).results if result.key.target == "rows"]
    return {result.key.dataset.rpartition(".")[2]: (result.state, result.because) for result in results}


def test_rows_that_came_back_or_are_only_hidden_are_not_swept(spark: SparkSession, tmp_path: Path) -> None:
    """A restore brings rows back after the delete; deletion vectors hide them in files that stay, and so does a
    record of a key table that says that they were deleted.
    """
    tide = Tide(spark, tmp_path / "p", "delta", "paimon", policies=POLICIES)
    driver, keys = tide.drivers["delta"], tide.drivers["paimon"]
    keyed = keys.create("keyed", variant="key")
    keys.append(keyed, [(1, "old", "d"), (2, "new", "d")])
    restored, hidden = driver.create("restored"), driver.create("hidden", variant="vectors")
    driver.append(restored, [(1, "old", "d"), (2, "new", "d")])
    driver.append(restored, [(3, "new", "d")])
    driver.append(hidden, [(1, "old", "d")])
    driver.append(hidden, [(2, "old", "d"), (3, "new", "d")])
    tide.mark(40)
    assert _round(tide, 48)["restored"][0] == "waiting", "versions from before the delete hold them"
    assert [row.id for row in driver.rows(hidden)] == [3]
    driver.spark.sql(f"RESTORE TABLE {restored.sql} TO VERSION AS OF 2")
    driver.compact(restored)

    said: list[Said] = []
    for days in (60, 75, 90, 105, 120):
        said.append(_round(tide, days))
        if said[-1].get("restored", ("", ""))[0] == "swept":
            assert 1 not in {row.id for row in driver.rows(restored)}, (days, said)
        if days == 75:
            assert "old" in _names(hidden)
            driver.append(hidden, [(4, "old", "d"), (5, "new", "d")])
        if days == 90:
            assert sorted(row.id for row in driver.rows(hidden)) == [3, 5], "the next mark deletes what came later"
            driver.spark.sql(f"REORG TABLE {hidden.sql} APPLY (PURGE)")
            keys.spark.sql(f"ALTER TABLE {keyed.sql} UNSET TBLPROPERTIES ('write-only')")
            keys.compact(keyed)
    assert ("waiting", "rows that match came back: they are deleted again") in [each.get("restored") for each in said]
    assert sorted(row.id for row in driver.rows(restored)) == [2, 3]
    of_hidden = [each["hidden"] for each in said if "hidden" in each]
    assert "unmarked" in {state for state, because in of_hidden if "only hide rows" in because}, said
    before = [each[name] for each in said[:3] for name in ("hidden", "keyed") if name in each]
    assert not [because for state, because in before if state == "swept"], said
    assert _names(hidden) == {"new"}
    of_keyed = [each["keyed"] for each in said if "keyed" in each]
    assert ("unmarked", IN_FILES) in of_keyed[:3], said
    assert of_keyed[-1][0] == "swept", said
    assert [row.id for row in keys.rows(keyed)] == [2]


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
    assert _round(tide, 48) == {"bucketed": ("failed", "failed: rows match after they were deleted")}
    assert {row.id for row in spark.read.format("hudi").load(location).collect()} == {1, 2, 3}
