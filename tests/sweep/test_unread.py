"""A dataset that cannot be read: nothing of it goes, the others go on, and whoever runs it is told (exit 4)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from ebbtide.acts.act import Act, ActResult
from ebbtide.acts.references import with_needed
from ebbtide.app import mark as marking
from ebbtide.app.sweep import exit_code
from ebbtide.cli.commands import app
from ebbtide.inventory.current import Current
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.dataset import Catalog
from ebbtide.state.values import ObjectKey
from ebbtide.sweep.mark import MarkReport
from ebbtide.sweep.values import ObjectOutcome, SweepReport
from tests.tide import Tide

POLICIES = """
policies:
  - {name: days, select: {tables: ["**.days"]}, partitions: {older_than: 30d}, versions: {older_than: 7d}}
  - {name: old, select: {tables: ["**"]}, versions: {older_than: 7d, keep_min: 1}}
"""
OLD, NEW = "2026-01-01", "2099-01-01"


def test_files_of_all_others_wait_for_who_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
    """A table borrows another one's file, and cannot be read before anybody knows of it."""
    tide = Tide(spark, tmp_path / "p", "iceberg", "delta", "paimon", policies=POLICIES)
    iceberg = tide.drivers["iceberg"]
    tables = {format_: driver.create("lends") for format_, driver in tide.drivers.items()}
    for format_, table in tables.items():
        tide.drivers[format_].append(table, [(0, "x", "d")])
    (lent,) = Path(tables["iceberg"].location, "data").glob("*.parquet")
    for format_, table in tables.items():
        tide.drivers[format_].overwrite(table, [(1, "x", "d")])
    days = iceberg.create("days", partitioned=True)
    iceberg.append(days, [(1, "old", OLD), (2, "new", NEW)])
    tide.mark(40)
    borrower = iceberg.create("borrower")
    iceberg.spark.sql(
        f"CALL {iceberg.catalog.name}.system.add_files(table => 'db.borrower', source_table => '`parquet`.`{lent}`')"
    )
    newest = max(Path(borrower.location, "metadata").glob("*.metadata.json"), key=lambda path: path.name)
    content = newest.read_text()
    newest.write_text(content[:100])
    before, snapshots = tide.files(), tide.drivers["paimon"].native_ids(tables["paimon"])

    asked = ["--project", str(tide.root), "run", "--yes", "--json", "--as-of", tide.at(50).isoformat()]
    done = CliRunner().invoke(app, asked, env={"COLUMNS": "300"})
    assert done.exit_code == 4, (done.stderr, done.exception)
    told = json.loads(done.stdout)
    assert len(told["unread"]) == 1, told["unread"]
    (unread,) = told["unread"]
    assert unread.startswith(f"{borrower.id}: ")
    assert (told["sweep"]["unread"], told["mark"]["unread"], told["exit_code"]) == ([unread], [unread], 4)
    assert f"error: {borrower.id}: " in done.stderr
    assert "shares_files: false" in done.stderr
    assert "ignore" in done.stderr
    assert tide.files() >= before, "nothing is removed from storage"
    assert tide.drivers["paimon"].native_ids(tables["paimon"]) == snapshots
    assert [row.id for row in iceberg.rows(days)] == [2], "what is metadata alone goes on"
    waits = {found["dataset"] for found in told["sweep"]["objects"] if f"unread:{borrower.id}" in found["because"]}
    assert waits == {str(table.id) for table in tables.values()}
    plan = CliRunner().invoke(app, ["--project", str(tide.root), "plan", "--json", "--as-of", tide.at(50).isoformat()])
    assert (plan.exit_code, json.loads(plan.stdout)["unread"]) == (4, [unread])
    file = tide.root / "ebbtide.yml"
    project = file.read_text()
    file.write_text(f"{project}ignore: [{{dataset: {borrower.id}, reason: a test, until: 2199-01-01}}]\n")
    rows = tide.plan(50)
    assert not [row for row in rows.values() if any(name.startswith("unread:") for name in row["waits_for"])]
    file.write_text(project)

    newest.write_text(content)
    report = tide.sweep(51)
    assert exit_code(report) == 0, report
    states = {r.key.dataset: (r.state, r.because) for r in report.results}
    assert {states[str(tables[format_].id)][0] for format_ in ("delta", "paimon")} == {"swept"}, states
    assert [row.id for row in iceberg.rows(borrower)] == [0]
    assert lent.exists()
    assert not {tide.relative(path) for path in Path(days.location).rglob(f"*{OLD}*/*.parquet")}


def test_who_cannot_be_read_any_more_stops_operations_that_name_no_file_too(tmp_path: Path) -> None:
    """Cleaners and expiries of the formats find files by themselves."""
    act = Act(id="act-1", dataset="c.db.t", catalog=Catalog("c", "paimon", str(tmp_path)), stages=())
    (result,) = with_needed([ActResult(act=act)], Inventory(tmp_path, Current()), ["unread:c.db.x"])
    assert result.unread == "unread:c.db.x"


_KEY = ObjectKey("c.db.t", "versions", "1")


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (SweepReport("r", (ObjectOutcome(_KEY, "waiting", "a tag"),)), 0),
        (SweepReport("r", over=("c.db.t: too much",)), 3),
        (SweepReport("r", (ObjectOutcome(_KEY, "failed", "no space"),)), 4),
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
