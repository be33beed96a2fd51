"""Removing from Delta: exactly what was asked, each dangerous line of formats.md about it, and races.

The oracles are what lies on disk and Spark's own reader; rows are read, never counted.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from ebbtide.errors import ConflictError, LeaseError, RefusedError
from ebbtide.formats.base import Depth
from ebbtide.formats.delta import FORMAT
from ebbtide.formats.delta.java import Attempt
from ebbtide.inventory.spans import Spans
from ebbtide.model.dataset import Catalog, Reading, Role, TableHandle
from ebbtide.model.history import build_history
from ebbtide.model.paths import normalise
from ebbtide.model.removal import Committed, Drop, FileDeletion, Removal, RowDelete
from tests.conformance.driver import Table
from tests.conformance.drivers.delta import DeltaDriver
from tests.tiers import deep_after_first

DAY, NEXT, ODD = "2026-01-01", "2026-01-02", "a b%/c:é=#?"
FEED = {"delta.enableChangeDataFeed": "true"}
CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


@pytest.fixture(scope="module")
def driver(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> DeltaDriver:
    return DeltaDriver(spark, catalogs["events"])


def find(driver: DeltaDriver, table: Table) -> TableHandle:
    (match,) = [a for a in FORMAT.discover(driver.catalog) if isinstance(a, TableHandle) and a.id == table.id]
    return match


def listed(driver: DeltaDriver, table: Table) -> bool:
    return any(isinstance(a, TableHandle) and a.id == table.id for a in FORMAT.discover(driver.catalog))


def read(driver: DeltaDriver, table: Table) -> Reading:
    return FORMAT.read(find(driver, table), driver.catalog, Depth.FILES, None)


def on_disk(table: Table) -> set[str]:
    """Everything but the log and Hadoop's checksum files."""
    files = (p for p in Path(table.location).rglob("*") if p.is_file() and "_delta_log" not in p.parts)
    return {normalise(str(p)) for p in files if not (p.name.startswith(".") and p.suffix == ".crc")}


def only_of(reading: Reading, versions: Collection[str]) -> dict[str, int]:
    """Files that these versions need and no other version does."""
    spans = Spans(reading, build_history(reading.transactions, reading.refs))
    going = {spans.positions[id_] for id_ in versions}
    named: dict[str, int] = {}
    for file in reading.files:
        runs = [set(range(run["first"], run["last"] + 1)) for run in spans.of(file)]
        if runs and set().union(*runs) <= going:
            named[file.path] = file.bytes or 0
    return named


def expiry(driver: DeltaDriver, table: Table, versions: Iterable[str]) -> Removal:
    ids = tuple(versions)
    return Removal(found=find(driver, table), versions=ids, files=only_of(read(driver, table), ids))


def commit(driver: DeltaDriver, removal: Removal) -> Committed:
    return FORMAT.commit(removal, driver.catalog, driver.spark)


def free(driver: DeltaDriver, removal: Removal, paths: Iterable[str] | None = None) -> FileDeletion:
    wanted = list(removal.files) if paths is None else list(paths)
    return FORMAT.delete_files(removal, wanted, driver.catalog, driver.spark, lambda: None)


def ids_of(driver: DeltaDriver, table: Table, version: str | None = None) -> list[int]:
    return sorted(row.id for row in driver.rows(table, version=version))


def history(driver: DeltaDriver, name: str, **settings: Any) -> Table:
    """Versions 1 to 6: two appends, an overwrite, an append, another overwrite, an append."""
    table = driver.create(name, partitioned=True, **settings)
    driver.append(table, [(1, "a", DAY)])
    driver.append(table, [(2, "b", NEXT)])
    driver.overwrite(table, [(3, "c", ODD)])
    driver.append(table, [(4, "d", DAY)])
    driver.overwrite(table, [(5, "e", DAY)])
    driver.append(table, [(6, "f", NEXT)])
    return table


@pytest.mark.spark41
def test_exactly_the_named_files_go_in_any_order_and_the_other_versions_stay(driver: DeltaDriver) -> None:
    """VACUUM would take the files of all old versions, and what it does not know (formats.md)."""
    table = history(driver, "by list %41 å")
    strays = {Path(table.location, "stray.parquet"), Path(table.location, "other table", "data.parquet")}
    for stray in strays:
        stray.parent.mkdir(exist_ok=True)
        stray.write_bytes(b"?")
    disk, rows = on_disk(table), driver.rows(table)
    removal = expiry(driver, table, ["3", "4"])
    assert len(removal.files) == 2
    assert any("é" in path for path in removal.files), "an odd name is among them"
    version = driver.native_ids(table)[-1]
    assert commit(driver, removal) == Committed(version=version, done=("3", "4"))
    assert (on_disk(table), driver.native_ids(table)[-1]) == (disk, version), "a version has nothing to commit"
    assert free(driver, removal) == FileDeletion()
    assert disk - on_disk(table) == set(removal.files)
    assert all(stray.exists() for stray in strays)
    assert driver.rows(table) == rows
    assert ids_of(driver, table, "2") == [1, 2]
    reading = read(driver, table)
    assert [t.id for t in reading.transactions if t.expired] == ["3", "4"]
    assert not {f.path for f in reading.files} & set(removal.files)
    assert reading.unknown == ()


def test_the_check_of_retention_stays_on_for_everybody_else(driver: DeltaDriver) -> None:
    table = history(driver, "check_on")
    assert driver.spark.conf.get(CHECK, "true") == "true"
    assert free(driver, expiry(driver, table, ["3", "4"])) == FileDeletion()
    assert driver.native_ids(table)[-1] == "8", "VACUUM ran"
    assert driver.spark.conf.get(CHECK, "true") == "true"
    with pytest.raises(Exception, match=r"(?i)retention"):
        driver.spark.sql(f"VACUUM {table.sql} RETAIN 0 HOURS")


def test_a_second_free_and_an_empty_one_commit_nothing(driver: DeltaDriver) -> None:
    """formats.md: VACUUM commits START and END even for nothing."""
    table = history(driver, "twice")
    removal = expiry(driver, table, ["1"])
    assert not removal.files, "version 2 needs all that version 1 needs"
    versions = driver.native_ids(table)
    assert free(driver, removal) == FileDeletion()
    assert driver.native_ids(table) == versions
    removal = expiry(driver, table, ["1", "2"])
    assert free(driver, removal) == FileDeletion()
    versions, disk = driver.native_ids(table), on_disk(table)
    commit(driver, removal)
    assert free(driver, removal) == FileDeletion()
    assert (driver.native_ids(table), on_disk(table)) == (versions, disk)


@pytest.mark.spark41
def test_live_files_in_the_list_survive_and_are_reported(driver: DeltaDriver) -> None:
    table = history(driver, "live_listed")
    removal = expiry(driver, table, ["3", "4"])
    driver.rollback(table, "4")  # what was old is current again: a reference that the plan did not see
    disk, rows = on_disk(table), driver.rows(table)
    outcome = free(driver, removal)
    assert outcome.failed == dict.fromkeys(removal.files, "the current version references it")
    assert on_disk(table) == disk
    assert driver.rows(table) == rows


@pytest.mark.spark41
def test_deletion_vectors_and_change_data_go_when_they_are_named_and_only_then(driver: DeltaDriver) -> None:
    """Hazard 12."""
    table = driver.create("vectors_and_feed", variant="vectors", partitioned=True, properties=FEED)
    driver.append(table, [(n, "a", ODD) for n in range(6)])
    driver.delete(table, "id = 1")
    driver.delete(table, "id = 2")
    driver.spark.sql(f"UPDATE {table.sql} SET name = 'u' WHERE id = 3")
    driver.append(table, [(9, "z", DAY)])
    reading = read(driver, table)
    old = {f.path: f.bytes or 0 for f in reading.files if not f.live and f.first_transaction not in (None, "4")}
    roles = {f.role for f in reading.files if f.path in old}
    assert Role.DELETION_VECTOR in roles
    change = {f.path: f.bytes or 0 for f in reading.files if f.role is Role.CHANGE_DATA}
    assert change
    disk, rows = on_disk(table), driver.rows(table)
    removal = Removal(found=find(driver, table), files=old | change)
    assert free(driver, removal) == FileDeletion()
    assert disk - on_disk(table) == set(old | change)
    assert driver.rows(table) == rows
    assert read(driver, table).unknown == ()


def test_files_outside_the_table_in_its_log_or_not_in_the_plan_are_refused(driver: DeltaDriver) -> None:
    table, sibling = history(driver, "fenced"), history(driver, "fenced_2")
    removal = expiry(driver, table, ["3"])
    foreign = expiry(driver, sibling, ["3", "4"]).files
    log = normalise(f"{table.location}/_delta_log/00000000000000000001.json")
    disk = on_disk(table) | on_disk(sibling)
    for files in (foreign, {log: 1}):
        with pytest.raises(RefusedError):
            free(driver, replace(removal, files=files))
    with pytest.raises(RefusedError, match="did not name"):
        free(driver, replace(removal, files={}), removal.files or [next(iter(on_disk(table)))])
    assert on_disk(table) | on_disk(sibling) == disk
    assert Path(log.removeprefix("file://")).exists()


def test_the_source_of_a_shallow_clone_cannot_be_reached_from_the_clone(driver: DeltaDriver) -> None:
    """Hazard 18: the clone's reading names the source's files, and a removal on the clone refuses them."""
    source = history(driver, "source")
    location = f"{driver.catalog.warehouse}/db/a_clone"
    driver.spark.sql(f"CREATE TABLE delta.`{location}` SHALLOW CLONE {source.sql}")
    clone = Table(replace(source.id, table="a_clone"), location, f"delta.`{location}`")
    reading = read(driver, clone)
    borrowed = {f.path: f.bytes or 0 for f in reading.files if f.role is Role.DATA}
    assert borrowed.keys() <= on_disk(source)
    disk = on_disk(source)
    with pytest.raises(RefusedError, match="outside"):
        free(driver, Removal(found=find(driver, clone), files=borrowed))
    assert on_disk(source) == disk


def test_the_current_version_and_branches_are_sent_back(driver: DeltaDriver) -> None:
    table = history(driver, "current_asked")
    outcome = commit(driver, Removal(found=find(driver, table), versions=("1", "6"), branches=("main",)))
    assert outcome.done == ("1",)
    assert outcome.sent_back["6"] == "it is the current version"
    assert "main" in outcome.sent_back


def partition_drop(driver: DeltaDriver, table: Table, day: str) -> Removal:
    reading = read(driver, table)
    live = [f for f in reading.files if f.live and f.role is Role.DATA and f.partition]
    (partition,) = {f.partition for f in live if (f.partition or "").endswith(f"day={day}")}
    paths = tuple(f.path for f in live if f.partition == partition)
    return Removal(found=find(driver, table), drops=(Drop("main", str(partition), paths, partition),))


@pytest.mark.spark41
@pytest.mark.parametrize("variant", deep_after_first("plain", "vectors"))
def test_a_partition_goes_by_its_exact_files_in_one_commit_without_a_predicate(
    driver: DeltaDriver, variant: str
) -> None:
    table = driver.create(f"partition_{variant}", variant=variant, partitioned=True)
    driver.append(table, [(1, "a", DAY), (2, "b", DAY), (3, "c", NEXT), (4, "d", None), (5, "e", ODD)])
    driver.delete(table, "id = 1")
    disk, before = on_disk(table), driver.native_ids(table)
    removal = partition_drop(driver, table, DAY)
    outcome = commit(driver, removal)
    assert outcome.done == (removal.drops[0].object,)
    assert ids_of(driver, table) == [3, 4, 5]
    assert driver.native_ids(table) == [*before, outcome.version]
    assert disk <= on_disk(table)
    log = Path(table.location, "_delta_log", f"{int(outcome.version or 0):020d}.json").read_text()
    assert "predicate" not in log
    assert commit(driver, removal) == outcome, "asked again, nothing is committed"
    assert ids_of(driver, table, before[-1]) == [2, 3, 4, 5]


def test_null_and_odd_partitions_are_dropped_by_their_ids(driver: DeltaDriver) -> None:
    table = driver.create("odd_partitions", partitioned=True)
    driver.append(table, [(1, "a", DAY), (2, "b", None), (3, "c", ODD)])
    live = [f for f in read(driver, table).files if f.live and f.role is Role.DATA]
    drops = tuple(Drop("main", str(f.partition), (f.path,), f.partition) for f in live if DAY not in str(f.partition))
    assert len(commit(driver, Removal(found=find(driver, table), drops=drops)).done) == 2
    assert ids_of(driver, table) == [1]


@pytest.mark.spark41
def test_a_late_write_sends_its_partition_back_and_the_others_go(driver: DeltaDriver) -> None:
    table = driver.create("late_write", partitioned=True)
    driver.append(table, [(1, "a", DAY), (2, "b", NEXT), (3, "c", ODD)])
    first, second = partition_drop(driver, table, DAY), partition_drop(driver, table, NEXT)
    driver.append(table, [(9, "late", DAY)])
    outcome = commit(driver, replace(first, drops=(*first.drops, *second.drops)))
    assert outcome.sent_back == {first.drops[0].object: "1 files came into the partition since the plan"}
    assert outcome.done == (second.drops[0].object,)
    assert ids_of(driver, table) == [1, 3, 9]


def test_a_table_that_only_allows_appends_is_left_alone(driver: DeltaDriver) -> None:
    table = driver.create("append_only", partitioned=True, properties={"delta.appendOnly": "true"})
    driver.append(table, [(1, "a", DAY)])
    removal = partition_drop(driver, table, DAY)
    assert commit(driver, removal).sent_back == {removal.drops[0].object: "delta.appendOnly is set"}
    assert ids_of(driver, table) == [1]


def test_files_of_a_transaction_are_not_dropped_from_the_head(driver: DeltaDriver) -> None:
    table = driver.create("no_lifting")
    driver.append(table, [(1, "a", DAY)])
    paths = tuple(f.path for f in read(driver, table).files if f.role is Role.DATA)
    outcome = commit(driver, Removal(found=find(driver, table), drops=(Drop("main", "1", paths),)))
    assert set(outcome.sent_back) == {"1"}
    assert ids_of(driver, table) == [1]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Let a real writer commit each time after the table was looked at and before the commit is made."""

    def arrange(write: Callable[[], None]) -> None:
        remove = Attempt.remove

        def removing(self: Attempt, *given: Any) -> None:
            write()
            remove(self, *given)

        monkeypatch.setattr(Attempt, "remove", removing)

    return arrange


Meanwhile = Callable[[Callable[[], None]], None]


def test_a_late_file_that_comes_while_its_partition_goes_is_seen_at_the_next_attempt(
    driver: DeltaDriver, meanwhile: Meanwhile
) -> None:
    table = driver.create("file_race", partitioned=True)
    driver.append(table, [(1, "a", DAY), (2, "b", NEXT)])
    removal = partition_drop(driver, table, DAY)
    left = [lambda: driver.append(table, [(3, "c", DAY)])]
    meanwhile(lambda: left.pop()() if left else None)
    assert set(commit(driver, removal).sent_back) == {removal.drops[0].object}
    assert ids_of(driver, table) == [1, 2, 3]


def test_a_compaction_that_comes_while_its_partition_goes_sends_it_back(
    driver: DeltaDriver, meanwhile: Meanwhile
) -> None:
    table = driver.create("compaction_race", partitioned=True)
    for number, day in ((1, DAY), (2, DAY), (3, NEXT)):
        driver.append(table, [(number, "a", day)])
    removal = partition_drop(driver, table, DAY)
    left = [lambda: driver.compact(table)]
    meanwhile(lambda: left.pop()() if left else None)
    assert set(commit(driver, removal).sent_back) == {removal.drops[0].object}
    assert ids_of(driver, table) == [1, 2, 3], "half a partition never goes"


def compaction_begun(driver: DeltaDriver, table: Table) -> Callable[[], None]:
    """A compaction that has read the table and written its files; it commits when it is called."""
    jvm: Any = driver.spark._jvm
    delta, none = jvm.org.apache.spark.sql.delta, jvm.scala.Option.empty()
    transaction = driver._log(table).startTransaction(none, none)
    actions, files = jvm.java.util.ArrayList(), transaction.filterFiles().iterator()
    while files.hasNext():
        java = files.next()
        add = json.loads(java.json())["add"]
        path = Path(table.location, add["path"])
        copy = shutil.copy(path, path.with_name(f"compacted-{path.name}"))
        add |= {"path": str(Path(copy).relative_to(table.location)), "dataChange": False}
        actions.add(java.remove())
        actions.add(getattr(getattr(delta.actions, "Action$"), "MODULE$").fromJson(json.dumps({"add": add})))
    operation = getattr(getattr(delta, "DeltaOperations$ManualUpdate$"), "MODULE$")
    written = jvm.org.apache.spark.api.python.PythonUtils.toSeq(actions)
    return lambda: transaction.commit(written, operation)


def test_a_compaction_that_began_before_its_partition_went_cannot_bring_it_back(driver: DeltaDriver) -> None:
    table = driver.create("compaction_late", partitioned=True)
    driver.append(table, [(1, "a", DAY), (2, "b", NEXT)])
    compact = compaction_begun(driver, table)
    assert commit(driver, partition_drop(driver, table, DAY)).sent_back == {}
    with pytest.raises(Py4JJavaError, match="ConcurrentDelete"):
        compact()
    assert ids_of(driver, table) == [2]
    compaction_begun(driver, table)()
    assert ids_of(driver, table) == [2], "one that began after it commits, and has nothing to bring"


@pytest.mark.deep
def test_a_writer_that_is_always_faster_ends_in_a_conflict_and_a_whole_table(
    driver: DeltaDriver, meanwhile: Meanwhile
) -> None:
    table = driver.create("busy_writer", partitioned=True)
    driver.append(table, [(1, "a", DAY), (2, "b", NEXT)])
    removal = partition_drop(driver, table, DAY)
    written = [10]

    def write() -> None:
        written.append(written[-1] + 1)
        driver.append(table, [(written[-1], "w", NEXT)])

    meanwhile(write)
    with pytest.raises(ConflictError):
        commit(driver, removal)
    assert ids_of(driver, table) == [1, 2, 11, 12, 13, 14, 15]


@pytest.mark.spark41
@pytest.mark.parametrize(
    ("type_", "cutoff"), deep_after_first(("DATE", "2026-02-01"), ("TIMESTAMP", "2026-02-01T00:00:00.000000Z"))
)
def test_rows_before_a_cutoff_go_and_null_stays(driver: DeltaDriver, type_: str, cutoff: str) -> None:
    table = driver.create(f"rows_{type_.lower()}", columns=f"id BIGINT, at {type_}")
    driver.spark.sql(
        f"INSERT INTO {table.sql} VALUES (1, CAST('2026-01-01' AS {type_})), (2, CAST('2026-03-01' AS {type_})),"
        f" (3, NULL)"
    )
    removal = Removal(found=find(driver, table), rows=(RowDelete("policy", column="at", cutoff=cutoff),))
    outcome = commit(driver, removal)
    assert outcome.done == ("policy",)
    assert ids_of(driver, table) == [2, 3]
    assert commit(driver, removal) == outcome, "nothing matches any more, so nothing is committed"
    where = (RowDelete("own", where="id = 2"), RowDelete("bad", where="no_such_column = 1"))
    outcome = commit(driver, replace(removal, rows=where))
    assert (outcome.done, set(outcome.sent_back)) == (("own",), {"bad"})
    assert ids_of(driver, table) == [3]


def drop_of(driver: DeltaDriver, table: Table) -> Removal:
    files = {f.path: f.bytes or 0 for f in read(driver, table).files}
    return Removal(found=find(driver, table), files=files, table=True)


@pytest.mark.spark41
def test_a_dropped_table_takes_only_the_files_that_were_named_and_its_log_last(driver: DeltaDriver) -> None:
    table = history(driver, "dropped")
    foreign = Path(table.location, "notes.txt")
    foreign.write_text("somebody else's")
    removal = drop_of(driver, table)
    shared = next(path for path in removal.files if path.endswith(".parquet"))
    assert commit(driver, removal).done == (str(table.id),)
    batches = iter([None])

    def lose_the_lease() -> None:
        if next(batches, "over") == "over":
            raise LeaseError("the lease is over", fence=1)

    wanted = [path for path in removal.files if path != shared]
    with pytest.raises(LeaseError):
        FORMAT.delete_files(removal, wanted, driver.catalog, driver.spark, lose_the_lease)
    assert on_disk(table) == {shared, normalise(str(foreign))}
    assert listed(driver, table), "what is left of it can still be found"
    assert commit(driver, removal).done == (str(table.id),)
    for _ in range(2):
        assert free(driver, removal, wanted) == FileDeletion()
    assert not listed(driver, table)
    assert on_disk(table) == {shared, normalise(str(foreign))}


def test_a_table_that_was_written_to_since_the_plan_is_not_dropped(driver: DeltaDriver) -> None:
    table = history(driver, "dropped_late")
    removal = drop_of(driver, table)
    driver.append(table, [(7, "g", DAY)])
    rows, disk = driver.rows(table), on_disk(table)
    assert commit(driver, removal).sent_back == {str(table.id): "it was written to since the plan"}
    assert free(driver, removal) == FileDeletion(because="it was written to since the plan")
    assert (driver.rows(table), on_disk(table)) == (rows, disk)


def test_a_version_between_two_that_a_vacuum_broke_is_not_expired(driver: DeltaDriver) -> None:
    table = driver.create("restored")
    driver.append(table, [(1, "a", DAY)])  # 1
    driver.overwrite(table, [(2, "b", DAY)])  # 2
    driver.rollback(table, "1")  # 3: the first file again
    driver.overwrite(table, [(3, "c", DAY)])  # 4
    first = next(f for f in read(driver, table).files if f.first_transaction == "1" and f.role is Role.DATA)
    assert free(driver, Removal(found=find(driver, table), files={first.path: first.bytes or 0})) == FileDeletion()
    reading = read(driver, table)
    assert [t.id for t in reading.transactions if t.expired] == ["1", "3"]
    assert ids_of(driver, table, "2") == [2]


def test_a_live_file_that_is_missing_makes_the_table_unknown(driver: DeltaDriver) -> None:
    table = history(driver, "damaged")
    free(driver, expiry(driver, table, ["1", "2"]))
    assert read(driver, table).unknown == ()
    live = next(f.path for f in read(driver, table).files if f.live and f.role is Role.DATA)
    Path(live.removeprefix("file://")).unlink()
    reading = read(driver, table)
    assert reading.unknown == ("1 files of the current version are missing",)
    assert live in {f.path for f in reading.files}
    assert not any(t.expired for t in reading.transactions)
