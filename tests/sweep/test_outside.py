"""What lies outside of every catalog that the project names, what dropped tables left, and what only another format's
table still reads; and marks of a catalog that is no longer named.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from ebbtide.app.orphans import condemn
from ebbtide.model.ids import DatasetId
from ebbtide.sweep.values import SweepReport
from tests.conformance.driver import Table
from tests.tide import Tide

POLICIES = """
policies:
  - name: all
    select: {tables: ["**"]}
    versions: {older_than: 30d, keep_min: 1}
    orphans: {older_than: 3d}
"""


def make(spark: SparkSession, root: Path) -> Tide:
    """A table of each of two formats, and a prefix beside their warehouses that is declared exclusive."""
    settings = f"warehouses: [{{prefix: {root / 'elsewhere'}, exclusive: true}}]\n"
    made = Tide(spark, root / "p", "iceberg", "delta", policies=POLICIES, settings=settings)
    for driver in made.drivers.values():
        table = driver.create("t")
        driver.append(table, [(1, "x", "d")])
        driver.overwrite(table, [(9, "y", "d")])
    return made


@dataclass
class Lake:
    """After one mark and one sweep."""

    tide: Tide
    condemned: dict[str, Any]
    reader: Table
    files: dict[str, set[Path]]
    """What lay at each place before the sweep."""
    swept: SweepReport

    def left(self, place: str) -> set[Path]:
        return {path for path in self.files[place] if path.exists()}

    def states(self, dataset: str) -> set[str]:
        return {result.state for result in self.swept.results if result.key.dataset == dataset}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    root = tmp_path_factory.mktemp("outside")
    tide = make(spark, root)
    warehouse, delta = (Path(tide.drivers[name].catalog.warehouse) for name in ("iceberg", "delta"))
    places = {
        "condemned": root / "elsewhere" / "db" / "left",
        "other": root / "elsewhere" / "db" / "other",
        "former": root / "elsewhere" / "former",
        "outside": warehouse / "db" / "outside",
        "delta": delta / "db" / "t",
    }
    for name in ("condemned", "other"):
        write_deltalake(str(places[name]), pa.table({"id": [1]}))
    catalog = tide.drivers["iceberg"].catalog.name
    for name in ("former", "outside"):
        spark.sql(f"CREATE TABLE {catalog}.db.{name} (id BIGINT) USING iceberg LOCATION '{places[name]}'")
        spark.sql(f"INSERT INTO {catalog}.db.{name} VALUES (1)")
    reader = _reader(tide, places["delta"] / "part-foreign.parquet")
    (places["delta"] / "part-stray.parquet").write_bytes(b"left by a writer that died")
    tide.app.scan()
    for name in ("former", "outside"):
        spark.sql(f"DROP TABLE {catalog}.db.{name}")
        # A purge that died on its way: metadata is gone, data is left.
        shutil.rmtree(places[name] / "metadata")
    files = {name: {path for path in place.rglob("*") if path.is_file()} for name, place in places.items()}
    for path in set().union(*files.values()):
        os.utime(path, (then := time.time() - 10 * 86_400, then))
    condemned = condemn(tide.project, str(places["condemned"]), now=tide.at(0))
    tide.mark(40)
    return Lake(tide, condemned, reader, files, tide.sweep(60))


def _reader(tide: Tide, file: Path) -> Table:
    """An Iceberg table whose one file lies in the folder of a Delta table, which knows nothing of it."""
    driver = tide.drivers["iceberg"]
    table = driver.create("reader")
    pq.write_table(pa.table({"id": [7], "name": ["borrowed"], "day": ["d"]}), file)
    name = driver.catalog.name
    uri = f"sqlite:///{tide.root}/catalog-{name}.db"
    load_catalog(name, type="sql", uri=uri, warehouse=driver.catalog.warehouse).load_table("db.reader").add_files(
        [f"file://{file}"]
    )
    driver.spark.catalog.refreshTable(table.sql)
    return table


def test_a_condemned_table_goes_though_no_catalog_is_around_it(lake: Lake) -> None:
    assert lake.condemned["dataset"].startswith("unregistered.")
    assert lake.condemned["files"] > 0
    assert lake.states(lake.condemned["dataset"]) == {"swept"}
    assert not (lake.tide.root.parent / "elsewhere" / "db" / "left").exists(), "nor an empty folder"
    assert lake.left("other") == lake.files["other"]


def test_what_a_dropped_table_left_goes_under_an_exclusive_prefix_and_nowhere_else(lake: Lake) -> None:
    assert lake.files["former"]
    catalog = lake.tide.drivers["iceberg"].catalog.name
    assert lake.states(f"{catalog}.db.former") == {"swept"}
    assert not (lake.tide.root.parent / "elsewhere" / "former").exists(), "nor an empty folder"
    assert lake.files["outside"]
    assert lake.states(f"{catalog}.db.outside") == set()
    assert lake.left("outside") == lake.files["outside"]


def test_a_file_that_a_table_of_another_format_reads_is_no_orphan(lake: Lake) -> None:
    gone = {path.name for path in lake.files["delta"] - lake.left("delta")}
    assert "part-stray.parquet" in gone
    assert "part-foreign.parquet" not in gone
    rows = lake.tide.drivers["iceberg"].rows(lake.reader)
    assert [(row["id"], row["name"]) for row in rows] == [(7, "borrowed")]
    assert [row["id"] for row in lake.tide.drivers["delta"].rows(_of_delta(lake))] == [9]
    assert not lake.swept.errors
    assert not lake.swept.findings


def _of_delta(lake: Lake) -> Table:
    driver = lake.tide.drivers["delta"]
    return Table(DatasetId(driver.catalog.name, ("db",), "t"), f"{driver.catalog.warehouse}/db/t", "")


def test_marks_of_a_catalog_that_is_no_longer_named_wait_and_stop_nobody_once_it_is_given_up(
    spark: SparkSession, tmp_path: Path
) -> None:
    tide = make(spark, tmp_path)
    named = {key.dataset.partition(".")[0] for key in tide.mark(40).marked}
    assert len(named) == 2
    project = tide.root / "ebbtide.yml"
    lines = project.read_text().splitlines(keepends=True)
    project.write_text("".join(line for line in lines if "format: delta" not in line))
    (unnamed,) = named - tide.project.catalogs.keys()
    before = {path for path in (tide.root / unnamed).rglob("*") if path.is_file()}
    done = tide.sweep(60)
    assert not done.errors
    assert {result.state for result in done.results} == {"waiting"}, "its tables may reference any file of others"
    own = [row for name, row in tide.plan(60).items() if name.startswith(unnamed) and row["decision"] == "marked"]
    assert own
    assert all(row["waits_for"] == [f"unknown:catalog {unnamed} is no longer in ebbtide.yml"] for row in own)
    project.write_text(project.read_text() + f"ignore: [{{catalog: {unnamed}, reason: handed over}}]\n")
    done = tide.sweep(61)
    assert not done.errors
    states = {result.key.dataset.partition(".")[0]: result.state for result in done.results}
    assert states.pop(unnamed) == "waiting"
    assert set(states.values()) == {"swept"}
    assert {path for path in (tide.root / unnamed).rglob("*") if path.is_file()} == before
