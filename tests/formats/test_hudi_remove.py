"""Removing from Hudi tables, on one history per table type: commits take seconds, so the tests share them.

Only the cleaner, or a drop of the whole table, removes anything below a table (formats.md).
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from ebbtide.errors import EbbtideError
from ebbtide.formats.base import Depth
from ebbtide.formats.hudi import FORMAT
from ebbtide.formats.hudi.clean import LATER, NOTHING
from ebbtide.formats.hudi.remove import _replace
from ebbtide.formats.hudi.writer import Writer
from ebbtide.model.dataset import Catalog, Reading, Role, TableHandle
from ebbtide.model.ids import DatasetId
from ebbtide.model.paths import normalise
from ebbtide.model.removal import Committed, Drop, FileDeletion, Removal, RowDelete
from tests.conformance.driver import Table
from tests.conformance.drivers.hudi import DRIVER, HudiDriver
from tests.tiers import deep_after_first

ROWS = {Role.DATA, Role.LOG}
A, B, C = (1, "a", "2026-01-01"), (2, "b", "2026-01-01"), (3, "c", "2026-01-02")


@pytest.fixture(scope="module")
def driver(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> HudiDriver:
    return DRIVER(spark, catalogs["cdc"])


def find(driver: HudiDriver, table: Table) -> TableHandle:
    (found,) = (
        each for each in FORMAT.discover(driver.catalog) if isinstance(each, TableHandle) and each.id == table.id
    )
    return found


def read(driver: HudiDriver, table: Table) -> Reading:
    return FORMAT.read(find(driver, table), driver.catalog, Depth.FILES, driver.spark)


def on_disk(table: Table) -> set[str]:
    """Files with rows: `.hoodie` grows with each act, and Hadoop's checksums follow."""
    paths = (p for p in Path(table.location).rglob("*") if p.is_file() and ".hoodie" not in str(p))
    return {normalise(str(path)) for path in paths if path.suffix != ".crc"}


def ids(reading: Reading) -> list[str]:
    return [t.id for t in reading.transactions]


def files_of(reading: Reading, removed_by: Collection[str]) -> set[str]:
    """Files that were taken out of the table by these transactions: only versions before them hold them."""
    return {f.path for f in reading.files if f.role in ROWS and set(f.removed_by) & set(removed_by)}


def commit(driver: HudiDriver, table: Table, /, **asked: Any) -> Committed:
    return FORMAT.commit(Removal(found=find(driver, table), **asked), driver.catalog, driver.spark)


def free(driver: HudiDriver, table: Table, paths: Iterable[str], /, **asked: Any) -> FileDeletion:
    removal = Removal(found=find(driver, table), files=dict.fromkeys(paths, 0), **asked)
    return FORMAT.delete_files(removal, set(paths), driver.catalog, driver.spark, lambda: None)


def copy(driver: HudiDriver, table: Table, name: str) -> Table:
    """The same table at another place, to be changed. It is not registered: everything here goes by path."""
    location = f"{driver.catalog.warehouse}/db/{name}"
    shutil.copytree(table.location, location)
    twin = Table(type(table.id)(table.id.catalog, table.id.namespace, name), location, table.sql)
    driver._columns[location], driver._properties[location] = driver._columns[table.location], {}
    return twin


@pytest.fixture(scope="module", params=deep_after_first(*HudiDriver.variants))
def story(request: pytest.FixtureRequest, driver: HudiDriver) -> Table:
    """Two partitions, a rewritten file in one of them, a replaced group, and a head that holds both partitions."""
    table = driver.create(f"rm_story_{request.param}", variant=request.param, partitioned=True)
    driver.append(table, [A, B, C])
    driver.overwrite(table, [A, C])
    driver.overwrite(table, [A, B, C])
    driver.append(table, [(4, "d", "2026-01-02")])
    return table


def test_the_cleaner_takes_exactly_the_named_files_oldest_first(driver: HudiDriver, story: Table) -> None:
    table = copy(driver, story, f"{story.id.table}_exact")
    before, rows = read(driver, table), driver.rows(table)
    first, second, third, _ = ids(before)
    named, rest = files_of(before, [second]), files_of(before, [third])
    assert commit(driver, table, versions=(first, third)).sent_back == {
        third: f"{second} is older and stays: Hudi cleans the oldest first"
    }
    kept, disk = driver.rows(table, version=third), on_disk(table)
    assert free(driver, table, named | rest, versions=(first, second)) == FileDeletion(because=LATER)
    assert disk - on_disk(table) == named, "the newest that goes leaves its files until later"
    assert driver.rows(table) == rows
    assert driver.rows(table, version=third) == kept, "the oldest that stays can still be read"
    assert [t.expired for t in read(driver, table).transactions] == [True, False, False, False]
    assert commit(driver, table, versions=(first,)).done == (first,)
    assert rest <= {f.path for f in read(driver, table).files}, "replaced groups count until they are cleaned"
    # Again, without a commit in between: the cleaner does nothing, and would say nothing.
    assert free(driver, table, rest, versions=(second, third)).because == NOTHING
    assert on_disk(table) == disk - named
    driver.append(table, [(5, "e", "2026-01-02")])
    assert free(driver, table, rest, versions=(second, third)) == FileDeletion()
    assert not rest & on_disk(table)
    assert len(driver.rows(table)) == len(rows) + 1
    assert [t.expired for t in read(driver, table).transactions] == [True, True, False, False, False]


def test_a_file_that_nobody_named_stops_the_cleaner_and_leaves_no_plan_behind(driver: HudiDriver, story: Table) -> None:
    before = read(driver, story)
    first, second, third, head = ids(before)
    disk, timeline = on_disk(story), sorted(Path(story.location, ".hoodie", "timeline").iterdir())
    spared, *named = sorted(files_of(before, [second]))
    freed = free(driver, story, named, versions=(first, second))
    assert freed.because is not None
    assert spared in freed.because
    assert commit(driver, story, versions=(first, second, third, head)).sent_back == {head: "it is the head"}
    assert free(driver, story, disk, versions=(third,)).because is not None
    assert on_disk(story) == disk
    assert sorted(Path(story.location, ".hoodie", "timeline").iterdir()) == timeline


def test_all_but_the_head_can_go_and_a_savepoint_keeps_its_files(driver: HudiDriver, story: Table) -> None:
    table = driver.create(f"rm_savepoint_{story.id.table[-3:]}", variant=story.id.table[-3:], partitioned=True)
    driver.append(table, [A])
    driver.overwrite(table, [B])
    driver.create_tag(table, "keep")
    driver.overwrite(table, [C])
    before = read(driver, table)
    first, kept, head = ids(before)
    named, saved = files_of(before, [kept]), files_of(before, [head])
    assert commit(driver, table, versions=(first, kept)).sent_back == {kept: "a savepoint keeps it"}
    bystander = Path(table.location, "day=2026-01-01", "bystander.txt")
    bystander.write_bytes(b"of somebody else")
    # Both files lie in a folder without a live file group, which Hudi alone would remove whole.
    assert free(driver, table, named | saved, versions=(first,)) == FileDeletion()
    assert not named & on_disk(table)
    assert saved <= on_disk(table)
    assert bystander.exists()
    assert [row.id for row in driver.rows(table)] == [3]


def test_an_instant_in_flight_stops_drops_and_is_not_rolled_back(driver: HudiDriver, story: Table) -> None:
    table = copy(driver, story, f"{story.id.table}_flight")
    timeline = Path(table.location, ".hoodie", "timeline")
    action = "deltacommit" if story.id.table.endswith("mor") else "commit"
    inflight = [timeline / f"20990101000000000.{action}.requested", timeline / f"20990101000000000.{action}.inflight"]
    inflight[0].touch()
    inflight[1].write_bytes(next(timeline.glob("*.inflight")).read_bytes())
    files = tuple(f.path for f in read(driver, table).files if f.live and f.partition == "0/day=2026-01-01")
    rows = driver.rows(table)
    sent_back = commit(
        driver,
        table,
        drops=(Drop("main", "p", files, "0/day=2026-01-01"),),
        rows=(RowDelete("r", where="id = 1"),),
    ).sent_back
    assert set(sent_back) == {"p", "r"}
    before = read(driver, table)
    first, second, *_ = ids(before)
    free(driver, table, files_of(before, [second]), versions=(first,))
    assert all(path.exists() for path in inflight)
    assert driver.rows(table) == rows


def test_a_partition_is_dropped_as_planned_and_a_late_write_is_sent_back(driver: HudiDriver, story: Table) -> None:
    table = copy(driver, story, f"{story.id.table}_drop")
    live = [f for f in read(driver, table).files if f.live and f.role in ROWS]
    old, new = (
        Drop("main", day, tuple(f.path for f in live if f.partition == f"0/day={day}"), f"0/day={day}")
        for day in ("2026-01-01", "2026-01-02")
    )
    driver.append(table, [(9, "late", "2026-01-02")])
    disk = on_disk(table)
    done = commit(driver, table, drops=(old, new, Drop("main", "t", old.paths)), branches=("b",))
    assert done.done == ("2026-01-01",)
    assert set(done.sent_back) == {"2026-01-02", "t", "b"}
    assert "late write" in done.sent_back["2026-01-02"]
    assert on_disk(table) == disk, "metadata only"
    assert [row.id for row in driver.rows(table)] == [3, 4, 9]
    after = read(driver, table)
    assert files_of(after, [str(done.version)]) == set(old.paths), "replaced, and referenced until they are cleaned"
    assert commit(driver, table, drops=(old,)).version == done.version, "asked again it changes nothing"
    head = ids(after)[:-1]
    taken = {f.path for f in after.files if f.removed_by and f.role in ROWS}
    assert free(driver, table, taken, versions=tuple(head)) == FileDeletion()
    assert on_disk(table) == disk - taken
    assert [row.id for row in driver.rows(table)] == [3, 4, 9]
    for id_ in head:
        with pytest.raises(IllegalArgumentException, match="Cleaner cleaned up the timestamp of interest"):
            driver.rows(table, version=id_)


def test_rows_before_the_cutoff_go_and_null_stays(driver: HudiDriver) -> None:
    table = driver.create("rm_rows", columns="id BIGINT, name STRING, day DATE")
    driver.spark.sql(
        f"INSERT INTO {table.sql} VALUES (1, 'a', DATE '2026-01-01'), (2, 'b', DATE '2026-01-02'), (3, 'c', NULL)"
    )
    asked = {"rows": (RowDelete("r", column="day", cutoff="2026-01-02"),)}
    done = commit(driver, table, **asked)
    assert done.done == ("r",)
    assert [row.id for row in driver.rows(table)] == [2, 3]
    assert commit(driver, table, **asked).version == done.version
    odd = (RowDelete("text", column="name", cutoff="2026-01-02"), RowDelete("none", where="no_such_column = 1"))
    sent_back = commit(driver, table, rows=odd).sent_back
    assert sent_back["text"] == "the table has no date or timestamp column name"
    assert sent_back["none"].startswith("the predicate does not fit the table")
    # Hudi deletes by key, and a bulk insert lets a key come twice: what is too young would go with what is not.
    driver._write(table, [(2, "again", date(2026, 3, 1))], "bulk_insert")
    older, timeline = (RowDelete("r", column="day", cutoff="2026-01-03"),), _timeline(table)
    why = commit(driver, table, rows=older).sent_back.get("r", "")
    assert sorted(row.name for row in driver.rows(table)) == ["again", "b", "c"]
    assert why.startswith("rows that are to stay have the key of rows that are to go")
    assert _timeline(table) == timeline
    both = commit(driver, table, rows=(RowDelete("both", where="id = 2"),))
    assert (both.done, [row.name for row in driver.rows(table)]) == (("both",), ["c"])


TIMED = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "at",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
}


@pytest.mark.parametrize(
    ("name", "keys", "why"), deep_after_first(("timed", TIMED, "TimestampBased"), ("none", {}, "record key"))
)
def test_rows_whose_keys_cannot_be_made_again_are_sent_back_and_nothing_is_begun(
    driver: HudiDriver, name: str, keys: Mapping[str, str], why: str
) -> None:
    location = f"{driver.catalog.warehouse}/db/rm_keys_{name}"
    table = Table(DatasetId(driver.catalog.name, ("db",), f"rm_keys_{name}"), location, "")
    driver._columns[location], driver._properties[location] = "id BIGINT, at BIGINT", dict(keys)
    driver.append(table, [(1, 1767225600000), (2, 1767225600000)])
    timeline = _timeline(table)
    assert why in commit(driver, table, rows=(RowDelete("r", where="id = 1"),)).sent_back["r"]
    assert _timeline(table) == timeline


@pytest.mark.deep
def test_a_partition_that_hudi_refuses_to_drop_leaves_no_instant_behind(driver: HudiDriver) -> None:
    table = driver.create("rm_clustered", partitioned=True)
    driver.append(table, [A, C])
    driver.append(table, [B])
    driver._call("run_clustering", table, op="schedule")
    timeline = _timeline(table)
    with pytest.raises(EbbtideError, match="dropping a partition failed"):
        _replace(find(driver, table), "day=2026-01-01", {"any"}, driver.spark)
    assert {name for name in _timeline(table) - timeline if "replacecommit" in name} == set()
    assert timeline <= _timeline(table), "what others began stays"


@pytest.mark.deep
def test_deleting_and_dropping_clean_and_archive_nothing_as_other_writers_do(driver: HudiDriver) -> None:
    eager = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    table = driver.create("rm_quiet", partitioned=True, properties=eager)
    driver.append(table, [A])
    driver.append(table, [B])
    driver.overwrite(table, [A, B, C])
    disk, timeline = on_disk(table), _timeline(table)
    config = Writer.open(find(driver, table), driver.spark).config()
    assert not config.isAutoClean()
    assert not config.isAutoArchive()
    assert commit(driver, table, rows=(RowDelete("r", where="id = 2"),)).done == ("r",)
    days = tuple(f.path for f in read(driver, table).files if f.live and f.partition == "0/day=2026-01-02")
    assert commit(driver, table, drops=(Drop("main", "p", days, "0/day=2026-01-02"),)).done == ("p",)
    assert [row.id for row in driver.rows(table)] == [1]
    assert disk <= on_disk(table)
    assert timeline <= _timeline(table)
    assert not [name for name in _timeline(table) if ".clean" in name]
    assert not Path(table.location, ".hoodie", "metadata").exists(), "no index is made"
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.operation": "insert", **eager}
    options["hoodie.metadata.enable"] = "false"
    new = driver.spark.createDataFrame([(9, "z", "2026-01-01")], driver._columns[table.location])
    new.write.format("hudi").options(**options).mode("append").save(table.location)
    assert [name for name in _timeline(table) if ".clean" in name]
    assert disk - on_disk(table), "any other writer cleans"
    assert timeline - _timeline(table), "and archives"


def _timeline(table: Table) -> set[str]:
    return {path.name for path in Path(table.location, ".hoodie", "timeline").iterdir() if path.is_file()}


def test_a_table_goes_whole_or_not_at_all(driver: HudiDriver, story: Table) -> None:
    table = copy(driver, story, f"{story.id.table}_whole")
    files = {normalise(str(path)) for path in Path(table.location).rglob("*") if path.is_file()}
    named = {path for path in files if not path.endswith(".crc")}
    foreign = Path(table.location, "notes.txt")
    foreign.write_text("not Hudi's")
    freed = free(driver, table, named, table=True)
    assert freed.because is not None
    assert "notes.txt" in freed.because
    assert len(driver.rows(table)) == 4
    foreign.unlink()
    assert free(driver, table, named, table=True) == FileDeletion()
    assert not Path(table.location).exists()
    assert len(driver.rows(story)) == 4, "a sibling whose name begins alike"


@pytest.mark.deep
def test_rows_partitions_and_versions_go_and_the_table_keeps_its_indexes_and_settings(driver: HudiDriver) -> None:
    """The settings of an index are its writers': only the metadata table itself says which ones there are."""
    table = driver.create("rm_metadata", partitioned=True)
    driver._properties[table.location] = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
    }
    driver.append(table, [A, C])
    driver.overwrite(table, [B, C, (4, "d", "2026-01-03")])
    settings, definitions = (Path(table.location, ".hoodie", name) for name in ("hoodie.properties", ".index_defs"))
    said = [line for line in settings.read_text().splitlines() if not line.startswith("#")]
    assert "hoodie.table.metadata.partitions=bloom_filters,files,record_index" in said
    defined = (definitions / "index.json").read_bytes()
    assert commit(driver, table, rows=(RowDelete("r", where="id = 4"),)).done == ("r",)
    before = read(driver, table)
    first, *_ = ids(before)
    named = {f.path for f in before.files if f.removed_by and f.role in ROWS}
    assert free(driver, table, named, versions=tuple(ids(before)[:-1])) == FileDeletion()
    assert not named & on_disk(table)
    assert not read(driver, table).transactions[-1].expired
    with pytest.raises(IllegalArgumentException, match="Cleaner cleaned up the timestamp of interest"):
        driver.rows(table, version=first)
    days = tuple(f.path for f in read(driver, table).files if f.live and f.partition == "0/day=2026-01-01")
    assert commit(driver, table, drops=(Drop("main", "p", days, "0/day=2026-01-01"),)).done == ("p",)
    assert [row.id for row in driver.rows(table)] == [3]
    assert [line for line in settings.read_text().splitlines() if not line.startswith("#")] == said
    assert (definitions / "index.json").read_bytes() == defined
    metadata = driver.spark.read.format("hudi").load(f"{table.location}/.hoodie/metadata")
    assert [row.key for row in metadata.where("type = 5").collect()] == ["3"], "the record index is in step"
    driver.append(table, [A])
    assert [row.id for row in driver.rows(table)] == [1, 3]


@pytest.mark.deep
def test_an_index_that_hudi_cannot_keep_in_step_keeps_rows_and_partitions(driver: HudiDriver) -> None:
    table = driver.create("rm_expression", partitioned=True, properties={"hoodie.metadata.enable": "true"})
    driver.append(table, [A, C])
    lock = "hoodie.write.lock.provider"
    driver.spark.conf.set(lock, "org.apache.hudi.client.transaction.lock.InProcessLockProvider")
    try:
        driver.spark.sql(f"CREATE INDEX loud ON {table.sql} USING column_stats(name) OPTIONS(expr='upper')")
    finally:
        driver.spark.conf.unset(lock)
    timeline = _timeline(table)
    days = tuple(f.path for f in read(driver, table).files if f.live and f.partition == "0/day=2026-01-01")
    asked = {"rows": (RowDelete("r", where="id = 3"),), "drops": (Drop("main", "p", days, "0/day=2026-01-01"),)}
    why = "Hudi cannot keep the table's index expr_index_loud in step with it"
    assert commit(driver, table, **asked).sent_back == {"r": why, "p": why}
    assert _timeline(table) == timeline


def test_a_partition_that_grew_until_the_commit_is_not_replaced_and_takes_writes(
    driver: HudiDriver, story: Table
) -> None:
    """Hudi says what it would replace; what differs from the plan by then is taken back."""
    table = copy(driver, story, f"{story.id.table}_grew")
    rows, disk = driver.rows(table), on_disk(table)
    assert "late write" in str(_replace(find(driver, table), "day=2026-01-01", {"another"}, driver.spark))
    assert driver.rows(table) == rows
    assert on_disk(table) == disk
    assert ids(read(driver, table)) == ids(read(driver, story))
    driver.append(table, [(9, "e", "2026-01-02")])
    assert len(driver.rows(table)) == len(rows) + 1
