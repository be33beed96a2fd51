"""From an empty environment to the first plan of one's own 20 tables: what a newcomer waits for.

Downloads are excluded: packages come from uv's cache. No JVM starts, so no jar is needed yet.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from tests.install.built import build_wheel, install

from benchmarks.commands import write_lake
from benchmarks.results import Result

TABLES, MOST_SECONDS = 20, 300


def main(root: Path) -> Iterator[Result]:
    wheel = build_wheel(root / "wheel")
    began = time.perf_counter()
    newcomer = install(wheel, root / "newcomer")
    installed = time.perf_counter() - began
    write_lake(newcomer.folder, TABLES)
    began = time.perf_counter()
    for verb in ("scan", "plan"):
        done = newcomer.types("ebbtide", verb)
        assert done.returncode == 0, done.stderr
    took = installed + time.perf_counter() - began
    name = f"an empty environment to a plan of {TABLES} tables, seconds ({installed:.0f} of them installing)"
    yield Result.limit(name, took, MOST_SECONDS)
