"""A nightly pass over 100 Iceberg tables of which 10 have work, against a script that cleans each of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from benchmarks.results import Result
from ebbtide.app.mark import run_mark
from ebbtide.app.run import run_once
from ebbtide.app.scan import start_session
from ebbtide.config import load_project

TABLES, WORKING, COMMITS = 100, 10, 6
PROJECT = """
project: nightly
clock: simulated
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
spark: {master: "local[2]"}
"""
POLICY = """
policies:
  - name: nightly
    select: {tables: ["**"]}
    versions: {older_than: 7d, keep_min: 1}
    orphans: {older_than: 3d}
    grace: 1d
"""


def _lake(root: Path, name: str) -> SqlCatalog:
    root.mkdir(parents=True)
    catalog = SqlCatalog(name, uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/lake")
    catalog.create_namespace("db")
    rows = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    for number in range(TABLES):
        table = catalog.create_table(("db", f"t{number:03}"), rows.schema)
        for _ in range(COMMITS if number < WORKING else 1):
            table.append(rows)
    return catalog


def main(folder: Path) -> Iterator[Result]:
    root = folder / "ours"
    _lake(root, "lake")
    (root / "ebbtide.yml").write_text(PROJECT)
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(POLICY)
    project = load_project(root)
    spark = start_session(project)
    now = datetime.now(UTC)
    # What a night finds: the inventory of the night before, and marks whose grace is over.
    marked = run_mark(project, as_of=now + timedelta(days=8))
    assert len({key.dataset for key in marked.marked}) == WORKING, marked
    began = time.monotonic()
    done = run_once(project, as_of=now + timedelta(days=10))
    ours = time.monotonic() - began
    assert done.exit_code == 0, done
    assert done.swept is not None
    assert done.swept.removed_files > 0, done
    name = f"{TABLES} tables, {WORKING} with work: listing, scans, plan, mark, sweep, proof"
    yield Result(name, ours, "a script of expire_snapshots and remove_orphan_files", _script(spark, folder, now), 8)


def _script(spark: SparkSession, folder: Path, now: datetime) -> float:
    """Every table after the other, as people do it today."""
    root = folder / "theirs"
    _lake(root, "theirs")
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog", ".type": "jdbc", ".uri": f"jdbc:sqlite:{root}/catalog.db",
        ".jdbc.schema-version": "V1", ".warehouse": f"{root}/lake",
    }  # fmt: skip
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.theirs{key}", value)
    began = time.monotonic()
    newer = f"TIMESTAMP '{now + timedelta(minutes=5):%Y-%m-%d %H:%M:%S}'"
    older = f"TIMESTAMP '{now - timedelta(days=3):%Y-%m-%d %H:%M:%S}'"
    for number in range(TABLES):
        table = f"db.t{number:03}"
        spark.sql(f"CALL theirs.system.expire_snapshots('{table}', {newer}, 1)").collect()
        spark.sql(f"CALL theirs.system.remove_orphan_files(table => '{table}', older_than => {older})").collect()
    return time.monotonic() - began
