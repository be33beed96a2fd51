"""Orphans on real tables of all four formats: what nothing references is found, and nothing else ever is.

One lake is built, and strays of every kind are laid into it; then the storage is listed, references are read, and each
test asks about one kind. What must never be found is the longer list (formats.md, "Never an orphan").
"""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from ebbtide.app.orphans import OrphanLook, condemn, list_project, look, search, with_orphans
from ebbtide.app.scan import run_scan, start_session
from ebbtide.app.world import world_of
from ebbtide.config import Project, load_project
from ebbtide.config.policies import load_policies
from ebbtide.config.project import PlanSettings
from ebbtide.errors import InputError, RefusedError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.listing import list_storage, look_again
from ebbtide.inventory.markers import are_views
from ebbtide.inventory.orphans import find_orphans
from ebbtide.inventory.ownership import places
from ebbtide.lineage.labelled import label_inventory
from ebbtide.model.dataset import Catalog
from ebbtide.plan.build import build_plan
from ebbtide.plan.world import Orders
from tests.conformance.driver import Driver, Table
from tests.conformance.drivers import load_driver
from tests.conformance.drivers.delta import DeltaDriver
from tests.inventory.test_scan import run
from tests.storage.conftest import options_of, s3_endpoint  # noqa: F401 - a fixture

PROJECT = """\
project: orphans
catalogs:
  olake:   {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
  oevents: {format: delta, warehouse: ./delta}
  ocdc:    {format: hudi, warehouse: ./hudi}
  ostream: {format: paimon, warehouse: ./paimon}
warehouses: [{prefix: ., exclusive: true}]
"""
POLICY = 'policies:\n  - {name: strays, select: {tables: ["**"]}, orphans: {older_than: 3d}}\n'
ROWS = [(1, "a", "2026-01-01"), (2, "b", "a b%2F=ü:c"), (3, "c", None)]
OLD, YOUNG = timedelta(days=10), timedelta(hours=1)

# Under the table's folder: what a writer that died may have left.
STRAYS = {
    "iceberg": ["data/day=2026-01-01/stray.parquet", "data/stray.orc", "data/day=a+b%252F%3D%C3%BC%3Ac/deep/s.avro",
                "data/dv.puffin", "metadata/stray-m0.avro", "metadata/snap-1-1-stray.avro", "metadata/1-stray.stats",
                "metadata/00000-stray.metadata.json"],
    "delta": ["part-stray.parquet", "day=2026-01-01/part-stray.parquet", "_day=1/part-stray.parquet",
              "deletion_vector_stray.bin", "_change_data/cdc-stray.parquet"],
    "paimon": ["bucket-0/data-stray-0.parquet", "day=x/bucket-0/changelog-stray-0.orc", "manifest/manifest-stray",
               "manifest/manifest-list-stray-0", "index/index-stray-0", "statistics/stat-stray-0"],
}  # fmt: skip
# And what may never be taken for that.
NEVER = {
    "iceberg": ["stray.parquet", "extra/stray.parquet", "metadata/version-hint.text",
                "metadata/99999-newer.metadata.json", "metadata/v99999.metadata.json", "metadata/odd.metadata.json",
                "data/notes.txt", "data/catalog.db"],
    "delta": ["_delta_log/stray.parquet.tmp", "_delta_log/_sidecars/s.parquet", "export.csv",
              "metastore_db/seg0/c10.parquet", "notes.txt", "dump.sqlite-wal"],
    "paimon": ["schema/stray", "snapshot/stray", "tag/stray", "branch/stray", "changelog/stray", "consumer/stray",
               "snapshot/bucket-0/data-stray.parquet", "notes.txt", "bucket-0/notes.txt"],
    "hudi": ["stray.parquet", "day=1/stray.parquet", ".hoodie/stray.parquet"],
}  # fmt: skip
NEVER_ANYWHERE = [
    "_SUCCESS", "_temporary/0/part.parquet", ".spark-staging-7/part.parquet", "_spark_metadata/0.parquet",
    ".ebbtide/x.parquet", "_checkpoints/offsets/0", ".hidden/part.parquet", ".part.parquet.crc", "_stray.parquet",
    "stream/offsets/0", "stream/commits/0", "stream/state/0/0/1.parquet", "nested/_delta_log/00000000000000000000.json",
    "nested/part.parquet", "inner/metadata/v1.metadata.json", "inner/data/part.parquet", "h/.hoodie/hoodie.properties",
    "h/part.parquet", "pai/schema/schema-0", "pai/bucket-0/data-x.parquet",
]  # fmt: skip
VIEW = "00000-view.gz.metadata.json"
AREAS = {"iceberg": "data/", "delta": "", "paimon": "", "hudi": ""}


@dataclass
class Lake:
    root: Path
    project: Project
    spark: SparkSession
    drivers: dict[str, Driver]
    tables: dict[str, Table] = field(default_factory=dict)
    rows: dict[str, list[Any]] = field(default_factory=dict)

    def lay(self, path: Path, age: timedelta = OLD, content: str = "stray") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        then = (datetime.now(UTC) - age).timestamp()
        os.utime(path, (then, then))
        return path

    def make(self, format_: str, name: str, **options: Any) -> Table:
        driver = self.drivers[format_]
        table = driver.create(name, partitioned=True, **options)
        driver.append(table, ROWS)
        driver.append(table, [(4, "d", "2026-01-02"), (5, "e", "2026-01-02")])
        driver.delete(table, "id = 4")
        return table


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("xdg"))
    root = tmp_path_factory.mktemp("orphans")
    (root / "ebbtide.yml").write_text(PROJECT)
    for folder in ("lake", "delta", "hudi", "paimon", "policies"):
        (root / folder).mkdir()
    (root / "policies" / "p.yml").write_text(POLICY)
    project = load_project(root / "ebbtide.yml")
    start_session(project)
    spark.sql("CREATE NAMESPACE olake.db")
    drivers = {c.format: load_driver(spark, c) for c in project.catalogs.values()}
    made = Lake(root, project, spark, drivers)
    made.tables["iceberg"] = made.make("iceberg", "t", properties={"write.metadata.previous-versions-max": "2"})
    made.tables["sibling"] = made.make("iceberg", "t_2")
    made.tables["delta"] = made.make("delta", "d", variant="vectors",
                                     properties={"delta.enableChangeDataFeed": "true"})  # fmt: skip
    made.tables["hudi"] = made.make("hudi", "h")
    made.tables["paimon"] = made.make("paimon", "p")
    for name, kept in (("cleaned", "7 days"), ("over", "0 seconds")):
        made.tables[name] = _cleaned(made, name, kept)
    spark.sql("CALL olake.system.compute_table_stats(table => 'db.t')").collect()
    spark.sql("CREATE VIEW olake.db.v AS SELECT id FROM olake.db.t")
    # A view may have a table's folder, where the table was renamed and the view has its name now.
    (view,) = (root / "lake" / "db" / "v" / "metadata").glob("*.metadata.json")
    shutil.copy(view, Path(made.tables["iceberg"].location, "metadata", VIEW))
    for name in ("dropped", "left"):
        made.tables[name] = made.make("iceberg", name)
    run_scan(project, now=datetime.now(UTC))
    for name in ("dropped", "left"):
        spark.sql(f"DROP TABLE {made.tables[name].sql}")
    # A purge that died on its way: metadata is gone, data is left.
    shutil.rmtree(Path(made.tables["left"].location, "metadata"))
    spark.range(3).write.format("delta").save(f"{root}/elsewhere/u")
    for format_, strays in (*STRAYS.items(), *NEVER.items()):
        for stray in strays:
            made.lay(Path(made.tables[format_].location, stray))
    for format_, area in AREAS.items():
        for stray in NEVER_ANYWHERE:
            made.lay(Path(made.tables[format_].location, area, stray))
    made.lay(Path(made.tables["iceberg"].location, "data", "young.parquet"), YOUNG)
    made.lay(Path(made.tables["iceberg"].location, "data", "no-time.parquet"), datetime.now(UTC) - datetime(1970, 1, 1, tzinfo=UTC))  # fmt: skip  # noqa: E501
    Path(made.tables["iceberg"].location, "data", "link.parquet").symlink_to(root / "ebbtide.yml")
    (root / "linked").mkdir()
    made.lay(root / "linked" / "s.parquet")
    Path(made.tables["delta"].location, "folder").symlink_to(root / "linked")
    yield made
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before


def _cleaned(lake: Lake, name: str, kept: str) -> Table:
    """A Delta table whose log no longer has the commit that removed its first, old files: a checkpoint does."""
    driver = lake.drivers["delta"]
    assert isinstance(driver, DeltaDriver)
    table = driver.create(name, properties={"delta.deletedFileRetentionDuration": f"interval {kept}"})
    driver.append(table, ROWS)
    then = (datetime.now(UTC) - OLD).timestamp()
    for path in Path(table.location).glob("*.parquet"):
        os.utime(path, (then, then))
    driver.overwrite(table, ROWS)
    driver.append(table, ROWS)
    driver.checkpoint(table)
    driver.append(table, ROWS)
    driver.clean_log(table, before=4)
    return table


@pytest.fixture(scope="module")
def seen(lake: Lake) -> OrphanLook:
    return look(lake.project, now=datetime.now(UTC))


@pytest.fixture(scope="module")
def found(seen: OrphanLook) -> dict[str, str]:
    return {row["path"]: row["table_id"] for row in seen.orphans.files.to_pylist()}


def uri(path: str | Path) -> str:
    return f"file://{path}"


def test_everything_could_be_read(seen: OrphanLook) -> None:
    assert list(seen.inventory.errors()) == []
    assert seen.listing.failed == {}


def test_what_nothing_references_is_found_in_every_format_and_nothing_else(lake: Lake, found: dict[str, str]) -> None:
    planted = {
        uri(Path(lake.tables[format_].location, stray)): str(lake.tables[format_].id)
        for format_, strays in STRAYS.items()
        for stray in strays
    }
    table = lake.tables["iceberg"]
    planted |= {uri(Path(table.location, "data", name)): str(table.id) for name in ("young.parquet", "no-time.parquet")}
    over = str(lake.tables["over"].id)
    rest = {path: table_id for path, table_id in found.items() if path not in planted and table_id != over}
    left = lake.tables["left"]
    assert planted.items() <= found.items()
    assert {str(lake.tables[name].id) for name in ("left",)} >= {
        table_id for path, table_id in rest.items() if not _is_history(lake, path)
    }, rest
    assert {path for path, table_id in rest.items() if table_id == str(left.id)} == {
        uri(path) for path in Path(left.location).rglob("*.parquet")
    }


def _is_history(lake: Lake, path: str) -> bool:
    """Metadata files that Iceberg itself no longer names: it keeps the last two here, and forgets the others."""
    return path.startswith(uri(Path(lake.tables["iceberg"].location, "metadata"))) and path.endswith(".metadata.json")


def test_in_tasks_the_same_files_are_found(lake: Lake, seen: OrphanLook) -> None:
    aside = replace(lake.project, plan=PlanSettings(in_process=0))
    found = search(aside, seen.inventory, seen.listing)
    assert found.files.sort_by("path").equals(seen.orphans.files.sort_by("path"))
    assert found.unregistered == seen.orphans.unregistered
    assert found.former == seen.orphans.former
    assert not list(lake.project.inventory.glob("orphans-*"))


@pytest.mark.parametrize("format_", ["iceberg", "delta", "hudi", "paimon"])
def test_no_file_that_a_version_reads_is_found(lake: Lake, found: dict[str, str], format_: str) -> None:
    table, driver = lake.tables[format_], lake.drivers[format_]
    versions = driver.native_ids(table)
    before = [driver.rows(table)] + [driver.rows(table, version=version) for version in versions]
    aside = lake.root.parent / f"aside-{format_}"
    moved: list[tuple[Path, Path]] = []
    for path in found:
        here = Path(path.removeprefix("file://"))
        if here.is_relative_to(table.location):
            there = aside / here.relative_to(table.location)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(here, there)
            moved.append((there, here))
    lake.spark.catalog.clearCache()
    try:
        assert [driver.rows(table)] + [driver.rows(table, version=version) for version in versions] == before
    finally:
        for there, here in moved:
            shutil.move(there, here)


@pytest.mark.parametrize(
    ("format_", "stray"),
    [(format_, stray) for format_, strays in NEVER.items() for stray in strays]
    + [(format_, AREAS[format_] + stray) for format_ in AREAS for stray in NEVER_ANYWHERE],
)
def test_what_is_never_an_orphan_is_not_found(lake: Lake, found: dict[str, str], format_: str, stray: str) -> None:
    path = Path(lake.tables[format_].location, stray)
    assert path.exists()
    assert uri(path) not in found


def test_what_deltas_own_retention_keeps_is_no_orphan_where_only_a_checkpoint_knows_it(
    lake: Lake, found: dict[str, str]
) -> None:
    """A tombstone in a checkpoint counts like one in the log, for as long as the table says (spec §2, floors)."""
    then = (datetime.now(UTC) - OLD + timedelta(days=1)).timestamp()
    files = {name: Path(lake.tables[name].location).glob("*.parquet") for name in ("cleaned", "over")}
    removed = {name: {uri(path) for path in paths if path.stat().st_mtime < then} for name, paths in files.items()}
    assert all(removed.values())
    assert not removed["cleaned"] & found.keys()
    assert {path for path in found if "/db/over/" in path} == removed["over"]


def test_the_metadata_of_a_view_is_no_orphan_of_the_table_in_whose_folder_it_lies(
    lake: Lake, found: dict[str, str]
) -> None:
    assert uri(Path(lake.tables["iceberg"].location, "metadata", VIEW)) not in found


def test_a_sibling_with_the_same_beginning_is_left_alone(lake: Lake, found: dict[str, str]) -> None:
    assert str(lake.tables["sibling"].id) not in found.values()
    assert not [path for path in found if "/db/t_2/" in path]


def test_links_are_neither_followed_nor_taken(lake: Lake, found: dict[str, str]) -> None:
    assert not [path for path in found if "link" in path or "/folder/" in path]


def test_metadata_that_cannot_be_unpacked_is_that_of_no_view(tmp_path: Path) -> None:
    """It is reported as the table that it looks like, and ends nobody's search."""
    packed = gzip.compress(b'{"view-uuid": 1}')
    bomb = gzip.compress(b'"view-uuid"' + bytes(65 << 20))
    paths = []
    for n, content in enumerate((packed, packed[:-9], packed[:9] + b"damage", bomb)):
        (tmp_path / f"{n}.metadata.json").write_bytes(content)
        paths.append(f"file://{tmp_path}/{n}.metadata.json")
    assert are_views(paths, {}) == [True, None, None, None], "what cannot be read may be one"


def test_tables_that_no_catalog_lists_are_reported_and_views_are_not(lake: Lake, seen: OrphanLook) -> None:
    told = {each.path: (each.format, each.table_id) for each in seen.orphans.unregistered}
    assert told[uri(lake.tables["dropped"].location)] == ("iceberg", "olake.db.dropped")
    assert told[uri(lake.root / "elsewhere" / "u")] == ("delta", None)
    assert uri(Path(lake.tables["delta"].location, "nested")) in told
    assert not [path for path in told if path.endswith("/db/v")]
    assert not [path for path in told if path in {uri(lake.tables[f].location) for f in AREAS}]


def plan_of(lake: Lake, seen: OrphanLook) -> Any:
    project = lake.project
    labelled = label_inventory(project, seen.inventory)
    world = world_of(labelled, seen.inventory)
    world = with_orphans(world, project, seen.inventory, labelled, seen.listing, now=datetime.now(UTC))
    return build_plan(load_policies(lake.root), world, Orders(), now=datetime.now(UTC))


def test_the_plan_takes_what_is_old_and_keeps_what_a_writer_may_still_need(lake: Lake, seen: OrphanLook) -> None:
    with plan_of(lake, seen) as plan:
        paths = set(plan.paths())
        rows = {(row["dataset"], row["object"]): row for row in plan.rows()}
    data = Path(lake.tables["iceberg"].location, "data")
    assert uri(data / "stray.orc") in paths
    assert uri(data / "young.parquet") not in paths
    assert uri(data / "no-time.parquet") not in paths
    row = rows[str(lake.tables["iceberg"].id), uri(data)]
    assert (row["decision"], row["files"]["count"]) == ("mark", 2)
    # What a dropped table left is young here: its folder is an object, and waits for its age.
    left = [row for (dataset, _), row in rows.items() if dataset == "olake.db.left"]
    assert {row["decision"] for row in left} == {"keep"}
    assert not [row for row in rows.values() if row["target"] != "orphans"]


def test_one_dataset_that_cannot_be_read_keeps_every_orphan(lake: Lake) -> None:
    manifest = next(Path(lake.tables["sibling"].location, "metadata").glob("*-m0.avro"))
    content = manifest.read_bytes()
    manifest.write_bytes(b"broken")
    try:
        listing = list_project(lake.project, now=datetime.now(UTC))
        run_scan(lake.project, now=datetime.now(UTC), full=True)
        inventory = Inventory.open(lake.project.inventory)
        labelled = label_inventory(lake.project, inventory)
        world = world_of(labelled, inventory)
        errors = with_orphans(world, lake.project, inventory, labelled, listing, now=datetime.now(UTC)).errors
    finally:
        manifest.write_bytes(content)
    assert len(errors) == 1
    assert errors[0].startswith("olake.db.t_2: ")


def test_a_listing_that_no_scan_followed_is_refused(lake: Lake) -> None:
    run_scan(lake.project, now=datetime.now(UTC))
    listing = list_project(lake.project, now=datetime.now(UTC))
    inventory = Inventory.open(lake.project.inventory)
    with pytest.raises(RefusedError, match="not read after"):
        search(lake.project, inventory, listing)


def test_a_file_that_is_committed_after_the_listing_is_no_orphan(lake: Lake) -> None:
    listing = list_project(lake.project, now=datetime.now(UTC))
    stray = Path(lake.tables["delta"].location, "part-stray.parquet")
    good = next(Path(lake.tables["delta"].location, "day=2026-01-01").glob("part-0*.parquet"))
    driver = lake.drivers["delta"]
    rows = driver.rows(lake.tables["delta"])
    content = stray.read_bytes()
    log = Path(lake.tables["delta"].location, "_delta_log")
    last = max(int(path.stem) for path in log.glob("0*.json"))
    commit = log / f"{last + 1:020}.json"
    # A writer that had put its file there, and commits it now.
    add = f'{{"add":{{"path":"part-stray.parquet","partitionValues":{{"day":null}},"size":{good.stat().st_size},"modificationTime":0,"dataChange":true}}}}'  # fmt: skip  # noqa: E501
    commit.write_text(add + "\n")
    try:
        run_scan(lake.project, now=datetime.now(UTC))
        inventory = Inventory.open(lake.project.inventory)
        found = search(lake.project, inventory, listing)
        orphans = set(found.files["path"].to_pylist())
        assert uri(stray) not in orphans
        assert uri(Path(lake.tables["delta"].location, "deletion_vector_stray.bin")) in orphans
    finally:
        commit.unlink()
        lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    assert (driver.rows(lake.tables["delta"]), stray.read_bytes()) == (rows, content)


def test_a_file_that_was_written_again_is_seen_by_the_last_look(lake: Lake, seen: OrphanLook) -> None:
    rows = [row for row in seen.orphans.files.to_pylist() if row["table_id"] == str(lake.tables["paimon"].id)]
    began = datetime(1970, 1, 1, tzinfo=UTC)
    expected = {row["path"]: (row["modified_at"] - began) // timedelta(microseconds=1) for row in rows}
    assert len(expected) == len(STRAYS["paimon"])
    assert look_again(expected, {}) == {}
    stray = Path(lake.tables["paimon"].location, STRAYS["paimon"][0])
    lake.lay(stray, timedelta(days=9))
    Path(lake.tables["paimon"].location, STRAYS["paimon"][2]).unlink()
    assert look_again(expected, {}) == {uri(stray): "it was written again since it was listed"}


def test_only_what_no_catalog_lists_can_be_condemned(lake: Lake) -> None:
    def refused(path: Path, *, unsafe: bool = False) -> str:
        with pytest.raises((RefusedError, InputError)) as error:
            condemn(lake.project, str(path), now=datetime.now(UTC), unsafe=unsafe)
        return error.value.message

    assert "lies at" in refused(Path(lake.tables["delta"].location))
    assert "lies at" in refused(lake.root / "delta")
    assert "lies at" in refused(Path(lake.tables["delta"].location, "nested"), unsafe=True)
    assert "no table" in refused(lake.root / "lake" / "db" / "v", unsafe=True)
    assert "no table" in refused(lake.root / "linked", unsafe=True)
    assert "exclusive" in refused(lake.root.parent)
    assert "24 hours" in refused(lake.root / "elsewhere" / "u")


def test_a_condemned_folder_is_found_whole_but_not_what_came_later(lake: Lake) -> None:
    folder = Path(lake.tables["dropped"].location)
    told = condemn(lake.project, str(folder), now=datetime.now(UTC), unsafe=True, dry_run=True)
    assert told["dataset"] == "olake.db.dropped"
    assert not [path for path in _found(lake) if path.startswith(uri(folder))]
    condemn(lake.project, str(folder), now=datetime.now(UTC), unsafe=True)
    lake.lay(folder / "data" / "came-later.parquet", timedelta(seconds=-5))
    lake.lay(folder / "nested" / "_delta_log" / "0.json")
    lake.lay(folder / "nested" / "part.parquet")
    there = {uri(path) for path in folder.rglob("*") if path.is_file()}
    expected = {path for path in there if "came-later" not in path and "/nested/" not in path}
    assert {path for path in _found(lake) if path.startswith(uri(folder))} == expected
    from ebbtide.app.ledger import open_ledger

    with open_ledger(lake.project).reading() as log:
        assert b'"kind":"orphans.condemned"' in log.leaf(log.size - 1)


def _found(lake: Lake) -> set[str]:
    return set(look(lake.project, now=datetime.now(UTC)).orphans.files["path"].to_pylist())


def test_on_s3_a_file_is_referenced_however_its_store_is_spelled(
    spark: SparkSession,
    tmp_path: Path,
    s3_endpoint: str,  # noqa: F811
) -> None:
    name = f"o-{uuid4().hex}"
    client = boto3.client(
        "s3", endpoint_url=s3_endpoint, aws_access_key_id="t", aws_secret_access_key="t", region_name="us-east-1"
    )
    client.create_bucket(Bucket=name)
    options = options_of(s3_endpoint)
    writer = load_catalog(
        "far", type="sql", uri=f"sqlite:///{tmp_path}/far.db", warehouse=f"s3a://{name}/lake", **options
    )
    writer.create_namespace("db")
    rows = pa.table({"id": [1, 2]})
    for table in ("t", "t_2"):
        writer.create_table(f"db.{table}", rows.schema).append(rows)
    catalog = Catalog(
        "far", "iceberg", f"s3a://{name}/lake", "jdbc", {"uri": f"jdbc:sqlite:{tmp_path}/far.db", **options}
    )
    location = writer.load_table("db.t").location().removeprefix(f"s3a://{name}/")
    for key in ("data/stray.parquet", "data//stray.parquet", "data/x/stray.parquet"):
        client.put_object(Bucket=name, Key=f"{location}/{key}", Body=b"x")
    folder = tmp_path / "inventory"
    run(folder, catalog)
    where = places(Inventory.open(folder).current, {"far": catalog}, [])
    listing = list_storage(where, folder)
    run(folder, catalog)
    inventory = Inventory.open(folder)
    found = find_orphans(listing, inventory, {"far": catalog}, [])
    assert set(found.files["path"].to_pylist()) == {
        f"s3://{name}/{location}/data/stray.parquet",
        f"s3://{name}/{location}/data/x/stray.parquet",
    }
