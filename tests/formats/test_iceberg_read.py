"""What is special to Iceberg: catalogs, views, refs of empty tables, statistics, settings, old metadata."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from ebbtide.formats.base import Depth
from ebbtide.formats.iceberg import FORMAT
from ebbtide.model.dataset import Catalog, NotFound, Reading, Role, TableHandle
from ebbtide.model.history import RefKind, TransactionKind
from ebbtide.model.ids import DatasetId
from ebbtide.model.paths import local_path
from tests.conformance.driver import Table
from tests.conformance.drivers.iceberg import IcebergDriver
from tests.tiers import deep_after_first

DAY = "2026-01-01"


@pytest.fixture(params=deep_after_first("lake", "ice"), ids=["jdbc", "hadoop"])
def driver(request: pytest.FixtureRequest, spark: SparkSession, catalogs: Mapping[str, Catalog]) -> IcebergDriver:
    return IcebergDriver(spark, catalogs[request.param])


@pytest.fixture
def jdbc(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> IcebergDriver:
    return IcebergDriver(spark, catalogs["lake"])


@pytest.fixture
def hadoop(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> IcebergDriver:
    return IcebergDriver(spark, catalogs["ice"])


def found(driver: IcebergDriver, table: Table) -> TableHandle:
    (match,) = [a for a in FORMAT.discover(driver.catalog) if isinstance(a, TableHandle) and a.id == table.id]
    return match


def read(driver: IcebergDriver, table: Table) -> Reading:
    return FORMAT.read(found(driver, table), driver.catalog, Depth.FILES, None)


def on_disk(reading: Reading) -> set[str]:
    root = Path(local_path(reading.location) or "")
    return {str(p) for p in root.rglob("*") if p.is_file() and not (p.name.startswith(".") and p.suffix == ".crc")}


def paths(reading: Reading, *roles: Role) -> set[str]:
    return {local_path(f.path) or "" for f in reading.files if not roles or f.role in roles}


def test_both_catalog_types_reference_all_that_they_wrote(driver: IcebergDriver) -> None:
    table = driver.create("both", partitioned=True)
    driver.append(table, [(1, "a", DAY)])
    driver.delete(table, "id = 1")
    reading = read(driver, table)
    assert on_disk(reading) == paths(reading)
    hints = [p for p in paths(reading, Role.METADATA) if p.endswith("version-hint.text")]
    assert len(hints) == (1 if driver.catalog.type == "hadoop" else 0)


def test_views_are_no_datasets(jdbc: IcebergDriver) -> None:
    table = jdbc.create("viewed")
    jdbc.append(table, [(1, "a", DAY)])
    jdbc.spark.sql(f"CREATE OR REPLACE VIEW lake.db.a_view AS SELECT id FROM {table.sql}")
    names = {a.id.table for a in FORMAT.discover(jdbc.catalog) if isinstance(a, TableHandle)}
    assert "viewed" in names
    assert "a_view" not in names


@pytest.mark.deep
def test_hadoop_namespaces_may_be_nested(hadoop: IcebergDriver) -> None:
    hadoop.spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.outer")
    hadoop.spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.outer.inner")
    hadoop.spark.sql("CREATE TABLE ice.outer.inner.deep (id BIGINT) USING iceberg")
    ids = {str(a.id) for a in FORMAT.discover(hadoop.catalog) if isinstance(a, TableHandle)}
    assert "ice.outer.inner.deep" in ids


def test_a_hadoop_table_whose_metadata_is_gone_is_named_and_the_others_stay(hadoop: IcebergDriver) -> None:
    broken, whole = hadoop.create("headless"), hadoop.create("whole")
    for path in Path(broken.location, "metadata").glob("v*.metadata.json"):
        path.unlink()
    answers = list(FORMAT.discover(hadoop.catalog))
    assert [a.name for a in answers if isinstance(a, NotFound)] == ["ice.db.headless"]
    assert whole.id in {a.id for a in answers if isinstance(a, TableHandle)}
    Path(broken.location, "metadata", "version-hint.text").unlink()


def test_a_branch_on_an_empty_table_leaves_main_without_a_head(jdbc: IcebergDriver) -> None:
    table = jdbc.create("branch_first")
    jdbc.create_branch(table, "dev")
    reading = read(jdbc, table)
    assert {r.name: (r.kind, r.main) for r in reading.refs} == {
        "dev": (RefKind.BRANCH, False),
        "main": (RefKind.BRANCH, True),
    }
    heads = {r.name: r.head for r in reading.refs}
    assert heads["main"] is None
    assert heads["dev"] == reading.transactions[0].id
    assert reading.transactions[0].kind is TransactionKind.METADATA


def test_an_insert_of_nothing_is_metadata(jdbc: IcebergDriver) -> None:
    table = jdbc.create("no_rows")
    jdbc.append(table, [(1, "a", DAY)])
    jdbc.spark.sql(f"INSERT INTO {table.sql} SELECT * FROM {table.sql} WHERE id < 0")
    assert [t.kind for t in read(jdbc, table).transactions] == [TransactionKind.APPEND, TransactionKind.METADATA]


def test_statistics_of_both_kinds_are_referenced(jdbc: IcebergDriver) -> None:
    table = jdbc.create("measured", partitioned=True)
    jdbc.append(table, [(1, "a", DAY)])
    jdbc._call("compute_table_stats", "table => 'db.measured'")
    jdbc._call("compute_partition_stats", "table => 'db.measured'")
    reading = read(jdbc, table)
    statistics = paths(reading, Role.STATISTICS)
    assert len(statistics) == 2
    assert on_disk(reading) == paths(reading)
    head = reading.transactions[-1].id
    assert {f.first_transaction for f in reading.files if f.role is Role.STATISTICS} == {head}


def test_settings_that_limit_cleanup_are_floors(jdbc: IcebergDriver) -> None:
    table = jdbc.create("floored", properties={"history.expire.min-snapshots-to-keep": "5"})
    jdbc.append(table, [(1, "a", DAY)])
    jdbc.spark.sql(f"ALTER TABLE {table.sql} CREATE BRANCH b RETAIN 7 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 DAYS")
    reading = read(jdbc, table)
    assert reading.floors == {
        "history.expire.min-snapshots-to-keep": "5",
        "ref.b.min-snapshots-to-keep": "2",
        "ref.b.max-snapshot-age-ms": str(3 * 86_400_000),
        "ref.b.max-ref-age-ms": str(7 * 86_400_000),
    }
    assert reading.unknown == ()


def test_tables_that_share_or_scatter_their_files_are_not_fully_known(jdbc: IcebergDriver, tmp_path: Path) -> None:
    shared = jdbc.create("no_gc", properties={"gc.enabled": "false"})
    scattered = jdbc.create("scattered", properties={"write.data.path": f"file:{tmp_path}/elsewhere"})
    jdbc.append(scattered, [(1, "a", DAY)])
    assert any("gc.enabled" in reason for reason in read(jdbc, shared).unknown)
    reading = read(jdbc, scattered)
    assert any("write.data.path" in reason for reason in reading.unknown)
    (data,) = paths(reading, Role.DATA)
    assert data.startswith(f"{tmp_path}/elsewhere/")


def test_deletion_vectors_and_delete_files_have_their_roles(jdbc: IcebergDriver) -> None:
    for variant, role in (("v2", Role.DELETE_FILE), ("v3", Role.DELETION_VECTOR)):
        table = jdbc.create(f"roles_{variant}", variant=variant)
        jdbc.append(table, [(1, "a", DAY), (2, "b", DAY)])
        jdbc.delete(table, "id = 1")
        reading = read(jdbc, table)
        assert len(paths(reading, role)) == 1
        assert [t.kind for t in reading.transactions] == [TransactionKind.APPEND, TransactionKind.DELETE]
        assert reading.transactions[1].rows_removed == 1


@pytest.mark.deep
def test_a_compaction_takes_the_removed_rows_of_delete_files_along(jdbc: IcebergDriver) -> None:
    table = jdbc.create("compacted")
    jdbc.append(table, [(1, "a", DAY), (2, "b", DAY), (3, "c", DAY)])
    jdbc.delete(table, "id = 1")
    jdbc._call("rewrite_data_files", "table => 'db.compacted', options => map('rewrite-all', 'true')")
    last = read(jdbc, table).transactions[-1]
    assert (last.kind, last.rows_added, last.files_removed) == (TransactionKind.REWRITE, 2, 1)


@pytest.mark.deep
def test_older_metadata_files_than_the_log_names_are_still_referenced(jdbc: IcebergDriver) -> None:
    table = jdbc.create("long_log", properties={"write.metadata.previous-versions-max": "3"})
    for n in range(8):
        jdbc.append(table, [(n, "a", DAY)])
    reading = read(jdbc, table)
    metadata = paths(reading, Role.METADATA)
    assert len(metadata) == 9
    assert on_disk(reading) == paths(reading)


def test_metadata_files_that_iceberg_deleted_itself_are_no_references(driver: IcebergDriver) -> None:
    settings = {"write.metadata.previous-versions-max": "2", "write.metadata.delete-after-commit.enabled": "true"}
    table = driver.create("short_log", properties=settings)
    for n in range(6):
        driver.append(table, [(n, "a", DAY)])
    reading = read(driver, table)
    assert on_disk(reading) == paths(reading)


def test_metadata_files_are_referenced_where_they_are_and_missing_ones_only_where_nothing_may_delete_them(
    jdbc: IcebergDriver, tmp_path: Path
) -> None:
    table = jdbc.create("moved_log", properties={"write.metadata.previous-versions-max": "2"})
    for n in range(4):
        jdbc.append(table, [(n, "a", DAY)])
    before = paths(read(jdbc, table), Role.METADATA)
    jdbc.set_property(table, "write.metadata.path", f"file://{tmp_path}")
    for n in range(4):
        jdbc.append(table, [(n, "a", DAY)])
    metadata = paths(read(jdbc, table), Role.METADATA)
    assert before <= metadata, "another folder than the current one's"
    assert len(metadata) == 10
    (logged,) = [p for p in metadata if Path(p).name.startswith("00008")]
    Path(logged).unlink()
    assert paths(read(jdbc, table), Role.METADATA) == metadata, "nobody but a fault takes what the log names"


@pytest.mark.deep
def test_partition_dates_come_from_transforms(jdbc: IcebergDriver) -> None:
    jdbc.spark.sql(
        "CREATE TABLE lake.db.transforms (id BIGINT, at TIMESTAMP) USING iceberg "
        "PARTITIONED BY (days(at), bucket(2, id))"
    )
    jdbc.spark.sql("INSERT INTO lake.db.transforms VALUES (1, TIMESTAMP '2026-02-03 04:05:06'), (2, NULL)")
    table = Table(DatasetId("lake", ("db",), "transforms"), "", "lake.db.transforms")
    dated = {p.id: (str(p.first_day), str(p.last_day)) for p in read(jdbc, table).partitions}
    assert sorted(dated.values()) == [("2026-02-03", "2026-02-03"), ("None", "None")]


def test_a_date_that_no_calendar_has_is_none_and_the_rest_of_the_table_goes_on(jdbc: IcebergDriver) -> None:
    """Milliseconds taken for seconds: the year 55840."""
    fields = {"far_days": "days(at)", "far_at": "at", "far_day": "day", "far_hours": "hours(at)"}
    for name, field in fields.items():
        jdbc.spark.sql(
            f"CREATE TABLE lake.db.{name} (id BIGINT, at TIMESTAMP, day DATE) USING iceberg PARTITIONED BY ({field})"
        )
        jdbc.spark.sql(
            f"INSERT INTO lake.db.{name} SELECT id, at, CAST(at AS DATE) FROM VALUES "
            "(1, TIMESTAMP '2026-02-03 04:05:06'), (2, timestamp_seconds(1700000000000)) AS t(id, at)"
        )
        reading = read(jdbc, Table(DatasetId("lake", ("db",), name), "", f"lake.db.{name}"))
        assert sorted(str(p.last_day) for p in reading.partitions) == ["2026-02-03", "None"], name
        assert len({p.id for p in reading.partitions}) == 2


@pytest.mark.deep
def test_months_and_hours_cover_what_they_say(jdbc: IcebergDriver) -> None:
    for transform, expected in (("months", ("2026-02-01", "2026-02-28")), ("hours", ("2026-02-03", "2026-02-03"))):
        name = f"by_{transform}"
        jdbc.spark.sql(
            f"CREATE TABLE lake.db.{name} (id BIGINT, at TIMESTAMP) USING iceberg PARTITIONED BY ({transform}(at))"
        )
        jdbc.spark.sql(f"INSERT INTO lake.db.{name} VALUES (1, TIMESTAMP '2026-02-03 04:05:06')")
        (answer,) = [a for a in FORMAT.discover(jdbc.catalog) if isinstance(a, TableHandle) and a.id.table == name]
        (partition,) = FORMAT.read(answer, jdbc.catalog, Depth.FILES, None).partitions
        assert (str(partition.first_day), str(partition.last_day)) == expected


def test_a_file_that_two_tables_reference_is_in_both_readings(jdbc: IcebergDriver) -> None:
    """formats.md: table B that appended A's file. Only references over all datasets keep it."""
    a, b = jdbc.create("owner"), jdbc.create("borrower")
    jdbc.append(a, [(1, "a", DAY)])
    (file,) = paths(read(jdbc, a), Role.DATA)
    jvm = jdbc.spark._jvm
    assert jvm is not None
    load = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
    source = load(jdbc.spark._jsparkSession, "lake.db.owner")
    tasks = source.newScan().planFiles()
    iterator = tasks.iterator()
    append = load(jdbc.spark._jsparkSession, "lake.db.borrower").newFastAppend()
    append.appendFile(iterator.next().file())
    append.commit()
    tasks.close()
    assert paths(read(jdbc, b), Role.DATA) == {file}


@pytest.mark.deep
def test_nested_columns_are_listed_after_their_parent(jdbc: IcebergDriver) -> None:
    jdbc.spark.sql(
        "CREATE TABLE lake.db.nested (id BIGINT, who STRUCT<name: STRING, at: STRUCT<lat: DOUBLE>>) USING iceberg"
    )
    (answer,) = [a for a in FORMAT.discover(jdbc.catalog) if isinstance(a, TableHandle) and a.id.table == "nested"]
    reading = FORMAT.read(answer, jdbc.catalog, Depth.HISTORY, None)
    assert [c.name for c in reading.columns] == ["id", "who", "who.name", "who.at", "who.at.lat"]


@pytest.mark.deep
def test_a_full_overwrite_that_was_cherry_picked_starts_no_view(jdbc: IcebergDriver) -> None:
    """Its live file was added by an earlier transaction, the staged one (formats.md)."""
    table = jdbc.create("picked_overwrite", partitioned=True)
    jdbc.append(table, [(1, "a", DAY)])
    jdbc.set_property(table, "write.wap.enabled", "true")
    jdbc.spark.conf.set("spark.wap.id", "overwrite-1")
    try:
        jdbc._frame(table, [(2, "b", DAY)]).writeTo(table.sql).overwritePartitions()
    finally:
        jdbc.spark.conf.unset("spark.wap.id")
    staged = jdbc.native_ids(table)[-1]
    jdbc.set_property(table, "changed", "so that the pick is a new snapshot and no fast-forward")
    jdbc.append(table, [(3, "c", "2026-01-02")])
    jdbc.spark.sql(f"DELETE FROM {table.sql} WHERE day = '2026-01-02'")
    jdbc.cherry_pick(table, staged)
    reading = read(jdbc, table)
    picked = reading.transactions[-1]
    assert picked.files_removed == 1
    assert not picked.starts_view
    (live,) = [f for f in reading.files if f.live and f.role is Role.DATA]
    assert live.first_transaction == staged


@pytest.mark.deep
def test_the_date_is_in_one_column_over_all_specs(jdbc: IcebergDriver) -> None:
    """Evolution: months and days of one column are one; a spec that lacks it has no date, whatever it has instead."""
    jdbc.spark.sql(
        "CREATE TABLE lake.db.evolved (id BIGINT, at TIMESTAMP, tenant STRING) USING iceberg "
        "PARTITIONED BY (months(at))"
    )
    insert = "INSERT INTO lake.db.evolved VALUES ({}, TIMESTAMP '2026-02-03 04:05:06', '20200115')"
    jdbc.spark.sql(insert.format(1))
    jdbc.spark.sql("ALTER TABLE lake.db.evolved ADD PARTITION FIELD days(at)")
    jdbc.spark.sql(insert.format(2))
    jdbc.spark.sql("ALTER TABLE lake.db.evolved DROP PARTITION FIELD months(at)")
    jdbc.spark.sql("ALTER TABLE lake.db.evolved DROP PARTITION FIELD days(at)")
    jdbc.spark.sql("ALTER TABLE lake.db.evolved ADD PARTITION FIELD tenant")
    jdbc.spark.sql(insert.format(3))
    reading = read(jdbc, Table(DatasetId("lake", ("db",), "evolved"), "", "lake.db.evolved"))
    assert (reading.date_source.column, reading.date_source.by) == ("at", "type")
    found = {p.id.partition("/")[2]: (str(p.first_day), str(p.last_day)) for p in reading.partitions}
    assert found == {
        "at_month=2026-02": ("2026-02-01", "2026-02-28"),
        "at_month=2026-02/at_day=2026-02-03": ("2026-02-03", "2026-02-03"),
        "tenant=20200115": ("None", "None"),
    }


def test_a_file_under_two_spellings_is_one_file_that_both_versions_need(jdbc: IcebergDriver) -> None:
    """Writers spell a place in their own ways: the last one that was read must not be all that counts (hazard 1)."""
    table = jdbc.create("spelled", variant="v2")
    jdbc.append(table, [(1, "a", DAY)])
    first, at_first = read(jdbc, table), jdbc.native_ids(table)[0]
    (file,) = [f for f in first.files if f.role is Role.DATA]
    jdbc.overwrite(table, [(2, "b", DAY)])
    uri = jdbc.catalog.options["uri"].removeprefix("jdbc:")
    python = load_catalog(jdbc.catalog.name, type="sql", uri=uri.replace("sqlite:", "sqlite:///"))
    path = Path(local_path(file.path) or "")
    plain = pq.read_table(path).replace_schema_metadata(None)
    pq.write_table(pa.table({name: plain[name].to_pylist() for name in plain.column_names}), path)
    path.with_name(f".{path.name}.crc").unlink()
    python.load_table(("db", "spelled")).add_files([f"file://{path}"])
    jdbc.append(table, [(3, "c", DAY)])

    reading = read(jdbc, table)
    (again,) = [f for f in reading.files if f.path == file.path]
    order = [t.id for t in reading.transactions]
    versions = [order[n] for n in range(len(order)) if (again.versions or 0) >> n & 1]
    assert versions == [order[0], order[2], order[3]]
    assert (again.live, again.first_transaction, order[0]) == (True, at_first, at_first)
