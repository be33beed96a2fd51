"""Erasing through a REST catalog, which is sent changes only: branches and tags lose the person, older versions end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from pyspark.sql import SparkSession

from ebbtide.errors import LeaseError
from ebbtide.formats.erasing import Fate, VersionFate
from ebbtide.formats.iceberg.erase import ERASING
from ebbtide.formats.iceberg.java import IcebergJavaTable
from ebbtide.model.dataset import Catalog
from ebbtide.model.ids import DatasetId
from ebbtide.spark.session import FEW_ROWS, quote, session
from tests.conformance.driver import Table
from tests.conformance.drivers.iceberg import IcebergDriver
from tests.formats.test_iceberg_erase import DAY, OTHER, PERSON, asked, left, rows
from tests.inventory.rest_catalog import served

SCHEMA = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "name", StringType()), NestedField(3, "day", StringType())
)
NAME = "far_away"


@pytest.fixture(scope="module")
def rest(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[IcebergDriver, SqlCatalog]]:
    root = tmp_path_factory.mktemp("rest")
    tables = SqlCatalog("far", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/lake")
    tables.create_namespace("db")
    with served(tables) as (uri, _):
        catalog = Catalog(NAME, "iceberg", f"file://{root}/lake", "rest", {"uri": uri})
        yield IcebergDriver(session([catalog], master="local[1]", conf=FEW_ROWS), catalog), tables


def made(driver: IcebergDriver, tables: SqlCatalog, name: str) -> Table:
    """The person is in a tag, in a branch and in an older version of main, from one file of theirs and others'."""
    location = tables.create_table(f"db.{name}", SCHEMA).location()
    table = Table(DatasetId(NAME, ("db",), name), location.removeprefix("file://"), quote(NAME, "db", name))
    driver.append(table, [(1, "a", DAY), (2, "b", DAY)])
    driver.append(table, [(PERSON, "p", DAY), (OTHER, "o", DAY)])
    driver.create_tag(table, "kept")
    driver.create_branch(table, "side")
    driver.append(table, [(5, "s", DAY)], branch="side")
    driver.append(table, [(3, "c", DAY)])
    return table


def ids(driver: IcebergDriver, table: Table, ref: str = "") -> set[object]:
    return {row["id"] for row in rows(driver, table, ref)}


def others_read_as_before(driver: IcebergDriver, table: Table) -> None:
    assert ids(driver, table) == {1, 2, 3, OTHER}
    assert ids(driver, table, ".tag_kept") == {1, 2, OTHER}
    assert ids(driver, table, ".branch_side") == {1, 2, 5, OTHER}


def refs(tables: SqlCatalog, table: Table) -> set[str]:
    return set(tables.load_table(f"db.{table.id.table}").metadata.refs)


def test_branches_and_tags_of_a_rest_catalog_lose_the_person_and_versions_end(
    rest: tuple[IcebergDriver, SqlCatalog],
) -> None:
    driver, tables = rest
    table = made(driver, tables, "erased")
    erasing = asked(driver, table)
    foreseen = ERASING.foresee(erasing.erasure, driver.catalog, driver.spark)
    assert {each.fate for each in foreseen.values()} == {Fate.CLEAN, Fate.EXPIRES}
    before = set(driver.native_ids(table))
    erased = erasing.both()
    others_read_as_before(driver, table)
    assert refs(tables, table) == {"main", "side", "kept"}, "the branch that a tag is rewritten by is gone"
    assert set(erased.ending) == {id_ for id_, each in foreseen.items() if each.fate is Fate.EXPIRES}
    assert before - set(driver.native_ids(table)) == set(erased.ending)
    assert {path for path, _ in left(table) if not path.startswith("metadata/")} == set()
    assert erased.retained.keys() == {"manifests"}, "what manifests say of files that are gone"
    driver.append(table, [(4, "d", DAY)])
    assert tables.load_table("db.erased").scan().to_arrow().num_rows == 5


def test_what_died_while_a_tag_was_moved_is_finished_by_asking_again(
    rest: tuple[IcebergDriver, SqlCatalog], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, tables = rest
    table = made(driver, tables, "died")
    erasing = asked(driver, table)

    def dies(*_: object, **__: object) -> None:
        raise LeaseError("lost", fence=1)

    with monkeypatch.context() as patched:
        patched.setattr(IcebergJavaTable, "move_tag", dies)
        with pytest.raises(LeaseError):
            erasing.erase()
    assert ids(driver, table, ".tag_kept") == {1, 2, PERSON, OTHER}
    again = asked(driver, table)
    again.told = erasing.told
    again.both()
    others_read_as_before(driver, table)
    assert refs(tables, table) == {"main", "side", "kept"}
    assert {path for path, _ in left(table) if not path.startswith("metadata/")} == set()


def test_a_tag_that_is_not_to_be_rewritten_stays(rest: tuple[IcebergDriver, SqlCatalog]) -> None:
    driver, tables = rest
    table = made(driver, tables, "stays")
    erased = asked(driver, table, history=VersionFate.EXPIRE).both()
    assert ids(driver, table, ".tag_kept") == {1, 2, PERSON, OTHER}
    assert erased.retained.keys() == {"tag:kept", "manifests"}
    assert Path(table.location).is_dir()
