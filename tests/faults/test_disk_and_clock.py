"""A disk that is full, a store that refuses, and a clock that jumps: nothing goes without an intent, and it goes on."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ebbtide.acts.act import ActResult
from ebbtide.acts.engine import Engine
from ebbtide.errors import LeaseError
from ebbtide.state import lease
from tests.faults import folder
from tests.faults.boundaries import watch
from tests.faults.child import die
from tests.faults.place import LEFT, Place
from tests.tiers import deep_after_first

Say = Callable[[str], None]
MEGABYTES = 4


@contextmanager
def _small_disk(disk: Path) -> Iterator[Path]:
    """A file system of a few megabytes; where mounting is not allowed, a plain folder."""
    disk.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(disk)]
    can = shutil.which("mount") is not None
    mounted = can and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    yield disk
    if mounted:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with _small_disk(tmp_path / "disk") as disk:
        yield disk


@pytest.fixture
def small_lake(tmp_path: Path) -> Iterator[Path]:
    """The lake's own disk; state, ledger and inventory lie on another one."""
    with _small_disk(tmp_path / "p" / "lake") as disk:
        yield disk


def _fill(disk: Path) -> None:
    """Leave no byte; in a plain folder, let no file of this process grow."""
    if shutil.disk_usage(disk).total > MEGABYTES << 20:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        return
    with (disk / "filler").open("wb", buffering=0) as filler:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    filler.write(bytes(size))
            except OSError:
                continue


def _full_at(boundary: str, disk: Path) -> Callable[[Say], None]:
    def prepare(say: Say) -> None:
        full = False

        def point(name: str) -> None:
            nonlocal full
            if name == boundary and not full:
                full = True
                say(name)
                _fill(disk)

        watch(point)

    return prepare


@pytest.mark.parametrize(
    "boundary",
    deep_after_first(
        "act.intent: written, not committed",
        "free: after",
        "act.outcome: committed, not signed",
        "mark.made: before it is written",
        "act.intent: before it is written",
        "act.intent: committed, not signed",
        "act.outcome: before it is written",
        first=3,
    ),
)
def test_a_full_disk_under_the_ledger_stops_the_sweep_and_the_next_run_finishes(
    tmp_path: Path, small_disk: Path, boundary: str
) -> None:
    place = Place.new(tmp_path / "p", small_disk)
    ended = place.run(_full_at(boundary, small_disk))
    assert ended.said == [boundary]
    assert ended.error is not None
    assert ended.error.startswith("StateError"), ended.error
    (small_disk / "filler").unlink(missing_ok=True)
    kinds, *_ = place.look()
    assert isinstance(kinds, tuple)
    if "act.intent" not in kinds:
        assert all(place.files(table) > LEFT for table in ("a", "b")), "nothing goes without an intent"
    place.time_passes()
    assert place.run().error is None
    place.assert_finished()


def _full_lake(lake: Path) -> Callable[[Say], None]:
    """From the first commit of the sweep on, whoever writes metadata finds no room."""

    def prepare(_: Say) -> None:
        save = folder.save

        def saving(table: Path, content: folder.Content) -> None:
            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            _fill(lake)
            try:
                save(table, content)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)

        patched: Any = folder

        def point(name: str) -> None:
            if name == "commit: before":
                patched.save = saving

        watch(point)

    return prepare


def test_a_full_disk_under_the_lake_fails_the_commit_removes_no_file_and_the_next_run_finishes(
    tmp_path: Path, small_lake: Path
) -> None:
    place = Place.new(tmp_path / "p")
    before = [place.files(table) for table in place.tables]
    ended = place.run(_full_lake(small_lake))
    assert ended.error is None, "errors of single datasets do not stop a sweep"
    assert ended.said == ["removed 0 errors 2"]
    (small_lake / "filler").unlink(missing_ok=True)
    kinds, unfinished, marks, *_ = place.look()
    assert isinstance(kinds, tuple)
    assert kinds.count("act.outcome") == 2, "each has an outcome, and it is told there"
    assert unfinished == 0
    assert isinstance(marks, list)
    assert "swept" not in {state for *_, state in marks}
    assert all(files <= place.files(table) for files, table in zip(before, place.tables, strict=True))
    assert place.run().error is None
    place.assert_finished()


def test_files_that_the_store_refuses_are_told_kept_in_mind_and_removed_by_the_next_run(tmp_path: Path) -> None:
    place = Place.new(tmp_path / "p")
    table = place.root / "lake" / "a"
    # A file of the kernel's, which nobody may remove, root neither; behind a link, which is not followed.
    (table / "locked").symlink_to("/proc/self")
    content = folder.load(table)
    content["versions"]["v1"].append("locked/limits")
    folder.save(table, content)
    ended = place.run()
    assert ended.error is None
    assert ended.said == ["removed 6 errors 1"]
    _, unfinished, marks, *_ = place.look()
    assert unfinished == 0
    assert isinstance(marks, list)
    assert ("c.db.a", "v1", "waiting") in marks
    assert ("c.db.a", "v3", "swept") in marks
    assert not place.files("a") & {"d1", "d3", "s3"}, "the others go"
    (table / "locked").unlink()
    (table / "locked").mkdir()
    (table / "locked" / "limits").touch()
    assert place.run().said == ["removed 1 errors 0"]
    assert not (table / "locked").exists(), "nor is the empty folder left"
    place.assert_finished()


@pytest.mark.parametrize("moved", deep_after_first("a/part", "a", "."))
def test_a_folder_that_becomes_a_link_during_a_sweep_loses_nothing_behind_it(tmp_path: Path, moved: str) -> None:
    """Below the table's folder, that folder itself, and the whole lake, after the references were read again."""
    place = Place.new(tmp_path / "p")
    lake, outside = place.root / "lake", tmp_path / "outside"
    (lake / "a" / "part").mkdir()
    (lake / "a" / "part" / "d").write_text("a")
    content = folder.load(lake / "a")
    content["versions"]["v1"].append("part/d")
    folder.save(lake / "a", content)
    shutil.copytree(lake, outside)

    def prepare(_: Say) -> None:
        def point(name: str) -> None:
            if name == "mark needed: after":
                (lake / moved).rename(tmp_path / "was")
                (lake / moved).symlink_to(outside / moved)

        watch(point)

    before = {str(path.relative_to(outside)) for path in outside.rglob("*")}
    ended = place.run(prepare)
    assert ended.error is None
    assert {str(path.relative_to(outside)) for path in outside.rglob("*")} == before
    assert (
        ended.said
        == {
            "a/part": ["removed 6 errors 1"],
            "a": ["removed 3 errors 4"],
            ".": ["removed 0 errors 7"],
        }[moved]
    )
    (lake / moved).unlink()
    (tmp_path / "was").rename(lake / moved)
    assert place.run().error is None
    place.assert_finished()


def test_a_lake_and_a_table_that_lie_behind_links_are_swept_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "p").symlink_to(tmp_path / "disk")
    place = Place.new(tmp_path / "p")
    (tmp_path / "disk" / "lake" / "b").rename(tmp_path / "elsewhere")
    (tmp_path / "disk" / "lake" / "b").symlink_to(tmp_path / "elsewhere")
    assert place.run().said == ["removed 6 errors 0"]
    place.assert_finished()


def test_a_table_that_cannot_be_read_again_keeps_what_an_earlier_sweep_left(tmp_path: Path) -> None:
    place = Place.new(tmp_path / "p")
    file = place.root / "lake" / "a" / "table.json"

    def kill(_: Say) -> None:
        watch(lambda name: die() if name == "commit: after" else None)

    def break_it(_: Say) -> None:
        whole = b""

        def point(name: str) -> None:
            nonlocal whole
            if name == "commit: before" and not whole:
                whole = file.read_bytes()
                file.write_text("{")
            elif name == "mark needed: after":
                file.write_bytes(whole)

        watch(point)

    assert place.run(kill).killed
    place.time_passes()
    assert place.run(break_it).error is None
    _, _, marks, *_ = place.look()
    assert isinstance(marks, list)
    assert ("c.db.a", "v1", "waiting") in marks
    assert place.files("a") >= {"d1", "d3", "s3"}
    assert place.run().error is None
    place.assert_finished()


def _jumping(boundary: str, by: str) -> Callable[[Say], None]:
    """The database's clock, which is the lease's, jumps."""

    def prepare(say: Say) -> None:
        def point(name: str) -> None:
            if name == boundary:
                say(name)
                lease._NOW["sqlite"] = f"SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now', '{by}') || '000Z'"

        watch(point)

    return prepare


@pytest.mark.parametrize("boundary", deep_after_first("commit: after", "act.intent: signed", "mark needed: after"))
def test_a_clock_that_jumps_ahead_ends_the_lease_and_the_next_run_finishes(tmp_path: Path, boundary: str) -> None:
    place = Place.new(tmp_path / "p")
    ended = place.run(_jumping(boundary, "+1 hour"))
    assert ended.error is not None
    assert ended.error.startswith("LeaseError: the lease 1 ran out"), ended.error
    place.look()
    assert all(place.files(table) > LEFT for table in ("a", "b")), "no file goes after the lease"
    assert place.run().error is None
    place.assert_finished()


def test_a_clock_that_jumps_back_lets_no_second_sweeper_in(tmp_path: Path) -> None:
    place = Place.new(tmp_path / "p")

    def prepare(say: Say) -> None:
        _jumping("commit: after", "-1 hour")(say)
        delete = Engine.delete

        def meanwhile(self: Engine, result: ActResult, also: Sequence[str]) -> ActResult:
            try:
                lease.Lease.acquire(self.ledger.database, holder="second")
            except LeaseError:
                say("refused")
            return delete(self, result, also)

        patched: Any = Engine
        patched.delete = meanwhile

    ended = place.run(prepare)
    assert ended.error is None
    assert ended.said.count("refused") == 2
    place.assert_finished()
