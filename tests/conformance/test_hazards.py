"""The hazards that no other test shows on a format (docs/hazards.md): each looks at its table in one swept lake."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ebbtide.errors import InputError, UnreadableError
from ebbtide.formats.base import Depth
from ebbtide.formats.registry import load_format
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.scan import scan
from ebbtide.model.dataset import Catalog, Reading, TableHandle
from tests.conformance.drivers import load_driver
from tests.conformance.hazard_lake import SECOND_FORMAT, HazardLake, build, data_files
from tests.conformance.one_lake import ALL, on
from tests.inventory.lakes import SmallLake
from tests.inventory.test_scan import run


@pytest.fixture(scope="module")
def lake(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> HazardLake:
    format_ = str(request.param)
    return build(spark, tmp_path_factory.mktemp(f"hazards-{format_}") / "p", format_)


def read(lake: HazardLake, catalog: Catalog, name: str) -> Reading:
    adapter = load_format(lake.format)
    (found,) = [f for f in adapter.discover(catalog) if isinstance(f, TableHandle) and f.id.table == name]
    return adapter.read(found, catalog, Depth.FILES, lake.spark)


@on(*ALL)
def test_every_head_reads_back_row_for_row_and_no_referenced_file_is_missing(lake: HazardLake) -> None:
    for name in lake.tables.keys() - {"zones", "timeout"}:
        assert lake.heads[-1][name] == lake.rows[name], name
    assert not lake.first.findings
    assert not lake.second.findings
    assert not lake.second.errors


@on(*ALL)
def test_cleaning_a_table_leaves_its_sibling_with_the_same_beginning_alone(lake: HazardLake) -> None:
    assert lake.under("t", 0) - lake.under("t", 2), "nothing was cleaned"
    assert lake.under("t_2", 0) == lake.under("t_2", 2)


@on(*ALL)
def test_slashes_too_many_and_another_scheme_name_the_same_files(lake: HazardLake) -> None:
    assert lake.old["slashed"]
    assert not [path for path in lake.old["slashed"] if path.exists()]
    catalog = lake.driver.catalog
    spelled = replace(catalog, warehouse=f"file:{catalog.warehouse.replace('/p/', '//p/./')}//")
    assert {f.path for f in read(lake, spelled, "slashed").files} == {
        f.path for f in read(lake, catalog, "slashed").files
    }
    assert {f"file://{path}" for path in data_files(lake.tables["slashed"])} <= {
        f.path for f in read(lake, spelled, "slashed").files
    }


@on(*ALL)
def test_files_under_an_encoded_folder_really_go_and_the_live_one_stays(lake: HazardLake) -> None:
    assert lake.old["odd"]
    assert not [path for path in lake.old["odd"] if path.exists()]
    assert "swept" in lake.states("odd", lake.first) or lake.format == "delta"
    assert [row["name"] for row in lake.heads[-1]["odd"]] == ["new"]


@on(*ALL)
def test_a_partition_column_with_an_underscore_hides_nothing(lake: HazardLake) -> None:
    assert lake.old["hidden"]
    assert not [path for path in lake.old["hidden"] if path.exists()]
    assert [row["id"] for row in lake.heads[-1]["hidden"]] == [2]


@on(*ALL)
def test_metadata_of_a_second_format_in_the_table_stays(lake: HazardLake) -> None:
    assert [inside for inside in SECOND_FORMAT[lake.format] if not lake.path("t", inside).exists()] == []


@on("delta", "hudi", "paimon")
def test_two_catalogs_over_one_folder_lock_each_other(lake: HazardLake, tmp_path: Path) -> None:
    one = lake.driver.catalog
    scan(
        [one, replace(one, name="twin")], tmp_path, lambda: lake.spark, now=datetime.now(UTC), depth=Depth.HISTORY,
        full=True,
    )  # fmt: skip
    entries = Inventory.open(tmp_path).current.entries
    assert list(entries[f"{one.name}.db.t"].locked_by) == ["twin.db.t"]
    assert list(entries["twin.db.t_2"].locked_by) == [f"{one.name}.db.t_2"]


@on("hudi", "paimon")
def test_a_table_that_says_its_files_lie_elsewhere_is_not_fully_known(lake: HazardLake, tmp_path: Path) -> None:
    key = {"hudi": "hoodie.bootstrap.base.path", "paimon": "data-file.external-paths"}[lake.format]
    table = lake.driver.create("elsewhere")
    before = read(lake, lake.driver.catalog, "elsewhere").unknown
    lake.driver.set_property(table, key, f"file:{tmp_path}")
    assert len(read(lake, lake.driver.catalog, "elsewhere").unknown) == len(before) + 1


@on("iceberg", "paimon")
def test_statistics_that_were_replaced_go_and_the_newest_stay(lake: HazardLake) -> None:
    ours = {path for path in lake.under("t", 0) if path.endswith(".stats") or "/statistics/" in path}
    ours = {path for path in ours if "/." not in path}
    assert len(ours) == 2
    assert len(ours & lake.under("t", 2)) == 1


@on(*ALL)
def test_a_file_that_a_writer_may_still_commit_stays(lake: HazardLake) -> None:
    assert lake.stray("young").exists()


@on("iceberg", "delta", "paimon")
def test_what_nothing_references_goes_when_it_is_old_enough(lake: HazardLake) -> None:
    """Without this, the tests of what stays would pass where nothing ever goes."""
    assert not lake.stray("stray").exists()


@on(*ALL)
def test_a_file_without_a_time_stays(lake: HazardLake) -> None:
    assert lake.stray("timeless").exists()


@on(*ALL)
def test_days_are_those_of_utc_whatever_the_zone_of_machine_and_session(lake: HazardLake) -> None:
    assert [row["day"] for row in lake.heads[-1]["zones"]] == [lake.border]


@on(*ALL)
def test_a_version_inside_the_window_stays_readable(lake: HazardLake) -> None:
    assert lake.under("window", 0) == lake.under("window", 2)
    commits = [id_ for id_ in lake.ids["window"] if lake.format != "delta" or id_ != "0"]
    names = [[row["name"] for row in lake.driver.rows(lake.tables["window"], version=id_)] for id_ in commits]
    assert names == [["old"], ["new"]]


@on(*ALL)
def test_a_commit_whose_answer_was_lost_removes_no_file_and_is_finished_later(lake: HazardLake) -> None:
    name = str(lake.tables["timeout"].id)
    assert [error for error in lake.first.errors if error.startswith(f"{name}: ")]
    assert not lake.under("timeout", 0) - lake.under("timeout", 1), "a file went though the outcome was unknown"
    assert {"name": "stays", "day": lake.border}.items() <= lake.heads[0]["timeout"][-1].asDict().items()
    assert [row["name"] for row in lake.heads[1]["timeout"]] == ["stays"]


@on(*ALL)
def test_a_file_that_could_not_be_removed_is_an_outcome_and_never_swept(lake: HazardLake) -> None:
    (stuck,) = lake.old["stuck"]
    name = str(lake.tables["stuck"].id)
    assert lake.tide.relative(stuck) in lake.files[1]
    assert lake.states("stuck", lake.first) & {"failed", "waiting"}
    assert "swept" not in lake.states("stuck", lake.first)
    assert [error for error in lake.first.errors if error.startswith(f"{name}: ")]


def test_a_catalog_that_keeps_references_of_its_own_is_refused() -> None:
    """Nessie's branches are known to Nessie alone; tables that it serves by REST say `gc.enabled=false`."""
    with pytest.raises(InputError, match="unknown Iceberg catalog type 'nessie'"):
        load_format("iceberg").discover(Catalog("n", "iceberg", "/w", "nessie", {"uri": "http://127.0.0.1:9/api/v1"}))


def test_an_iceberg_table_of_a_newer_version_is_an_error_and_never_half_read(tmp_path: Path) -> None:
    small = SmallLake(tmp_path)
    small.create("t")
    file = small.metadata_file("t")
    text = file.read_text()
    assert '"format-version":2' in text
    file.write_text(text.replace('"format-version":2', '"format-version":99'))
    run(tmp_path / "inventory", small.catalog)
    assert Inventory.open(tmp_path / "inventory").current.entries["lake.db.t"].error


def test_a_hudi_table_of_a_newer_version_is_an_error_and_never_half_read(
    spark: SparkSession, catalogs: Mapping[str, Catalog], tmp_path: Path
) -> None:
    """Hudi itself opens it, and reads it as what it knows."""
    driver, newer = load_driver(spark, catalogs["cdc"]), Catalog("newer", "hudi", str(tmp_path))
    table = driver.create("newer")
    driver.append(table, [(1, "a", "2026-01-01")])
    copy = shutil.copytree(table.location, tmp_path / "db" / "t")
    (copy / ".hoodie" / ".hoodie.properties.crc").unlink(missing_ok=True)
    file, adapter = copy / ".hoodie" / "hoodie.properties", load_format("hudi")
    (found,) = [each for each in adapter.discover(newer) if isinstance(each, TableHandle)]
    assert adapter.read(found, newer, Depth.FILES, spark).transactions
    file.write_text(re.sub(r"(?m)^hoodie\.table\.version=\d+$", "hoodie.table.version=99", file.read_text()))
    with pytest.raises(UnreadableError, match="its version 99 is newer"):
        adapter.read(found, newer, Depth.FILES, spark)
