"""Removing from Iceberg: exactly what was asked, each dangerous line of formats.md about it, and races.

Readings say what a table references; Spark reads every head back, row by row.
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
from pyspark.sql import Row, SparkSession

from ebbtide.errors import ConflictError, LeaseError, RefusedError
from ebbtide.formats.base import Depth
from ebbtide.formats.iceberg import FORMAT
from ebbtide.formats.iceberg.java import IcebergJavaTable
from ebbtide.model.dataset import Catalog, FileRef, Reading, Role, TableHandle
from ebbtide.model.paths import local_path, normalise
from ebbtide.model.removal import Committed, Drop, FileDeletion, Removal, RowDelete
from tests.conformance.driver import Table
from tests.conformance.drivers.iceberg import IcebergDriver
from tests.tiers import deep_after_first

DAY, NEXT = "2026-01-01", "2026-01-02"


@pytest.fixture(params=deep_after_first("lake", "ice"), ids=["jdbc", "hadoop"])
def driver(request: pytest.FixtureRequest, spark: SparkSession, catalogs: Mapping[str, Catalog]) -> IcebergDriver:
    return IcebergDriver(spark, catalogs[request.param])


@pytest.fixture
def jdbc(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> IcebergDriver:
    return IcebergDriver(spark, catalogs["lake"])


@pytest.fixture
def hadoop(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> IcebergDriver:
    return IcebergDriver(spark, catalogs["ice"])


def find(driver: IcebergDriver, table: Table) -> TableHandle:
    (match,) = [a for a in FORMAT.discover(driver.catalog) if isinstance(a, TableHandle) and a.id == table.id]
    return match


def listed(driver: IcebergDriver, table: Table) -> bool:
    return any(isinstance(a, TableHandle) and a.id == table.id for a in FORMAT.discover(driver.catalog))


def read(driver: IcebergDriver, table: Table) -> Reading:
    return FORMAT.read(find(driver, table), driver.catalog, Depth.FILES, None)


def on_disk(table: Table) -> set[str]:
    files = (p for p in Path(table.location).rglob("*") if p.is_file())
    return {normalise(str(p)) for p in files if not (p.name.startswith(".") and p.suffix == ".crc")}


def live(reading: Reading, *roles: Role) -> tuple[str, ...]:
    return tuple(f.path for f in reading.files if f.live and f.role in (roles or (Role.DATA,)))


def only_of(reading: Reading, versions: Collection[str]) -> dict[str, int]:
    """Files that these versions reference and no other version does."""
    mask = sum(1 << n for n, t in enumerate(reading.transactions) if t.id in versions)
    return {f.path: f.bytes or 0 for f in reading.files if f.versions and not f.versions & ~mask}


def expiry(driver: IcebergDriver, table: Table, versions: Iterable[str]) -> Removal:
    ids = tuple(versions)
    return Removal(found=find(driver, table), versions=ids, files=only_of(read(driver, table), ids))


def commit(driver: IcebergDriver, removal: Removal) -> Committed:
    return FORMAT.commit(removal, driver.catalog, driver.spark)


def free(driver: IcebergDriver, removal: Removal, paths: Iterable[str] | None = None) -> FileDeletion:
    wanted = list(removal.files) if paths is None else list(paths)
    return FORMAT.delete_files(removal, wanted, driver.catalog, driver.spark, lambda: None)


def heads(driver: IcebergDriver, table: Table) -> dict[str, list[Row]]:
    refs = driver.spark.sql(f"SELECT name, snapshot_id FROM {table.sql}.refs").collect()
    return {r.name: driver.rows(table, version=str(r.snapshot_id)) for r in refs}


def check_whole(driver: IcebergDriver, table: Table) -> Reading:
    """Everything that a retained version references is there, and every retained version can be read."""
    reading = read(driver, table)
    assert {f.path for f in reading.files} <= on_disk(table)
    for transaction in reading.transactions:
        driver.rows(table, version=transaction.id)
    return reading


def history(driver: IcebergDriver, name: str, **settings: Any) -> Table:
    """Five versions: two appends, an overwrite of everything, two appends; head has three rows."""
    table = driver.create(name, partitioned=True, **settings)
    driver.append(table, [(1, "a", DAY)])
    driver.append(table, [(2, "b", NEXT)])
    driver.overwrite(table, [(3, "c", DAY)])
    driver.append(table, [(4, "d", DAY)])
    driver.append(table, [(5, "e", NEXT)])
    return table


@pytest.mark.spark41
def test_versions_go_by_exactly_their_ids_in_any_order_and_with_exactly_their_files(driver: IcebergDriver) -> None:
    """formats.md: `expire_snapshots(snapshot_ids => …)` is not by id. Old versions around the one asked for stay."""
    table = history(driver, "by_id", properties={"history.expire.max-snapshot-age-ms": "1"})
    ids = driver.native_ids(table)
    before, rows, disk = read(driver, table), heads(driver, table), on_disk(table)
    removal = expiry(driver, table, [ids[3]])
    assert commit(driver, removal) == Committed(version=ids[-1], done=(ids[3],))
    assert driver.native_ids(table) == [id_ for id_ in ids if id_ != ids[3]]
    assert disk <= on_disk(table), "a commit removes no file"
    assert free(driver, removal) == FileDeletion()
    assert disk - on_disk(table) == set(removal.files)
    assert removal.files, "its manifest list at least is its own"
    assert heads(driver, table) == rows
    after = check_whole(driver, table)
    assert {f.path for f in before.files} - {f.path for f in after.files} == set(removal.files)


def test_data_files_that_only_removed_versions_reference_go_and_shared_ones_stay(driver: IcebergDriver) -> None:
    table = history(driver, "shared_files")
    ids, rows = driver.native_ids(table), heads(driver, table)
    removal = expiry(driver, table, ids[:2])
    data = {f.path for f in read(driver, table).files if f.role is Role.DATA}
    assert len(data & set(removal.files)) == 2
    commit(driver, removal)
    assert free(driver, removal) == FileDeletion()
    assert data & on_disk(table) == data - set(removal.files)
    assert heads(driver, table) == rows
    check_whole(driver, table)


def test_a_second_commit_and_a_second_free_change_nothing(driver: IcebergDriver) -> None:
    table = history(driver, "twice")
    removal = expiry(driver, table, driver.native_ids(table)[:2])
    first = commit(driver, removal)
    free(driver, removal)
    token, disk = find(driver, table).token, on_disk(table)
    assert commit(driver, removal) == first
    assert free(driver, removal) == FileDeletion()
    assert (find(driver, table).token, on_disk(table)) == (token, disk)


def test_a_tag_or_branch_at_a_version_sends_it_back_and_is_not_silently_dropped(driver: IcebergDriver) -> None:
    """formats.md: a tagged id is not refused by Iceberg, and the tag would go along."""
    table = history(driver, "tagged_late")
    ids = driver.native_ids(table)
    removal = expiry(driver, table, ids[:3])
    driver.create_tag(table, "pin", ids[1])
    outcome = commit(driver, removal)
    # The tag's whole line is new to the plan: what it reaches waits for the next one.
    assert set(outcome.sent_back) == {ids[0], ids[1]}
    assert "tag pin" in outcome.sent_back[ids[1]]
    assert outcome.done == (ids[2],)
    assert heads(driver, table)["pin"] == driver.rows(table, version=ids[1])
    assert driver.native_ids(table) == [ids[0], ids[1], *ids[3:]]


def test_a_head_is_sent_back_whatever_was_asked(jdbc: IcebergDriver) -> None:
    table = history(jdbc, "head_asked")
    ids, rows = jdbc.native_ids(table), heads(jdbc, table)
    outcome = commit(jdbc, expiry(jdbc, table, ids[-1:]))
    assert "branch main" in outcome.sent_back[ids[-1]]
    assert heads(jdbc, table) == rows


def test_a_branch_that_only_grew_does_not_stop_a_sweep_and_one_that_moved_does(jdbc: IcebergDriver) -> None:
    table = history(jdbc, "moved")
    ids = jdbc.native_ids(table)
    removal = expiry(jdbc, table, ids[:1])
    jdbc.append(table, [(6, "f", DAY)])
    assert commit(jdbc, removal).done == (ids[0],)
    removal = expiry(jdbc, table, ids[1:3])
    jdbc.rollback(table, ids[2])
    outcome = commit(jdbc, removal)
    assert set(outcome.sent_back) == {ids[1], ids[2]}


def test_a_staged_version_that_was_published_since_the_plan_is_sent_back(jdbc: IcebergDriver) -> None:
    table = jdbc.create("published")
    jdbc.append(table, [(1, "a", DAY)])
    staged = jdbc.stage(table, [(2, "b", DAY)])
    other = jdbc.stage(table, [(3, "c", DAY)])
    removal = expiry(jdbc, table, [staged, other])
    jdbc.spark.sql(f"ALTER TABLE {table.sql} UNSET TBLPROPERTIES ('write.wap.enabled')")
    jdbc.append(table, [(4, "d", DAY)])
    jdbc.cherry_pick(table, staged)
    outcome = commit(jdbc, removal)
    assert outcome.sent_back == {staged: "it was published since the plan"}
    assert outcome.done == (other,)
    assert [row.id for row in jdbc.rows(table)] == [1, 2, 4]


@pytest.mark.deep
def test_statistics_of_both_kinds_leave_the_metadata_with_their_version(jdbc: IcebergDriver) -> None:
    """Hazards 10 and 11."""
    table = jdbc.create("with_statistics", partitioned=True)
    jdbc.append(table, [(1, "a", DAY)])
    jdbc._call("compute_table_stats", "table => 'db.with_statistics'")
    jdbc._call("compute_partition_stats", "table => 'db.with_statistics'")
    jdbc.append(table, [(2, "b", DAY)])
    first = jdbc.native_ids(table)[0]
    removal = expiry(jdbc, table, [first])
    statistics = {f.path for f in read(jdbc, table).files if f.role is Role.STATISTICS}
    assert len(statistics) == 2
    assert statistics <= set(removal.files)
    commit(jdbc, removal)
    assert not [f for f in read(jdbc, table).files if f.role is Role.STATISTICS]
    assert free(jdbc, removal) == FileDeletion()
    assert not statistics & on_disk(table)
    check_whole(jdbc, table)


def partition_drop(driver: IcebergDriver, table: Table, day: str, branch: str = "main") -> Removal:
    reading = read(driver, table)
    (partition,) = {f.partition for f in reading.files if f.partition and f.partition.endswith(f"day={day}")}
    paths = tuple(f.path for f in reading.files if f.role is Role.DATA and f.live and f.partition == partition)
    assert paths
    return Removal(found=find(driver, table), drops=(Drop(branch, partition, paths, partition),))


@pytest.mark.spark41
@pytest.mark.parametrize("variant", deep_after_first("v2", "v1", "v3"))
def test_a_partition_goes_by_its_exact_files_in_one_metadata_commit(jdbc: IcebergDriver, variant: str) -> None:
    table = jdbc.create(f"partition_{variant}", variant=variant, partitioned=True)
    jdbc.append(table, [(1, "a", DAY), (2, "b", DAY), (3, "c", NEXT), (4, "d", None)])
    if variant != "v1":
        jdbc.delete(table, "id = 1")
    before, disk = jdbc.native_ids(table), on_disk(table)
    removal = partition_drop(jdbc, table, DAY)
    outcome = commit(jdbc, removal)
    assert outcome.done == (removal.drops[0].object,)
    assert [row.id for row in jdbc.rows(table)] == [3, 4]
    assert len(jdbc.native_ids(table)) == len(before) + 1
    assert outcome.version == jdbc.native_ids(table)[-1]
    assert disk <= on_disk(table)
    assert commit(jdbc, removal).version == outcome.version, "asked again, nothing is committed"
    check_whole(jdbc, table)


def test_a_late_write_sends_its_partition_back_and_the_others_go(driver: IcebergDriver) -> None:
    table = driver.create("late_write", partitioned=True)
    driver.append(table, [(1, "a", DAY), (2, "b", NEXT), (3, "c", "2026-01-03")])
    first, second = partition_drop(driver, table, DAY), partition_drop(driver, table, NEXT)
    driver.append(table, [(9, "late", DAY)])
    outcome = commit(driver, replace(first, drops=(*first.drops, *second.drops)))
    assert outcome.sent_back == {first.drops[0].object: "1 files came into the partition since the plan"}
    assert outcome.done == (second.drops[0].object,)
    assert [row.id for row in driver.rows(table)] == [1, 3, 9]


def test_a_drop_on_a_branch_leaves_main_and_other_branches_alone(jdbc: IcebergDriver) -> None:
    table = jdbc.create("drop_on_branch", partitioned=True)
    jdbc.append(table, [(1, "a", DAY), (2, "b", NEXT)])
    jdbc.create_branch(table, "dev")
    jdbc.create_branch(table, "other")
    removal = partition_drop(jdbc, table, DAY, branch="dev")
    commit(jdbc, removal)
    assert [row.id for row in jdbc.rows(table, branch="dev")] == [2]
    assert [row.id for row in jdbc.rows(table)] == [1, 2]
    assert [row.id for row in jdbc.rows(table, branch="other")] == [1, 2]
    check_whole(jdbc, table)


def test_the_files_of_a_transaction_leave_the_head_and_the_rest_of_their_partition_stays(jdbc: IcebergDriver) -> None:
    table = jdbc.create("lifted", partitioned=True)
    jdbc.append(table, [(1, "a", DAY), (2, "b", NEXT)])
    first = jdbc.native_ids(table)[-1]
    jdbc.append(table, [(3, "c", DAY)])
    paths = tuple(f.path for f in read(jdbc, table).files if f.role is Role.DATA and f.first_transaction == first)
    removal = Removal(found=find(jdbc, table), drops=(Drop("main", first, paths),))
    assert commit(jdbc, removal).done == (first,)
    assert [row.id for row in jdbc.rows(table)] == [3]


@pytest.mark.deep
def test_files_are_dropped_as_data_files_and_never_deleted_on_the_spot(jdbc: IcebergDriver) -> None:
    """formats.md: a text given to `deleteFile` through py4j deletes the live file before any commit."""
    table = jdbc.create("on_the_spot", partitioned=True)
    jdbc.append(table, [(1, "a", DAY), (2, "b", NEXT)])
    first = jdbc.native_ids(table)[-1]
    disk = on_disk(table)
    commit(jdbc, partition_drop(jdbc, table, DAY))
    assert disk <= on_disk(table)
    assert [row.id for row in jdbc.rows(table, version=first)] == [1, 2]


@pytest.mark.deep
def test_the_same_day_under_two_specs_is_two_partitions(jdbc: IcebergDriver) -> None:
    table = jdbc.create("two_specs_drop", partitioned=True)
    jdbc.append(table, [(1, "a", DAY), (2, "b", None)])
    jdbc.add_partition_field(table)
    jdbc.append(table, [(3, "c", DAY), (4, "d", None)])
    reading = read(jdbc, table)
    old = next(p.id for p in reading.partitions if p.id.endswith(f"day={DAY}"))
    paths = tuple(f.path for f in reading.files if f.partition == old and f.role is Role.DATA)
    commit(jdbc, Removal(found=find(jdbc, table), drops=(Drop("main", old, paths, old),)))
    assert [row.id for row in jdbc.rows(table)] == [2, 3, 4]


ROWS = [(1, "'2026-01-01'"), (2, "'2026-03-01'"), (3, "NULL")]


@pytest.mark.spark41
@pytest.mark.parametrize(
    ("type_", "cutoff"),
    deep_after_first(
        ("TIMESTAMP", "2026-02-01T00:00:00Z"), ("DATE", "2026-02-01"), ("TIMESTAMP_NTZ", "2026-02-01T00:00:00.000000Z")
    ),
)
def test_rows_before_a_cutoff_go_and_null_stays_under_two_partition_specs(
    jdbc: IcebergDriver, type_: str, cutoff: str
) -> None:
    """formats.md: `DELETE … WHERE d < cutoff` also removes the NULL partition once there are two specs."""
    name = f"rows_{type_.lower()}"
    table = jdbc.create(name, columns=f"id BIGINT, at {type_}")
    by = "at" if type_ == "DATE" else "days(at)"
    values = ", ".join(f"({id_}, CAST({text} AS {type_}))" for id_, text in ROWS)
    jdbc.spark.sql(f"ALTER TABLE {table.sql} ADD PARTITION FIELD {by}")
    jdbc.spark.sql(f"INSERT INTO {table.sql} VALUES {values}")
    jdbc.spark.sql(f"ALTER TABLE {table.sql} ADD PARTITION FIELD bucket(2, id)")
    jdbc.spark.sql(f"INSERT INTO {table.sql} VALUES {values}")
    removal = Removal(found=find(jdbc, table), rows=(RowDelete("policy", column="at", cutoff=cutoff),))
    outcome = commit(jdbc, removal)
    assert outcome.done == ("policy",)
    assert [row.id for row in jdbc.rows(table)] == [2, 2, 3, 3]
    assert outcome.version == jdbc.native_ids(table)[-1]
    assert commit(jdbc, removal) == outcome, "nothing matches any more, so nothing is committed"


def test_a_predicate_of_a_person_spares_the_null_partition_too(jdbc: IcebergDriver) -> None:
    table = jdbc.create("rows_where", columns="id BIGINT, at DATE")
    jdbc.spark.sql(f"ALTER TABLE {table.sql} ADD PARTITION FIELD at")
    jdbc.spark.sql(f"INSERT INTO {table.sql} VALUES (1, DATE '2026-01-01'), (2, DATE '2026-03-01'), (3, NULL)")
    jdbc.spark.sql(f"ALTER TABLE {table.sql} ADD PARTITION FIELD bucket(2, id)")
    jdbc.spark.sql(f"INSERT INTO {table.sql} VALUES (1, DATE '2026-01-01'), (2, DATE '2026-03-01'), (3, NULL)")
    commit(jdbc, Removal(found=find(jdbc, table), rows=(RowDelete("p", where="at < DATE '2026-02-01'"),)))
    assert [row.id for row in jdbc.rows(table)] == [2, 2, 3, 3]


def test_rows_that_cannot_be_told_are_sent_back(jdbc: IcebergDriver) -> None:
    table = jdbc.create("rows_odd")
    jdbc.append(table, [(1, "a", DAY)])
    rows = (
        RowDelete("text", column="day", cutoff="2026-02-01"),
        RowDelete("none", column="gone", cutoff="2026-02-01"),
        RowDelete("bad", where="no_such_column = 1"),
    )
    outcome = commit(jdbc, Removal(found=find(jdbc, table), rows=rows))
    assert set(outcome.sent_back) == {"text", "none", "bad"}
    assert outcome.done == ()
    assert [row.id for row in jdbc.rows(table)] == [1]


def test_branches_are_dropped_never_main_never_a_tag_never_one_that_was_written_to(jdbc: IcebergDriver) -> None:
    table = jdbc.create("branches_drop")
    jdbc.append(table, [(1, "a", DAY)])
    for name in ("old", "used"):
        jdbc.create_branch(table, name)
    jdbc.create_tag(table, "pin")
    removal = Removal(found=find(jdbc, table), branches=("old", "used", "main", "pin", "never"))
    jdbc.append(table, [(2, "b", DAY)], branch="used")
    outcome = commit(jdbc, removal)
    assert outcome.done == ("old", "never")
    assert set(outcome.sent_back) == {"used", "main", "pin"}
    assert set(heads(jdbc, table)) == {"main", "used", "pin"}
    assert commit(jdbc, removal) == outcome


def test_a_branch_that_is_written_to_in_the_last_moment_is_not_dropped(
    jdbc: IcebergDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = jdbc.create("branches_race")
    jdbc.append(table, [(1, "a", DAY)])
    jdbc.create_branch(table, "old")
    removal, remove = Removal(found=find(jdbc, table), branches=("old",)), IcebergJavaTable.remove_branch
    late = [(2, "b", DAY)]

    def written_first(self: IcebergJavaTable, *asked: Any) -> None:
        if late:
            jdbc.append(table, [late.pop()], branch="old")
        remove(self, *asked)

    monkeypatch.setattr(IcebergJavaTable, "remove_branch", written_first)
    outcome = commit(jdbc, removal)
    assert not late
    assert set(outcome.sent_back) == {"old"}
    assert [row.id for row in heads(jdbc, table)["old"]] == [1, 2]


def test_a_table_without_gc_is_refused_in_commit_and_in_free(jdbc: IcebergDriver) -> None:
    table = history(jdbc, "no_gc_sweep")
    removal = expiry(jdbc, table, jdbc.native_ids(table)[:1])
    jdbc.set_property(table, "gc.enabled", "false")
    disk, ids = on_disk(table), jdbc.native_ids(table)
    for removal_ in (removal, replace(removal, table=True)):
        with pytest.raises(RefusedError, match=r"gc\.enabled"):
            commit(jdbc, removal_)
        with pytest.raises(RefusedError, match=r"gc\.enabled"):
            free(jdbc, removal_)
    assert (on_disk(table), jdbc.native_ids(table)) == (disk, ids)


def test_a_table_that_was_made_anew_under_the_name_is_refused(jdbc: IcebergDriver) -> None:
    table = history(jdbc, "anew")
    removal = expiry(jdbc, table, jdbc.native_ids(table)[:1])
    dropped = drop_of(jdbc, table)
    jdbc.spark.sql(f"DROP TABLE {table.sql}")  # its files stay
    again = history(jdbc, "anew")
    disk, ids = on_disk(again), jdbc.native_ids(again)
    for removal_ in (removal, dropped):
        with pytest.raises(RefusedError, match="another table"):
            commit(jdbc, removal_)
        with pytest.raises(RefusedError, match="another table"):
            free(jdbc, removal_)
    assert (on_disk(again), jdbc.native_ids(again)) == (disk, ids)


def test_a_table_without_an_id_is_refused(jdbc: IcebergDriver) -> None:
    """Tables of the first version need none. What Java commits to such a one, pyiceberg cannot read any more."""
    table = history(jdbc, "no_id", variant="v1")
    metadata = Path(find(jdbc, table).handle.removeprefix("file://").removeprefix("file:"))
    text = json.loads(metadata.read_text())
    del text["table-uuid"]
    metadata.write_text(json.dumps(text))
    metadata.with_name(f".{metadata.name}.crc").unlink()
    removal = expiry(jdbc, table, jdbc.native_ids(table)[:1])
    disk = on_disk(table)
    for refused in (commit, free):
        with pytest.raises(RefusedError, match="has no id"):
            refused(jdbc, removal)
    assert on_disk(table) == disk


def test_files_go_though_the_metadata_of_the_plan_was_cleaned_away(jdbc: IcebergDriver) -> None:
    table = history(jdbc, "cleaned")
    removal = expiry(jdbc, table, jdbc.native_ids(table)[:1])
    assert commit(jdbc, removal).done == removal.versions
    Path(removal.found.handle.removeprefix("file://").removeprefix("file:")).unlink()
    rows = jdbc.rows(table)
    assert free(jdbc, removal) == FileDeletion()
    assert not removal.files.keys() & on_disk(table)
    assert jdbc.rows(table) == rows


def test_files_that_the_plan_did_not_name_are_refused(jdbc: IcebergDriver) -> None:
    table = history(jdbc, "unnamed")
    removal = expiry(jdbc, table, jdbc.native_ids(table)[:1])
    disk = on_disk(table)
    with pytest.raises(RefusedError, match="did not name"):
        free(jdbc, removal, [*removal.files, live(read(jdbc, table))[0]])
    assert on_disk(table) == disk


def drop_of(driver: IcebergDriver, table: Table) -> Removal:
    files: tuple[FileRef, ...] = read(driver, table).files
    return Removal(found=find(driver, table), files={f.path: f.bytes or 0 for f in files}, table=True)


def test_a_dropped_table_takes_only_the_files_that_were_named(driver: IcebergDriver) -> None:
    """formats.md: a table that appended another's file. A Hadoop catalog's own drop takes the whole folder."""
    table = history(driver, "dropped")
    borrower = driver.create("keeps_its_file", partitioned=True)
    removal = drop_of(driver, table)
    jvm: Any = driver.spark._jvm
    load = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
    tasks = load(driver.spark._jsparkSession, table.sql).newScan().planFiles()
    shared = tasks.iterator().next().file()
    append = load(driver.spark._jsparkSession, borrower.sql).newFastAppend()
    append.appendFile(shared)
    append.commit()
    foreign = Path(table.location, "notes.txt")
    foreign.write_text("somebody else's")
    assert commit(driver, removal).done == (str(table.id),)
    going = set(removal.files) - {normalise(shared.location())}
    assert set(removal.files) <= on_disk(table), "dropping is metadata only"
    assert free(driver, removal, going) == FileDeletion()
    assert not listed(driver, table)
    assert on_disk(table) == {normalise(shared.location()), normalise(str(foreign))}
    assert len(driver.rows(borrower)) == 1
    assert commit(driver, removal).done == (str(table.id),)
    assert free(driver, removal, going) == FileDeletion()
    driver.drop(borrower)


def test_a_table_that_was_written_to_since_the_plan_is_not_dropped(driver: IcebergDriver) -> None:
    table = history(driver, "dropped_late")
    removal = drop_of(driver, table)
    driver.append(table, [(7, "g", DAY)])
    rows = driver.rows(table)
    assert commit(driver, removal).sent_back == {str(table.id): "it was written to since the plan"}
    assert free(driver, removal) == FileDeletion(because="the table is in use again")
    assert driver.rows(table) == rows
    check_whole(driver, table)


@pytest.mark.deep
def test_a_hadoop_table_goes_with_its_last_metadata_file_last(hadoop: IcebergDriver) -> None:
    table = history(hadoop, "dropped_folder")
    removal = drop_of(hadoop, table)
    commit(hadoop, removal)
    batches = iter([None])

    def lose_the_lease() -> None:
        if next(batches, "over") == "over":
            raise LeaseError("the lease is over", fence=1)

    with pytest.raises(LeaseError):
        FORMAT.delete_files(removal, list(removal.files), hadoop.catalog, hadoop.spark, lose_the_lease)
    left = {path.rsplit("/", 1)[-1] for path in on_disk(table)}
    assert left == {removal.found.handle.rsplit("/", 1)[-1], "version-hint.text"}
    assert listed(hadoop, table), "what is left of it can still be found"
    assert free(hadoop, removal) == FileDeletion()
    assert not listed(hadoop, table)


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Let a real writer commit each time after the table was looked at and before the commit is made."""

    def arrange(write: Callable[[], None]) -> None:
        remove, delete = IcebergJavaTable.remove_snapshots, IcebergJavaTable.delete_files

        def removing(self: IcebergJavaTable, *given: Any) -> None:
            write()
            remove(self, *given)

        def deleting(self: IcebergJavaTable, *given: Any) -> None:
            write()
            delete(self, *given)

        monkeypatch.setattr(IcebergJavaTable, "remove_snapshots", removing)
        monkeypatch.setattr(IcebergJavaTable, "delete_files", deleting)

    return arrange


Meanwhile = Callable[[Callable[[], None]], None]


def once(action: Callable[[], None]) -> Callable[[], None]:
    left = [action]

    def act() -> None:
        if left:
            left.pop()()

    return act


def test_a_tag_that_comes_while_versions_go_is_seen_at_the_next_attempt(
    driver: IcebergDriver, meanwhile: Meanwhile
) -> None:
    table = history(driver, "tag_race")
    ids = driver.native_ids(table)
    removal = expiry(driver, table, [ids[2]])
    rows = driver.rows(table, version=ids[2])
    meanwhile(once(lambda: driver.create_tag(table, "quick", ids[2])))
    assert set(commit(driver, removal).sent_back) == {ids[2]}
    assert heads(driver, table)["quick"] == rows


def test_a_late_file_that_comes_while_its_partition_goes_is_seen_at_the_next_attempt(
    jdbc: IcebergDriver, meanwhile: Meanwhile
) -> None:
    table = jdbc.create("file_race", partitioned=True)
    jdbc.append(table, [(1, "a", DAY), (2, "b", NEXT)])
    removal = partition_drop(jdbc, table, DAY)
    meanwhile(once(lambda: jdbc.append(table, [(3, "c", DAY)])))
    assert set(commit(jdbc, removal).sent_back) == {removal.drops[0].object}
    assert [row.id for row in jdbc.rows(table)] == [1, 2, 3]


def test_a_compaction_that_comes_while_its_partition_goes_sends_it_back(
    jdbc: IcebergDriver, meanwhile: Meanwhile
) -> None:
    table = jdbc.create("compaction_race", partitioned=True)
    for number, day in ((1, DAY), (2, DAY), (3, NEXT)):
        jdbc.append(table, [(number, "a", day)])
    removal = partition_drop(jdbc, table, DAY)
    meanwhile(once(lambda: jdbc.compact(table)))
    assert set(commit(jdbc, removal).sent_back) == {removal.drops[0].object}
    assert [row.id for row in jdbc.rows(table)] == [1, 2, 3], "half a partition never goes"
    check_whole(jdbc, table)


def compaction_begun(driver: IcebergDriver, table: Table) -> Callable[[], None]:
    """A compaction that has read the table and written its files; it commits when it is called."""
    jvm: Any = driver.spark._jvm
    java = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(driver.spark._jsparkSession, table.sql)
    old, new = jvm.java.util.HashSet(), jvm.java.util.HashSet()
    tasks = java.newScan().planFiles().iterator()
    while tasks.hasNext():
        file = tasks.next().file()
        path = Path(normalise(file.location()).removeprefix("file://"))
        copy = shutil.copy(path, path.with_name(f"compacted-{path.name}"))
        old.add(file)
        new.add(jvm.org.apache.iceberg.DataFiles.builder(java.spec()).copy(file).withPath(str(copy)).build())
    rewrite = java.newRewrite().validateFromSnapshot(java.currentSnapshot().snapshotId()).rewriteFiles(old, new)
    commit_it: Callable[[], None] = rewrite.commit
    return commit_it


def test_a_compaction_that_began_before_its_partition_went_cannot_bring_it_back(jdbc: IcebergDriver) -> None:
    table = jdbc.create("compaction_late", partitioned=True)
    jdbc.append(table, [(1, "a", DAY), (2, "b", NEXT)])
    compact = compaction_begun(jdbc, table)
    assert commit(jdbc, partition_drop(jdbc, table, DAY)).sent_back == {}
    with pytest.raises(Py4JJavaError, match="ValidationException: Missing required files to delete"):
        compact()
    assert [row.id for row in jdbc.rows(table)] == [2]
    compaction_begun(jdbc, table)()
    assert [row.id for row in jdbc.rows(table)] == [2], "one that began after it commits, and has nothing to bring"


def test_a_write_elsewhere_only_delays_a_drop(jdbc: IcebergDriver, meanwhile: Meanwhile) -> None:
    table = jdbc.create("other_race", partitioned=True)
    jdbc.append(table, [(1, "a", DAY), (2, "b", NEXT)])
    removal = partition_drop(jdbc, table, DAY)
    meanwhile(once(lambda: jdbc.append(table, [(3, "c", NEXT)])))
    assert commit(jdbc, removal).sent_back == {}
    assert [row.id for row in jdbc.rows(table)] == [2, 3]


def test_a_writer_that_is_always_faster_ends_in_a_conflict_and_a_whole_table(
    driver: IcebergDriver, meanwhile: Meanwhile
) -> None:
    table = history(driver, "busy_writer")
    ids, count = driver.native_ids(table), [0]
    removal = expiry(driver, table, ids[:2])

    def write() -> None:
        count[0] += 1
        driver.set_property(table, "written", str(count[0]))

    meanwhile(write)
    with pytest.raises(ConflictError):
        commit(driver, removal)
    assert count == [5]
    assert driver.native_ids(table) == ids
    check_whole(driver, table)


def test_paths_are_what_the_reading_calls_them(jdbc: IcebergDriver) -> None:
    """Odd partition values: the plan's normalised path finds the manifest's own spelling."""
    table = jdbc.create("odd tåble", partitioned=True)
    odd = "a b%/c:é=#?"
    jdbc.append(table, [(1, "a", odd), (2, "b", DAY)])
    reading = read(jdbc, table)
    (file,) = [f for f in reading.files if f.role is Role.DATA and DAY not in (f.partition or "")]
    assert Path(local_path(file.path) or "").exists()
    removal = Removal(found=find(jdbc, table), drops=(Drop("main", "odd", (file.path,), file.partition),))
    assert commit(jdbc, removal).done == ("odd",)
    assert [row.id for row in jdbc.rows(table)] == [2]
