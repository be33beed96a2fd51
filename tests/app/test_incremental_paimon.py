"""Reading what is new in Paimon tables: its own read leaves things out in silence, and Ebbtide does not (spec §8)."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from ebbtide.errors import FullReadNeededError
from ebbtide.spark.session import formats_of_session
from tests.conformance.driver import Table
from tests.tide import Tide

pytestmark = pytest.mark.skipif("paimon" not in formats_of_session(), reason="Paimon needs Spark 3.5")

DAYS = ("2026-01-01", "2026-01-02")


class Lake:
    def __init__(self, tide: Tide) -> None:
        self.tide, self.driver = tide, tide.drivers["paimon"]

    def append(self, table: Table, *rows: tuple[int, str], branch: str | None = None) -> None:
        self.driver.append(table, [(*row, DAYS[0]) for row in rows], branch=branch)

    def read(self, table: Table, since: str | None, **options: Any) -> DataFrame:
        return self.tide.app.incremental(str(table.id), since=since, **options)

    def new(self, table: Table, since: str | None, **options: Any) -> list[str]:
        return sorted(row["name"] for row in self.read(table, since, **options).collect())


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(Tide(spark, tmp_path_factory.mktemp("paimon") / "p", "paimon", policies="policies: []"))


def test_only_appends_are_read_as_new(lake: Lake) -> None:
    table = lake.driver.create("log", partitioned=True)
    for number in range(1, 4):
        lake.append(table, (number, f"n{number}"))
    assert lake.new(table, "main/1") == ["n2", "n3"]
    assert lake.new(table, "main/3") == []
    assert lake.new(table, None) == ["n1", "n2", "n3"]
    lake.driver.compact(table)
    lake.append(table, (5, "n5"))
    assert lake.new(table, "main/2") == ["n3", "n5"], "a compaction brings nothing new"
    # It removes nothing, and Paimon calls it an overwrite, which its own read leaves out.
    lake.driver.spark.sql(f"INSERT OVERWRITE {table.sql} PARTITION (day = '{DAYS[1]}') VALUES (6, 'n6')")
    with pytest.raises(FullReadNeededError, match="main/6 added files by OVERWRITE"):
        lake.new(table, "main/5")
    lake.append(table, (7, "n7"), (8, "n8"))
    lake.driver.spark.sql(f"ALTER TABLE {table.sql} DROP PARTITION (day = '{DAYS[1]}')")
    with pytest.raises(FullReadNeededError, match="main/8 is DELETE"):
        lake.new(table, "main/6")
    assert lake.new(table, "main/6", allow_retention=True) == ["n7", "n8"]
    lake.driver.delete(table, "id = 8")
    with pytest.raises(FullReadNeededError, match="main/9 is UPDATE"):
        lake.new(table, "main/6", allow_retention=True)


def test_with_a_primary_key_only_keys_that_were_not_there_are_new(lake: Lake) -> None:
    table = lake.driver.create("keyed", variant="key")
    lake.append(table, (1, "n1"))
    lake.append(table, (2, "n2"))
    lake.append(table, (3, "n3"))
    assert lake.new(table, "main/1") == ["n2", "n3"]
    lake.append(table, (1, "changed"))
    with pytest.raises(FullReadNeededError, match="keys came that were there before"):
        lake.new(table, "main/1")
    assert lake.new(table, "main/4") == []
    lake.append(table, (5, "n5"))
    lake.append(table, (5, "again"))
    with pytest.raises(FullReadNeededError, match="keys came twice"):
        lake.new(table, "main/4")
    assert lake.new(table, None) == ["again", "changed", "n2", "n3"]
    lake.driver.expire(table)
    with pytest.raises(FullReadNeededError, match="the version before main/6 is gone"):
        lake.new(table, "main/5")
    # With deletion vectors Paimon reads rows once they are compacted, and its incremental read has none of them.
    vectors = {"deletion-vectors.enabled": "true", "write-only": "false"}
    table = lake.driver.create("vectors", variant="key", properties=vectors)
    for number in range(2):
        lake.append(table, (number, f"n{number}"))
    first = lake.driver.native_ids(table)[1]
    with pytest.raises(FullReadNeededError, match="only once they are compacted"):
        lake.new(table, first)


def test_a_branch_whose_columns_are_not_mains_any_more_is_not_read_past_its_fork(lake: Lake) -> None:
    table = lake.driver.create("columns")
    for number in range(1, 4):
        lake.append(table, (number, f"n{number}"))
    lake.driver.create_branch(table, "x", at="main/3")
    lake.append(table, (4, "x4"), branch="x")
    assert lake.new(table, "main/1", branch="x") == ["n2", "n3", "x4"]
    other = _another_session(lake)
    other.sql(f"ALTER TABLE {table.sql} RENAME COLUMN name TO title")
    other.sql(f"INSERT INTO {table.sql} VALUES (4, 'm4', '{DAYS[0]}')")
    assert [row.asDict() for row in lake.read(table, "main/3").collect()] == [{"id": 4, "title": "m4", "day": DAYS[0]}]
    assert lake.new(table, "main/2", branch="x") == ["n3", "x4"], "the branch has its fork's snapshot itself"
    with pytest.raises(FullReadNeededError, match="no longer has the columns"):
        lake.new(table, "main/1", branch="x")
    assert lake.new(table, None, branch="x") == ["n1", "n2", "n3", "x4"]


def _another_session(lake: Lake) -> SparkSession:
    """One with its own catalog, which does not tell the first of what it changes."""
    spark = lake.driver.spark
    other = spark.newSession()
    for key, _ in spark.sql("SET").collect():  # which shows no values of catalogs
        if key.startswith(f"spark.sql.catalog.{lake.driver.catalog.name}"):
            other.conf.set(key, str(spark.conf.get(key)))
    return other
