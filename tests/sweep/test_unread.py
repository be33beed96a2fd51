"""A dataset that cannot be read: nothing of it goes, the others go on, and whoever runs it is told (exit 4)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from ebbtide.app import mark as marking
from ebbtide.app.sweep import exit_code
from ebbtide.cli.commands import app
from ebbtide.state.values import ObjectKey
from ebbtide.sweep.mark import MarkReport
from ebbtide.sweep.values import Result, SweepReport
from tests.tide import Tide

POLICIES = """
policies:
  - {name: old, select: {tables: ["**"]}, versions: {older_than: 7d, keep_min: 1}}
"""


def test_the_others_are_swept_and_the_run_ends_with_4(spark: SparkSession, tmp_path: Path) -> None:
    tide = Tide(spark, tmp_path / "p", "iceberg", policies=POLICIES)
    driver = tide.drivers["iceberg"]
    tables = {name: driver.create(name) for name in ("broken", "whole")}
    for table in tables.values():
        for number in range(2):
            driver.overwrite(table, [(number, "x", "d")])
    tide.mark(20)
    driver.append(tables["broken"], [(7, "z", "d")])
    newest = max(Path(tables["broken"].location, "metadata").glob("*.metadata.json"), key=lambda path: path.name)
    newest.write_text(newest.read_text()[:100])
    before = {path for path in Path(tables["broken"].location).rglob("*") if path.is_file()}

    asked = ["--project", str(tide.root), "run", "--yes", "--json", "--as-of", tide.at(30).isoformat()]
    done = CliRunner().invoke(app, asked, env={"COLUMNS": "300"})
    assert done.exit_code == 4, (done.stderr, done.exception)
    told = json.loads(done.stdout)
    (unread,) = told["unread"]
    assert unread.startswith(f"{tables['broken'].id}: ")
    assert (told["sweep"]["unread"], told["mark"]["unread"], told["exit_code"]) == ([unread], [unread], 4)
    assert f"error: {tables['broken'].id}: " in done.stderr
    swept = {found["dataset"] for found in told["sweep"]["objects"] if found["state"] == "swept"}
    assert swept == {str(tables["whole"].id)}
    assert {path for path in Path(tables["broken"].location).rglob("*") if path.is_file()} == before


_KEY = ObjectKey("c.db.t", "versions", "1")


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (SweepReport("r", (Result(_KEY, "waiting", "a tag"),)), 0),
        (SweepReport("r", over=("c.db.t: too much",)), 3),
        (SweepReport("r", (Result(_KEY, "failed", "no space"),)), 4),
        (SweepReport("r", errors=("c.db.t: no space",), over=("c.db.t: too much",)), 4),
        (SweepReport("r", unread=("c: no answer",)), 4),
        (SweepReport("r", findings=("c.db.t: a file is missing",), errors=("no",), unread=("c: no answer",)), 1),
    ],
)
def test_the_worst_of_a_sweep_is_its_exit_code(report: SweepReport, code: int) -> None:
    assert exit_code(report) == code


def test_the_worst_of_a_mark_is_its_exit_code() -> None:
    assert marking.exit_code(MarkReport("r")) == 0
    assert marking.exit_code(MarkReport("r", over=("c.db.t: too much",))) == 3
    assert marking.exit_code(MarkReport("r", over=("c.db.t: too much",), unread=("c: no answer",))) == 4
