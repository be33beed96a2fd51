"""Reading what is new in Hudi tables: rows carry the instant that brought them (spec §8)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from ebbtide.errors import FullReadNeededError, InputError, MarkedError
from ebbtide.spark.session import formats_of_session
from tests.conformance.driver import Table
from tests.conformance.drivers.hudi import HudiDriver
from tests.tide import Tide
from tests.tiers import deep_after_first

pytestmark = pytest.mark.skipif("hudi" not in formats_of_session(), reason="Hudi needs Spark 3.5")

POLICIES = """
policies:
  - name: old
    select: {tables: ["*.db.marked"]}
    transactions: {older_than: 30d}
"""
DAYS = ("2026-01-01", "2026-01-02")
# As Hudi is set by default: what comes is packed into files that are small.
PACKED = {"hoodie.parquet.small.file.limit": "104857600"}


class Lake:
    def __init__(self, tide: Tide) -> None:
        driver = tide.drivers["hudi"]
        assert isinstance(driver, HudiDriver)
        self.tide, self.driver = tide, driver

    def append(self, table: Table, *ids: int, day: str = DAYS[0]) -> str:
        """One commit with these rows; its instant."""
        self.driver.append(table, [(number, f"n{number}", day) for number in ids])
        return self.driver.native_ids(table)[-1]

    def new(self, table: Table, since: str | None, **options: Any) -> list[str]:
        return names(self.tide.app.incremental(str(table.id), since=since, **options))


def names(frame: DataFrame) -> list[str]:
    assert frame.columns == ["id", "name", "day"]
    return sorted(row["name"] for row in frame.collect())


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(Tide(spark, tmp_path_factory.mktemp("hudi") / "p", "hudi", policies=POLICIES))


@pytest.mark.parametrize("variant", deep_after_first("cow", "mor"))
def test_rows_are_read_as_new_through_packing_compaction_cleaning_and_archiving(lake: Lake, variant: str) -> None:
    table = lake.driver.create(f"log_{variant}", variant=variant, partitioned=True, properties=PACKED)
    first = lake.append(table, 0)
    second = lake.append(table, 1)
    third = lake.append(table, 2, day=DAYS[1])
    assert lake.new(table, first) == ["n1", "n2"], "the second is packed into the first's file"
    assert lake.new(table, second) == ["n2"]
    assert lake.new(table, third) == []
    assert lake.new(table, None) == ["n0", "n1", "n2"]
    lake.driver.compact(table)
    lake.driver.expire(table)
    assert lake.new(table, first) == ["n1", "n2"]
    with pytest.raises(InputError, match="no transaction of main"):
        lake.new(table, "20200101000000000")
    with pytest.raises(InputError, match="one timeline per table"):
        lake.new(table, first, branch="x")
    lake.driver.delete(table, "id = 0")
    last = lake.append(table, 3)
    with pytest.raises(FullReadNeededError, match="DELETE"):
        lake.new(table, first)
    assert lake.new(table, first, allow_retention=True) == ["n1", "n2", "n3"]
    lake.driver.archive(table)
    assert lake.new(table, first, allow_retention=True) == ["n1", "n2", "n3"], "the archive knows the instants"
    lake.driver.update(table, "name = 'changed'", "id = 2")
    for allow_retention in (False, True):
        with pytest.raises(FullReadNeededError, match="UPDATE"):
            lake.new(table, last, allow_retention=allow_retention)


def test_what_was_completed_after_a_place_is_new_whenever_it_was_begun(lake: Lake) -> None:
    table = lake.driver.create("overlap")
    first, slow, quick = (lake.append(table, number) for number in range(3))
    # The second writer was begun before the third and is done after it: the timeline's file says when.
    timeline = Path(table.location, ".hoodie", "timeline")
    done = {p.name[:17]: p for p in timeline.iterdir() if re.fullmatch(r"\d+_\d+\.commit", p.name)}
    later = f"{int(done[quick].name[18:35]) + 1}"
    for prefix in ("", "."):
        name = timeline / f"{prefix}{done[slow].name}{'.crc' if prefix else ''}"
        name.rename(str(name).replace(done[slow].name, f"{slow}_{later}.commit"))
    assert lake.driver.native_ids(table) == [first, quick, slow]
    assert lake.new(table, quick) == ["n1"]
    assert lake.new(table, first) == ["n1", "n2"]
    assert lake.new(table, slow) == []


@pytest.mark.deep
def test_a_table_from_before_hudi_1_is_read_by_its_instants(lake: Lake) -> None:
    table = lake.driver.create("old", table_version=6)
    first = lake.append(table, 0)
    second = lake.append(table, 1, 2)
    # A copy of the table has other file times, which are when Hudi takes these instants for completed.
    for path in Path(table.location, ".hoodie").glob("*.commit"):
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime + 86_400))
    assert lake.new(table, first) == ["n1", "n2"]
    assert lake.new(table, second) == []


@pytest.mark.deep
def test_rows_that_a_clustering_took_for_its_own_need_a_full_read(lake: Lake) -> None:
    table = lake.driver.create("clustered")
    first = lake.append(table, 0)
    lake.append(table, 1)
    lake.driver.compact(table)
    assert lake.new(table, first) == ["n1"]
    # What Hudi wrote before version 1 with `hoodie.clustering.preserve.commit.metadata=false`.
    clustering = lake.driver.native_ids(table)[-1]
    (path,) = Path(table.location).glob(f"*_{clustering}.parquet")
    rows = pq.read_table(path)
    column = rows.schema.get_field_index("_hoodie_commit_time")
    pq.write_table(rows.set_column(column, rows.schema.field(column), pa.array([clustering] * 2)), path)
    path.with_name(f".{path.name}.crc").unlink()
    with pytest.raises(FullReadNeededError, match="did not keep which commit"):
        lake.new(table, first)


@pytest.mark.deep
def test_rows_that_do_not_say_who_brought_them_need_a_full_read(lake: Lake) -> None:
    table = lake.driver.create("plain", properties={"hoodie.populate.meta.fields": "false"})
    first = lake.append(table, 0)
    lake.append(table, 1)
    with pytest.raises(FullReadNeededError, match=r"populate\.meta\.fields"):
        lake.new(table, first)


def test_marked_and_replaced_transactions_are_refused(lake: Lake) -> None:
    table = lake.driver.create("marked", partitioned=True)
    ids = [lake.append(table, number) for number in range(2)]
    lake.driver.overwrite(table, [(9, "all", DAYS[0])])
    assert {key.object for key in lake.tide.mark(40).marked} == set(ids)
    with pytest.raises(MarkedError, match=f"{ids[1]} is scheduled for deletion"):
        lake.new(table, ids[0])
    with pytest.raises(FullReadNeededError, match="SNAPSHOT"):
        lake.new(table, ids[0], allow_marked=True)
    head = lake.driver.native_ids(table)[-1]
    lake.append(table, 3, day=DAYS[1])
    assert lake.new(table, head) == ["n3"], "who is past them reads on"
    lake.driver.spark.sql(f"ALTER TABLE {table.sql} DROP PARTITION (day = '{DAYS[0]}')")
    with pytest.raises(FullReadNeededError, match="DELETE"):
        lake.new(table, head)
    assert lake.new(table, head, allow_retention=True) == ["n3"]
