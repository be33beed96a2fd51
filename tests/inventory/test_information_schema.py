"""The information schema as Spark DataFrames: columns of spec §3, kept between runs, read by tasks on any master."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ebbtide.errors import UnreadableError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.read import _WORTH_A_JOB
from ebbtide.inventory.scan import ScanReport, scan
from tests.inventory.lakes import SmallLake
from tests.inventory.sections import SPEC

TABLES = _WORTH_A_JOB + 6


def run(lake: SmallLake, spark: SparkSession) -> ScanReport:
    now = datetime.now(UTC)
    return scan([lake.catalog], lake.root / "inventory", lambda: spark, now=now)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> SmallLake:
    lake = SmallLake(tmp_path_factory.mktemp("wide"))
    for n in range(TABLES):
        lake.create(f"t{n:02}", 2)
    lake.metadata_file("t07").unlink()
    spark.range(1).count()  # the session is running, so that tasks are worth it
    report = run(lake, spark)
    assert len(report.read) == TABLES - 1, "the broken one was not read"
    return lake


@pytest.mark.spark41
@pytest.mark.cluster
def test_many_tables_are_read_by_tasks_and_a_broken_one_leaves_the_rest_intact(
    lake: SmallLake, spark: SparkSession
) -> None:
    found = Inventory.open(lake.root / "inventory")
    assert len(found.current.segments) > 1, "the tables were read by one process only"
    assert not any(segment.endswith("-driver") for segment in found.current.segments)
    counted = {
        row.table_id: row["count"] for row in found.frame(spark, "transactions").groupBy("table_id").count().collect()
    }
    assert counted == {f"lake.db.t{n:02}": 2 for n in range(TABLES) if n != 7}
    (error,) = found.errors_frame(spark).collect()
    assert error.table_id == "lake.db.t07"


@pytest.mark.spark41
@pytest.mark.cluster
def test_sections_have_the_columns_of_the_spec(lake: SmallLake, spark: SparkSession) -> None:
    Inventory.open(lake.root / "inventory").register(spark)
    for view, columns in SPEC.items():
        assert set(columns.split()) <= set(spark.table(view).columns), view
    row = spark.sql("SELECT * FROM tables WHERE table_id = 'lake.db.t03'").collect()[0]
    assert row.format == "iceberg"
    assert row.locked_by == []
    assert row.location == f"file://{lake.root}/lake/db/t03"


@pytest.mark.spark41
@pytest.mark.cluster
def test_a_dataset_that_was_read_again_shows_only_its_newest_rows(lake: SmallLake, spark: SparkSession) -> None:
    lake.append("t01")
    assert run(lake, spark).read == ("lake.db.t01",), "the broken one is tried again, and not read"
    found = Inventory.open(lake.root / "inventory")
    rows = found.frame(spark, "transactions").where("table_id = 'lake.db.t01'")
    assert rows.count() == 3
    assert rows.select("transaction_id").distinct().count() == 3
    assert found.frame(spark, "files").where("role = 'data' AND table_id = 'lake.db.t01'").count() == 3


def test_frames_and_plain_rows_agree(lake: SmallLake, spark: SparkSession) -> None:
    found = Inventory.open(lake.root / "inventory")
    plain = {(row["table_id"], row["path"], row["live"]) for row in found.rows("files")}
    frame = {(row.table_id, row.path, row.live) for row in found.frame(spark, "files").collect()}
    assert plain == frame


def test_a_scan_that_finds_no_dataset_still_gives_empty_sections(spark: SparkSession, tmp_path: Path) -> None:
    run(SmallLake(tmp_path), spark)
    found = Inventory.open(tmp_path / "inventory")
    assert all(found.frame(spark, section).count() == 0 for section in SPEC if section != "scan_errors")
    assert found.errors_frame(spark).count() == 0


@pytest.mark.parametrize("section", ["files", "partitions"])
def test_a_segment_that_later_scans_removed_is_an_error_and_not_an_empty_one(
    spark: SparkSession, tmp_path: Path, section: str
) -> None:
    """Who plans with references that are missing removes what they protect. Nothing here has partitions: a section
    without a row has no file either, and is empty as long as its segment is there.
    """
    lake = SmallLake(tmp_path)
    lake.create("t", 1)
    run(lake, spark)
    opened = Inventory.open(tmp_path / "inventory")
    lake.append("t")
    run(lake, spark)
    before = opened.rows(section)
    assert opened.frame(spark, section).count() == len(before), "one scan leaves what was there before it"
    assert (len(before) > 0) == (section == "files")
    lake.append("t")
    run(lake, spark)
    for ask in (lambda: opened.frame(spark, section), lambda: opened.rows(section), lambda: opened.is_small):
        with pytest.raises(UnreadableError, match="is gone"):
            ask()
