"""Removing from Paimon tables: each test is named after what must hold (formats.md, spec §7, the original's promises).

What expiry should take is known from a twin: the same folder elsewhere, cleaned by Paimon alone.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from ebbtide.errors import ConflictError
from ebbtide.formats.base import Depth
from ebbtide.formats.paimon import FORMAT, java
from ebbtide.model.dataset import Catalog, Reading, Role, TableHandle
from ebbtide.model.history import RefKind
from ebbtide.model.paths import normalise
from ebbtide.model.removal import Committed, Drop, FileDeletion, Removal, RowDelete
from tests.conformance.driver import Table
from tests.conformance.drivers.paimon import PaimonDriver
from tests.tiers import deep_after_first

A, B, C, D = (1, "a", "2026-01-01"), (2, "b", "2026-01-01"), (3, "c", "2026-01-02"), (4, "d", "2026-01-03")
VECTORS = {"deletion-vectors.enabled": "true"}


@pytest.fixture(scope="module")
def driver(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> PaimonDriver:
    return PaimonDriver(spark, catalogs["stream"])


def find(driver: PaimonDriver, table: Table) -> TableHandle:
    (found,) = (
        each for each in FORMAT.discover(driver.catalog) if isinstance(each, TableHandle) and each.id == table.id
    )
    return found


def read(driver: PaimonDriver, table: Table) -> Reading:
    return FORMAT.read(find(driver, table), driver.catalog, Depth.FILES, driver.spark)


def on_disk(table: Table) -> set[str]:
    return {normalise(str(path)) for path in Path(table.location).rglob("*") if path.is_file()}


def versions(reading: Reading) -> list[str]:
    return [transaction.id for transaction in reading.transactions]


def live_in(driver: PaimonDriver, table: Table, partition: str) -> tuple[str, ...]:
    files = read(driver, table).files
    return tuple(f.path for f in files if f.role is Role.DATA and f.live and f.partition == partition)


def only_of(reading: Reading, ids: Collection[str]) -> set[str]:
    """Files that these versions reference and no other one does: what a plan names for them."""
    order = versions(reading)
    mask = sum(1 << order.index(id_) for id_ in ids)
    return {f.path for f in reading.files if f.versions and not f.versions & ~mask}


def commit(driver: PaimonDriver, table: Table, /, **asked: Any) -> Committed:
    return FORMAT.commit(Removal(found=find(driver, table), **asked), driver.catalog, driver.spark)


def free(
    driver: PaimonDriver, table: Table, paths: Iterable[str], /, *, batches: list[int] | None = None, **asked: Any
) -> FileDeletion:
    removal = Removal(found=find(driver, table), files=dict.fromkeys(paths, 0), **asked)
    count = [] if batches is None else batches
    return FORMAT.delete_files(removal, set(paths), driver.catalog, driver.spark, lambda: count.append(1))


def heads(driver: PaimonDriver, table: Table) -> dict[str, list[Row]]:
    """The rows of every branch and tag, read through Spark."""
    reading = read(driver, table)
    rows = {}
    for ref in reading.refs:
        if ref.kind is RefKind.BRANCH and ref.head is not None:
            rows[ref.name] = driver.rows(table, branch=None if ref.name == "main" else ref.name)
        elif ref.kind is RefKind.TAG and "/" not in ref.name:  # a branch's own copy of a tag cannot be read by name
            reader = driver.spark.read.format("paimon").option("scan.tag-name", ref.name)
            rows[f"tag {ref.name}"] = sorted(reader.load(table.location).collect(), key=str)
    return rows


def whole(driver: PaimonDriver, table: Table) -> bool:
    """Whether every file that the table references is there."""
    return {file.path for file in read(driver, table).files} <= on_disk(table)


def taken_by_paimon(driver: PaimonDriver, table: Table, tmp_path: Path, keep: int) -> set[str]:
    """What Paimon's own expiry removes when it keeps so many snapshots of main, found on a copy of the table."""
    twin = tmp_path / f"twin-{keep}"
    shutil.copytree(table.location, twin)
    before = {str(path.relative_to(twin)) for path in twin.rglob("*") if path.is_file()}
    jvm: Any = driver.spark._jvm
    config = jvm.org.apache.paimon.options.ExpireConfig.builder().snapshotRetainMax(keep).snapshotRetainMin(keep)
    config = config.snapshotTimeRetain(jvm.java.time.Duration.ofMillis(0)).snapshotMaxDeletes(1000).build()
    files = jvm.org.apache.paimon.fs.local.LocalFileIO.create()
    opened = jvm.org.apache.paimon.table.FileStoreTableFactory.create(files, jvm.org.apache.paimon.fs.Path(str(twin)))
    opened.newExpireSnapshots().config(config).expire()
    after = {str(path.relative_to(twin)) for path in twin.rglob("*") if path.is_file()}
    return {normalise(f"{table.location}/{name}") for name in before - after}


def history(
    driver: PaimonDriver, name: str, variant: str = "append", properties: Mapping[str, str] | None = None
) -> Table:
    """Three appends, an overwrite, and an append: what the overwrite removed is only in the first three."""
    table = driver.create(name, variant=variant, properties=properties)
    for row in (A, B, C):
        driver.append(table, [row])
    driver.overwrite(table, [D])
    driver.append(table, [A])
    return table


# Versions, oldest first


@pytest.mark.parametrize("variant", deep_after_first(*PaimonDriver.variants))
def test_exactly_the_named_files_go_and_the_heads_read_row_for_row(
    driver: PaimonDriver, tmp_path: Path, variant: str
) -> None:
    table = history(driver, f"rm_exact_{variant}", variant)
    before, rows, disk = read(driver, table), heads(driver, table), on_disk(table)
    wanted = ("main/1", "main/2", "main/3")
    named = taken_by_paimon(driver, table, tmp_path, 2)
    assert only_of(before, wanted) == named
    assert commit(driver, table, versions=wanted) == Committed(version="main/5")
    assert on_disk(table) == disk, "metadata only, and Paimon keeps that with its files"
    assert free(driver, table, named, versions=wanted) == FileDeletion()
    assert disk - on_disk(table) == named
    assert heads(driver, table) == rows
    assert versions(read(driver, table)) == ["main/4", "main/5"]
    assert {f.path for f in read(driver, table).files} == on_disk(table)
    disk = on_disk(table)
    assert commit(driver, table, versions=wanted).done == wanted, "gone already"
    assert free(driver, table, named, versions=wanted).failed == {}
    assert on_disk(table) == disk


def test_a_file_that_was_not_named_stops_expiry_before_anything_goes(driver: PaimonDriver, tmp_path: Path) -> None:
    table = history(driver, "rm_unnamed")
    disk, wanted = on_disk(table), ("main/1", "main/2", "main/3")
    named = taken_by_paimon(driver, table, tmp_path, 2)
    (spared, *_) = sorted(path for path in named if "/bucket-" in path)
    freed = free(driver, table, named - {spared}, versions=wanted)
    assert freed.because is not None
    assert spared.rpartition("/")[2] in freed.because
    assert on_disk(table) == disk
    assert versions(read(driver, table)) == ["main/1", "main/2", "main/3", "main/4", "main/5"]


def test_the_guard_keeps_an_unnamed_file_even_where_nothing_was_rehearsed(driver: PaimonDriver, tmp_path: Path) -> None:
    table = history(driver, "rm_guard")
    named = {path.removeprefix(normalise(table.location) + "/") for path in taken_by_paimon(driver, table, tmp_path, 2)}
    (spared, *_) = sorted(path for path in named if path.startswith("bucket-"))
    changer = java.open_changer(find(driver, table), driver.catalog, driver.spark)
    answer = changer.expire("main", 1, 4, named - {spared})
    assert answer["unnamed"] == [spared]
    assert Path(table.location, spared).exists()


def test_only_a_prefix_from_the_earliest_goes(driver: PaimonDriver, tmp_path: Path) -> None:
    table = history(driver, "rm_prefix")
    named = taken_by_paimon(driver, table, tmp_path, 4)
    asked: dict[str, Any] = {"versions": ("main/1", "main/3", "main/5")}
    sent_back = commit(driver, table, **asked).sent_back
    assert sent_back == dict.fromkeys(
        ("main/3", "main/5"), "main/2 is older and stays: Paimon expires the oldest first"
    )
    disk = on_disk(table)
    free(driver, table, named, **asked)
    assert disk - on_disk(table) == named
    assert versions(read(driver, table)) == ["main/2", "main/3", "main/4", "main/5"]


def test_the_head_never_expires(driver: PaimonDriver) -> None:
    table = driver.create("rm_head")
    driver.append(table, [A])
    sent_back = commit(driver, table, versions=("main/1",)).sent_back
    assert sent_back == {"main/1": "it is, or comes after, the head of branch main"}
    disk = on_disk(table)
    assert free(driver, table, disk, versions=("main/1",)).because is not None
    assert on_disk(table) == disk


# What the original promises


def test_a_file_added_then_deleted_goes_and_one_deleted_then_added_stays(driver: PaimonDriver, tmp_path: Path) -> None:
    """A file that moves to another level is deleted and added again."""
    properties = {**VECTORS, "write-only": "false", "bucket": "1"}
    table = driver.create("rm_order", variant="key", properties=properties, partitioned=True)
    driver.append(table, [A])
    deltas = [(t.files_added, t.files_removed, t.operation) for t in read(driver, table).transactions]
    assert deltas == [(1, 0, "APPEND"), (0, 0, "COMPACT")], "the second one deletes the file and adds it higher up"
    driver.append(table, [C])
    moved, brief = live_in(driver, table, "0/day=2026-01-01"), live_in(driver, table, "0/day=2026-01-02")
    driver.spark.sql(f"ALTER TABLE {table.sql} DROP PARTITION (day = '2026-01-02')")
    driver.append(table, [D])
    rows, named = heads(driver, table), taken_by_paimon(driver, table, tmp_path, 1)
    assert free(driver, table, named, versions=tuple(versions(read(driver, table))[:-1])) == FileDeletion()
    assert set(moved) <= on_disk(table)
    assert not set(brief) & on_disk(table)
    assert not Path(table.location, "day=2026-01-02").exists(), "empty folders go"
    assert heads(driver, table) == rows
    assert {f.path for f in read(driver, table).files} == on_disk(table)


@pytest.mark.deep
def test_the_manifests_of_the_ranges_end_stay_and_the_earliest_hint_moves(driver: PaimonDriver, tmp_path: Path) -> None:
    table = history(driver, "rm_end")
    named = taken_by_paimon(driver, table, tmp_path, 3)
    end = json.loads(Path(table.location, "snapshot", "snapshot-3").read_text())
    assert free(driver, table, named, versions=("main/1", "main/2")) == FileDeletion()
    for name in (end["baseManifestList"], end["deltaManifestList"]):
        assert Path(table.location, "manifest", name).exists()
    assert Path(table.location, "snapshot", "EARLIEST").read_text() == "3"
    assert [row.id for row in driver.rows(table, version="main/3")] == [1, 2, 3]


@pytest.mark.deep
def test_the_count_returned_is_right_and_goes_by_tens(driver: PaimonDriver, tmp_path: Path) -> None:
    table = driver.create("rm_count")
    for number in range(13):
        driver.append(table, [(number, "n", "x")])
    changer = java.open_changer(find(driver, table), driver.catalog, driver.spark)
    named = taken_by_paimon(driver, table, tmp_path, 1)
    short = {path.removeprefix(normalise(table.location) + "/") for path in named}
    assert changer.expire("main", 1, 3, short, rehearsal=True)["count"] == 2
    assert len(list(Path(table.location, "snapshot").glob("snapshot-*"))) == 13, "a rehearsal removes nothing"
    batches: list[int] = []
    wanted = tuple(f"main/{number}" for number in range(1, 13))
    assert free(driver, table, named, batches=batches, versions=wanted) == FileDeletion()
    assert len(batches) == 2
    assert versions(read(driver, table)) == ["main/13"]
    assert len(driver.rows(table)) == 13


@pytest.mark.deep
def test_a_hole_below_the_earliest_is_fine_and_one_inside_the_range_stops_it(
    driver: PaimonDriver, tmp_path: Path
) -> None:
    table = history(driver, "rm_hole")
    snapshots = Path(table.location, "snapshot")
    left_over = (snapshots / "snapshot-1").read_bytes()
    free(driver, table, taken_by_paimon(driver, table, tmp_path, 3), versions=("main/1", "main/2"))
    (snapshots / "snapshot-1").write_bytes(left_over)  # an expiry that was cut off before its last step
    named = taken_by_paimon(driver, table, tmp_path, 2)
    assert commit(driver, table, versions=("main/3",)).sent_back == {}
    assert free(driver, table, named, versions=("main/3",)) == FileDeletion()
    assert not (snapshots / "snapshot-3").exists()
    assert len(driver.rows(table)) == 2

    other = history(driver, "rm_hole_inside")
    Path(other.location, "snapshot", "snapshot-2").unlink()
    disk, wanted = on_disk(other), ("main/1", "main/3")
    sent_back = commit(driver, other, versions=wanted).sent_back
    assert "missing" in sent_back["main/3"]
    freed = free(driver, other, disk, versions=("main/3", "main/4"))
    assert freed.because is not None
    assert on_disk(other) == disk


# Tags, branches, consumers, changelogs


def test_expiry_passes_a_tag_whose_version_stays(driver: PaimonDriver, tmp_path: Path) -> None:
    table = history(driver, "rm_tag")
    driver.create_tag(table, "keep", "main/2")
    rows, named = heads(driver, table), taken_by_paimon(driver, table, tmp_path, 2)
    named.remove(normalise(f"{table.location}/snapshot/snapshot-2"))  # a plan does not name what a tag keeps
    assert commit(driver, table, versions=("main/2",)).sent_back == {"main/2": "a tag keeps it"}
    assert free(driver, table, named, versions=("main/1", "main/3")) == FileDeletion()
    assert heads(driver, table) == rows
    assert versions(read(driver, table)) == ["main/2", "main/4", "main/5"]
    assert whole(driver, table)


def test_expiry_after_a_deleted_tag_takes_no_file_that_the_branch_reads(driver: PaimonDriver, tmp_path: Path) -> None:
    table = driver.create("rm_hanging")
    driver.append(table, [A])
    driver.create_branch(table, "b")
    driver.append(table, [B], branch="b")
    driver.overwrite(table, [C])
    driver.drop_tag(table, "from-b")
    rows, disk, named = heads(driver, table), on_disk(table), taken_by_paimon(driver, table, tmp_path, 1)
    assert any("/bucket-" in path for path in named), "Paimon alone would take it"
    sent_back = commit(driver, table, versions=("main/1",)).sent_back
    assert sent_back == {"main/1": "branch b holds main/1 too, and expiry would take what it reads"}
    assert free(driver, table, named, versions=("main/1",)).because is not None
    assert on_disk(table) == disk
    assert heads(driver, table) == rows


def test_a_branchs_own_versions_go_and_leave_what_it_began_with_to_main(driver: PaimonDriver) -> None:
    table = driver.create("rm_branch_versions")
    driver.append(table, [A])
    driver.create_branch(table, "b")
    driver._call("create_branch", table, branch="'own'")
    driver.append(table, [B], branch="b")
    driver.overwrite(table, [C], branch="b")  # removes main's file from the branch, and only from there
    driver.append(table, [B], branch="own")
    driver.overwrite(table, [C], branch="own")
    before, rows, disk = read(driver, table), heads(driver, table), on_disk(table)
    wanted = ("b/2", "own/1")
    named = {f.path for f in before.files if f.first_transaction in wanted and not f.live}
    assert commit(driver, table, versions=wanted).sent_back == {}
    assert free(driver, table, named, versions=wanted) == FileDeletion()
    assert heads(driver, table) == rows
    assert set(versions(before)) - set(versions(read(driver, table))) == set(wanted)
    copy = normalise(f"{table.location}/branch/branch-b/snapshot/snapshot-1")
    assert disk - on_disk(table) == named | {copy}, "the branch's tag keeps what the copy said"
    assert whole(driver, table)


def test_what_a_consumer_has_still_to_read_stays(driver: PaimonDriver) -> None:
    table = history(driver, "rm_consumer")
    driver._call("reset_consumer", table, consumerId="'etl'", nextSnapshotId="2")
    disk, wanted = on_disk(table), ("main/1", "main/2", "main/3")
    sent_back = commit(driver, table, versions=wanted).sent_back
    assert sent_back == dict.fromkeys(("main/2", "main/3"), "consumer etl reads main/2 next")
    changer = java.open_changer(find(driver, table), driver.catalog, driver.spark)
    assert changer.expire("main", 1, 4, [])["stopped"] == "a consumer reads snapshot 2 next"
    assert on_disk(table) == disk
    free(driver, table, disk, versions=wanted)
    assert versions(read(driver, table))[0] == "main/2"


@pytest.mark.parametrize("producer", deep_after_first("input", "none"))
@pytest.mark.deep
def test_changelogs_that_are_kept_longer_outlive_expiry(driver: PaimonDriver, producer: str) -> None:
    kept = {"changelog-producer": producer, "changelog.num-retained.min": "100", "changelog.num-retained.max": "100"}
    kept |= {"changelog.time-retained": "10 d"}
    table = history(driver, f"rm_log_{producer}", "key", kept)
    before, rows = read(driver, table), heads(driver, table)
    logs = {f.path for f in before.files if f.role is Role.CHANGELOG}
    assert bool(logs) == (producer == "input")
    wanted = ("main/1", "main/2", "main/3")
    named = {f.path for f in before.files if not f.live and f.role is not Role.CHANGELOG}
    assert free(driver, table, named, versions=wanted) == FileDeletion()
    assert list(Path(table.location, "changelog").glob("changelog-1"))
    assert logs <= on_disk(table)
    assert whole(driver, table)
    assert heads(driver, table) == rows
    left = read(driver, table)
    ids = [t.id for t in left.transactions if "/changelog/" in t.id]
    assert ids == ["main/changelog/1", "main/changelog/2", "main/changelog/3"]
    oldest = 1 << [t.id for t in left.transactions].index(ids[0])
    both = oldest | oldest << 1
    going = {f.path for f in left.files if f.versions and not f.versions & ~both and not f.outlives}
    assert Path(table.location, "changelog", "changelog-1").name in {path.rpartition("/")[2] for path in going}
    disk = on_disk(table)
    assert commit(driver, table, versions=ids[1:]).sent_back == dict.fromkeys(
        ids[1:], "main/changelog/1 is older and stays: Paimon expires the oldest first"
    )
    newest = "it is the newest changelog of branch main, which Paimon keeps"
    assert commit(driver, table, versions=ids).sent_back == {ids[2]: newest}
    spared = min(going)
    assert spared.rpartition("/")[2] in str(free(driver, table, going - {spared}, versions=ids[:2]).because)
    assert on_disk(table) == disk, "an unnamed file stops it"
    assert free(driver, table, going, versions=ids[:2]) == FileDeletion()
    assert disk - on_disk(table) == going
    assert [t.id for t in read(driver, table).transactions if "/changelog/" in t.id] == ids[2:]
    assert whole(driver, table)
    assert heads(driver, table) == rows


@pytest.mark.parametrize("variant", deep_after_first(*PaimonDriver.variants))
@pytest.mark.deep
def test_index_manifests_and_statistics_go_with_their_versions(
    driver: PaimonDriver, tmp_path: Path, variant: str
) -> None:
    table = driver.create(f"rm_index_{variant}", variant=variant, properties={**VECTORS, "write-only": "false"})
    driver.append(table, [A, B, C])
    driver.delete(table, "id = 1")
    driver.spark.sql(f"ANALYZE TABLE {table.sql} COMPUTE STATISTICS")
    driver.delete(table, "id = 2")
    driver.spark.sql(f"ANALYZE TABLE {table.sql} COMPUTE STATISTICS")
    rows, disk, named = heads(driver, table), on_disk(table), taken_by_paimon(driver, table, tmp_path, 1)
    assert {path.split("/")[-2] for path in named} >= {"manifest", "statistics", "snapshot"}
    assert any("index-manifest" in path for path in named)
    assert only_of(read(driver, table), versions(read(driver, table))[:-1]) == named
    assert free(driver, table, named, versions=tuple(versions(read(driver, table))[:-1])) == FileDeletion()
    assert disk - on_disk(table) == named
    assert heads(driver, table) == rows
    assert {f.path for f in read(driver, table).files} == on_disk(table)


# Partitions


@pytest.mark.parametrize(
    ("variant", "properties"),
    deep_after_first(("append", VECTORS), ("key", {**VECTORS, "write-only": "false"}), ("key", {"bucket": "-1"})),
    ids=["append", "key", "dynamic buckets"],
)
def test_a_dropped_partition_leaves_the_head_in_one_commit_and_no_file(
    driver: PaimonDriver, variant: str, properties: dict[str, str]
) -> None:
    table = driver.create(
        f"rm_part_{len(properties)}_{variant}", variant=variant, partitioned=True, properties=properties
    )
    driver.append(table, [A, B, C, D])
    driver.delete(table, "id = 1")
    disk = on_disk(table)
    drops = tuple(
        Drop("main", day, live_in(driver, table, f"0/day={day}"), f"0/day={day}")
        for day in ("2026-01-01", "2026-01-02")
    )
    done = commit(driver, table, drops=drops)
    assert done.done == ("2026-01-01", "2026-01-02")
    assert done.sent_back == {}
    assert disk <= on_disk(table)
    assert [row.id for row in driver.rows(table)] == [4]
    reading = read(driver, table)
    assert (reading.transactions[-1].id, reading.transactions[-1].operation) == (done.version, "OVERWRITE")
    gone = {path for drop in drops for path in drop.paths}
    assert {f.path for f in reading.files if done.version in f.removed_by and f.role is Role.DATA} == gone
    indexes = [f for f in reading.files if f.role in (Role.DELETION_VECTOR, Role.INDEX) and f.live]
    assert {f.partition for f in indexes} <= {"0/day=2026-01-03"}
    assert commit(driver, table, drops=drops) == done, "asked again it changes nothing"
    assert [row.id for row in driver.rows(table, version=versions(reading)[-2])] == [2, 3, 4]


def test_a_late_write_into_a_planned_partition_is_sent_back(driver: PaimonDriver) -> None:
    table = driver.create("rm_late", partitioned=True)
    driver.append(table, [A, C])
    first, second = (
        Drop("main", day, live_in(driver, table, f"0/day={day}"), f"0/day={day}")
        for day in ("2026-01-01", "2026-01-02")
    )
    driver.append(table, [B])
    done = commit(driver, table, drops=(first, second))
    assert done.done == ("2026-01-02",)
    assert done.sent_back == {"2026-01-01": "a late write: 1 live files in the partition were not planned"}
    assert [row.id for row in driver.rows(table)] == [1, 2]


def test_a_partition_that_was_rewritten_since_is_sent_back(driver: PaimonDriver) -> None:
    table = driver.create("rm_rewritten", partitioned=True)
    driver.append(table, [A])
    driver.append(table, [B])
    planned = Drop("main", "p", live_in(driver, table, "0/day=2026-01-01"), "0/day=2026-01-01")
    driver.delete(table, "id = 1")
    assert "p" in commit(driver, table, drops=(planned,)).sent_back
    assert [row.id for row in driver.rows(table)] == [2]


@pytest.mark.deep
def test_null_and_empty_partitions_are_told_apart_though_they_share_a_folder(driver: PaimonDriver) -> None:
    table = driver.create("rm_null", partitioned=True)
    driver.append(table, [(1, "null", None), (2, "empty", ""), C])
    null, empty = live_in(driver, table, "0/day=%00"), live_in(driver, table, "0/day=")
    assert {path.rpartition("/")[0] for path in null} == {path.rpartition("/")[0] for path in empty}
    assert commit(driver, table, drops=(Drop("main", "e", empty, "0/day="),)).done == ("e",)
    assert [(row.id, row.day) for row in driver.rows(table)] == [(1, None), (3, "2026-01-02")]


def test_a_drop_on_a_branch_leaves_main_alone_and_single_files_are_refused(driver: PaimonDriver) -> None:
    table = driver.create("rm_branch_drop", partitioned=True)
    driver.append(table, [A, C])
    driver.create_branch(table, "b")
    planned = live_in(driver, table, "0/day=2026-01-01")
    done = commit(driver, table, drops=(Drop("b", "p", planned, "0/day=2026-01-01"), Drop("main", "t", planned)))
    assert done.done == ("p",)
    assert set(done.sent_back) == {"t"}
    assert [row.id for row in driver.rows(table, branch="b")] == [3]
    assert [row.id for row in driver.rows(table)] == [1, 3]


@pytest.mark.parametrize(("commits", "tries"), deep_after_first((1, 2), (9, 5)))
def test_a_writer_that_commits_between_is_followed_and_one_that_never_stops_is_a_conflict(
    driver: PaimonDriver, monkeypatch: pytest.MonkeyPatch, commits: int, tries: int
) -> None:
    """A real writer commits right after the drop has looked at the head, and before it commits itself."""
    table = driver.create(f"rm_race_{commits}", partitioned=True)
    driver.append(table, [A, C])
    planned = Drop("main", "p", live_in(driver, table, "0/day=2026-01-01"), "0/day=2026-01-01")
    calls: list[int] = []
    original = java.Changer.drop

    def drop(self: java.Changer, branch: str, base: int, wanted: Collection[tuple[int, str]]) -> dict[str, Any]:
        if len(calls) < commits:
            driver.append(table, [D])
        calls.append(base)
        return original(self, branch, base, wanted)

    monkeypatch.setattr(java.Changer, "drop", drop)
    if commits < tries:
        assert commit(driver, table, drops=(planned,)).done == ("p",)
    else:
        with pytest.raises(ConflictError):
            commit(driver, table, drops=(planned,))
    assert len(calls) == tries
    expected = [3, 4] if commits < tries else [1, 3, 4, 4, 4, 4, 4]
    assert [row.id for row in driver.rows(table)] == expected
    assert {f.path for f in read(driver, table).files} == on_disk(table), "a lost attempt leaves nothing behind"


# Rows, branches, tables


@pytest.mark.parametrize("variant", deep_after_first(*PaimonDriver.variants))
def test_rows_before_the_cutoff_go_and_null_stays(driver: PaimonDriver, variant: str) -> None:
    table = driver.create(f"rm_rows_{variant}", variant=variant, columns="id BIGINT, name STRING, day DATE")
    driver.spark.sql(
        f"INSERT INTO {table.sql} VALUES (1, 'a', DATE '2026-01-01'), (2, 'b', DATE '2026-01-02'), (3, 'c', NULL)"
    )
    asked = {"rows": (RowDelete("r", column="day", cutoff="2026-01-02"), RowDelete("w", where="id = 9"))}
    done = commit(driver, table, **asked)
    assert done.done == ("r", "w")
    assert [row.id for row in driver.rows(table)] == [2, 3]
    assert commit(driver, table, **asked).version == done.version, "nothing matches, nothing is committed"
    odd = (RowDelete("text", column="name", cutoff="2026-01-02"), RowDelete("none", where="no_such_column = 1"))
    sent_back = commit(driver, table, rows=odd).sent_back
    assert sent_back["text"] == "the table has no date or timestamp column name"
    assert sent_back["none"].startswith("the predicate does not fit the table")


@pytest.mark.deep
def test_deleting_rows_expires_nothing_though_the_table_expires_on_commit(driver: PaimonDriver) -> None:
    table = history(driver, "rm_rows_quiet")
    eager = {"write-only": "false", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
    for key, value in {**eager, "snapshot.time-retained": "1 ms"}.items():
        driver.set_property(table, key, value)
    before = versions(read(driver, table))
    commit(driver, table, rows=(RowDelete("r", where="id = 4"),))
    assert [row.id for row in driver.rows(table)] == [1]
    assert versions(read(driver, table))[: len(before)] == before
    driver.append(table, [B])
    assert len(versions(read(driver, table))) == 1, "any other writer does"


@pytest.mark.deep
def test_deleting_rows_drops_no_partition_though_the_table_expires_them_on_commit(driver: PaimonDriver) -> None:
    columns = "id BIGINT, name STRING, day STRING"
    table = driver.create("rm_rows_days", columns=columns, partitioned=True)
    driver.append(table, [(1, "a", "2026-01-01"), (2, "b", "2026-01-02"), (3, "c", "2026-01-02")])
    eager = {
        "write-only": "false", "partition.expiration-time": "1 d", "partition.expiration-check-interval": "1 ms",
        "partition.timestamp-formatter": "yyyy-MM-dd", "partition.timestamp-pattern": "$day",
        "end-input.check-partition-expire": "true",
    }  # fmt: skip
    for key, value in eager.items():
        driver.set_property(table, key, value)
    assert commit(driver, table, rows=(RowDelete("r", where="id = 3"),)).done == ("r",)
    assert [row.id for row in driver.rows(table)] == [1, 2]
    driver.append(table, [(4, "d", "2099-01-01")])
    assert [row.id for row in driver.rows(table)] == [4], "any other writer does"


def test_a_branch_that_was_written_to_since_the_plan_is_not_dropped(driver: PaimonDriver) -> None:
    table = driver.create("rm_branch_late")
    driver.append(table, [A])
    for name in ("late", "anew", "old"):
        driver.create_branch(table, name)
    planned = Removal(found=find(driver, table), branches=("late", "anew", "old"))
    driver.append(table, [B], branch="late")
    driver._call("delete_branch", table, branch="'anew'")
    driver._call("create_branch", table, branch="'anew'", tag="'from-anew'")
    driver.append(table, [C])  # what main does is nothing to them
    done = FORMAT.commit(planned, driver.catalog, driver.spark)
    why = "it was written to, or made anew, since the plan"
    assert (done.done, done.sent_back) == (("old",), {"late": why, "anew": why})
    assert [row.id for row in driver.rows(table, branch="late")] == [1, 2]
    assert commit(driver, table, branches=("late",)).done == ("late",)


def test_a_dropped_branch_leaves_its_tag_and_its_files(driver: PaimonDriver) -> None:
    table = driver.create("rm_branch")
    driver.append(table, [A])
    driver.create_branch(table, "b")
    driver.append(table, [B], branch="b")
    driver.create_branch(table, "other")
    data = {path for path in on_disk(table) if "/branch/" not in path}
    done = commit(driver, table, branches=("b", "main"))
    assert done.done == ("b",)
    assert done.sent_back == {"main": "the main branch is never dropped"}
    assert data <= on_disk(table)
    rows = heads(driver, table)
    assert {name: [row.id for row in found] for name, found in rows.items()} == {
        "main": [1],
        "other": [1],
        "tag from-b": [1],
        "tag from-other": [1],
    }
    assert commit(driver, table, branches=("b",)).done == ("b",)


def test_a_table_goes_whole_or_not_at_all(driver: PaimonDriver) -> None:
    table, sibling = driver.create("rm_table"), driver.create("rm_table_2")
    for each in (table, sibling):
        driver.append(each, [A])
    foreign = Path(table.location, "bucket-0", "not-planned.txt")
    planned = on_disk(table)
    foreign.write_text("late")
    freed = free(driver, table, planned, table=True)
    assert freed.because is not None
    assert "not-planned.txt" in freed.because
    assert on_disk(table) == planned | {normalise(str(foreign))}
    foreign.unlink()
    assert commit(driver, table, table=True).sent_back == {}
    assert free(driver, table, planned, table=True) == FileDeletion()
    assert not Path(table.location).exists()
    assert [row.id for row in driver.rows(sibling)] == [1]
