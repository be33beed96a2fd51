"""One history with every kind of commit in it, read back: kinds, views, files, partitions.

The history is built once per format and table type; all tests here only read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from ebbtide.formats.base import Depth
from ebbtide.model.dataset import Reading, Role
from ebbtide.model.history import RefKind, TransactionKind, build_history
from ebbtide.model.paths import local_path
from tests.conformance.conftest import Bench
from tests.conformance.driver import Table
from tests.inventory.reads import opened_files

DAYS = [f"2026-01-0{n}" for n in range(1, 8)]

# How a format deletes single rows decides what the commit is: with delete files or vectors, or by rewriting.
DELETE_KIND = {
    "v1": TransactionKind.UPDATE,
    "v2": TransactionKind.DELETE,
    "v3": TransactionKind.DELETE,
    "plain": TransactionKind.UPDATE,
    "vectors": TransactionKind.DELETE,
    "cow": TransactionKind.UPDATE,
    "mor": TransactionKind.DELETE,
    "append": TransactionKind.UPDATE,
    "key": TransactionKind.UPDATE,
}


@dataclass(frozen=True)
class Story:
    """A table, the kinds that its commits should have, and what was read from it."""

    table: Table
    kinds: list[TransactionKind]
    began: datetime
    ended: datetime
    reading: Reading


_TOLD: dict[str, Story] = {}


@pytest.fixture
def story(bench: Bench) -> Story:
    return story_of(bench)


def story_of(bench: Bench) -> Story:
    key = f"{bench.format}-{bench.variant}"
    if key not in _TOLD:
        _TOLD[key] = tell(bench)
    return _TOLD[key]


@pytest.fixture
def any_story(any_bench: Bench) -> Story:
    return story_of(any_bench)


def tell(bench: Bench) -> Story:
    driver, began = bench.driver, datetime.now(UTC)
    table = bench.create("story", partitioned=True)
    driver.append(table, [(1, "a", DAYS[0]), (2, "b", DAYS[0])])
    driver.append(table, [(3, "c", DAYS[1])])
    driver.overwrite(table, [(4, "d", DAYS[2]), (5, "e", DAYS[2])])
    driver.append(table, [(6, "f", DAYS[3]), (7, "g", DAYS[3])])
    driver.append(table, [(8, "h", DAYS[3])])
    driver.delete(table, "id = 6")
    driver.compact(table)
    driver.delete_all(table)
    driver.append(table, [(9, "i", DAYS[4]), (10, "j", DAYS[4])])
    kinds = [
        TransactionKind.APPEND, TransactionKind.APPEND, TransactionKind.SNAPSHOT, TransactionKind.APPEND,
        TransactionKind.APPEND, DELETE_KIND[bench.variant], TransactionKind.REWRITE,
        TransactionKind.DELETE, TransactionKind.APPEND,
    ]  # fmt: skip
    return Story(table, kinds, began, datetime.now(UTC), bench.read(table))


def data_changes(reading: Reading) -> list[str]:
    return [t.id for t in reading.transactions if t.kind is not TransactionKind.METADATA]


@pytest.mark.spark41
def test_every_commit_has_its_kind(bench: Bench, story: Story) -> None:
    kinds = [t.kind for t in story.reading.transactions if t.kind is not TransactionKind.METADATA]
    if bench.variant in ("cow", "mor") and TransactionKind.UPDATE in kinds[4:5]:
        # Hudi packs the second insert of a day into that day's small file.
        expected = [*story.kinds[:4], TransactionKind.UPDATE, *story.kinds[5:]]
    else:
        expected = story.kinds
    assert kinds == expected


@pytest.mark.spark41
def test_native_ids_and_parents_are_those_of_the_format(bench: Bench, story: Story) -> None:
    ids = [t.id for t in story.reading.transactions]
    assert ids == bench.driver.native_ids(story.table)
    assert [t.parent_id for t in story.reading.transactions] == [None, *ids[:-1]]


@pytest.mark.spark41
def test_the_latest_view_starts_where_everything_was_deleted(story: Story) -> None:
    changes = data_changes(story.reading)
    history = build_history(story.reading.transactions, story.reading.refs)
    (main,) = history.views
    assert main.ref.main
    assert main.ref.kind is RefKind.BRANCH
    assert main.start == changes[7]
    assert [id_ for id_ in main.line if id_ in main.members] == changes[7:]
    # A compaction that keeps no file starts a view too, whatever its kind; not every format's rewrites them all.
    starts = [t.id for t in story.reading.transactions if t.starts_view and t.parent_id is not None]
    assert [id_ for id_ in starts if id_ != changes[6]] == [changes[2], changes[7]]


def test_commit_times_are_utc_and_in_order(story: Story) -> None:
    times = [t.committed_at for t in story.reading.transactions]
    assert times == sorted(times)
    assert all(time.utcoffset() is not None for time in times)
    # Formats store milliseconds, some of them rounded.
    assert story.began.timestamp() - 1 <= times[0].timestamp()
    assert times[-1].timestamp() <= story.ended.timestamp() + 1


@pytest.mark.spark41
def test_everything_on_disk_is_referenced_and_everything_referenced_is_on_disk(story: Story) -> None:
    root = Path(story.table.location)
    on_disk = {str(path) for path in root.rglob("*") if path.is_file() and not _is_checksum(path)}
    referenced = {str(local_path(file.path)) for file in story.reading.files}
    assert referenced - on_disk == set()
    assert on_disk - referenced == set()


def _is_checksum(path: Path) -> bool:
    """Hadoop's `.name.crc` follow their parent (formats.md)."""
    return path.name.startswith(".") and path.name.endswith(".crc") and "_delta_log" not in path.parts


def test_sizes_are_those_on_disk(story: Story) -> None:
    wrong = {
        file.path: (file.bytes, Path(local_path(file.path) or "").stat().st_size)
        for file in story.reading.files
        if file.bytes != Path(local_path(file.path) or "").stat().st_size
    }
    assert wrong == {}


def test_no_file_is_listed_twice_and_paths_are_sorted(story: Story) -> None:
    paths = [file.path for file in story.reading.files]
    assert paths == sorted(set(paths))


@pytest.mark.spark41
def test_live_data_files_hold_exactly_the_current_rows(bench: Bench, story: Story) -> None:
    live = [f for f in story.reading.files if f.live and f.role is Role.DATA]
    changes = data_changes(story.reading)
    assert {f.first_transaction for f in live} == {changes[8]}
    assert sum(f.rows or 0 for f in live) == len(bench.driver.rows(story.table)) == 2


def test_data_files_name_who_added_and_who_removed_them(story: Story) -> None:
    changes = data_changes(story.reading)
    known = {t.id for t in story.reading.transactions}
    data = [f for f in story.reading.files if f.role is Role.DATA]
    assert {f.first_transaction for f in data} <= known
    assert all(set(f.removed_by) <= known for f in data)
    dead = [f for f in data if not f.live]
    assert all(f.removed_by for f in dead), [f.path for f in dead if not f.removed_by]
    first = [f for f in data if f.first_transaction == changes[0]]
    assert first
    assert {by for f in first for by in f.removed_by} == {changes[2]}


def test_counts_of_the_first_commits(story: Story) -> None:
    changes = {t.id: t for t in story.reading.transactions}
    first, _, snapshot = [changes[id_] for id_ in data_changes(story.reading)][:3]
    assert (first.rows_added, first.rows_removed, first.files_added, first.files_removed) == (2, 0, 1, 0)
    assert snapshot.rows_added == 2
    assert snapshot.files_removed == 2
    assert first.bytes_added is not None
    assert first.bytes_added > 0


def test_partitions_are_those_of_the_current_table(story: Story) -> None:
    (partition,) = story.reading.partitions
    assert partition.id.partition("/")[2] == f"day={DAYS[4]}"
    assert partition.date == partition.first_day == partition.last_day == date(2026, 1, 5)
    assert (partition.rows, partition.files) == (2, 1)
    assert partition.last_transaction == data_changes(story.reading)[8]
    assert partition.landed_at == story.reading.transactions[-1].committed_at


def test_the_schema_is_read(story: Story) -> None:
    names = [column.name for column in story.reading.columns]
    assert [name for name in names if name in ("id", "name", "day")] == ["id", "name", "day"]
    assert [column.position for column in story.reading.columns] == list(range(len(names)))


def test_a_reading_of_the_history_alone_agrees_and_says_what_it_left_out(bench: Bench, story: Story) -> None:
    history = bench.read(story.table, Depth.HISTORY)
    assert history.transactions == story.reading.transactions
    assert history.refs == story.reading.refs
    assert history.columns == story.reading.columns
    assert history.files == ()
    assert any("not read" in reason for reason in history.unknown)


def test_the_token_changes_with_every_commit_and_only_then(bench: Bench) -> None:
    table = bench.create("token")
    empty = bench.found(table)
    bench.driver.append(table, [(1, "a", DAYS[0])])
    once = bench.found(table)
    assert once.token != empty.token
    assert bench.found(table) == once
    bench.driver.append(table, [(2, "b", DAYS[0])])
    assert bench.found(table).token != once.token


def test_asking_whether_a_table_changed_opens_no_file_of_it(bench: Bench, story: Story) -> None:
    with opened_files(Path(story.table.location)) as opened:
        bench.found(story.table)
    assert opened == []


@pytest.mark.cluster
def test_processes_that_share_neither_memory_nor_folder_see_the_same_history(
    any_bench: Bench, any_story: Story
) -> None:
    test_every_commit_has_its_kind(any_bench, any_story)
    test_live_data_files_hold_exactly_the_current_rows(any_bench, any_story)


@pytest.mark.cluster
def test_processes_that_share_neither_memory_nor_folder_see_the_same_files(any_story: Story) -> None:
    test_everything_on_disk_is_referenced_and_everything_referenced_is_on_disk(any_story)
