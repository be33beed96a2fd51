"""A person's word that comes after the plan was made and before its intents are written: the last moment to stop it."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from ebbtide.app.ledger import open_for_writing
from ebbtide.app.round import plan_round, sweeper
from ebbtide.app.runs import recorded
from ebbtide.app.sweep import sweep_round
from ebbtide.app.unmark import unmark_object
from ebbtide.run import quiet
from ebbtide.sweep.values import SweepReport
from tests.tide import Tide

POLICIES = """
policies:
  - name: days
    select: {tables: ["*.db.days"]}
    partitions: {older_than: 30d}
    versions: {older_than: 1000d}
  - name: rows
    select: {tables: ["*.db.rows"]}
    rows: {where: "name = 'old'"}
    versions: {older_than: 30d, keep_min: 1}
  - name: old
    select: {tables: ["**"]}
    versions: {older_than: 30d, keep_min: 1}
"""
OLD, OLDER, NEW = "2026-01-02", "2026-01-01", "2099-01-01"


def test_what_is_unmarked_after_the_plan_stays_and_the_rest_goes(spark: SparkSession, tmp_path: Path) -> None:
    tide = Tide(spark, tmp_path / "p", "iceberg", policies=POLICIES)
    driver = tide.drivers["iceberg"]
    versions, days, rows = (driver.create(name, partitioned=name == "days") for name in ("versions", "days", "rows"))
    for number in range(3):
        driver.overwrite(versions, [(number, "x", OLD)])
        driver.overwrite(rows, [(number, "old", OLD), (9, "new", OLD)])
    driver.append(days, [(1, "x", OLDER), (2, "x", OLD), (3, "x", NEW)])
    marked = {(key.dataset, key.target, key.object) for key in tide.mark(40).marked}
    second = driver.native_ids(versions)[-2]
    day = next(object_ for _, target, object_ in marked if target == "partitions" and OLD in object_)
    rescued = [
        (str(versions.id), "versions", second),
        (str(days.id), "partitions", day),
        (str(rows.id), "rows", "rows"),
    ]
    assert {*rescued} <= marked

    swept = _sweep_while(tide, *("#".join((dataset, f"{target}:{id_}")) for dataset, target, id_ in rescued))

    assert not swept.errors
    assert [row.id for row in driver.rows(days)] == [2, 3], "the rescued day stays, the other one goes"
    assert {row.name for row in driver.rows(rows)} == {"new", "old"}, "nobody deletes the rescued rows"
    assert [row.id for row in driver.rows(versions, version=second)] == [1], "the rescued version reads"
    gone = {(key.dataset, key.target, key.object) for key in (result.key for result in swept.results)}
    assert gone
    assert gone == marked - {*rescued}


def _sweep_while(tide: Tide, *rescued: str) -> SweepReport:
    context = quiet(as_of=tide.at(48))
    ledger, _ = open_for_writing(tide.project, context)
    with (
        sweeper(ledger, context) as lease,
        recorded(context, ledger, "sweep", lease) as run,
        plan_round(tide.project, ledger, run.context) as round_,
    ):
        for object_ in rescued:
            unmark_object(tide.project, object_, reason="still needed", as_of=tide.at(48))
        return sweep_round(round_, lease)
