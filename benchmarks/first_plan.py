"""From an empty environment to the first plan of one's own 20 tables: what a newcomer waits for.

Downloads are excluded: packages come from uv's cache. No JVM starts, so no jar is needed yet.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from tests.install.built import build_wheel, install

from benchmarks.commands import COMMITS, POLICIES, PROJECT
from benchmarks.results import Result

TABLES, MOST_SECONDS = 20, 300


def main(root: Path) -> Iterator[Result]:
    wheel = build_wheel(root / "wheel")
    began = time.perf_counter()
    newcomer = install(wheel, root / "newcomer")
    installed = time.perf_counter() - began
    _lake(newcomer.folder)
    began = time.perf_counter()
    for verb in ("scan", "plan"):
        done = newcomer.types("ebbtide", verb)
        assert done.returncode == 0, done.stderr
    took = installed + time.perf_counter() - began
    name = f"an empty environment to a plan of {TABLES} tables, seconds ({installed:.0f} of them installing)"
    yield Result.limit(name, took, MOST_SECONDS)


def _lake(folder: Path) -> None:
    """What the newcomer has already, with a project's two files."""
    from pyiceberg.catalog.sql import SqlCatalog

    (folder / "policies").mkdir()
    (folder / "ebbtide.yml").write_text(PROJECT)
    (folder / "policies" / "all.yml").write_text(POLICIES)
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/lake")
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array([1, 2], pa.int64())})
    for number in range(TABLES):
        table = catalog.create_table(f"db.t{number}", rows.schema)
        for _ in range(COMMITS):
            table.append(rows)
