"""What a scan reads, what it leaves alone, and what it makes of tables that cannot be read."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from ebbtide.config.project import Ignored
from ebbtide.errors import InputError, RefusedError, UnreadableError
from ebbtide.formats.base import Depth
from ebbtide.inventory import compact
from ebbtide.inventory import current as currents
from ebbtide.inventory.doubts import doubts
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.listing import list_storage
from ebbtide.inventory.renames import called_now
from ebbtide.inventory.scan import ScanReport, scan
from ebbtide.model.dataset import Catalog
from tests.inventory.lakes import SmallLake
from tests.inventory.reads import opened_files

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def no_session() -> NoReturn:
    raise AssertionError("this scan needs no session")


def run(inventory: Path, *catalogs: Catalog, depth: Depth = Depth.FILES, full: bool = False) -> ScanReport:
    return scan(list(catalogs), inventory, no_session, now=NOW, depth=depth, full=full)


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    lake = SmallLake(tmp_path)
    for name in ("a", "b", "c"):
        lake.create(name, 2)
    return lake


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    return tmp_path / "inventory"


def _rights(folder: Path) -> set[tuple[str, str]]:
    found = [folder, *folder.rglob("*")]
    return {("folder" if path.is_dir() else "file", oct(path.stat().st_mode & 0o777)) for path in found}


def test_an_inventory_is_its_owners_only_or_the_groups_that_its_folder_was_given_to(
    lake: SmallLake, tmp_path: Path
) -> None:
    before = os.umask(0o022)
    try:
        run(tmp_path / ".ebbtide" / "deep" / "inventory", lake.catalog)
        list_storage({f"file://{lake.root}/lake": {}}, tmp_path / ".ebbtide" / "deep" / "inventory")
        shared = tmp_path / "shared"
        shared.mkdir()
        shared.chmod(0o770)
        run(shared, lake.catalog)
    finally:
        os.umask(before)
    assert _rights(tmp_path / ".ebbtide") == {("folder", "0o700"), ("file", "0o600")}
    assert _rights(shared) == {("folder", "0o770"), ("file", "0o660")}


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
    whole = victim.read_bytes()
    damage(victim)
    report = run(inventory, lake.catalog)
    assert report.read == ("lake.db.a", "lake.db.c")
    found = Inventory.open(inventory)
    (error,) = found.errors()
    assert error["table_id"] == "lake.db.b"
    assert victim.name in error["error"]
    assert error["hint"]
    assert "Traceback" not in error["error"]
    assert {row["table_id"] for row in found.rows("tables")} == {"lake.db.a", "lake.db.c"}
    assert report.current.error_count == 1
    # It is tried again although its token did not change.
    victim.write_bytes(whole)
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


def test_packed_metadata_is_read_and_a_small_file_that_unpacks_to_too_much_is_an_error(
    lake: SmallLake, inventory: Path
) -> None:
    for table, more in (("a", b""), ("b", b" " * (65 << 20))):
        plain = lake.metadata_file(table)
        packed = plain.with_name(plain.name.replace(".metadata.json", ".gz.metadata.json"))
        # Several members make one file, for gzip.
        packed.write_bytes(gzip.compress(plain.read_bytes()) + gzip.compress(more))
        lake.tables.drop_table(f"db.{table}")
        lake.tables.register_table(f"db.{table}", f"file://{plain}")
        with sqlite3.connect(lake.root / "catalog.db") as database:
            asked = "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ?"
            database.execute(asked, (f"file://{packed}", table))
    run(inventory, lake.catalog)
    entries = Inventory.open(inventory).current.entries
    assert entries["lake.db.a"].error is None
    assert "bytes and unpacks to more than 64 MiB" in str(entries["lake.db.b"].error)


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
    with currents.only_one(inventory), pytest.raises(RefusedError, match="another scan"):
        run(inventory, lake.catalog)  # of the same process, too
    assert len(run(inventory, lake.catalog).read) == 3


def test_the_lock_of_a_scan_goes_with_its_process(lake: SmallLake, inventory: Path) -> None:
    program = (
        "import pathlib, sys\nfrom ebbtide.inventory.current import only_one\n"
        "with only_one(pathlib.Path(sys.argv[1])):\n    print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(inventory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(RefusedError, match="another scan"):
            run(inventory, lake.catalog)
        other.kill()
        other.wait()
        assert len(run(inventory, lake.catalog).read) == 3
    assert (inventory / "scan.lock").stat().st_mode & 0o077 == 0


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
    # Nor does a scan clean up behind a link.
    others = inventory.parent / "others"
    (inventory / "files").rename(others)
    (inventory / "files").symlink_to(others)
    (others / "mine.parquet").touch()
    with pytest.raises(UnreadableError, match="a link lies on the way to it"):
        run(inventory, lake.catalog)
    assert (others / "mine.parquet").exists()


def test_paths_are_compared_in_one_spelling(lake: SmallLake, inventory: Path) -> None:
    run(inventory, lake.catalog)
    paths = {row["path"] for row in Inventory.open(inventory).rows("files")}
    assert all(path.startswith("file:///") for path in paths)
    assert all(Path(path.removeprefix("file://")).is_file() for path in paths)


def _as_layout_2(inventory: Path) -> None:
    """What the version before wrote: no candidates of dates, no identities, and their columns not even in the files."""
    newer = {"tables": ["date_column", "date_by", "date_doubt"], "partitions": ["candidates"]}
    for section, columns in newer.items():
        for path in (inventory / section).glob("*.parquet"):
            pq.write_table(pq.read_table(path, partitioning=None).drop_columns(columns), path)
    head = json.loads((inventory / "CURRENT").read_text())
    entries = pq.read_table(inventory / head["entries"])
    pq.write_table(entries.drop_columns(["doubt", "borrowed", "identity", "was_at"]), inventory / head["entries"])
    former = [{key: value for key, value in each.items() if key != "identity"} for each in head["former"]]
    (inventory / "CURRENT").write_text(json.dumps({**head, "layout": 2, "former": former}))


def test_an_older_layout_is_migrated_by_the_next_scan_and_forgets_nothing(lake: SmallLake, inventory: Path) -> None:
    """Former datasets own what they left, and say where a hold went: no scan could find them again."""
    run(inventory, lake.catalog)
    lake.tables.drop_table("db.c")
    run(inventory, lake.catalog)
    before = Inventory.open(inventory)
    assert [each.table_id for each in before.current.former] == ["lake.db.c"]
    _as_layout_2(inventory)
    lake.metadata_file("b").unlink()
    with pytest.raises(InputError, match="older version") as refused:
        Inventory.open(inventory)
    assert "ebbtide scan" in (refused.value.hint or "")
    assert Inventory.open(inventory, outdated=True).current.entries.keys() == before.current.entries.keys()
    report = run(inventory, lake.catalog)
    assert report.read == ("lake.db.a",), "all are read again though none changed, and b cannot be"
    after = Inventory.open(inventory)
    assert after.current.former == tuple(replace(each, identity="") for each in before.current.former)
    assert [row["table_id"] for row in after.errors()] == ["lake.db.b"]
    # What cannot be read now keeps the rows of the old layout, with what it references.
    assert after.rows("files", table_id="lake.db.b") == before.rows("files", table_id="lake.db.b")
    assert [row["date_column"] for row in after.rows("tables", table_id="lake.db.b")] == [None]


def test_a_table_is_followed_when_another_one_takes_its_name_and_its_place(
    lake: SmallLake, inventory: Path, tmp_path: Path
) -> None:
    """`users` becomes `users_old`, and a new `users` is made in its place: what was ordered goes with the first."""
    events = tmp_path / "events" / "web"
    catalogs = (lake.catalog, Catalog("events", "delta", str(tmp_path / "events")))

    def write(name: str) -> None:
        write_deltalake(str(events / name), pa.table({"id": [1]}))

    for name in ("at_once", "later", "nightly"):
        write(name)
    run(inventory, *catalogs)
    (events / "at_once").rename(events / "at_once_old")
    write("at_once")
    (events / "later").rename(events / "later_old")
    for before, after in (("a", "between"), ("b", "a"), ("between", "b")):
        lake.tables.rename_table(f"db.{before}", f"db.{after}")
    followed = {
        "events.web.at_once": ("events.web.at_once_old",), "events.web.later": ("events.web.later_old",),
        "lake.db.a": ("lake.db.b",), "lake.db.b": ("lake.db.a",),
    }  # fmt: skip
    assert called_now(run(inventory, *catalogs).current) == followed
    write("later")
    (events / "later_old" / "_delta_log").rename(tmp_path / "moved")  # who it is cannot be told for now
    assert called_now(run(inventory, *catalogs).current) == followed
    (tmp_path / "moved").rename(events / "later_old" / "_delta_log")
    for _ in range(3):
        shutil.rmtree(events / "nightly")
        write("nightly")
        report = run(inventory, *catalogs)
        assert called_now(report.current) == followed
    names = [former.table_id for former in report.current.former]
    assert sorted(names) == sorted(followed), "a table that is made anew every night leaves nothing to remember"


def test_a_table_that_was_renamed_before_its_older_layout_was_migrated_is_followed(
    inventory: Path, tmp_path: Path
) -> None:
    """The older layout knew no identities, but commits: who has them now is the one that had them."""
    events, catalog = tmp_path / "events" / "web", Catalog("events", "delta", str(tmp_path / "events"))
    for name in ("there", "renamed", "replaced"):
        write_deltalake(str(events / name), pa.table({"id": [1]}))
    run(inventory, catalog)
    _as_layout_2(inventory)
    for name in ("renamed", "replaced"):
        (events / name).rename(events / f"{name}_old")
        write_deltalake(str(events / f"{name}_old"), pa.table({"id": [2]}), mode="append")
    write_deltalake(str(events / "replaced"), pa.table({"id": [1]}))
    assert called_now(run(inventory, catalog).current) == {
        f"events.web.{name}": (f"events.web.{name}_old",) for name in ("renamed", "replaced")
    }


def test_a_newer_layout_is_refused_and_left_alone(lake: SmallLake, inventory: Path) -> None:
    run(inventory, lake.catalog)
    head = json.loads((inventory / "CURRENT").read_text())
    newer = json.dumps({**head, "layout": head["layout"] + 1})
    (inventory / "CURRENT").write_text(newer)
    with pytest.raises(InputError, match="newer version"):
        run(inventory, lake.catalog)
    assert (inventory / "CURRENT").read_text() == newer


def test_a_table_whose_metadata_is_out_of_sight_is_not_dropped(inventory: Path, tmp_path: Path) -> None:
    """Metadata that somebody moved for a minute, or a warehouse that is not mounted: both look like a drop."""
    catalog = Catalog("events", "delta", str(tmp_path / "events"))
    for name in ("web/a", "web/b"):
        write_deltalake(str(tmp_path / "events" / name), pa.table({"id": [1]}))
    run(inventory, catalog)
    before = Inventory.open(inventory)
    log = tmp_path / "events" / "web" / "a" / "_delta_log"
    log.rename(tmp_path / "moved")
    report = run(inventory, catalog)
    hidden = Inventory.open(inventory)
    assert (report.gone, hidden.current.former) == ((), ())
    assert hidden.rows("files") == before.rows("files"), "what it references still counts"
    (doubt,) = doubts(hidden.current, {"events": catalog}, (), now=NOW)
    assert (doubt.name, doubt.reason) == (
        "events.web.a", "its catalog no longer lists it, and 1 files of it are still there"
    )  # fmt: skip
    (tmp_path / "moved").rename(log)
    assert [error for error in run(inventory, catalog).current.entries.values() if error.error] == []

    (tmp_path / "events").rename(tmp_path / "unmounted")
    (tmp_path / "events").mkdir()
    run(inventory, catalog)
    found = Inventory.open(inventory)
    assert [(row["table_id"], row["hint"]) for row in found.errors()] == [
        (f"events.web.{name}", "is it mounted? Where everything was dropped, leave any file in it") for name in "ab"
    ]
    (tmp_path / "events").rmdir()
    (tmp_path / "unmounted").rename(tmp_path / "events")
    shutil.rmtree(tmp_path / "events" / "web" / "a")
    report = run(inventory, catalog)
    assert (report.gone, [f.table_id for f in report.current.former]) == (("events.web.a",), ["events.web.a"])


@pytest.mark.parametrize("aside", ["elsewhere", "events/web/clone/_delta_log.bak"])
def test_a_clone_whose_log_is_out_of_sight_still_needs_what_it_borrowed(
    inventory: Path, tmp_path: Path, aside: str
) -> None:
    """It has no file of its own but its log: nothing that is known of it is left in its folder."""
    catalog = Catalog("events", "delta", str(tmp_path / "events"))
    source, clone = (tmp_path / "events" / "web" / name for name in ("source", "clone"))
    write_deltalake(str(source), pa.table({"id": [1]}))
    (file,) = source.glob("*.parquet")
    commit = "_delta_log/00000000000000000000.json"
    (clone / commit).parent.mkdir(parents=True)
    (clone / commit).write_text((source / commit).read_text().replace(file.name, f"file://{file}"))
    assert run(inventory, catalog).current.entries["events.web.clone"].borrowed == 1
    (clone / "_delta_log").rename(tmp_path / aside)
    for _ in range(2):  # as long as it is away
        report = run(inventory, catalog)
        assert (report.gone, report.current.former) == ((), ())
    found = Inventory.open(inventory)
    assert f"file://{file}" in {row["path"] for row in found.rows("files", table_id="events.web.clone")}
    assert [doubt.name for doubt in doubts(found.current, {"events": catalog}, (), now=NOW)] == ["events.web.clone"]
    shutil.rmtree(clone)
    assert run(inventory, catalog).gone == ("events.web.clone",)


def test_who_cannot_be_read_may_need_files_of_others_until_somebody_says_otherwise(
    lake: SmallLake, inventory: Path
) -> None:
    other = SmallLake(lake.root / "other", "other")
    other.create("x")
    lake.metadata_file("b").write_text("{")
    run(inventory, lake.catalog, other.catalog)
    current = Inventory.open(inventory).current
    catalogs = {"lake": lake.catalog, "other": other.catalog}

    def names(catalogs: dict[str, Catalog], *ignored: Ignored) -> list[str]:
        return [doubt.name for doubt in doubts(current, catalogs, ignored, now=NOW)]

    assert names(catalogs) == ["lake.db.b"]
    assert names(catalogs, Ignored("lake.db.b", "it is a test")) == []
    assert names(catalogs, Ignored("lake.db.b", "it was", until=NOW)) == ["lake.db.b"]
    assert names(catalogs, Ignored("lake.db.a", "another")) == ["lake.db.b"]
    declared = {**catalogs, "lake": replace(lake.catalog, shares_files=False)}
    assert names(declared) == []
    # A catalog that is silent names itself: it may have tables by now that nobody ever saw.
    (other.root / "catalog.db").unlink()
    run(inventory, lake.catalog, other.catalog)
    current = Inventory.open(inventory).current
    assert names(declared) == ["other"]
    assert names({**declared, "other": replace(other.catalog, shares_files=False)}) == []


def test_what_the_project_no_longer_names_may_still_need_files_of_others(lake: SmallLake, inventory: Path) -> None:
    other = SmallLake(lake.root / "other", "other")
    other.create("x")
    run(inventory, lake.catalog, other.catalog)
    stale = Inventory.open(inventory).current
    catalogs = {"lake": lake.catalog}
    for _ in range(2):
        report = run(inventory, lake.catalog)
        assert (report.read, report.gone) == ((), ())
        found = Inventory.open(inventory)
        silent, dataset = found.errors()
        assert (silent["catalog"], silent["table_id"], dataset["table_id"]) == ("other", None, "other.db.x")
        assert "1 datasets of it are known" in silent["error"]
        assert "ignore: [{catalog: other" in silent["hint"]
        assert [row["table_id"] for row in found.rows("files", table_id="other.db.x")], "what it needed is remembered"
        assert [doubt.name for doubt in doubts(found.current, catalogs, (), now=NOW)] == ["other"]
    gone = Ignored("other", "handed over")
    # Also by who looks before a scan did.
    assert [doubt.name for doubt in doubts(stale, catalogs, (), now=NOW)] == ["other.db.x"]
    assert doubts(stale, catalogs, (gone,), now=NOW) == doubts(found.current, catalogs, (gone,), now=NOW) == ()
    back = run(inventory, lake.catalog, other.catalog)
    assert (back.read, back.current.error_count) == (("other.db.x",), 0)
    run(inventory, lake.catalog)
    given_up = scan([lake.catalog], inventory, no_session, now=NOW, given_up={"other"})
    assert (given_up.gone, given_up.current.error_count) == (("other.db.x",), 0)
    assert given_up.current.former == (), "what lies there is somebody's, and no orphan"


def test_a_catalog_that_got_another_name_is_followed(lake: SmallLake, inventory: Path, tmp_path: Path) -> None:
    events = tmp_path / "events"
    for name in ("clicks", "broken"):
        write_deltalake(str(events / "web" / name), pa.table({"id": [1]}))
    lake.metadata_file("b").write_text("{")
    run(inventory, lake.catalog, Catalog("events", "delta", str(events)))
    with sqlite3.connect(lake.root / "catalog.db") as database:
        database.execute("UPDATE iceberg_tables SET catalog_name = 'house'")
        database.execute("UPDATE iceberg_namespace_properties SET catalog_name = 'house'")
    (log,) = (events / "web" / "broken" / "_delta_log").glob("*.json")
    content = log.read_bytes()
    log.write_bytes(b"{")
    house, web = replace(lake.catalog, name="house"), Catalog("traces", "delta", str(events))
    followed = {"lake.db.a": ("house.db.a",), "lake.db.c": ("house.db.c",), "events.web.clicks": ("traces.web.clicks",)}
    unknown = {"lake.db.b", "house.db.b", "events.web.broken", "traces.web.broken"}
    for _ in range(2):
        report = run(inventory, house, web)
        entries = report.current.entries
        assert {entry.table_id for entry in entries.values() if entry.error} == unknown
        assert entries["house.db.a"].locked_by == ()
        assert {name: now for name, now in called_now(report.current).items() if name in followed} == followed
    log.write_bytes(content)
    report = run(inventory, house, web)
    assert "events.web.broken" not in report.current.entries, "the same table, now that it can be read"
    assert called_now(report.current)["events.web.broken"] == ("traces.web.broken",)


def test_who_was_listed_by_two_catalogs_is_not_known_by_the_one_that_stays(lake: SmallLake, inventory: Path) -> None:
    """Each of them may have a head of its own: the lock ends with the second one, what it references does not."""
    twin = SmallLake(lake.root / "twin", "twin")
    twin.tables.register_table("db.a", f"file://{lake.metadata_file('a')}")
    assert run(inventory, lake.catalog, twin.catalog).current.entries["lake.db.a"].locked_by == ("twin.db.a",)
    after = run(inventory, lake.catalog).current
    assert after.entries["lake.db.a"].locked_by == ("twin.db.a",)
    assert [error.catalog for error in after.catalog_errors] == ["twin"]


def test_a_catalog_that_shares_files_against_its_declaration_is_an_error(lake: SmallLake, inventory: Path) -> None:
    file = next((lake.root / "lake" / "db" / "a").rglob("*.parquet"))
    lake.tables.load_table("db.c").add_files([f"file://{file}"])
    declared = replace(lake.catalog, shares_files=False)
    run(inventory, declared)
    found = Inventory.open(inventory)
    (error,) = found.errors()
    assert (error["catalog"], error["table_id"]) == ("lake", None)
    assert error["error"].endswith("and lake.db.c references 1 files elsewhere")
    assert [doubt.name for doubt in doubts(found.current, {"lake": declared}, (), now=NOW)] == ["lake"]
    # It stays one while nothing changes, and ends with the declaration.
    assert run(inventory, declared).read == ()
    assert len(list(Inventory.open(inventory).errors())) == 1
    run(inventory, lake.catalog)
    assert list(Inventory.open(inventory).errors()) == []
