"""What of an Iceberg table is read when people are looked for: files that may hold them, and deletes by their keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ebbtide.formats.base import Depth
from ebbtide.formats.erasing import People
from ebbtide.formats.iceberg import FORMAT
from ebbtide.formats.iceberg.versions import VERSIONS
from ebbtide.formats.versions import PART, Retained, VersionLook
from ebbtide.model.dataset import Catalog, Role
from tests.conformance.driver import Table
from tests.conformance.drivers.iceberg import IcebergDriver
from tests.formats.test_iceberg_erase import DAY, OTHER, PERSON, One, asked, find, left, made, rows


@dataclass(frozen=True)
class Inside(One):
    """Somebody who may also stand inside of a map, of which there are no bounds."""

    @property
    def columns(self) -> Collection[str]:
        return ("id", "more")


@dataclass(frozen=True)
class Called(One):
    """Somebody, by a column of another name."""

    path: str = "uid"

    @property
    def columns(self) -> Collection[str]:
        return (self.path,)

    def may_lie(self, column: str, low: Any, high: Any) -> bool:
        return column == self.path and super().may_lie("id", low, high)


@pytest.fixture
def driver(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> IcebergDriver:
    return IcebergDriver(spark, catalogs["lake"])


def looked(driver: IcebergDriver, table: Table, people: People | None, id_: str = "id") -> dict[str, set[object]]:
    """The files that are handed out, with the ids in each."""
    found = find(driver, table)
    reading = FORMAT.read(found, driver.catalog, Depth.FILES, None)
    ids = [each.id for each in reading.transactions]
    data = {each.path: each.versions or 0 for each in reading.files if each.role is Role.DATA}
    retained = Retained(found, ids, (1 << len(ids)) - 1, {}, data, 0)
    handed: dict[str, set[object]] = {}
    with ExitStack() as until:
        for stored in VERSIONS.stored(VersionLook(retained, driver.catalog, driver.spark, until, people=people)):
            for row in stored.frame.selectExpr(PART, f"{id_} AS id").collect():
                assert stored.part_of(row[PART]) in stored.held
                handed.setdefault(stored.part_of(row[PART]), set()).add(row["id"])
    return handed


def test_files_whose_bounds_say_that_nobody_is_in_are_not_read(driver: IcebergDriver) -> None:
    table = made(driver, "by_bounds")
    assert [*looked(driver, table, One()).values()] == [{PERSON, OTHER}]
    assert [*looked(driver, table, One(2)).values()] == [{1, 2}]
    assert looked(driver, table, One(50)) == {}
    everything = [{1, 2}, {3}, {PERSON, OTHER}]
    assert sorted(looked(driver, table, None).values(), key=str) == everything
    assert sorted(looked(driver, table, Inside()).values(), key=str) == everything, "no bounds tell of what is in a map"


def test_files_without_bounds_are_read(driver: IcebergDriver) -> None:
    table = driver.create("no_bounds", properties={"write.metadata.metrics.default": "none"})
    driver.append(table, [(1, "a", DAY)])
    driver.append(table, [(PERSON, "p", DAY)])
    assert sorted(looked(driver, table, One()).values(), key=str) == [{1}, {PERSON}]


def test_bounds_tell_of_a_column_that_was_renamed_and_of_one_in_a_struct(driver: IcebergDriver) -> None:
    table = made(driver, "renamed")
    driver.spark.sql(f"ALTER TABLE {table.sql} RENAME COLUMN id TO uid")
    driver.spark.sql(f"ALTER TABLE {table.sql} ADD COLUMN id BIGINT")
    assert [*looked(driver, table, Called(), "uid").values()] == [{PERSON, OTHER}]
    nested = driver.create("nested", columns="who STRUCT<id: BIGINT>, day STRING")
    for id_ in (1, PERSON):
        driver.append(nested, [((id_,), DAY)])
    assert [*looked(driver, nested, Called(path="who.id"), "who.id").values()] == [{PERSON}]


def delete_by_key(driver: IcebergDriver, table: Table, *ids: int) -> None:
    """As Flink writes it: the key of a row stands in a file of its own."""
    java: Any = driver.spark._jvm
    gateway: Any = driver.spark.sparkContext._gateway
    iceberg = java.org.apache.iceberg
    made_by = iceberg.spark.Spark3Util.loadIcebergTable(driver.spark._jsparkSession, table.sql.replace("`", ""))
    wanted, listed = java.java.util.HashSet(), gateway.new_array(java.int, 1)
    listed[0] = made_by.schema().findField("id").fieldId()
    wanted.add(listed[0])
    key = iceberg.types.TypeUtil.select(made_by.schema(), wanted)
    make = getattr(iceberg.data, "GenericFileWriterFactory$Builder")(made_by)
    make = make.deleteFileFormat(iceberg.FileFormat.PARQUET).equalityFieldIds(listed).equalityDeleteRowSchema(key)
    file = made_by.io().newOutputFile(f"{made_by.location()}/data/eq-{len(ids)}-{ids[0]}.parquet")
    output = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(file)
    writer = make.build().newEqualityDeleteWriter(output, made_by.spec(), None)
    for id_ in ids:
        record = iceberg.data.GenericRecord.create(key)
        record.setField("id", java.java.lang.Long(id_))
        writer.write(record)
    writer.close()
    made_by.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
    driver.spark.catalog.refreshTable(table.sql)


def test_a_delete_by_the_key_of_somebody_is_a_place_and_is_told_from_one_whose_bounds_alone_say_so(
    driver: IcebergDriver,
) -> None:
    low, high = PERSON - 9, PERSON + 9  # py4j makes anything below 2**31 an integer
    table = driver.create("by_key")
    driver.append(table, [(1, "a", DAY), (high, "b", DAY)])
    delete_by_key(driver, table, high, PERSON)
    delete_by_key(driver, table, low, high + 1)
    keys = {frozenset({1, high}), frozenset({high, PERSON}), frozenset({low, high + 1})}
    assert {frozenset(ids) for ids in looked(driver, table, One()).values()} == keys, "both deletes are looked into"
    assert looked(driver, table, One(-5)) == {}
    assert [row["id"] for row in rows(driver, table)] == [1]
    asked(driver, table).both()
    assert [row["id"] for row in rows(driver, table)] == [1]
    assert left(table) == set()
