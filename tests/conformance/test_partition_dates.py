"""Partition dates on real tables of every format: one column per table, never value by value (hazard 32)."""

from __future__ import annotations

from datetime import date

import pytest

from ebbtide.model.dataset import Reading
from ebbtide.model.ids import DatasetId
from ebbtide.spark.session import quote
from tests.conformance.conftest import Bench
from tests.conformance.driver import Rows, Table

YOUNG, OLD = date(2026, 11, 9), date(2020, 1, 15)


def create(bench: Bench, name: str, columns: str, by: str, rows: Rows) -> Table:
    """A table with these partition columns, and the rows in one commit."""
    spark, catalog, name = bench.spark, bench.catalog, bench.new_name(name)
    id_ = DatasetId(catalog.name, ("db",), name)
    location = f"{catalog.warehouse}/db/{name}"
    frame = spark.createDataFrame(list(rows), f"id BIGINT, {columns}").coalesce(1)
    if bench.format == "hudi":
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.operation": "insert",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": by,
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
            "hoodie.metadata.enable": "false",
            "hoodie.embed.timeline.server": "false",
        }
        frame.write.format("hudi").options(**options).mode("append").save(location)
        return Table(id_, location, "")
    sql = quote("delta", location) if bench.format == "delta" else quote(catalog.name, "db", name)
    using = "" if bench.format == "paimon" else f"USING {bench.format}"
    if bench.format != "delta":
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote(catalog.name, 'db')}")
    spark.sql(f"CREATE TABLE {sql} (id BIGINT, {columns}) {using} PARTITIONED BY ({by})")
    if bench.format == "delta":
        frame.write.format("delta").mode("append").save(location)
    else:
        frame.writeTo(sql).append()
    return Table(id_, location, sql)


def days(reading: Reading) -> dict[str, date | None]:
    """The date of each partition, by its id without the spec."""
    return {partition.id.partition("/")[2]: partition.date for partition in reading.partitions}


@pytest.mark.cluster
def test_a_null_date_is_not_due_whatever_else_stands_in_the_path(any_bench: Bench) -> None:
    """Days by type beside a text that looks like one: NULL has no date, and the two never disagree."""
    rows = [(1, None, "20200115"), (2, YOUNG, "20200115"), (3, OLD, "acme")]
    reading = any_bench.read(create(any_bench, "typed", "day DATE, k STRING", "day, k", rows))
    assert (reading.date_source.column, reading.date_source.by) == ("day", "type")
    assert days(reading) == {
        "day=%00/k=20200115": None, f"day={YOUNG}/k=20200115": YOUNG, f"day={OLD}/k=acme": OLD
    }  # fmt: skip


def test_several_texts_that_could_be_the_date_are_none(any_bench: Bench) -> None:
    rows = [(1, "20200115", "2020-01-15"), (2, "20261109", None)]
    reading = any_bench.read(create(any_bench, "rivals", "a STRING, b STRING", "a, b", rows))
    assert reading.date_source.doubt == "more than one column may hold it (a, b)"
    assert set(days(reading).values()) == {None}
    # What each of them says is kept for a person who declares one.
    assert {c.column for p in reading.partitions for c in p.candidates if c.days} == {"a", "b"}


def test_one_text_is_a_guess_and_only_while_every_value_of_it_is_a_date(any_bench: Bench) -> None:
    first = create(any_bench, "guess", "k INT, b STRING", "k, b", [(1, 20200115, "x"), (2, None, "y")])
    reading = any_bench.read(first)
    assert (reading.date_source.column, reading.date_source.by) == ("k", "text")
    assert days(reading) == {"k=20200115/b=x": OLD, "k=%00/b=y": None}
    rows = [(1, "20200115", "x"), (2, "7", "y")]
    reading = any_bench.read(create(any_bench, "some", "k STRING, b STRING", "k, b", rows))
    assert reading.date_source.doubt == "not every value of k is a date"
    assert set(days(reading).values()) == {None}
