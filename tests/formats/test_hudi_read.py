"""What is special to reading Hudi (formats.md), on one shared history per table type.

The oracles are Hudi's own views (`show_fsview_all`, `show_commits`), its reader, and the disk.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import input_file_name

from ebbtide.errors import EbbtideError, SetupError, UnreadableError
from ebbtide.formats.base import Depth, supports
from ebbtide.formats.hudi import FORMAT
from ebbtide.model.capabilities import Capability
from ebbtide.model.dataset import Catalog, FileRef, NotFound, Reading, Role, TableHandle
from ebbtide.model.history import RefKind, TransactionKind
from ebbtide.model.paths import normalise
from tests.conformance.driver import Table
from tests.conformance.drivers.hudi import DRIVER, HudiDriver
from tests.tiers import deep_after_first

ROW_FILES = {Role.DATA, Role.LOG, Role.CHANGE_DATA}


@dataclass(frozen=True)
class Story:
    """A table with a history, how it was read before the cleaner ran, and what Hudi said of it then."""

    table: Table
    savepoint: str
    reading: Reading
    view: set[str]
    disk: set[str]
    commits: list[tuple[str, str]]


@pytest.fixture(scope="module")
def driver(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> HudiDriver:
    return DRIVER(spark, catalogs["cdc"])


def _cow(driver: HudiDriver) -> Table:
    settings = {"hoodie.clean.fileversions.retained": "5"}
    table = driver.create("story_cow", variant="cow", partitioned=True, properties=settings)
    driver.append(table, [(1, "a", "2026-01-01"), (2, "b", "2026-01-01"), (3, "c", "2026-01-02")])
    driver.append(table, [(4, "d", "2026-01-01")])
    driver.delete(table, "id = 1")
    driver.compact(table)
    driver.overwrite(table, [(5, "e", "2026-02-01"), (6, "f", "2026-02-02")])
    driver.delete_all(table)
    driver.append(table, [(7, "g", "2026-03-01")])
    driver.add_column(table, "more", "STRUCT<a: INT, b: STRUCT<c: STRING>>")
    return table


def _mor(driver: HudiDriver) -> Table:
    table = driver.create("story_mor", variant="mor", partitioned=True)
    driver.append(table, [(1, "a", "2026-01-01"), (2, "b", "2026-01-01")])
    driver.append(table, [(3, "c", "2026-01-02")])
    driver.delete(table, "id = 1")
    driver.update(table, "name = 'z'", "id = 3")
    driver.fold_logs(table)
    driver.delete(table, "id = 2")
    driver.compact(table)
    driver.update(table, "name = 'y'", "id = 3")
    return table


KINDS = {
    "cow": [
        (TransactionKind.APPEND, True),
        (TransactionKind.APPEND, False),
        (TransactionKind.UPDATE, False),
        (TransactionKind.REWRITE, True),
        (TransactionKind.SNAPSHOT, True),
        (TransactionKind.DELETE, True),
        (TransactionKind.APPEND, False),
        (TransactionKind.METADATA, False),
    ],
    "mor": [
        (TransactionKind.APPEND, True),
        (TransactionKind.APPEND, False),
        (TransactionKind.DELETE, False),
        (TransactionKind.UPDATE, False),
        (TransactionKind.REWRITE, True),
        (TransactionKind.DELETE, False),
        (TransactionKind.REWRITE, True),
        (TransactionKind.UPDATE, False),
    ],
}


@pytest.fixture(scope="module")
def cow_story(driver: HudiDriver) -> Story:
    return _story(driver, _cow(driver))


@pytest.fixture(scope="module")
def mor_story(driver: HudiDriver) -> Story:
    return _story(driver, _mor(driver))


@pytest.fixture(scope="module", params=deep_after_first("cow", "mor"))
def story(request: pytest.FixtureRequest, spark: SparkSession) -> Story:
    told: Story = request.getfixturevalue(f"{request.param}_story")
    return told


def _story(driver: HudiDriver, table: Table) -> Story:
    savepoint = driver.native_ids(table)[1]
    driver.create_tag(table, "quarter", savepoint)
    shown = driver._call("show_commits", table, limit=1000)
    commits = sorted((r["state_transition_time"], r["commit_time"]) for r in shown)
    return Story(table, savepoint, read(driver, table), fs_view(driver, table), on_disk(table), commits)


def found(driver: HudiDriver, table: Table) -> TableHandle:
    matching = [f for f in FORMAT.discover(driver.catalog) if isinstance(f, TableHandle) and f.id == table.id]
    assert len(matching) == 1
    return matching[0]


def read(driver: HudiDriver, table: Table, depth: Depth = Depth.FILES) -> Reading:
    return FORMAT.read(found(driver, table), driver.catalog, depth, driver.spark)


def fs_view(driver: HudiDriver, table: Table) -> set[str]:
    """Base and log files, replaced file groups included, by Hudi's own procedure."""
    paths: set[str] = set()
    for row in driver._call("show_fsview_all", table, limit=100_000):
        paths |= {row["data_file"]} if row["data_file"] else set()
        paths |= set(re.findall(r"pathStr=(.*?), fileSize=", row["delta_files"]))
    return {real(path) for path in paths}


def real(path: str) -> str:
    """SQL reaches the tables by links."""
    return normalise(os.path.realpath(path.removeprefix("file:")))


def on_disk(table: Table) -> set[str]:
    """Every file under the table but Hadoop's checksums of a file that is there."""
    files = [p for p in Path(table.location).rglob("*") if p.is_file()]
    sidecars = {p.with_name(f".{p.name}.crc") for p in files}
    return {normalise(str(p)) for p in files if p not in sidecars}


def row_files(reading: Reading) -> dict[str, FileRef]:
    return {f.path: f for f in reading.files if f.role in ROW_FILES}


# The dangerous lines first.


def test_savepointed_files_stay_referenced_after_a_clean_and_are_gone_after_its_end(driver: HudiDriver) -> None:
    table = driver.create("savepointed")
    driver.append(table, [(1, "a", "x")])
    driver.append(table, [(2, "b", "x")])
    first, second = driver.native_ids(table)
    driver.create_tag(table, "audit", second)
    driver.overwrite(table, [(3, "c", "x")])
    driver.append(table, [(4, "d", "x")])
    driver.expire(table)
    reading = read(driver, table)
    assert [(r.name, r.head) for r in reading.refs if r.kind is RefKind.TAG] == [(second, second)]
    assert reading.floors["savepoints"] == second
    kept = {f.first_transaction: f.live for f in row_files(reading).values()}
    assert (kept[first], kept[second]) == (False, False)
    assert {f.path for f in reading.files} == on_disk(table)
    driver.drop_tag(table, "audit")
    driver.append(table, [(5, "e", "x")])
    driver.expire(table)
    reading = read(driver, table)
    assert [r for r in reading.refs if r.kind is RefKind.TAG] == []
    assert first not in {f.first_transaction for f in row_files(reading).values()}
    assert {f.path for f in reading.files} == on_disk(table)


def test_references_are_hudis_file_system_view_with_replaced_groups(story: Story) -> None:
    referenced = {f.path for f in story.reading.files if f.role in (Role.DATA, Role.LOG)}
    assert referenced == story.view
    replaced = [f for f in row_files(story.reading).values() if not f.live]
    assert replaced


def test_everything_under_the_table_is_referenced_before_a_clean(story: Story) -> None:
    paths = [f.path for f in story.reading.files]
    assert len(paths) == len(set(paths))
    assert set(paths) == story.disk


@pytest.mark.deep
def test_a_log_file_after_a_scheduled_compaction_is_live_and_survives_it(driver: HudiDriver) -> None:
    table = driver.create("pending", variant="mor")
    driver.append(table, [(1, "a", "x"), (2, "b", "x")])
    driver.delete(table, "id = 1")
    driver.fold_logs(table, "schedule")
    driver.update(table, "name = 'late'", "id = 2")
    before = read(driver, table)
    late = [f for f in row_files(before).values() if f.first_transaction == before.transactions[-1].id]
    assert [f.live for f in row_files(before).values()] == [True, True, True]
    # Hudi's own listing leaves the late log file out while the compaction is pending.
    assert late[0].path not in fs_view(driver, table)
    assert any("compaction" in reason and "requested" in reason for reason in before.unknown)
    driver.fold_logs(table, "run")
    after = row_files(read(driver, table))
    assert [row.name for row in driver.rows(table)] == ["late"]
    assert after[late[0].path].live
    assert {path for path, f in after.items() if not f.live} == set(row_files(before)) - {late[0].path}
    assert set(after) == fs_view(driver, table)
    assert all("compaction" not in reason for reason in read(driver, table).unknown)


def test_the_base_path_is_always_locked(story: Story, driver: HudiDriver) -> None:
    """By what the format declares, which is no doubt: a reading without one says so."""
    locked = supports(FORMAT, Capability.SINGLE_FILES)
    assert not locked
    assert "cleaner" in locked.reason
    assert story.reading.unknown == ()
    history = read(driver, story.table, Depth.HISTORY)
    assert history.unknown == ("partitions and files were not read",)


def test_an_inflight_instant_makes_the_references_unknown(story: Story, driver: HudiDriver) -> None:
    with copy_of(driver, story.table) as table:
        head = story.reading.transactions[-1].id
        completed = [p for p in timeline(table).glob(f"{head}_*") if p.is_file()]
        assert len(completed) == 1
        completed[0].unlink()
        reading = read(driver, table)
        assert any(head in reason and "inflight" in reason for reason in reading.unknown)
        assert reading.transactions[-1].id != head
        assert head not in {f.first_transaction for f in row_files(reading).values()}


def test_a_file_of_no_commit_is_not_referenced_and_one_older_than_the_timeline_is(
    story: Story, driver: HudiDriver
) -> None:
    with copy_of(driver, story.table) as table:
        live = next(f for f in row_files(story.reading).values() if f.live and f.role is Role.DATA)
        there = Path(table.location) / live.path.removeprefix(story.reading.location + "/")
        group = there.name.partition("_")[0]
        failed = there.with_name(f"{group[:-1]}7_0-1-1_29990101000000000.parquet")
        ancient = there.with_name(f"{group[:-1]}8_0-1-1_20200101000000000.parquet")
        foreign = there.with_name("notes.txt")
        for path in (failed, ancient, foreign):
            shutil.copy(there, path)
        reading = read(driver, table)
        unreferenced = on_disk(table) - {f.path for f in reading.files}
        assert unreferenced == {normalise(str(failed)), normalise(str(foreign))}
        old = row_files(reading)[normalise(str(ancient))]
        assert (old.live, old.first_transaction) == (True, "20200101000000000")


# Kinds, views and times.


def test_kinds_and_views_follow_action_and_operation(story: Story) -> None:
    variant = story.table.id.table.removeprefix("story_")
    assert [(t.kind, t.starts_view) for t in story.reading.transactions] == KINDS[variant]


def test_native_ids_are_requested_times_in_order_of_completion_and_savepoints_are_no_transactions(story: Story) -> None:
    transactions = story.reading.transactions
    assert [t.id for t in transactions] == [id_ for _, id_ in story.commits]
    assert [t.parent_id for t in transactions] == [None, *(t.id for t in transactions[:-1])]
    assert [(r.name, r.kind, r.head, r.main) for r in story.reading.refs] == [
        ("main", RefKind.BRANCH, transactions[-1].id, True),
        (story.savepoint, RefKind.TAG, story.savepoint, False),
    ]


def test_transactions_carry_completion_times(story: Story) -> None:
    local = datetime.now(UTC).astimezone().tzinfo
    for transaction, (completed, _) in zip(story.reading.transactions, story.commits, strict=True):
        at = datetime.strptime(completed, "%Y%m%d%H%M%S%f").replace(tzinfo=local)
        assert transaction.committed_at == at
        assert transaction.committed_at.utcoffset() == timedelta(0)


@pytest.mark.deep
def test_a_timeline_in_utc_does_not_move_with_the_machines_zone(driver: HudiDriver) -> None:
    table = driver.create("zoned", properties={"hoodie.table.timeline.timezone": "UTC"})
    driver.append(table, [(1, "a", "x")])
    zones = driver.spark._jvm.java.util.TimeZone  # type: ignore[union-attr]
    at_home = read(driver, table).transactions[0].committed_at
    assert abs(at_home - datetime.now(UTC)) < timedelta(minutes=5)
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone("Asia/Tokyo"))
    try:
        assert read(driver, table).transactions[0].committed_at == at_home
    finally:
        zones.setDefault(before)


def test_each_version_holds_the_files_that_the_reader_opens_for_it(cow_story: Story, driver: HudiDriver) -> None:
    order = {t.id: i for i, t in enumerate(cow_story.reading.transactions)}
    for at in order:
        frame = driver.spark.read.format("hudi").option("as.of.instant", at).load(cow_story.table.location)
        opened = {normalise(unquote(row[0])) for row in frame.select(input_file_name()).distinct().collect()}
        held = {
            f.path
            for f in row_files(cow_story.reading).values()
            if order[f.first_transaction or ""] <= order[at]
            and all(order[r] > order[at] for r in f.removed_by)
            and f.rows
        }
        assert opened == held, at


def test_live_files_are_those_of_the_latest_slices(story: Story, driver: HudiDriver) -> None:
    partitions = {str(p.parent.relative_to(story.table.location)) for p in Path(story.table.location).glob("day=*/*")}
    rows = [
        r for p in partitions for r in driver._call("show_fsview_latest", story.table, limit=1000, partition_path=p)
    ]
    latest = {r["data_file"] for r in rows if r["data_file"]} | set(re.findall(r"pathStr=(.*?), fileSize=", str(rows)))
    assert {p for p, f in row_files(story.reading).items() if f.live} == {real(path) for path in latest}


def test_rows_files_and_bytes_balance_to_what_is_live(story: Story, driver: HudiDriver) -> None:
    live = [f for f in row_files(story.reading).values() if f.live]
    transactions = story.reading.transactions
    assert sum((t.files_added or 0) - (t.files_removed or 0) for t in transactions) == len(live)
    assert sum((t.bytes_added or 0) - (t.bytes_removed or 0) for t in transactions) == sum(f.bytes or 0 for f in live)
    for f in row_files(story.reading).values():
        assert f.bytes == Path(f.path.removeprefix("file://")).stat().st_size
    assert sum((t.rows_added or 0) - (t.rows_removed or 0) for t in transactions) == sum(f.rows or 0 for f in live)
    if story.table.id.table == "story_cow":
        assert sum(f.rows or 0 for f in live) == len(driver.rows(story.table))


def test_history_is_the_same_at_both_depths(story: Story, driver: HudiDriver) -> None:
    history = read(driver, story.table, Depth.HISTORY)
    expected = replace(story.reading, partitions=(), files=(), unknown=history.unknown, date_source=history.date_source)
    assert history == expected


def test_archived_commits_stay_transactions(driver: HudiDriver) -> None:
    table = driver.create("archived")
    for id_ in range(5):
        driver.append(table, [(id_, "a", "x")])
    driver.overwrite(table, [(9, "z", "x")])
    before = read(driver, table)
    driver.archive(table)
    assert len(list((timeline(table) / "history").glob("*.parquet"))) == 1
    assert len([p for p in timeline(table).iterdir() if re.match(r"\d+_\d+\.(replace)?commit$", p.name)]) < 6
    after = read(driver, table)
    assert after.transactions == before.transactions
    assert row_files(after) == row_files(before)
    assert [t.id for t in after.transactions] == driver.native_ids(table)
    assert {f.path for f in after.files} == on_disk(table)
    # Without the archive nothing says who wrote the older files: they count as committed all the same.
    shutil.rmtree(timeline(table) / "history")
    lost = read(driver, table)
    assert [t.id for t in lost.transactions] == [t.id for t in before.transactions[-len(lost.transactions) :]]
    assert {p: f.live for p, f in row_files(lost).items()} == {p: f.live for p, f in row_files(before).items()}


# Files, partitions, properties, schema.


def test_base_and_log_files_and_metadata_have_their_roles(story: Story) -> None:
    roles = {f.path.removeprefix(story.reading.location + "/"): f.role for f in story.reading.files}
    inside = {p: r for p, r in roles.items() if not p.startswith(".hoodie/")}
    assert {r for p, r in roles.items() if p not in inside} == {Role.METADATA}
    assert {r for p, r in inside.items() if p.endswith(".hoodie_partition_metadata")} == {Role.METADATA}
    assert {r for p, r in inside.items() if p.endswith(".parquet")} == {Role.DATA}
    logs = {r for p, r in inside.items() if ".log." in p}
    assert logs == (set() if story.table.id.table == "story_cow" else {Role.LOG})


def test_the_metadata_table_is_part_of_its_table(driver: HudiDriver) -> None:
    table = driver.create("indexed", partitioned=True, properties={"hoodie.metadata.enable": "true"})
    driver.append(table, [(1, "a", "2026-01-01")])
    driver.delete(table, "id = 1")
    reading = read(driver, table)
    roles = {f.path.removeprefix(f"{reading.location}/.hoodie/metadata/"): f.role for f in reading.files}
    assert {r for p, r in roles.items() if p.startswith("column_stats/")} == {Role.STATISTICS}
    assert {r for p, r in roles.items() if p.startswith("files/")} == {Role.METADATA}
    assert {f.path for f in reading.files} == on_disk(table)
    assert set(row_files(reading)) == fs_view(driver, table)


@pytest.mark.deep
def test_change_data_files_are_referenced(driver: HudiDriver) -> None:
    cdc = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": "data_before_after"}
    table = driver.create("changes", partitioned=True, properties=cdc)
    driver.append(table, [(1, "a", "2026-01-01"), (2, "b", "2026-01-01")])
    driver.update(table, "name = 'z'", "id = 1")
    reading = read(driver, table)
    changes = [f for f in reading.files if f.role is Role.CHANGE_DATA]
    assert [f.first_transaction for f in changes] == [reading.transactions[-1].id]
    assert {f.path for f in reading.files} == on_disk(table)


@pytest.mark.deep
def test_tables_of_the_layout_before_hudi_1_are_read_alike(driver: HudiDriver) -> None:
    table = driver.create("version6", variant="mor", table_version=6)
    assert not timeline(table).exists()
    driver.append(table, [(1, "a", "x"), (2, "b", "x")])
    driver.delete(table, "id = 1")
    driver.update(table, "name = 'z'", "id = 2")
    driver.fold_logs(table)
    driver.update(table, "name = 'y'", "id = 2")
    reading = read(driver, table)
    assert [t.kind for t in reading.transactions] == [
        TransactionKind.APPEND,
        TransactionKind.DELETE,
        TransactionKind.UPDATE,
        TransactionKind.REWRITE,
        TransactionKind.UPDATE,
    ]
    assert [t.id for t in reading.transactions] == driver.native_ids(table)
    assert set(row_files(reading)) == fs_view(driver, table)
    assert {f.path for f in reading.files} == on_disk(table)
    written = [f.first_transaction or "" for f in row_files(reading).values()]
    assert sorted(written) == sorted(t.id for t in reading.transactions)
    assert sum(f.live for f in row_files(reading).values()) == 2
    driver.archive(table)
    assert list((Path(table.location) / ".hoodie" / "archived").glob(".commits_.archive*"))
    with pytest.raises(UnreadableError, match="takes its folder for a pattern"):
        read(driver, table)
    plainly = replace(found(driver, table), location=driver.linked(table.location))
    archived = FORMAT.read(plainly, driver.catalog, Depth.FILES, driver.spark)
    assert [(t.id, t.kind) for t in archived.transactions] == [(t.id, t.kind) for t in reading.transactions]
    adders = {real(path): file.first_transaction for path, file in row_files(archived).items()}
    assert adders == {path: file.first_transaction for path, file in row_files(reading).items()}


def test_partitions_are_those_of_the_head_with_their_dates(cow_story: Story) -> None:
    appended = cow_story.reading.transactions[-2]
    (partition,) = cow_story.reading.partitions
    assert (partition.id, partition.rows, partition.files) == ("0/day=2026-03-01", 1, 1)
    assert partition.date == partition.first_day == partition.last_day == date(2026, 3, 1)
    assert (partition.last_transaction, partition.landed_at) == (appended.id, appended.committed_at)


@pytest.mark.deep
def test_rows_of_a_partition_with_log_files_are_not_known(mor_story: Story) -> None:
    by_id = {p.id: p for p in mor_story.reading.partitions}
    assert set(by_id) == {p for f in mor_story.reading.files if f.live and (p := f.partition)}
    changed = by_id["0/day=2026-01-02"]
    assert (changed.rows, changed.files) == (None, 2)
    assert changed.last_transaction == mor_story.reading.transactions[-1].id


@pytest.mark.deep
def test_null_odd_and_undated_partition_values_have_no_date(driver: HudiDriver) -> None:
    plain = {"hoodie.datasource.write.partitionpath.urlencode": "false"}
    table = driver.create("odd values", partitioned=True, properties=plain)
    days = ["2026-01", "20260105", None, "", "a b%2Fc", "ünï=c#d", "2026-13-01"]
    driver.append(table, [(i, "a", day) for i, day in enumerate(days)])
    reading = read(driver, table)
    assert {p.id: p.candidates[0].days or (None, None) for p in reading.partitions} == {
        "0/day=2026-01": (date(2026, 1, 1), date(2026, 1, 31)),
        "0/day=20260105": (date(2026, 1, 5), date(2026, 1, 5)),
        "0/day=%00": (None, None),
        "0/day=a b%252Fc": (None, None),
        "0/day=ünï%3Dc%23d": (None, None),
        "0/day=2026-13-01": (None, None),
    }
    assert {f.path for f in reading.files} == on_disk(table)
    assert {p.id: p.rows for p in reading.partitions}["0/day=%00"] == 2


@pytest.mark.deep
def test_partition_values_are_decoded_once_where_the_table_encodes_them(driver: HudiDriver) -> None:
    table = driver.create("encoded", partitioned=True)
    driver.append(table, [(1, "a", "50%2F/x y:ü")])
    reading = read(driver, table)
    assert reading.properties["hoodie.datasource.write.partitionpath.urlencode"] == "true"
    assert [p.id for p in reading.partitions] == ["0/day=50%252F%2Fx y%3Aü"]
    assert {f.path for f in reading.files} == on_disk(table)


@pytest.mark.deep
def test_properties_floors_and_dotted_columns_are_read(cow_story: Story) -> None:
    reading = cow_story.reading
    assert reading.floors == {"hoodie.clean.fileversions.retained": "5", "savepoints": cow_story.savepoint}
    assert reading.properties["hoodie.table.type"] == "COPY_ON_WRITE"
    assert [(c.name, c.type, c.position) for c in reading.columns] == [
        ("id", "bigint", 0),
        ("name", "string", 1),
        ("more", "struct<a:int,b:struct<c:string>>", 2),  # Hudi keeps partition columns last
        ("more.a", "int", 3),
        ("more.b", "struct<c:string>", 4),
        ("more.b.c", "string", 5),
        ("day", "string", 6),
    ]


@pytest.mark.deep
def test_a_table_without_a_commit_has_a_main_branch_without_a_head(driver: HudiDriver) -> None:
    table = driver.create("fresh", partitioned=True)
    reading = read(driver, table)
    assert [(r.name, r.head, r.main) for r in reading.refs] == [("main", None, True)]
    assert (reading.transactions, reading.partitions) == ((), ())
    assert [c.name for c in reading.columns] == ["id", "name", "day"]
    assert {f.path for f in reading.files} == on_disk(table)


def test_a_rollback_removes_its_transactions_and_their_files(driver: HudiDriver) -> None:
    table = driver.create("rolled", variant="mor")
    driver.append(table, [(1, "a", "x"), (2, "b", "x")])
    first = driver.native_ids(table)[0]
    driver.update(table, "name = 'z'", "id = 1")
    driver.append(table, [(3, "c", "x")])
    driver.rollback(table, first)
    assert [row.name for row in driver.rows(table)] == ["a", "b"]
    reading = read(driver, table)
    assert [t.id for t in reading.transactions] == [first]
    assert [f.live for f in row_files(reading).values()] == [True]
    assert {f.path for f in reading.files} == on_disk(table)


def test_threads_read_alike(story: Story, driver: HudiDriver) -> None:
    with ThreadPoolExecutor(4) as pool:
        readings = list(pool.map(lambda _: read(driver, story.table), range(8)))
    assert all(reading == story.reading for reading in readings)


# Discovery.


def test_the_token_changes_with_everything_that_is_read_and_only_then(driver: HudiDriver) -> None:
    table = driver.create("tokens")
    seen = [found(driver, table).token]

    def changed(act: Callable[[], object]) -> None:
        act()
        seen.append(found(driver, table).token)
        assert seen[-1] != seen[-2]

    changed(lambda: driver.append(table, [(1, "a", "x")]))
    changed(lambda: driver.create_tag(table, "t"))
    changed(lambda: driver.drop_tag(table, "t"))
    changed(lambda: driver.set_property(table, "ebbtide.labels", "PII.tag"))
    assert read(driver, table).properties["ebbtide.labels"] == "PII.tag"
    changed(lambda: driver.overwrite(table, [(2, "b", "x")]))
    changed(lambda: driver.expire(table))
    changed(lambda: driver.add_column(table, "extra", "INT"))
    changed(lambda: (timeline(table) / "29990101000000000.commit.requested").touch())
    read(driver, table)
    driver.rows(table)
    assert found(driver, table).token == seen[-1]


@pytest.mark.deep
def test_odd_table_names_are_found_and_read(driver: HudiDriver) -> None:
    for name in ("sp ace", "do.t", "per%cent", "per%20cent", "ha#sh", "ünïcode", "q'uote", "co:lon"):
        table = driver.create(name)
        driver.append(table, [(1, "a", "x")])
        reading = read(driver, table)
        assert reading.id.table == name
        assert [t.id for t in reading.transactions] == driver.native_ids(table)
        assert {f.path for f in reading.files} == on_disk(table)


def test_discovery_passes_over_what_is_no_table_and_reports_what_should_be_one(
    story: Story, driver: HudiDriver, tmp_path: Path
) -> None:
    warehouse = tmp_path / "ware house"
    (warehouse / "db" / "delta" / "_delta_log").mkdir(parents=True)
    (warehouse / "db" / "notes.txt").write_text("foreign")
    (warehouse / "readme.md").write_text("foreign")
    (warehouse / "db" / "half" / ".hoodie").mkdir(parents=True)
    (warehouse / "db" / "odd").mkdir()
    (warehouse / "db" / "odd" / ".hoodie").write_text("a file")
    shutil.copytree(story.table.location, warehouse / "db" / "good")
    shutil.copytree(story.table.location, warehouse / "misplaced")
    answers = list(FORMAT.discover(replace(driver.catalog, warehouse=str(warehouse))))
    assert [str(a.id) for a in answers if isinstance(a, TableHandle)] == ["cdc.db.good"]
    assert {a.name for a in answers if isinstance(a, NotFound)} == {"cdc.db.half", "cdc.db.odd", "cdc.misplaced"}


def test_a_table_in_place_of_a_namespace_does_not_hide_the_tables_below(tmp_path: Path) -> None:
    for place in (".hoodie", "inner/.hoodie"):
        (tmp_path / "db" / place).mkdir(parents=True)
        (tmp_path / "db" / place / "hoodie.properties").write_text("hoodie.table.name=t")
    answers = list(FORMAT.discover(Catalog("cdc", "hudi", str(tmp_path))))
    assert [a.name for a in answers if isinstance(a, NotFound)] == ["cdc.db"]
    assert [str(a.id) for a in answers if isinstance(a, TableHandle)] == ["cdc.db.inner"]


def test_a_missing_warehouse_is_an_error_not_an_empty_one(driver: HudiDriver, tmp_path: Path) -> None:
    for missing in (tmp_path / "nowhere", tmp_path / "file"):
        (tmp_path / "file").write_text("")
        with pytest.raises(UnreadableError) as caught:
            list(FORMAT.discover(replace(driver.catalog, warehouse=str(missing))))
        assert (caught.value.subject, bool(caught.value.hint)) == ("cdc", True)


# Bad metadata.


def test_reading_without_a_session_is_refused(corruptible: Table, driver: HudiDriver) -> None:
    with pytest.raises(SetupError):
        FORMAT.read(found(driver, corruptible), driver.catalog, Depth.FILES, None)


def _cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - 20])


@pytest.mark.parametrize("checksum", deep_after_first(True, False), ids=["checksum", "no checksum"])
@pytest.mark.parametrize(
    ("pattern", "harm"),
    [
        ("timeline/*_*.*commit", lambda p: p.write_bytes(b"")),
        ("timeline/*_*.*commit", lambda p: p.write_bytes(b"garbage")),
        ("timeline/*_*.*commit", _cut),
        ("timeline/history/manifest_1", lambda p: p.write_bytes(b"")),
        ("timeline/history/manifest_1", _cut),
        ("timeline/history/manifest_1", Path.unlink),
        ("timeline/history/*.parquet", _cut),
        ("timeline/history/*.parquet", Path.unlink),
        ("hoodie.properties", lambda p: p.write_bytes(b"")),
    ],
)
def test_corrupt_or_missing_metadata_is_an_error_that_names_it(
    corruptible: Table, driver: HudiDriver, pattern: str, harm: Callable[[Path], object], checksum: bool
) -> None:
    with copy_of(driver, corruptible) as table:
        victim = min((Path(table.location) / ".hoodie").glob(pattern))
        if not checksum:
            victim.with_name(f".{victim.name}.crc").unlink(missing_ok=True)
        harm(victim)
        for depth in Depth:
            with pytest.raises(EbbtideError) as caught:
                read(driver, table, depth)
            assert isinstance(caught.value, UnreadableError)
            assert caught.value.subject == str(table.id)
            assert caught.value.hint
            named = victim.name if victim.parent.name != "history" else "archived timeline"
            assert named in caught.value.reason or victim.name in caught.value.reason


def test_live_files_that_are_gone_are_said_to_be(corruptible: Table, driver: HudiDriver) -> None:
    with copy_of(driver, corruptible) as table:
        victim = min(Path(table.location).glob("*.parquet"))
        victim.unlink()
        reading = read(driver, table)
        assert "1 live files are not in the storage" in reading.unknown
        assert row_files(reading)[normalise(str(victim))].live


@pytest.fixture(scope="module")
def corruptible(driver: HudiDriver) -> Table:
    table = driver.create("corruptible")
    for id_ in range(4):
        driver.append(table, [(id_, "a", "x")])
    driver.archive(table)
    return table


def timeline(table: Table) -> Path:
    return Path(table.location) / ".hoodie" / "timeline"


@contextmanager
def copy_of(driver: HudiDriver, table: Table) -> Iterator[Table]:
    """A copy of a table that a test may harm. Hudi's metadata holds no absolute path."""
    name = f"{table.id.table}_copy"
    location = f"{driver.catalog.warehouse}/db/{name}"
    shutil.copytree(table.location, location)
    try:
        yield Table(replace(table.id, table=name), location, "")
    finally:
        shutil.rmtree(location)
