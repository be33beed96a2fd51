"""One sweep calls from room to room in few ways, and enters none from below (docs/architecture.md)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.jvm
@pytest.mark.deep
def test_a_sweep_takes_at_most_forty_ways_between_rooms_and_enters_none_from_below() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.room_calls"], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told = done.stdout.splitlines()[-1]
    assert told.split(" by ")[1] in (ROOT / "docs" / "architecture.md").read_text(), f"{told}: say so in the page"
