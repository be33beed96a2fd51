"""What is special to reading Delta: each line of formats.md about it, the dangerous ones first.

The oracles are what lies on disk, Spark's own reader and deltalake; the adapter uses none of the three for data files.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from ebbtide.errors import UnreadableError
from ebbtide.formats.base import Depth, supports
from ebbtide.formats.delta import FORMAT
from ebbtide.formats.delta.actions import data_file
from ebbtide.inventory.spans import Spans
from ebbtide.model.capabilities import Capability
from ebbtide.model.dataset import Catalog, FileRef, NotFound, Reading, Role, TableHandle
from ebbtide.model.history import TransactionKind, build_history
from ebbtide.model.ids import DatasetId
from ebbtide.model.paths import normalise
from tests.conformance.driver import Table
from tests.conformance.drivers.delta import DeltaDriver
from tests.tiers import deep_after_first

ODD_DAY = "a b%/c:é=#?"
FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture(scope="module")
def driver(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> DeltaDriver:
    return DeltaDriver(spark, catalogs["events"])


@pytest.fixture
def small(tmp_path: Path) -> Catalog:
    """A warehouse of its own, for tables that deltalake writes in milliseconds and tests then damage."""
    (tmp_path / "db").mkdir()
    return Catalog("small", "delta", str(tmp_path))


def found_in(catalog: Catalog, table: str) -> TableHandle:
    [found] = [f for f in FORMAT.discover(catalog) if isinstance(f, TableHandle) and f.id.table == table]
    return found


def read(catalog: Catalog, table: str, depth: Depth = Depth.FILES) -> Reading:
    return FORMAT.read(found_in(catalog, table), catalog, depth, None)


def read_table(driver: DeltaDriver, table: Table) -> Reading:
    return read(driver.catalog, table.id.table)


def on_disk(location: str) -> set[str]:
    """Everything under a table but Hadoop's checksum files, which follow their parent."""
    files = (path for path in Path(location).rglob("*") if path.is_file())
    return {normalise(str(path)) for path in files if not (path.name.startswith(".") and path.name.endswith(".crc"))}


def paths(reading: Reading, *roles: Role) -> set[str]:
    return {f.path for f in reading.files if (f.role in roles or not roles) and not f.path.endswith(".crc")}


def visible(reading: Reading) -> set[str]:
    """The referenced files, crc files of the log included as on disk."""
    hidden = {f.path for f in reading.files if f.path.rsplit("/", 1)[-1].startswith(".")}
    return {f.path for f in reading.files} - hidden


def file_of(reading: Reading, path: str) -> FileRef:
    return next(f for f in reading.files if f.path == path)


def spark_files(spark: SparkSession, location: str, version: int) -> set[str]:
    frame = spark.read.format("delta").option("versionAsOf", version).load(location)
    return {normalise(path) for path in frame.inputFiles()}


def kinds(reading: Reading) -> list[TransactionKind]:
    return [t.kind for t in reading.transactions]


@pytest.fixture(scope="module")
def busy(driver: DeltaDriver) -> Table:
    """A table with deletion vectors, change data, odd partitions, an overwrite, a restore and a compaction."""
    table = driver.create("busy tåble %41.x", variant="vectors", partitioned=True, properties=FEED)  # 0
    driver.append(table, [(n, "a", "2026-01-01") for n in range(8)])  # 1
    driver.append(table, [(20, "b", None), (21, "c", ODD_DAY), (22, "d", "2026-01-01")])  # 2
    driver.delete(table, "id = 3")  # 3
    driver.spark.sql(f"UPDATE {table.sql} SET name = 'u' WHERE id = 4")  # 4
    driver.overwrite(table, [(9, "z", "2026-01-02")])  # 5
    driver.rollback(table, "3")  # 6
    driver.compact(table)  # 7
    driver.set_property(table, "team", "us")  # 8
    driver.delete_all(table)  # 9
    driver.append(table, [(1, "n", "2026-01")])  # 10
    return table


def test_disk_minus_references_is_exactly_what_no_version_ever_named(driver: DeltaDriver, busy: Table) -> None:
    strays = {f"{busy.location}/stray.parquet", f"{busy.location}/deletion_vector_0.bin"}
    for stray in strays:
        Path(stray).write_bytes(b"?")
    reading = read_table(driver, busy)
    assert reading.unknown == ()
    assert on_disk(busy.location) - visible(reading) == {normalise(stray) for stray in strays}
    assert visible(reading) - on_disk(busy.location) == set()
    assert {f.role for f in reading.files} >= {Role.DATA, Role.DELETION_VECTOR, Role.CHANGE_DATA, Role.LOG}
    for stray in strays:
        Path(stray).unlink()


def test_every_version_reads_only_referenced_files_and_the_head_exactly_the_live_ones(
    driver: DeltaDriver, busy: Table
) -> None:
    reading = read_table(driver, busy)
    data = {f.path: f for f in reading.files if f.role is Role.DATA}
    for version in range(11):
        readable = spark_files(driver.spark, busy.location, version)
        assert readable <= data.keys()
        assert all(int(data[path].first_transaction or -1) <= version for path in readable)
    assert spark_files(driver.spark, busy.location, 10) == {path for path, f in data.items() if f.live}


def test_sizes_of_data_and_of_deletion_vectors_are_those_on_disk(driver: DeltaDriver, busy: Table) -> None:
    for file in read_table(driver, busy).files:
        assert file.bytes == Path(file.path.removeprefix("file://")).stat().st_size


def test_kinds_and_views_follow_the_files_of_each_commit(driver: DeltaDriver, busy: Table) -> None:
    reading = read_table(driver, busy)
    expected = "METADATA APPEND APPEND DELETE UPDATE SNAPSHOT SNAPSHOT REWRITE METADATA DELETE APPEND"
    assert [str(kind) for kind in kinds(reading)] == expected.split()
    # The restore of version 6 removed everything, but brought old files back: no view starts there.
    assert [t.id for t in reading.transactions if t.starts_view] == ["0", "5", "9"]
    assert [t.parent_id for t in reading.transactions] == [None, *map(str, range(10))]
    [view] = build_history(reading.transactions, reading.refs).views
    assert (view.ref.name, view.ref.main, view.ref.head, view.start) == ("main", True, "10", "9")


def test_rows_added_and_removed_add_up_to_what_each_version_holds(driver: DeltaDriver, busy: Table) -> None:
    held = 0
    for transaction in read_table(driver, busy).transactions:
        held += (transaction.rows_added or 0) - (transaction.rows_removed or 0)
        assert held == len(driver.rows(busy, version=transaction.id)), transaction


def test_a_restored_file_keeps_the_transaction_that_first_added_it(driver: DeltaDriver, busy: Table) -> None:
    reading = read_table(driver, busy)
    first = spark_files(driver.spark, busy.location, 1).pop()
    assert file_of(reading, first).first_transaction == "1"
    assert file_of(reading, first).removed_by == ("5", "7")  # overwritten, restored, compacted
    vectors = [f for f in reading.files if f.role is Role.DELETION_VECTOR]
    assert {(f.first_transaction, f.removed_by) for f in vectors} == {("3", ("4", "7")), ("4", ("5",))}


def test_partition_values_are_decoded_once_and_null_is_not_a_text(driver: DeltaDriver) -> None:
    table = driver.create("values", partitioned=True)
    driver.append(table, [(1, "a", None), (2, "b", ODD_DAY), (3, "c", "2026-02"), (4, "d", "20260131"), (5, "e", "")])
    found = {p.id: (*(p.candidates[0].days or (None, None)), p.rows) for p in read_table(driver, table).partitions}
    assert found == {
        "0/day=%00": (None, None, 2),
        "0/day=a b%25%2Fc%3Aé%3D%23?": (None, None, 1),
        "0/day=2026-02": (date(2026, 2, 1), date(2026, 2, 28), 1),
        "0/day=20260131": (date(2026, 1, 31), date(2026, 1, 31), 1),
    }


def test_partitions_tell_who_touched_them_last_and_a_compaction_brings_nothing_new(driver: DeltaDriver) -> None:
    table = driver.create("landed", partitioned=True)
    driver.append(table, [(1, "a", "2026-01-01"), (2, "a", "2026-01-02")])
    driver.append(table, [(3, "a", "2026-01-01")])
    driver.compact(table)
    reading = read_table(driver, table)
    times = {t.id: t.committed_at for t in reading.transactions}
    first, second = reading.partitions
    assert (first.last_transaction, first.landed_at, first.rows, first.files) == ("3", times["2"], 2, 1)
    assert (second.last_transaction, second.landed_at, second.rows, second.files) == ("1", times["1"], 1, 1)
    assert first.date == date(2026, 1, 1)


@pytest.mark.deep
def test_renamed_columns_are_known_by_their_names_of_today(driver: DeltaDriver) -> None:
    columns = "id BIGINT, who STRUCT<first: STRING, at: STRUCT<zip: INT>>, day DATE, hour TIMESTAMP"
    driver.spark.sql(
        f"CREATE TABLE delta.`{driver.catalog.warehouse}/db/mapped` ({columns}) USING delta PARTITIONED BY (day, hour)"
        " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    table = Table(DatasetId("events", ("db",), "mapped"), f"{driver.catalog.warehouse}/db/mapped", "")
    sql = f"delta.`{table.location}`"
    row = "named_struct('first', 'x', 'at', named_struct('zip', 1))"
    driver.spark.sql(f"INSERT INTO {sql} SELECT 1, {row}, DATE'2026-01-01', TIMESTAMP'2026-01-01 23:00:00'")
    driver.spark.sql(f"ALTER TABLE {sql} RENAME COLUMN day TO `the day`")
    driver.spark.sql(f"INSERT INTO {sql} SELECT 2, {row}, DATE'2026-01-02', NULL")
    reading = read_table(driver, table)
    assert [p.id for p in reading.partitions] == [
        "0/the day=2026-01-01/hour=2026-01-01T23%3A00%3A00.000000Z",
        "0/the day=2026-01-02/hour=%00",
    ]
    first, second = date(2026, 1, 1), date(2026, 1, 2)
    assert [{c.column: c.days for c in p.candidates} for p in reading.partitions] == [
        {"the day": (first, first), "hour": (first, first)},
        {"the day": (second, second), "hour": None},
    ]
    assert [p.date for p in reading.partitions] == [None, None], "either could be the date"
    assert [(c.name, c.type) for c in reading.columns] == [
        ("id", "bigint"),
        ("who", "struct<first:string,at:struct<zip:int>>"),
        ("who.first", "string"),
        ("who.at", "struct<zip:int>"),
        ("who.at.zip", "int"),
        ("the day", "date"),
        ("hour", "timestamp"),
    ]
    assert on_disk(table.location) == visible(reading)


@pytest.mark.deep
def test_a_deletion_vector_under_a_random_prefix_is_found(driver: DeltaDriver) -> None:
    prefixes = {"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "3"}
    table = driver.create("prefixed", variant="vectors", properties=prefixes)
    driver.append(table, [(n, "a", "b") for n in range(5)])
    driver.delete(table, "id = 1")
    reading = read_table(driver, table)
    [vector] = paths(reading, Role.DELETION_VECTOR)
    assert vector.count("/") == normalise(table.location).count("/") + 2
    assert on_disk(table.location) == visible(reading)


def test_deletion_vectors_are_placed_as_the_protocol_says() -> None:
    def vector(kind: str, text: str) -> str | None:
        body = {"storageType": kind, "pathOrInlineDv": text, "offset": 4, "sizeInBytes": 40, "cardinality": 6}
        found = data_file({"path": "x", "deletionVector": body}, "s3://mytable").vector
        assert found is not None
        return found.path

    # The examples of the protocol's text.
    expected = "s3://mytable/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert vector("u", "ab^-aqEH.-t@S}K{vb[*k^") == expected
    assert vector("p", "s3a://mytable/deletion%20vector.bin") == "s3://mytable/deletion vector.bin"
    assert vector("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L") is None
    with pytest.raises(ValueError, match="unknown storage type"):
        vector("x", "y")


def test_a_shallow_clone_references_the_files_and_vectors_of_its_source(driver: DeltaDriver) -> None:
    source = driver.create("sou%20rce x", variant="vectors", partitioned=True)
    driver.append(source, [(n, "a", ODD_DAY) for n in range(5)])
    driver.delete(source, "id = 1")
    location = f"{driver.catalog.warehouse}/db/clone"
    driver.spark.sql(f"CREATE TABLE delta.`{location}` SHALLOW CLONE {source.sql}")
    clone = Table(DatasetId("events", ("db",), "clone"), location, f"delta.`{location}`")
    driver.append(clone, [(7, "own", "2026-01-01")])
    reading, of_source = read_table(driver, clone), read_table(driver, source)
    shared = paths(of_source, Role.DATA, Role.DELETION_VECTOR)
    assert shared < paths(reading, Role.DATA, Role.DELETION_VECTOR)
    assert shared <= on_disk(source.location)
    assert paths(reading, Role.DATA) - shared == spark_files(driver.spark, location, 1) - shared


@pytest.mark.parametrize("policy", deep_after_first("classic", "v2", "multi-part"))
def test_after_log_cleanup_references_begin_with_the_earliest_version_left(driver: DeltaDriver, policy: str) -> None:
    properties = {"delta.checkpointPolicy": "v2"} if policy == "v2" else {}
    table = driver.create(f"cleaned {policy} %25", variant="vectors", partitioned=True, properties=properties)
    driver.append(table, [(1, "gone", "2026-01-01")])  # 1
    gone = spark_files(driver.spark, table.location, 1)
    driver.overwrite(table, [(n, "kept", ODD_DAY) for n in range(4)])  # 2
    driver.delete(table, "id = 0")  # 3
    part_size = {"spark.databricks.delta.checkpoint.partSize": "1"} if policy == "multi-part" else {}
    driver.append(table, [(9, "x", None)])  # 4
    for key, value in part_size.items():
        driver.spark.conf.set(key, value)
    driver.checkpoint(table)
    for key in part_size:
        driver.spark.conf.unset(key)
    kept = spark_files(driver.spark, table.location, 4)  # before it looks old: Delta 4 then refuses time travel
    driver.delete(table, "id = 1")  # 5
    driver.clean_log(table, before=5)
    assert driver.native_ids(table) == ["4", "5"]
    reading = read_table(driver, table)
    assert [(t.id, t.parent_id, t.kind) for t in reading.transactions] == [
        ("4", "3", TransactionKind.APPEND),
        ("5", "4", TransactionKind.DELETE),
    ]
    assert (reading.transactions[1].rows_added, reading.transactions[1].rows_removed) == (0, 1)
    assert on_disk(table.location) == visible(reading)
    # Only the checkpoint knows that these were removed: the table's own retention keeps them, and no version.
    removed = {file.path: file for file in reading.files if file.role is Role.REMOVED}
    assert gone <= removed.keys()
    assert {file.versions for file in removed.values()} == {0}
    times = {file.kept_until for file in removed.values()}
    assert all(time is not None and timedelta(days=6) < time - datetime.now(UTC) < timedelta(days=8) for time in times)
    assert {file_of(reading, path).first_transaction for path in kept} == {None, "4"}
    vectors = [(f.first_transaction, f.live) for f in reading.files if f.role is Role.DELETION_VECTOR]
    assert sorted(vectors, key=str) == [("5", True), (None, False)]
    assert sum(p.rows or 0 for p in reading.partitions) == len(driver.rows(table))
    assert reading.properties.get("delta.enableDeletionVectors") == "true"
    assert reading.unknown == ()


def test_change_data_past_log_cleanup_makes_the_references_unknown(driver: DeltaDriver) -> None:
    table = driver.create("feed", properties=FEED)
    driver.append(table, [(n, "a", "b") for n in range(3)])
    driver.delete(table, "id = 1")
    [change] = paths(read_table(driver, table), Role.CHANGE_DATA)
    assert read_table(driver, table).unknown == ()
    driver.append(table, [(9, "a", "b")])
    driver.checkpoint(table)
    driver.clean_log(table)
    reading = read_table(driver, table)
    assert [t.id for t in reading.transactions] == ["3"]
    assert change not in paths(reading)
    assert any("change data past log cleanup" in reason for reason in reading.unknown)


@pytest.mark.deep
def test_change_data_belongs_to_its_own_version_alone(driver: DeltaDriver) -> None:
    table = driver.create("feed spans", properties=FEED)
    driver.append(table, [(n, "a", "b") for n in range(4)])
    driver.delete(table, "id = 1")
    driver.delete(table, "id = 2")
    driver.append(table, [(9, "a", "b")])
    reading = read_table(driver, table)
    spans = Spans(reading, build_history(reading.transactions, reading.refs))
    runs = {f.first_transaction: spans.of(f) for f in reading.files if f.role is Role.CHANGE_DATA}
    assert runs == {"2": [{"first": 2, "last": 2}], "3": [{"first": 3, "last": 3}]}


@pytest.mark.deep
def test_the_change_feed_of_the_first_version_left_still_references_what_it_removed(driver: DeltaDriver) -> None:
    table = driver.create("feed head", properties=FEED)
    driver.append(table, [(1, "a", "b")])
    [removed] = spark_files(driver.spark, table.location, 1)
    driver.overwrite(table, [(2, "a", "b")])
    driver.checkpoint(table)
    driver.clean_log(table)
    feed = driver.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2)
    assert len(feed.load(table.location).collect()) == 2  # it reads the removed file
    reading = read_table(driver, table)
    assert kinds(reading) == [TransactionKind.SNAPSHOT]
    assert file_of(reading, removed).removed_by == ("2",)


def test_native_cleanup_leaves_nothing_that_the_reading_does_not_know(driver: DeltaDriver) -> None:
    table = driver.create("expired", variant="vectors", partitioned=True)
    driver.append(table, [(n, "a", "2026-01-01") for n in range(4)])
    driver.delete(table, "id = 1")
    driver.overwrite(table, [(5, "b", "2026-01-02")])
    driver.expire(table)
    reading = read_table(driver, table)
    assert [t.id for t in reading.transactions] == driver.native_ids(table)
    assert on_disk(table.location) == visible(reading)
    assert len(driver.rows(table)) == sum(p.rows or 0 for p in reading.partitions) == 1


@pytest.mark.deep
def test_times_are_those_of_describe_history(driver: DeltaDriver) -> None:
    table = driver.create("times")
    for n in range(3):
        driver.append(table, [(n, "a", "b")])
    log = Path(table.location, "_delta_log")
    for version, seconds in enumerate([1.7e9, 1.7e9 - 50, 1.7e9 + 1.2345, 1.7e9 + 1.2345]):
        os.utime(log / f"{version:020d}.json", (seconds, seconds))
    driver.set_property(table, "delta.enableInCommitTimestamps", "true")
    driver.append(table, [(9, "a", "b")])
    os.utime(log / f"{5:020d}.json", (1.6e9, 1.6e9))
    driver._log(table)
    history = driver.spark.sql(f"DESCRIBE HISTORY {table.sql}")
    told = {str(r["version"]): r["at"] for r in history.selectExpr("version", "unix_millis(timestamp) AS at").collect()}
    ours = {t.id: round(t.committed_at.timestamp() * 1000) for t in read_table(driver, table).transactions}
    assert ours == told
    assert ours["1"] == ours["0"] + 1


@pytest.mark.deep
def test_a_replaced_table_starts_a_view_and_keeps_the_old_partitions_names(driver: DeltaDriver) -> None:
    table = driver.create("replaced", partitioned=True)
    driver.append(table, [(1, "a", "2026-01-01")])
    driver.replace(table, [(2, "b", "2026-01-02")])
    reading = read_table(driver, table)
    assert kinds(reading) == [TransactionKind.METADATA, TransactionKind.APPEND, TransactionKind.SNAPSHOT]
    assert reading.transactions[-1].starts_view
    assert reading.partitions == ()  # the new one is not partitioned
    assert {f.partition for f in reading.files if f.role is Role.DATA} == {"0/day=2026-01-01", None}
    assert on_disk(table.location) == visible(reading)


@pytest.mark.deep
def test_a_table_that_was_only_created_has_one_metadata_transaction(driver: DeltaDriver) -> None:
    table = driver.create("created", properties={"delta.deletedFileRetentionDuration": "interval 2 weeks"})
    reading = read_table(driver, table)
    assert kinds(reading) == [TransactionKind.METADATA]
    assert (reading.refs[0].head, reading.transactions[0].starts_view) == ("0", True)
    assert reading.floors == {
        "delta.deletedFileRetentionDuration": "interval 2 weeks",
        "delta.logRetentionDuration": "interval 30 days",
    }
    assert paths(reading, Role.DATA) == set()
    assert not supports(FORMAT, Capability.BRANCHES)


# From here on tables that deltalake writes: another writer, and quick to damage.


def write(catalog: Catalog, name: str = "t", commits: int = 6, **options: object) -> Path:
    location = Path(catalog.warehouse, "db", name)
    for n in range(commits):
        rows = pa.table({"id": [n], "day": [f"2026-01-0{n + 1}"]})
        write_deltalake(location, rows, mode="append", partition_by=["day"], **options)  # type: ignore[call-overload]
    return location


def commit_file(location: Path, version: int) -> Path:
    return location / "_delta_log" / f"{version:020d}.json"


def add_commit(location: Path, version: int, *actions: Mapping[str, object]) -> None:
    commit_file(location, version).write_text("".join(json.dumps(action) + "\n" for action in actions))


def test_tables_of_another_writer_agree_with_its_reader(small: Catalog) -> None:
    location = write(small)
    table = DeltaTable(location)
    table.delete("id = 2")
    table.optimize.compact()
    reading = read(small, "t")
    assert kinds(reading)[:7] == [TransactionKind.APPEND] * 6 + [TransactionKind.DELETE]
    live = {normalise(uri) for uri in DeltaTable(location).file_uris()}
    assert {f.path for f in reading.files if f.live and f.role is Role.DATA} == live
    assert on_disk(str(location)) == visible(reading)
    assert len(reading.partitions) == 5


def test_a_gap_that_a_checkpoint_bridges_makes_the_references_unknown(small: Catalog) -> None:
    location = write(small)
    DeltaTable(location).create_checkpoint()
    commit_file(location, 3).unlink()
    reading = read(small, "t")
    assert [(t.id, t.parent_id) for t in reading.transactions] == [
        ("0", None), ("1", "0"), ("2", "1"), ("4", "3"), ("5", "4"),
    ]  # fmt: skip
    assert reading.unknown == ("gap in the log: versions 3 to 3 have no commit file",)
    assert on_disk(str(location)) == visible(reading)


def test_a_gap_without_a_checkpoint_is_an_error_that_names_the_file(small: Catalog) -> None:
    location = write(small)
    commit_file(location, 3).unlink()
    with pytest.raises(UnreadableError, match=r"small\.db\.t: .*/0{19}3\.json is missing") as caught:
        read(small, "t")
    assert caught.value.hint


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1]\n",
        b'{"add":{"size":1}}\n',
        b'{"add":{"path":"%FF"}}\n',
        b"\xff",
        b'{"add":{"path":"x","size":"many"}}\n',
        b'{"metaData":{"schemaString":"{}"}}\n',
    ],
)
def test_a_damaged_commit_is_an_error_that_names_the_file(small: Catalog, content: bytes) -> None:
    location = write(small, commits=3)
    commit_file(location, 1).write_bytes(content)
    with pytest.raises(UnreadableError, match=r"0{19}1\.json is corrupt") as caught:
        read(small, "t")
    assert caught.value.hint


@pytest.mark.parametrize("content", [b"", b"PAR1 no parquet PAR1"])
def test_a_damaged_checkpoint_is_an_error_where_it_is_needed(small: Catalog, content: bytes) -> None:
    location = write(small, commits=3)
    DeltaTable(location).create_checkpoint()
    commit_file(location, 0).unlink()
    [checkpoint] = (location / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(content)
    with pytest.raises(UnreadableError, match=r"checkpoint\.parquet is corrupt"):
        read(small, "t")


def test_a_small_checkpoint_of_far_too_many_rows_is_an_error(small: Catalog) -> None:
    location = write(small, commits=3)
    DeltaTable(location).create_checkpoint()
    commit_file(location, 0).unlink()
    [checkpoint] = (location / "_delta_log").glob("*.checkpoint.parquet")
    add = pa.StructArray.from_arrays([pa.nulls(2_000_000, pa.string())], ["path"])
    pq.write_table(pa.table({"add": add}), checkpoint)
    assert checkpoint.stat().st_size < 1_000_000
    with pytest.raises(UnreadableError, match="2000000 rows, each of which has a path of its own"):
        read(small, "t")


def test_a_head_of_which_only_the_checkpoint_is_left_is_read_and_marked_unknown(small: Catalog) -> None:
    location = write(small, commits=3)
    DeltaTable(location).create_checkpoint()
    for version in range(3):
        commit_file(location, version).unlink()
    reading = read(small, "t")
    assert (reading.refs[0].head, reading.transactions) == ("2", ())
    assert reading.unknown
    assert on_disk(str(location)) == visible(reading)


def test_what_was_restored_from_before_the_log_is_no_ones_and_starts_no_view(small: Catalog) -> None:
    location = write(small, commits=2)  # 0, 1
    write_deltalake(location, pa.table({"id": [7], "day": ["x"]}), mode="overwrite")  # 2
    DeltaTable(location).create_checkpoint()
    DeltaTable(location).restore(1)  # 3
    for version in range(2):
        commit_file(location, version).unlink()
    reading = read(small, "t")
    assert [(t.id, t.kind, t.starts_view) for t in reading.transactions] == [
        ("2", TransactionKind.SNAPSHOT, True),
        ("3", TransactionKind.SNAPSHOT, False),
    ]
    assert {f.first_transaction for f in reading.files if f.live and f.role is Role.DATA} == {None}


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["x"], "writerFeatures": ["x"]}, "'x'"),
        ({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["y"]}, "writer feature 'y'"),
        ({"minReaderVersion": 4, "minWriterVersion": 7}, "newer"),
    ],
)
def test_a_feature_that_nobody_looked_at_makes_the_references_unknown(
    small: Catalog, protocol: Mapping[str, object], reason: str
) -> None:
    location = write(small, commits=1)
    add_commit(location, 1, {"protocol": protocol})
    [found] = read(small, "t").unknown
    assert reason in found


@pytest.mark.parametrize(
    "key", ["delta.universalFormat.enabledFormats", "delta.coordinatedCommits.commitCoordinator-preview"]
)
def test_metadata_outside_the_log_makes_the_references_unknown(small: Catalog, key: str) -> None:
    location = write(small, commits=1)
    actions = [json.loads(line) for line in commit_file(location, 0).read_text().splitlines()]
    metadata = next(action["metaData"] for action in actions if "metaData" in action)
    add_commit(location, 1, {"metaData": metadata | {"configuration": {key: "iceberg"}}})
    reading = read(small, "t")
    assert len(reading.unknown) == 1
    # What a coordinator holds may name files of others; a second format's metadata lies in the table's folder.
    assert reading.doubt == (reading.unknown[0] if "Coordinator" in key else None)


def test_new_statistics_of_a_live_file_are_no_change_of_files(small: Catalog) -> None:
    location = write(small, commits=2)
    actions = [json.loads(line) for line in commit_file(location, 1).read_text().splitlines()]
    add = next(action["add"] for action in actions if "add" in action)
    add_commit(location, 2, {"add": add | {"dataChange": False}}, {"commitInfo": {"operation": "COMPUTE STATS"}})
    reading = read(small, "t")
    assert kinds(reading)[-1] is TransactionKind.METADATA
    assert file_of(reading, normalise(f"{location}/{add['path']}")).first_transaction == "1"


def test_history_alone_says_that_files_were_not_read(small: Catalog) -> None:
    write(small, commits=2)
    reading = read(small, "t", Depth.HISTORY)
    assert reading.unknown == ("partitions and files were not read",)
    assert (reading.files, reading.partitions, len(reading.transactions)) == ((), (), 2)
    assert reading.transactions == read(small, "t").transactions


def test_two_dates_and_times_without_a_zone_are_no_date(small: Catalog) -> None:
    from ebbtide.formats.delta.partitions import days_of

    day = date(2026, 1, 1)
    assert days_of("2026-01-01 23:00:00", "timestamp") is None
    assert days_of("2026-01-01T23:30:00.000000Z", "timestamp") == (day, day)
    assert days_of("2026-01-01 23:00:00", "timestamp_ntz") == (day, day)
    rows = pa.table({"a": ["2026-01-01"], "b": ["2026-01-02"], "c": [20260101], "d": [20260101.0], "id": [1]})
    write_deltalake(Path(small.warehouse, "db", "two"), rows, partition_by=["a", "b"])
    write_deltalake(Path(small.warehouse, "db", "number"), rows, partition_by=["a", "c"])
    write_deltalake(Path(small.warehouse, "db", "double"), rows, partition_by=["d"])
    write_deltalake(Path(small.warehouse, "db", "one"), rows, partition_by=["a", "id"])
    assert [p.date for p in read(small, "two").partitions] == [None]
    assert [p.date for p in read(small, "number").partitions] == [None], "a number of that shape could be the date"
    assert [p.candidates for p in read(small, "double").partitions] == [()]
    assert [p.date for p in read(small, "one").partitions] == [day]


NAMES = [
    "sp ace",
    "do.t",
    "per%cent of",
    "pct%2541",
    "ünï",
    "co:lon",
    "ha#sh",
    "q?",
    "a=b",
    "semi;",
    "[x]{y}",
    "pl+us",
    "_u",
]


# All of them in one name, which begins with an underscore; the deep tier tells which one it was.
@pytest.mark.parametrize("name", deep_after_first(" ".join(reversed(NAMES)), *NAMES))
def test_every_name_that_a_folder_can_have_is_a_tables_name(driver: DeltaDriver, name: str) -> None:
    table = driver.create(name)
    driver.append(table, [(1, "a", "b")])
    reading = read_table(driver, table)
    assert DatasetId.parse(str(reading.id)).table == name
    assert on_disk(table.location) == visible(reading)
    driver.drop(table)
    assert all(f.id.table != name for f in FORMAT.discover(driver.catalog) if isinstance(f, TableHandle))


def test_a_token_changes_with_every_change_and_only_then(small: Catalog) -> None:
    location = write(small, commits=2)
    tokens = [found_in(small, "t").token, found_in(small, "t").token]
    assert tokens[0] == tokens[1]
    write(small, commits=1)
    tokens.append(found_in(small, "t").token)
    DeltaTable(location).alter.set_table_properties({"delta.appendOnly": "true"})
    tokens.append(found_in(small, "t").token)
    DeltaTable(location).create_checkpoint()
    tokens.append(found_in(small, "t").token)
    commit_file(location, 0).unlink()
    tokens.append(found_in(small, "t").token)
    assert len(set(tokens)) == 5


def test_foreign_folders_are_passed_over_and_broken_ones_are_named(small: Catalog) -> None:
    write(small, commits=1)
    root = Path(small.warehouse)
    (root / "db" / "foreign" / "metadata").mkdir(parents=True)
    (root / "db" / "hudi" / ".hoodie").mkdir(parents=True)
    (root / "db" / "file.txt").write_text("x")
    (root / "notes.txt").write_text("x")
    (root / "empty").mkdir()
    (root / "db" / "bro.ken" / "_delta_log").mkdir(parents=True)
    (root / "db" / "half" / "_delta_log").mkdir(parents=True)
    (root / "db" / "half" / "_delta_log" / "_last_checkpoint").write_text("{}")
    shutil.copytree(root / "db" / "t", root / "shallow")
    listed = list(FORMAT.discover(small))
    assert [f.id.table for f in listed if isinstance(f, TableHandle)] == ["t"]
    missing = {f.name: f for f in listed if isinstance(f, NotFound)}
    assert missing.keys() == {"small.db.bro%2Eken", "small.db.half", "small.shallow"}
    assert all(f.reason and f.hint for f in missing.values())


def test_a_warehouse_that_is_not_there_is_an_error_and_not_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in ("nowhere", "file"):
        with pytest.raises(UnreadableError, match=r"lost: no warehouse at") as caught:
            FORMAT.discover(Catalog("lost", "delta", str(tmp_path / place)))
        assert caught.value.hint
    assert list(FORMAT.discover(Catalog("bare", "delta", str(tmp_path)))) == []


def test_a_table_that_is_dropped_after_discovery_is_an_error(small: Catalog) -> None:
    location = write(small, commits=1)
    found = found_in(small, "t")
    shutil.rmtree(location)
    with pytest.raises(UnreadableError, match="has no Delta log"):
        FORMAT.read(found, small, Depth.FILES, None)


def test_reading_loads_neither_spark_nor_a_session(small: Catalog) -> None:
    write(small, commits=1)
    program = (
        "import sys\n"
        "from ebbtide.formats.base import Depth\n"
        "from ebbtide.formats.delta import FORMAT\n"
        "from ebbtide.model.dataset import Catalog\n"
        "catalog = Catalog('small', 'delta', sys.argv[1])\n"
        "for found in FORMAT.discover(catalog):\n"
        "    assert FORMAT.read(found, catalog, Depth.FILES, None).files\n"
        "assert 'pyspark' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program, small.warehouse], check=True)


def test_a_thousand_commits_are_one_history(small: Catalog) -> None:
    location = write(small, commits=1)
    add = next(a for line in commit_file(location, 0).read_text().splitlines() if "add" in (a := json.loads(line)))[
        "add"
    ]
    for version in range(1, 1000):
        added, removed = add | {"path": f"{version}.parquet"}, {"path": f"{version - 1}.parquet", "dataChange": True}
        add_commit(location, version, {"add": added}, {"remove": removed})
    reading = read(small, "t")
    assert len(reading.transactions) == 1000
    assert reading.transactions[-1].kind is TransactionKind.UPDATE  # version 0 is kept all along
    assert sum(f.live for f in reading.files if f.role is Role.DATA) == 2
    assert reading.transactions[0].committed_at < datetime.now(UTC)
