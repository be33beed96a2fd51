"""Which functions one room calls in another while one Iceberg table is swept, from YAML to the removed file.

`python -m benchmarks.room_calls` prints a line a pair of rooms, for docs/architecture.md. Values and rules that every
room may use (`errors`, `model`, `run`, `private`) are left out; a call from a room further down has an arrow up: only
who was handed in may be called like that, and anything else ends it with an error, as do more than 40 ways.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

ORDER = (
    "config", "spark", "storage", "state", "ledger", "formats", "kernel", "inventory", "lineage", "plan", "verify",
    "acts", "sweep", "erasure", "hottier", "governance", "app",
)  # fmt: skip
"""The rooms, each above those that it may import."""

MOST_WAYS = 40
HANDED_IN = {
    ("acts", "sweep"), ("acts", "app"), ("kernel", "plan"), ("storage", "sweep"), ("storage", "inventory"),
}  # fmt: skip
"""Calls up, to who was handed in: the owner of an act, how to read everything again, a task's work, and the check of a
lease before a batch. Nothing down there imports them.
"""

PROJECT = """
project: rooms
clock: simulated
catalogs:
  lake: {format: iceberg, type: hadoop, warehouse: ./lake}
ledger: {origin: example.org/rooms}
"""
POLICIES = """
policies:
  - name: old
    select: {tables: ["**"]}
    versions: {older_than: 30d, keep_min: 1}
    grace: 1d
"""


class Calls:
    """Who called whom, by room."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str], set[str]] = defaultdict(set)

    def look(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call" or frame.f_back is None:
            return
        to, by = _room(frame), _room(frame.f_back)
        name = frame.f_code.co_qualname.removesuffix(".<locals>.<lambda>")
        if to and by and to != by and not name.startswith("<") and "<locals>" not in name:
            self.seen[by, to].add(name)


def _room(frame: FrameType) -> str | None:
    parts = str(frame.f_globals.get("__name__", "")).split(".")
    return parts[1] if parts[0] == "ebbtide" and len(parts) > 1 and parts[1] in ORDER else None


def main() -> None:
    from ebbtide.app.mark import run_mark
    from ebbtide.app.scan import start_session
    from ebbtide.app.sweep import run_sweep
    from ebbtide.config import load_project

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "ebbtide.yml").write_text(PROJECT)
        (root / "policies").mkdir()
        (root / "policies" / "old.yml").write_text(POLICIES)
        spark = start_session(load_project(root))
        spark.sql("CREATE TABLE lake.db.t (id BIGINT) USING iceberg")
        for _ in range(3):
            spark.sql("INSERT OVERWRITE lake.db.t SELECT 1")
        now = datetime.now(UTC)
        run_mark(load_project(root), as_of=now + timedelta(days=40))
        calls = Calls()
        threading.setprofile(calls.look)
        sys.setprofile(calls.look)
        report = run_sweep(load_project(root), as_of=now + timedelta(days=42))
        sys.setprofile(None)
        threading.setprofile(None)
        assert report.removed_files, report
        _print(calls)


def _print(calls: Calls) -> None:
    total = 0
    for (by, to), names in sorted(
        calls.seen.items(), key=lambda each: (-ORDER.index(each[0][0]), ORDER.index(each[0][1]))
    ):
        up = "↑" if ORDER.index(to) > ORDER.index(by) else " "
        total += len(names)
        print(f"{by:>10} {up} {to:<10} {len(names):>3}  {', '.join(sorted(names))}")
    print(f"{total} functions by {len(calls.seen)} ways between rooms")
    entered = {(by, to) for by, to in calls.seen if ORDER.index(to) > ORDER.index(by)}
    if len(calls.seen) > MOST_WAYS or entered - HANDED_IN:
        sys.exit(f"too many ways, or a room entered from below: {sorted(entered - HANDED_IN)}")


if __name__ == "__main__":
    main()
