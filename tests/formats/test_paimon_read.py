"""What is special to Paimon: each rule of formats.md, the dangerous ones first.

The oracle for references is the disk: a table that nobody touched by hand references everything under its folder, and
whatever a test leaves behind (an orphan, a dropped branch) is exactly what is not referenced.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ebbtide.errors import UnreadableError
from ebbtide.formats.base import Depth
from ebbtide.formats.paimon import FORMAT
from ebbtide.model.dataset import Catalog, NotFound, Reading, Role, TableHandle
from ebbtide.model.history import RefKind, TransactionKind, build_history
from ebbtide.model.paths import normalise
from ebbtide.spark.session import quote_text
from tests.conformance.driver import Table
from tests.conformance.drivers.paimon import PaimonDriver
from tests.tiers import deep_after_first

A, B, C = (1, "a", "2026-01-01"), (2, "b", "2026-01-01"), (3, "c", "2026-01-02")
VECTORS = {"deletion-vectors.enabled": "true"}


@pytest.fixture(scope="module")
def driver(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> PaimonDriver:
    return PaimonDriver(spark, catalogs["stream"])


def find(driver: PaimonDriver, table: Table) -> TableHandle:
    found = [each for each in FORMAT.discover(driver.catalog) if isinstance(each, TableHandle) and each.id == table.id]
    assert len(found) == 1
    return found[0]


def read(driver: PaimonDriver, table: Table, depth: Depth = Depth.FILES) -> Reading:
    return FORMAT.read(find(driver, table), driver.catalog, depth, driver.spark)


def on_disk(table: Table) -> set[str]:
    return {normalise(str(path)) for path in Path(table.location).rglob("*") if path.is_file()}


def referenced(reading: Reading) -> set[str]:
    paths = [file.path for file in reading.files]
    assert len(paths) == len(set(paths)), "one reference per file"
    return set(paths)


def kinds(reading: Reading) -> dict[str, str]:
    return {t.id: str(t.kind) for t in reading.transactions}


def heads(reading: Reading, kind: RefKind) -> dict[str, str | None]:
    return {ref.name: ref.head for ref in reading.refs if ref.kind is kind}


def rows_of_version(reading: Reading, version: str) -> int:
    """Rows of the data files that a version holds, from who added and who removed each one."""
    by_id = {t.id: t for t in reading.transactions}
    line: list[str] = []
    at: str | None = version
    while at in by_id:
        line.append(at)
        at = by_id[at].parent_id
    data = [file for file in reading.files if file.role is Role.DATA]
    held = [f for f in data if f.first_transaction in line and not set(f.removed_by) & set(line)]
    position = list(by_id).index(version)
    assert held == [file for file in data if (file.versions or 0) >> position & 1]
    return sum(file.rows or 0 for file in held)


# A branch hangs on its tag


def test_ids_that_collide_between_branches_are_told_apart(driver: PaimonDriver) -> None:
    table = driver.create("pr_branches")
    driver.append(table, [A])
    driver.append(table, [B])
    driver.create_branch(table, "xyz")
    driver.append(table, [C])
    driver.append(table, [(9, "x", "x")], branch="xyz")
    reading = read(driver, table)
    parents = {t.id: t.parent_id for t in reading.transactions}
    assert parents == {"main/1": None, "main/2": "main/1", "main/3": "main/2", "xyz/3": "main/2"}
    assert heads(reading, RefKind.BRANCH) == {"main": "main/3", "xyz": "xyz/3"}
    lines = {view.ref.name: view.line for view in build_history(reading.transactions, reading.refs).views}
    assert lines["xyz"] == ("main/1", "main/2", "xyz/3")
    assert referenced(reading) == on_disk(table)
    for version in parents:
        assert rows_of_version(reading, version) == len(driver.rows(table, version=version)), version


def test_files_that_only_a_branch_reads_stay_referenced_when_its_tag_is_deleted(driver: PaimonDriver) -> None:
    table = driver.create("pr_hanging")
    driver.append(table, [A])
    driver.create_branch(table, "b")
    driver.append(table, [B], branch="b")
    driver.overwrite(table, [C])
    driver.drop_tag(table, "from-b")
    reading = read(driver, table)
    assert heads(reading, RefKind.BRANCH) == {"main": "main/2", "b": "b/2"}
    assert referenced(reading) == on_disk(table)
    shared = next(file for file in reading.files if file.role is Role.DATA and file.first_transaction == "main/1")
    assert shared.live
    assert shared.removed_by == ("main/2",)
    driver.expire(table)  # takes the files that the branch reads
    with pytest.raises(
        UnreadableError, match=r"stream\.db\.pr_hanging: manifest/manifest-list-.* cannot be read"
    ) as it:
        read(driver, table)
    assert it.value.hint is not None
    assert "branch" in it.value.hint


@pytest.mark.deep
def test_a_branch_keeps_the_name_of_its_first_transaction_when_main_has_expired_it(driver: PaimonDriver) -> None:
    table = driver.create("pr_fork")
    driver.append(table, [A])
    driver.append(table, [B])
    driver.create_branch(table, "b")
    driver.append(table, [C], branch="b")
    driver.append(table, [C])
    before = {t.id: t.parent_id for t in read(driver, table).transactions}
    driver.expire(table)
    after = {t.id: t.parent_id for t in read(driver, table).transactions}
    assert after == {id_: before[id_] for id_ in ("main/2", "main/3", "b/3")}


def test_a_branch_made_without_a_tag_starts_empty_and_counts_for_itself(driver: PaimonDriver) -> None:
    table = driver.create("pr_empty_branch")
    driver.append(table, [A])
    driver._call("create_branch", table, branch="'b'")
    assert heads(read(driver, table), RefKind.BRANCH) == {"main": "main/1", "b": None}
    driver.append(table, [B], branch="b")
    reading = read(driver, table)
    assert {t.id: t.parent_id for t in reading.transactions} == {"main/1": None, "b/1": None}
    assert referenced(reading) == on_disk(table)


def test_what_a_dropped_branch_leaves_behind_is_not_referenced(driver: PaimonDriver) -> None:
    table = driver.create("pr_dropped")
    driver.append(table, [A])
    before = on_disk(table)
    driver.create_branch(table, "b")
    driver.append(table, [B], branch="b")
    written = on_disk(table) - before
    driver.drop_branch(table, "b")
    orphan = Path(table.location, "bucket-0", "data-orphan-0.parquet")
    orphan.write_bytes(b"left by a writer that died")
    left = {path for path in written if "/branch/" not in path and "/tag/" not in path}
    assert left, "Paimon leaves the files of a branch that it drops"
    assert on_disk(table) - referenced(read(driver, table)) == left | {normalise(str(orphan))}


@pytest.mark.deep
def test_after_fast_forward_main_owns_the_branchs_transactions(driver: PaimonDriver) -> None:
    table = driver.create("pr_forward")
    driver.append(table, [A])
    driver.create_branch(table, "b")
    driver.append(table, [B], branch="b")
    driver._call("fast_forward", table, branch="'b'")
    reading = read(driver, table)
    assert heads(reading, RefKind.BRANCH) == {"main": "main/2", "b": "main/2"}
    assert {t.id for t in reading.transactions} == {"main/1", "main/2"}


# Tags, changelogs, consumers


@pytest.mark.parametrize("variant", deep_after_first(*PaimonDriver.variants))
def test_a_tag_of_an_expired_snapshot_keeps_its_transaction_and_its_files(driver: PaimonDriver, variant: str) -> None:
    table = driver.create(f"pr_tag_{variant}", variant=variant)
    driver.append(table, [A])
    driver.append(table, [B])
    driver.create_tag(table, "keep", "main/1")
    driver.overwrite(table, [C])
    driver.append(table, [(4, "d", "x")])
    driver.expire(table)
    reading = read(driver, table)
    assert kinds(reading) == {"main/1": "APPEND", "main/4": "APPEND"}
    assert heads(reading, RefKind.TAG) == {"keep": "main/1"}
    assert referenced(reading) == on_disk(table)
    pinned = [f for f in reading.files if f.role is Role.DATA and f.first_transaction == "main/1"]
    assert [file.live for file in pinned] == [False]
    assert [row.id for row in driver.rows(table, version="main/1")] == [1]


@pytest.mark.parametrize("producer", deep_after_first("input", "none"))
def test_changelogs_that_outlive_their_snapshots_are_references(driver: PaimonDriver, producer: str) -> None:
    table = driver.create(f"pr_log_{producer}", variant="key", properties={"changelog-producer": producer})
    for number in range(4):
        driver.append(table, [(number % 2, f"n{number}", "x")])
    driver.create_tag(table, "keep", "main/2")
    driver.compact(table)
    driver.append(table, [(0, "last", "x")])
    _expire_but_keep_changelogs(driver, table)
    assert list(Path(table.location, "changelog").glob("changelog-1"))
    reading = read(driver, table)
    assert set(kinds(reading)) == {"main/2", "main/6", *(f"main/changelog/{number}" for number in range(1, 6))}
    assert referenced(reading) == on_disk(table)
    roles = {file.role for file in reading.files}
    assert (Role.CHANGELOG in roles) == (producer == "input")


def _expire_but_keep_changelogs(driver: PaimonDriver, table: Table) -> None:
    jvm = driver.spark._jvm
    assert jvm is not None
    path = jvm.org.apache.paimon.fs.Path(table.location)
    files = jvm.org.apache.paimon.fs.local.LocalFileIO.create()
    config = jvm.org.apache.paimon.options.ExpireConfig.builder().snapshotRetainMax(1).snapshotRetainMin(1)
    config = config.snapshotTimeRetain(jvm.java.time.Duration.ofMillis(0)).changelogRetainMax(100)
    config = config.changelogRetainMin(100).changelogTimeRetain(jvm.java.time.Duration.ofDays(1)).build()
    opened = jvm.org.apache.paimon.table.FileStoreTableFactory.create(files, path)
    assert opened.newExpireSnapshots().config(config).expire() == 5


def test_settings_tags_and_consumers_that_limit_cleanup_are_floors(driver: PaimonDriver) -> None:
    set_by_hand = {"snapshot.num-retained.min": "3", "snapshot.time-retained": "2 d", "consumer.expiration-time": "9 d"}
    table = driver.create("pr_floors", properties=set_by_hand)
    driver.append(table, [A])
    assert read(driver, table).floors == set_by_hand
    driver._call("create_tag", table, tag="'t'", time_retained="'30 d'")
    driver._call("reset_consumer", table, consumerId="'etl job'", nextSnapshotId="1")
    own = {"tag:t.time-retained": "2592000 s", "consumer:etl job": "main/1"}
    assert read(driver, table).floors == {**set_by_hand, **own}
    assert referenced(read(driver, table)) == on_disk(table)


@pytest.mark.deep
def test_a_branchs_own_settings_are_floors_and_those_that_it_was_made_with_are_not_told_twice(
    driver: PaimonDriver,
) -> None:
    table = driver.create("pr_branch_floors", properties={"snapshot.num-retained.min": "3"})
    driver.append(table, [A])
    driver.create_branch(table, "b")
    assert read(driver, table).floors == {"snapshot.num-retained.min": "3"}
    branch = f"`{table.id.table}$branch_b`"
    name = table.sql.replace(f"`{table.id.table}`", branch)
    driver.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('snapshot.time-retained' = '9 d')")
    own = {"branch:b.snapshot.time-retained": "9 d"}
    assert read(driver, table).floors == {"snapshot.num-retained.min": "3", **own}


# Kinds


@pytest.mark.deep
def test_a_delete_by_deletion_vectors_is_a_delete_though_paimon_calls_it_a_compaction(driver: PaimonDriver) -> None:
    table = driver.create("pr_vectors", properties=VECTORS, partitioned=True)
    driver.append(table, [A, B])
    driver.append(table, [C])
    driver.delete(table, "id = 1")
    reading = read(driver, table)
    assert kinds(reading) == {"main/1": "APPEND", "main/2": "APPEND", "main/3": "DELETE"}
    assert [t.operation for t in reading.transactions] == ["APPEND", "APPEND", "COMPACT"]
    vectors = [file for file in reading.files if file.role is Role.DELETION_VECTOR]
    assert [(file.first_transaction, file.live) for file in vectors] == [("main/3", True)]
    assert {p.id: p.last_transaction for p in reading.partitions} == {
        "0/day=2026-01-01": "main/3",
        "0/day=2026-01-02": "main/2",
    }
    driver.expire(table)
    assert kinds(read(driver, table)) == {"main/3": "DELETE"}, "also when its parent is gone"
    driver.append(table, [(4, "d", "2026-01-01")])
    driver.compact(table)
    reading = read(driver, table)
    assert kinds(reading) == {"main/3": "DELETE", "main/4": "APPEND", "main/5": "REWRITE"}
    assert referenced(reading) == on_disk(table)
    assert next(f for f in reading.files if f.role is Role.DELETION_VECTOR).removed_by == ("main/5",)


@pytest.mark.deep
def test_kinds_come_from_files_and_not_from_what_paimon_calls_a_commit(driver: PaimonDriver) -> None:
    table = driver.create("pr_kinds")
    driver.append(table, [A, B])
    driver.append(table, [C])
    driver.delete(table, "id = 1")  # rewrites a file: +1 -1, called APPEND
    driver.compact(table)
    driver.spark.sql(f"ANALYZE TABLE {table.sql} COMPUTE STATISTICS")
    driver.overwrite(table, [A])
    driver.delete_all(table)
    driver.append(table, [B])
    reading = read(driver, table)
    assert list(kinds(reading).values()) == [
        *("APPEND", "APPEND", "UPDATE", "REWRITE", "METADATA", "SNAPSHOT", "DELETE", "APPEND")
    ]
    assert reading.transactions[2].operation == "APPEND"
    starts = [t.id for t in reading.transactions if t.starts_view]
    assert starts == ["main/4", "main/6", "main/7"], "where files went and none stayed"
    statistics = [file for file in reading.files if file.role is Role.STATISTICS]
    assert [file.first_transaction for file in statistics] == ["main/5"]
    assert referenced(reading) == on_disk(table)
    for version in kinds(reading):
        assert rows_of_version(reading, version) == len(driver.rows(table, version=version)), version
    history = read(driver, table, Depth.HISTORY)
    assert history.transactions == reading.transactions
    assert history.unknown == ("partitions and files were not read",)
    assert history.files == ()


@pytest.mark.deep
def test_a_file_that_deletes_keys_is_no_append_and_a_level_change_is_nothing(driver: PaimonDriver) -> None:
    table = driver.create("pr_key", variant="key", properties={**VECTORS, "write-only": "false"})
    driver.append(table, [A, B])  # written at level 0, then moved up by a compaction of its own
    driver.append(table, [(2, "again", "x")])
    driver.delete(table, "id = 1")
    reading = read(driver, table)
    assert list(kinds(reading).values()) == ["APPEND", "METADATA", "APPEND", "REWRITE", "UPDATE", "REWRITE"]
    assert [t.rows_added for t in reading.transactions] == [2, 0, 1, 0, 0, 1], "a deletion brings no row"
    assert referenced(reading) == on_disk(table)


@pytest.mark.deep
def test_indexes_beside_data_files_and_of_dynamic_buckets_are_references(driver: PaimonDriver) -> None:
    bloom = {"file-index.bloom-filter.columns": "id", "file-index.in-manifest-threshold": "1 B"}
    beside = driver.create("pr_bloom", properties=bloom)
    dynamic = driver.create("pr_dynamic", variant="key", properties={"bucket": "-1"})
    for table in (beside, dynamic):
        driver.append(table, [A])
        driver.append(table, [B])
        reading = read(driver, table)
        assert [f.live for f in reading.files if f.role is Role.INDEX].count(True) >= 1
        assert referenced(reading) == on_disk(table)


@pytest.mark.deep
def test_an_index_that_a_later_commit_gives_to_a_file_is_a_reference(driver: PaimonDriver) -> None:
    """What Flink's `rewrite_file_index` commits: the same file once more, with an index beside it."""
    table = driver.create("pr_indexed")
    driver.append(table, [A])
    jvm: Any = driver.spark._jvm
    empty = jvm.java.util.ArrayList
    files = jvm.org.apache.paimon.fs.local.LocalFileIO.create()
    opened = jvm.org.apache.paimon.table.FileStoreTableFactory.create(
        files, jvm.org.apache.paimon.fs.Path(table.location)
    )
    entry = opened.store().newScan().plan().files().get(0)
    name = f"{entry.file().fileName()}.index"
    (data,) = (Path(path.removeprefix("file:")) for path in on_disk(table) if path.endswith(entry.file().fileName()))
    data.with_name(name).write_bytes(b"an index")
    before, after, beside = empty(), empty(), empty()
    beside.add(name)
    before.add(entry.file())
    after.add(entry.file().copy(beside))
    message = jvm.org.apache.paimon.table.sink.CommitMessageImpl(
        entry.partition(),
        entry.bucket(),
        jvm.org.apache.paimon.io.DataIncrement.emptyIncrement(),
        jvm.org.apache.paimon.io.CompactIncrement(before, after, empty()),
    )
    messages = empty()
    messages.add(message)
    opened.newCommit("indexer").commit(2**63 - 2, messages)
    assert referenced(read(driver, table)) == on_disk(table)


# Partitions, names, schema


def test_null_empty_and_blank_partition_values_are_three_partitions(driver: PaimonDriver) -> None:
    table = driver.create("pr_partitions", partitioned=True)
    odd = "a b%c/d.é=#"
    driver.append(table, [A, (2, "b", None), (3, "c", ""), (4, "d", " "), (5, "e", odd), (6, "f", "202601")])
    reading = read(driver, table)
    days = {p.id: p.candidates[0].days for p in reading.partitions}
    assert {id_: found and found[0] for id_, found in days.items()} == {
        "0/day=2026-01-01": date(2026, 1, 1),
        "0/day=%00": None,
        "0/day=": None,
        "0/day= ": None,
        "0/day=a b%25c%2Fd.é%3D%23": None,
        "0/day=202601": None,
    }
    assert all(p.rows == 1 and p.last_transaction == "main/1" and p.landed_at for p in reading.partitions)
    assert {f.partition for f in reading.files if f.role is Role.DATA} == {p.id for p in reading.partitions}
    assert referenced(reading) == on_disk(table)


def test_a_date_column_gives_its_day_though_the_folder_shows_a_number(driver: PaimonDriver) -> None:
    table = driver.create("pr_dates", partitioned=True, columns="id BIGINT, name STRING, day DATE")
    driver.append(table, [(1, "a", date(2026, 2, 28))])
    (partition,) = read(driver, table).partitions
    assert (partition.id, partition.first_day) == ("0/day=2026-02-28", date(2026, 2, 28))
    assert referenced(read(driver, table)) == on_disk(table)


ODD_NAMES = ("with space", "dot.ted", "per%cent", "per%20cent", "ünï", "a#b?c+d", "Upper")


# All of them in one name; the deep tier tells which one it was.
@pytest.mark.parametrize("name", deep_after_first(" ".join(ODD_NAMES), *ODD_NAMES))
def test_odd_names_are_read_as_they_are_on_disk(driver: PaimonDriver, name: str) -> None:
    table = driver.create(f"pr_{name}")
    driver.append(table, [A])
    reading = read(driver, table)
    assert reading.id.table == f"pr_{name}"
    assert referenced(reading) == on_disk(table)


@pytest.mark.deep
def test_struct_fields_follow_their_parent(driver: PaimonDriver) -> None:
    table = driver.create("pr_struct", columns="id BIGINT NOT NULL, s STRUCT<x: INT, y: STRUCT<z: STRING>>, t STRING")
    assert [(c.name, c.position) for c in read(driver, table).columns] == [
        *(("id", 0), ("s", 1), ("s.x", 2), ("s.y", 3), ("s.y.z", 4), ("t", 5))
    ]
    assert read(driver, table).columns[0].type == "BIGINT"


# Discovery


def test_the_token_changes_with_everything_that_a_reading_says(driver: PaimonDriver) -> None:
    table = driver.create("pr_token")
    steps: list[Callable[[], object]] = [
        lambda: driver.append(table, [A]),
        lambda: driver.set_property(table, "ebbtide.labels", "PII.tag"),
        lambda: driver.create_tag(table, "t"),
        lambda: driver.create_branch(table, "b"),
        lambda: driver.append(table, [B], branch="b"),
        lambda: driver._call("reset_consumer", table, consumerId="'c'", nextSnapshotId="1"),
        lambda: driver.drop_tag(table, "t"),
        lambda: driver.append(table, [C]),
        lambda: driver.rollback(table, "main/1"),
    ]
    tokens = [find(driver, table).token]
    for step in steps:
        step()
        tokens.append(find(driver, table).token)
        assert find(driver, table).token == tokens[-1]
        read(driver, table)
    assert len(set(tokens)) == len(tokens)
    assert find(driver, table).token == tokens[-1], "reading changes nothing"


def test_foreign_folders_are_passed_over_and_a_table_without_schema_is_reported(
    driver: PaimonDriver, tmp_path: Path
) -> None:
    good = driver.create("pr_good")
    driver.append(good, [A])
    warehouse = tmp_path / "w"
    database = warehouse / "db.db"
    shutil.copytree(good.location, database / "good")
    shutil.copytree(good.location, database / "no.schema")
    shutil.rmtree(database / "no.schema" / "schema")
    (database / "delta" / "_delta_log").mkdir(parents=True)
    (database / "iceberg" / "metadata").mkdir(parents=True)
    (database / "iceberg" / "metadata" / "v1.metadata.json").write_text("{}")
    (database / "notes.txt").write_text("foreign")
    (warehouse / "not_a_database" / "t" / "schema").mkdir(parents=True)
    catalog = Catalog("other", "paimon", str(warehouse))
    answers = list(FORMAT.discover(catalog))
    assert [str(a.id) for a in answers if isinstance(a, TableHandle)] == ["other.db.good"]
    assert [a.name for a in answers if isinstance(a, NotFound)] == ["other.db.no%2Eschema"]
    (found,) = (a for a in answers if isinstance(a, TableHandle))
    assert len(FORMAT.read(found, catalog, Depth.FILES, driver.spark).transactions) == 1


def test_a_missing_warehouse_and_another_metastore_are_errors_and_not_empty(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="no warehouse at"):
        list(FORMAT.discover(Catalog("c", "paimon", str(tmp_path / "gone"))))
    with pytest.raises(UnreadableError, match="'hive'"):
        list(FORMAT.discover(Catalog("c", "paimon", str(tmp_path), options={"metastore": "hive"})))


# Bad metadata


@pytest.fixture(scope="module")
def whole(driver: PaimonDriver) -> Table:
    """A table with one of everything, to be copied and broken."""
    table = driver.create("pr_whole", properties=VECTORS)
    driver.append(table, [A, B])
    driver.create_branch(table, "b")
    driver.delete(table, "id = 1")
    driver._call("reset_consumer", table, consumerId="'c'", nextSnapshotId="1")
    return table


@pytest.mark.parametrize(
    ("victim", "content"),
    [
        ("snapshot/snapshot-2", "not json"),
        ("snapshot/snapshot-1", "{}"),
        ("snapshot/snapshot-1", ""),
        ("tag/tag-from-b", '{"version": 3'),
        ("branch/branch-b/snapshot/snapshot-1", "garbage"),
        ("branch/branch-b/schema/schema-0", None),
        ("branch/branch-b/schema/schema-0", "["),
        ("consumer/consumer-c", "garbage"),
        ("schema/schema-0", "garbage"),
        ("manifest/manifest-list-*-1", None),
        ("manifest/manifest-list-*-0", "Obj"),
        ("manifest/manifest-[!l]*", None),
        ("manifest/manifest-[!l]*", "truncated"),
        ("manifest/manifest-list-*-1", "truncated"),
        ("manifest/index-manifest-*", None),
        ("manifest/index-manifest-*", "truncated"),
    ],
)
def test_corrupt_or_missing_metadata_is_one_clear_error_that_names_the_file(
    driver: PaimonDriver, whole: Table, tmp_path: Path, victim: str, content: str | None
) -> None:
    copy = tmp_path / "db.db" / "t"
    shutil.copytree(whole.location, copy)
    catalog = Catalog("broken", "paimon", str(tmp_path))
    files = sorted(copy.glob(victim))
    assert files
    for path in files:
        if content is None:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-20] if content == "truncated" else content.encode())
    (found,) = FORMAT.discover(catalog)
    assert isinstance(found, TableHandle)
    with pytest.raises(UnreadableError) as error:
        FORMAT.read(found, catalog, Depth.FILES, driver.spark)
    assert error.value.subject == "broken.db.t"
    assert error.value.hint
    named = [path.name for path in files] + ["branch b has no schema", "the schema of branch"]
    assert any(name in error.value.reason for name in named), error.value.reason
    assert "\n" not in error.value.message
    assert "\tat " not in error.value.message


def test_a_hole_in_the_line_locks_the_table_and_hides_nothing(driver: PaimonDriver, tmp_path: Path) -> None:
    table = driver.create("pr_hole")
    for number in range(4):
        driver.append(table, [(number, "n", "x")])
    copy = tmp_path / "db.db" / "t"
    shutil.copytree(table.location, copy)
    (copy / "snapshot" / "snapshot-3").unlink()
    catalog = Catalog("hole", "paimon", str(tmp_path))
    (found,) = FORMAT.discover(catalog)
    assert isinstance(found, TableHandle)
    reading = FORMAT.read(found, catalog, Depth.FILES, driver.spark)
    assert reading.unknown == ("branch main: snapshots between 2 and 4 are missing",)
    assert set(kinds(reading)) == {"main/1", "main/2", "main/4"}
    live = [file for file in reading.files if file.role is Role.DATA and file.live]
    assert len(live) == 4


def test_what_a_newer_paimon_wrote_is_not_fully_known(driver: PaimonDriver, whole: Table, tmp_path: Path) -> None:
    copy = tmp_path / "db.db" / "t"
    shutil.copytree(whole.location, copy)
    path = copy / "snapshot" / "snapshot-2"
    path.write_text(json.dumps({**json.loads(path.read_text()), "nextRowId": 7}))
    catalog = Catalog("newer", "paimon", str(tmp_path))
    (found,) = FORMAT.discover(catalog)
    assert isinstance(found, TableHandle)
    reading = FORMAT.read(found, catalog, Depth.FILES, driver.spark)
    assert reading.unknown == ("snapshot/snapshot-2 was written by a newer Paimon: nextRowId",)


# Many at once


@pytest.mark.deep
def test_several_threads_read_several_tables_at_once(driver: PaimonDriver, whole: Table, spark: SparkSession) -> None:
    many = driver.create("pr_many", partitioned=True)
    spark.sql(f"INSERT INTO {many.sql} SELECT id, 'n', CAST(id % 40 AS STRING) FROM range(80)")
    found = [find(driver, table) for table in (whole, many)]
    with ThreadPoolExecutor(6) as pool:
        readings = list(pool.map(lambda one: FORMAT.read(one, driver.catalog, Depth.FILES, spark), found * 6))
    for position, table in enumerate((whole, many)):
        same = readings[position::2]
        assert all(reading == same[0] for reading in same)
        assert referenced(same[0]) == on_disk(table)


@pytest.mark.deep
def test_a_branch_is_quoted_like_any_other_name(driver: PaimonDriver) -> None:
    table = driver.create("pr_names")
    driver.append(table, [A])
    driver._call("create_tag", table, tag=quote_text("it's v1.0"))
    assert heads(read(driver, table), RefKind.TAG) == {"it's v1.0": "main/1"}
    assert TransactionKind.APPEND in {t.kind for t in read(driver, table).transactions}
