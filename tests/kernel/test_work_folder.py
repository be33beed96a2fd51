"""Folders of work below the inventory: gone when it is done, and when whoever did it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ebbtide.kernel.work_folder import WorkFolder

MAKE = """
import sys, time
from pathlib import Path
from ebbtide.kernel.work_folder import WorkFolder
made = WorkFolder(Path(sys.argv[1]), sys.argv[2])
(made.path / "objects-00000.parquet").write_text("names")
print(made.path, flush=True)
time.sleep(600)
"""


def test_what_a_killed_process_left_goes_with_the_next_folder_and_nothing_of_a_living_one(tmp_path: Path) -> None:
    others = [
        subprocess.Popen([sys.executable, "-c", MAKE, str(tmp_path), prefix], stdout=subprocess.PIPE, text=True)
        for prefix in ("plan-", "orphans-", "views-")
    ]
    folders = []
    for other in others:
        assert other.stdout is not None
        folders.append(Path(other.stdout.readline().strip()))
    (tmp_path / "plan-never-locked").mkdir()
    (tmp_path / "tables").mkdir()
    alive = others.pop()
    for other in others:
        other.kill()
        other.communicate()
    try:
        with WorkFolder(tmp_path, "plan-") as mine, WorkFolder(tmp_path, "plan-"):
            assert [folder.exists() for folder in folders] == [False, False, True]
            assert Path(mine).exists(), "its own process does not remove it, either"
            assert not (tmp_path / "plan-never-locked").exists()
    finally:
        alive.send_signal(signal.SIGTERM)
        alive.communicate()
    assert {path.name for path in tmp_path.iterdir()} == {"tables", "work.lock", folders[2].name}
    WorkFolder(tmp_path, "views-").cleanup()
    assert {path.name for path in tmp_path.iterdir()} == {"tables", "work.lock"}


@pytest.mark.parametrize(("rights", "of_it"), [(0o700, 0o700), (0o770, 0o770)])
def test_it_is_its_owners_only_or_the_groups_that_the_place_is_for(tmp_path: Path, rights: int, of_it: int) -> None:
    tmp_path.chmod(rights)
    before = os.umask(0)
    try:
        with WorkFolder(tmp_path, "plan-") as made:
            assert Path(made).stat().st_mode & 0o777 == of_it
    finally:
        os.umask(before)
