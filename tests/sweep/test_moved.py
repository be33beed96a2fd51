"""Tables that moved, files that came back, and names that changed: nothing is called gone that can be read (hazards 34,
35).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table as Foreign
from pyspark.sql import SparkSession

from ebbtide.acts.references import OUTSIDE
from ebbtide.spark.session import quote_text
from ebbtide.sweep.values import SweepReport
from tests.conformance.driver import Table
from tests.conformance.drivers.iceberg import IcebergDriver
from tests.tide import Tide

POLICIES = """
policies:
  - name: all
    select: {tables: ["**"]}
    versions: {older_than: 7d, keep_min: 1}
    orphans: {older_than: 3d}
    grace: 1d
"""


@dataclass
class Lake:
    """After one mark and one sweep. `before` are the versions of each table, oldest first."""

    tide: Tide
    tables: dict[str, Table]
    before: dict[str, list[str]]
    elsewhere: Path
    foreign: Foreign
    swept: SweepReport

    def results(self, name: str) -> dict[str, tuple[str, str]]:
        dataset = str(self.tables[name].id)
        return {r.key.object: (r.state, r.because) for r in self.swept.results if r.key.dataset == dataset}

    def rows(self, name: str) -> list[int]:
        return [row["id"] for row in self.tide.drivers["iceberg"].rows(self.tables[name])]


def _row(number: int) -> tuple[int, str, str]:
    return (number, f"n{number}", "d")


def _pyiceberg(tide: Tide) -> Catalog:
    catalog = tide.drivers["iceberg"].catalog
    uri = f"sqlite:///{tide.root}/catalog-{catalog.name}.db"
    return load_catalog(catalog.name, type="sql", uri=uri, warehouse=f"file://{catalog.warehouse}")


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    root = tmp_path_factory.mktemp("moved")
    tide = Tide(spark, root / "p", "iceberg", policies=POLICIES)
    driver = tide.drivers["iceberg"]
    assert isinstance(driver, IcebergDriver)
    tables = {name: driver.create(name) for name in ("moved", "disputed", "taken", "back", "outside", "renamed")}
    elsewhere = root / "elsewhere"

    for name in ("moved", "disputed", "taken"):
        driver.append(tables[name], [_row(1)])
        driver.overwrite(tables[name], [_row(2)])
        spark.sql(f"ALTER TABLE {tables[name].sql} SET LOCATION {quote_text(f'file:{elsewhere}/{name}')}")
        driver.append(tables[name], [_row(3)])
    # Somebody else's table lies where this one lay: what is there may be either's.
    place = quote_text(f"file:{tables['disputed'].location}/inner")
    spark.sql(f"CREATE TABLE {driver.catalog.name}.db.inner (id BIGINT) USING iceberg LOCATION {place}")

    # So it may be where no catalog of the project knows that table.
    foreign = _foreign(root, f"file://{tables['taken'].location}")

    driver.append(tables["back"], [_row(1)])
    (first,) = Path(tables["back"].location, "data").glob("*.parquet")
    driver.overwrite(tables["back"], [_row(2)])
    file = elsewhere / "a.parquet"
    pq.write_table(pa.table({"id": [1], "name": ["n1"], "day": ["d"]}), file)
    python = _pyiceberg(tide)
    for name, path in (("back", first), ("outside", file)):
        with python.load_table(("db", name)).transaction() as transaction:
            # A file that Iceberg wrote has field ids, by which add_files refuses it: as it would come from a backup.
            plain = pq.read_table(path).replace_schema_metadata(None)
            pq.write_table(pa.table({c: plain[c].to_pylist() for c in plain.column_names}), path)
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            transaction.add_files([f"file://{path}"])
        driver.spark.catalog.refreshTable(tables[name].sql)
    driver.append(tables["back"], [_row(3)])
    driver.overwrite(tables["outside"], [_row(2)])

    driver.append(tables["renamed"], [_row(1)])
    driver.overwrite(tables["renamed"], [_row(2)])
    before = {name: driver.native_ids(table) for name, table in tables.items()}
    assert {key.dataset for key in tide.mark(10).marked} >= {str(table.id) for table in tables.values()}
    python.rename_table("db.renamed", "db.called_otherwise")
    return Lake(tide, tables, before, elsewhere, foreign, tide.sweep(12))


def _foreign(root: Path, location: str) -> Foreign:
    """Somebody else's table, with files that are old enough for orphans."""
    catalog = load_catalog("theirs", type="sql", uri=f"sqlite:///{root}/theirs.db", warehouse=f"file://{root}/theirs")
    catalog.create_namespace("db")
    rows = pa.table({"id": [7]})
    before = set(Path(location.removeprefix("file://")).rglob("*"))
    catalog.create_table("db.t", rows.schema, location=location).append(rows)
    for path in {*Path(location.removeprefix("file://")).rglob("*")} - before:
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return catalog.load_table("db.t")


def test_nothing_went_wrong(lake: Lake) -> None:
    assert not lake.swept.errors
    assert not lake.swept.findings
    assert lake.rows("moved") == lake.rows("disputed") == lake.rows("taken") == [2, 3]
    assert lake.rows("back") == [1, 2, 3]
    assert lake.rows("outside") == [2]


def test_what_a_moved_table_left_in_its_old_folder_goes_with_its_versions(lake: Lake) -> None:
    old = Path(lake.tables["moved"].location)
    assert {state for state, _ in lake.results("moved").values()} == {"swept"}
    # The file of the second commit is live, wherever it lies; the first commit's went.
    assert len(list(old.rglob("*.parquet"))) == 1
    plan = lake.tide.plan(20)
    dataset = str(lake.tables["moved"].id)
    assert not [key for key in plan if key.startswith(f"{dataset}#orphans") and plan[key]["decision"] != "keep"]


def test_a_version_whose_file_lies_outside_waits_and_says_so(lake: Lake) -> None:
    first = lake.before["outside"][0]
    assert lake.results("outside")[first] == ("waiting", OUTSIDE.text)
    assert (lake.elsewhere / "a.parquet").exists()
    assert lake.tide.states(lake.tables["outside"])[first][0] == "waiting"


def test_a_folder_that_another_table_has_now_is_nobodys_old_one(lake: Lake) -> None:
    old = Path(lake.tables["disputed"].location)
    first = lake.before["disputed"][0]
    assert lake.results("disputed")[first] == ("waiting", OUTSIDE.text)
    assert len(list((old / "data").rglob("*.parquet"))) == 2


def test_a_folder_that_a_table_of_nobodys_catalog_took_holds_no_orphans(lake: Lake) -> None:
    assert {state for state, _ in lake.results("taken").values()} == {"swept"}
    dataset = str(lake.tables["taken"].id)
    assert not [key for key in lake.tide.plan(20) if key.startswith(f"{dataset}#orphans")]
    assert lake.foreign.refresh().scan().to_arrow()["id"].to_pylist() == [7]


def test_a_transaction_whose_file_came_back_is_not_called_deleted(lake: Lake) -> None:
    first, overwrite, again = lake.before["back"][:3]
    assert {lake.results("back")[id_][0] for id_ in (first, overwrite)} == {"swept"}
    states = lake.tide.states(lake.tables["back"])
    assert states[first] == ("expired", None)
    told = lake.tide.app.history(str(lake.tables["back"].id))
    (row,) = [t for branch in told.branches for t in branch.transactions if t.id == first]
    assert row.carried_into == (again,)


def test_the_marks_of_a_renamed_table_say_so(lake: Lake) -> None:
    told = lake.results("renamed")
    assert told
    name = f"{lake.tables['renamed'].id.catalog}.db.called_otherwise"
    assert set(told.values()) == {("unmarked", f"its table is called {name} now")}
    marked = {key.dataset for key in lake.tide.mark(13).marked}
    assert name in marked, "its versions are marked anew, under the name that it has now"
