"""What a scan reads, what it leaves alone, and what it makes of tables that cannot be read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from ebbtide.app.scan import Unwatched
from ebbtide.errors import RefusedError
from ebbtide.formats.base import Depth
from ebbtide.inventory import compact
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.scan import ScanReport, scan
from ebbtide.model.dataset import Catalog
from tests.inventory.lakes import SmallLake
from tests.inventory.reads import opened_files

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def no_session() -> NoReturn:
    raise AssertionError("this scan needs no session")


def run(inventory: Path, *catalogs: Catalog, depth: Depth = Depth.FILES, full: bool = False) -> ScanReport:
    return scan(list(catalogs), inventory, no_session, now=NOW, depth=depth, full=full, watcher=Unwatched())


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    lake = SmallLake(tmp_path)
    for name in ("a", "b", "c"):
        lake.create(name, 2)
    return lake


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    return tmp_path / "inventory"


def test_an_unchanged_table_costs_one_catalog_answer_and_no_file(lake: SmallLake, inventory: Path) -> None:
    assert len(run(inventory, lake.catalog).read) == 3
    with opened_files(lake.root / "lake") as opened:
        assert run(inventory, lake.catalog).read == ()
    assert opened == []


def test_only_the_changed_table_is_read_again(lake: SmallLake, inventory: Path) -> None:
    run(inventory, lake.catalog)
    lake.append("b")
    with opened_files(lake.root / "lake") as opened:
        assert run(inventory, lake.catalog).read == ("lake.db.b",)
    assert opened
    assert all("/db/b/" in path for path in opened)
    rows = Inventory.open(inventory).rows("transactions")
    assert sorted(row["table_id"] for row in rows) == ["lake.db.a"] * 2 + ["lake.db.b"] * 3 + ["lake.db.c"] * 2


def test_full_reads_everything_again(lake: SmallLake, inventory: Path) -> None:
    run(inventory, lake.catalog)
    assert len(run(inventory, lake.catalog, full=True).read) == 3


def test_a_shallow_reading_is_made_deep_when_asked_and_not_the_other_way_round(
    lake: SmallLake, inventory: Path
) -> None:
    run(inventory, lake.catalog, depth=Depth.HISTORY)
    assert Inventory.open(inventory).rows("files") == []
    assert len(run(inventory, lake.catalog).read) == 3
    assert Inventory.open(inventory).rows("files")
    assert run(inventory, lake.catalog, depth=Depth.HISTORY).read == ()


def test_a_dropped_table_leaves_the_inventory(lake: SmallLake, inventory: Path) -> None:
    run(inventory, lake.catalog)
    lake.tables.drop_table("db.b")
    report = run(inventory, lake.catalog)
    assert report.gone == ("lake.db.b",)
    assert {row["table_id"] for row in Inventory.open(inventory).rows("tables")} == {"lake.db.a", "lake.db.c"}


def _remove(path: Path) -> None:
    path.unlink()


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _scribble(path: Path) -> None:
    path.write_bytes(os.urandom(200))


@pytest.mark.parametrize("damage", [_remove, _truncate, _scribble])
@pytest.mark.parametrize("what", ["metadata.json", "manifest list", "manifest"])
def test_one_broken_table_is_an_error_and_leaves_the_rest_intact(
    lake: SmallLake, inventory: Path, what: str, damage: Callable[[Path], None]
) -> None:
    folder = lake.root / "lake" / "db" / "b" / "metadata"
    victim = {
        "metadata.json": lake.metadata_file("b"),
        "manifest list": next(folder.glob("snap-*.avro")),
        "manifest": next(folder.glob("*-m0.avro")),
    }[what]
    damage(victim)
    report = run(inventory, lake.catalog)
    found = Inventory.open(inventory)
    (error,) = found.errors()
    assert error["table_id"] == "lake.db.b"
    assert victim.name in error["error"]
    assert error["hint"]
    assert "Traceback" not in error["error"]
    assert {row["table_id"] for row in found.rows("tables")} == {"lake.db.a", "lake.db.c"}
    assert report.current.error_count == 1
    # It is tried again although its token did not change.
    assert run(inventory, lake.catalog).read == ("lake.db.b",)


def test_a_manifest_list_that_lost_its_blocks_marks_the_table_as_not_fully_known(
    lake: SmallLake, inventory: Path
) -> None:
    victim = next((lake.root / "lake" / "db" / "b" / "metadata").glob("snap-*.avro"))
    whole = victim.read_bytes()
    sync = whole[-16:]  # the marker ends the header and every block
    victim.write_bytes(whole[: whole.index(sync) + 16])
    run(inventory, lake.catalog)
    (row,) = Inventory.open(inventory).rows("tables", table_id="lake.db.b")
    assert any("its manifest list names 0" in reason for reason in row["unknown"])


def test_a_table_that_breaks_later_keeps_its_last_rows_with_the_error(lake: SmallLake, inventory: Path) -> None:
    run(inventory, lake.catalog)
    lake.append("b")
    lake.metadata_file("b").unlink()
    run(inventory, lake.catalog)
    found = Inventory.open(inventory)
    assert found.current.entries["lake.db.b"].error
    assert len(found.rows("transactions", table_id="lake.db.b")) == 2


def test_a_catalog_that_does_not_answer_is_an_error_and_forgets_nothing(lake: SmallLake, inventory: Path) -> None:
    other = SmallLake(lake.root / "other", "other")
    other.create("x")
    run(inventory, lake.catalog, other.catalog)
    (other.root / "catalog.db").unlink()
    report = run(inventory, lake.catalog, other.catalog)
    found = Inventory.open(inventory)
    assert [error["catalog"] for error in found.errors()] == ["other", "other"]
    assert report.gone == ()
    assert found.current.entries["other.db.x"].error
    assert found.current.entries["lake.db.a"].error is None
    assert not (other.root / "catalog.db").exists(), "a scan must not create a catalog's database"


def _unlisted(namespace: Path) -> None:
    # Nobody can look at it, not even root: its target is no name that a file system takes.
    (namespace / "odd").symlink_to("x" * 300)


def _stray_log(namespace: Path) -> None:
    (namespace / "_delta_log").mkdir()
    shutil.rmtree(namespace / "b")


@pytest.mark.parametrize("damage", [_unlisted, _stray_log])
def test_a_namespace_that_cannot_be_listed_loses_no_table_that_was_known(
    inventory: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    catalog = Catalog("events", "delta", str(tmp_path / "events"))
    for name in ("web/a", "web/b", "web2/a"):
        write_deltalake(str(tmp_path / "events" / name), pa.table({"id": [1]}))
    run(inventory, catalog)
    before = Inventory.open(inventory)
    damage(tmp_path / "events" / "web")
    report = run(inventory, catalog)
    after = Inventory.open(inventory)
    entries = after.current.entries
    assert (report.gone, after.current.former) == ((), ())
    assert entries.keys() == {"events.web", "events.web.a", "events.web.b", "events.web2.a"}
    assert [name for name, entry in entries.items() if entry.error is None] == (
        ["events.web2.a"] if damage is _unlisted else ["events.web.a", "events.web2.a"]
    )
    assert all(entry.hint for entry in entries.values() if entry.error is not None)
    assert after.rows("files") == before.rows("files"), "what they reference still counts"
    assert all(entry.locked_by == () for entry in entries.values())


@pytest.mark.parametrize("catalog", [
    Catalog("gone", "iceberg", "/nonexistent", "hadoop"),
    Catalog("gone", "delta", "/nonexistent"),
    Catalog("gone", "hudi", "/nonexistent"),
    Catalog("gone", "paimon", "/nonexistent"),
    Catalog("gone", "iceberg", "/nonexistent", "jdbc", {"uri": "jdbc:sqlite:/nonexistent/catalog.db"}),
    Catalog("gone", "iceberg", "/nonexistent", "jdbc", {"uri": "jdbc:postgresql://127.0.0.1:9/nothing"}),
    Catalog("gone", "iceberg", "/nonexistent", "rest", {"uri": "http://127.0.0.1:9"}),
], ids=lambda c: f"{c.format}-{c.type}")  # fmt: skip
def test_a_missing_warehouse_or_silent_catalog_is_one_error_with_a_hint(
    lake: SmallLake, inventory: Path, catalog: Catalog
) -> None:
    run(inventory, catalog, lake.catalog)
    found = Inventory.open(inventory)
    (error,) = found.errors()
    assert (error["catalog"], error["table_id"]) == ("gone", None)
    assert error["hint"]
    assert "\n" not in error["error"]
    assert len(found.current.entries) == 3


def test_datasets_that_share_a_location_lock_each_other(lake: SmallLake, inventory: Path) -> None:
    inside = f"file://{lake.root}/lake/db/a/data/nested"
    lake.create("nested", location=inside)
    lake.create("a_2")
    lake.tables.register_table("db.twin", f"file://{lake.metadata_file('c')}")
    (lake.root / "other").symlink_to(lake.root / "lake")
    lake.create("linked", location=f"file://{lake.root}/other/db/b")
    run(inventory, lake.catalog)
    locked = {table: list(e.locked_by) for table, e in Inventory.open(inventory).current.entries.items() if e.locked_by}
    assert locked == {
        "lake.db.a": ["lake.db.nested"],
        "lake.db.nested": ["lake.db.a"],
        "lake.db.b": ["lake.db.linked"],
        "lake.db.linked": ["lake.db.b"],
        "lake.db.c": ["lake.db.twin"],
        "lake.db.twin": ["lake.db.c"],
    }


def test_a_file_that_is_reached_through_a_link_is_known_by_its_own_name_too(lake: SmallLake, inventory: Path) -> None:
    (lake.root / "other").symlink_to(lake.root / "lake")
    (file, *_) = (path for path in (lake.root / "lake" / "db" / "a").rglob("*.parquet"))
    lake.create("borrower", 0)
    linked = str(file).replace(f"{lake.root}/lake/", f"{lake.root}/other/")
    lake.tables.load_table("db.borrower").add_files([f"file://{linked}"])
    run(inventory, lake.catalog)
    rows = Inventory.open(inventory).rows("files", table_id="lake.db.borrower")
    assert {row["path"] for row in rows if row["role"] == "data"} == {f"file://{linked}", f"file://{file}"}


def test_many_small_scans_leave_few_segments(lake: SmallLake, inventory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "_MOST_SEGMENTS", 3)
    for n in range(6):
        lake.create(f"more{n}")
        run(inventory, lake.catalog)
    found = Inventory.open(inventory)
    assert len(found.current.segments) <= 3
    assert len(list((inventory / "tables").glob("*.parquet"))) <= 8
    counts = {
        row["table_id"]: len(found.rows("transactions", table_id=row["table_id"])) for row in found.rows("tables")
    }
    assert counts == {f"lake.db.{t}": 2 for t in "abc"} | {f"lake.db.more{n}": 1 for n in range(6)}


def test_a_second_scan_at_the_same_time_is_refused(lake: SmallLake, inventory: Path) -> None:
    program = (
        "import fcntl, pathlib, sys; p = pathlib.Path(sys.argv[1]); p.mkdir(parents=True, exist_ok=True)\n"
        "f = (p / 'scan.lock').open('w'); fcntl.flock(f, fcntl.LOCK_EX); print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(inventory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        other.stdout.readline()
        with pytest.raises(RefusedError, match="another scan"):
            run(inventory, lake.catalog)
        other.stdin.close()
    assert len(run(inventory, lake.catalog).read) == 3


def test_a_scan_that_was_killed_changes_nothing(lake: SmallLake, inventory: Path) -> None:
    run(inventory, lake.catalog)
    before = Inventory.open(inventory)
    # What a scan leaves that dies before its last step: segments that nothing names.
    shutil.copy(next((inventory / "files").glob("*.parquet")), inventory / "files" / "dead-driver.parquet")
    lake.append("a")
    assert Inventory.open(inventory).current == before.current
    run(inventory, lake.catalog)
    assert not (inventory / "files" / "dead-driver.parquet").exists()
    # A reader that opened the inventory before this scan can still read it.
    assert len(before.rows("transactions", table_id="lake.db.a")) == 2


def test_paths_are_compared_in_one_spelling(lake: SmallLake, inventory: Path) -> None:
    run(inventory, lake.catalog)
    paths = {row["path"] for row in Inventory.open(inventory).rows("files")}
    assert all(path.startswith("file:///") for path in paths)
    assert all(Path(path.removeprefix("file://")).is_file() for path in paths)
