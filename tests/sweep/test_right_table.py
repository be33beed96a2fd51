"""The files that go belong to the very table whose versions went, whatever a session knows by its name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from ebbtide.app.mark import run_mark
from ebbtide.app.sweep import run_sweep
from ebbtide.config import Project, load_project
from ebbtide.formats.registry import load_format
from ebbtide.model.removal import Committed

PROJECT = """
project: p
clock: simulated
catalogs:
  samename: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
ledger: {origin: example.org/p, checkpoint: ../checkpoint}
spark: {master: "local[1]"}
"""
POLICY = 'policies: [{name: all, select: {tables: ["**"]}, versions: {older_than: 7d, keep_min: 1}, grace: 1d}]\n'
ROWS = pa.table({"id": [1]})


def _project(root: Path) -> tuple[Project, SqlCatalog]:
    (root / "policies").mkdir(parents=True)
    (root / "ebbtide.yml").write_text(PROJECT)
    (root / "policies" / "p.yml").write_text(POLICY)
    catalog = SqlCatalog("samename", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/lake")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema)
    for _ in range(3):
        table.append(ROWS)
    return load_project(root), catalog


def test_each_project_sweeps_its_own_tables(spark: SparkSession, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    first, second = _project(tmp_path / "a" / "p"), _project(tmp_path / "b" / "p")
    for project, _ in (first, second):
        assert len(run_mark(project, as_of=now + timedelta(days=8)).marked) == 2
    for project, catalog in (first, second):
        done = run_sweep(project, as_of=now + timedelta(days=10))
        assert {result.state for result in done.results} == {"swept"}
        assert not done.findings
        assert len(catalog.load_table("db.t").snapshots()) == 1
        assert catalog.load_table("db.t").scan().to_arrow().num_rows == 3


def test_a_commit_that_changed_nothing_frees_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that Iceberg still lists needs its files, whoever says that it went."""
    project, catalog = _project(tmp_path / "p")
    now = datetime.now(UTC)
    run_mark(project, as_of=now + timedelta(days=8))
    format_ = type(load_format("iceberg"))
    monkeypatch.setattr(format_, "commit", lambda _, removal, *__: Committed(done=removal.versions))
    before = sorted((tmp_path / "p" / "lake").rglob("*"))
    done = run_sweep(project, as_of=now + timedelta(days=10))
    assert (done.removed_files, done.findings) == (0, ())
    assert {result.state for result in done.results} == {"waiting"}
    assert sorted((tmp_path / "p" / "lake").rglob("*")) == before
    assert len(catalog.load_table("db.t").snapshots()) == 3
