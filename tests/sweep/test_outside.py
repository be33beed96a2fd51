"""What lies outside of every catalog that the project names, and marks of a catalog that it no longer names."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from ebbtide.app.orphans import condemn
from tests.tide import Tide

POLICIES = """
policies:
  - name: all
    select: {tables: ["**"]}
    versions: {older_than: 30d, keep_min: 1}
    orphans: {older_than: 3d}
"""


@pytest.fixture
def tide(spark: SparkSession, tmp_path: Path) -> Tide:
    settings = f"warehouses: [{{prefix: {tmp_path / 'elsewhere'}, exclusive: true}}]\n"
    made = Tide(spark, tmp_path / "p", "iceberg", "delta", policies=POLICIES, settings=settings)
    for driver in made.drivers.values():
        table = driver.create("t")
        driver.append(table, [(1, "x", "d")])
        driver.overwrite(table, [(9, "y", "d")])
    return made


def test_a_condemned_table_goes_though_no_catalog_is_around_it(tide: Tide, tmp_path: Path) -> None:
    condemned, other = tmp_path / "elsewhere" / "db" / "left", tmp_path / "elsewhere" / "db" / "other"
    for folder in (condemned, other):
        write_deltalake(str(folder), pa.table({"id": [1]}))
        for path in folder.rglob("*"):
            os.utime(path, (then := time.time() - 10 * 86_400, then))
    told = condemn(tide.project, str(condemned), now=tide.at(0))
    assert told["dataset"].startswith("unregistered.")
    assert {key.dataset for key in tide.mark(40).marked if key.target == "orphans"} == {told["dataset"]}
    done = tide.sweep(60)
    assert {result.state for result in done.results if result.key.dataset == told["dataset"]} == {"swept"}
    assert told["files"] > 0
    assert not [path for path in condemned.rglob("*") if path.is_file()]
    assert len([path for path in other.rglob("*") if path.is_file()]) == told["files"]


def test_marks_of_a_catalog_that_is_no_longer_named_wait_and_stop_nobody(tide: Tide) -> None:
    named = {key.dataset.partition(".")[0] for key in tide.mark(40).marked}
    assert len(named) == 2
    project = tide.root / "ebbtide.yml"
    lines = project.read_text().splitlines(keepends=True)
    project.write_text("".join(line for line in lines if "format: delta" not in line))
    (unnamed,) = named - tide.project.catalogs.keys()
    before = {path for path in (tide.root / unnamed).rglob("*") if path.is_file()}
    done = tide.sweep(60)
    assert not done.errors
    states = {result.key.dataset.partition(".")[0]: result.state for result in done.results}
    assert states.pop(unnamed) == "waiting"
    assert set(states.values()) == {"swept"}
    assert {path for path in (tide.root / unnamed).rglob("*") if path.is_file()} == before
