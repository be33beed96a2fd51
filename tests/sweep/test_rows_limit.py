"""A limit holds for rows, too: a predicate that turns out to match most of a table deletes none of it."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from ebbtide.app.sweep import exit_code, run_sweep
from ebbtide.config.project import Limits
from tests.conformance.driver import Table
from tests.sweep.test_rows_again import POLICIES
from tests.tide import Tide

FORMATS = ("iceberg", "delta", "hudi", "paimon")


def test_too_many_rows_are_left_alone_and_a_raised_limit_lets_them_go(spark: SparkSession, tmp_path: Path) -> None:
    tide = Tide(spark, tmp_path / "p", *FORMATS, policies=POLICIES, settings="limits: {min_bytes: 1}\n")
    many: dict[str, Table] = {}
    few: dict[str, Table] = {}
    for format_, driver in tide.drivers.items():
        for name, tables, old in (("many", many, 4), ("few", few, 1)):
            tables[format_] = driver.create(name)
            rows = [(n, "old" if n <= old else "new", "d") for n in range(1, 11)]
            driver.append(tables[format_], rows)
    tide.mark(40)

    report = tide.sweep(48)
    names = {str(table.id) for table in many.values()}
    states = {result.key.dataset: (result.state, result.because) for result in report.results}
    assert {dataset for dataset, (_, why) in states.items() if "more than 30%" in why} == names
    assert {state for state, _ in states.values()} == {"waiting"}
    assert ({text.partition(": ")[0] for text in report.over}, exit_code(report)) == (names, 3)
    for format_, driver in tide.drivers.items():
        assert sorted(row.id for row in driver.rows(many[format_])) == [*range(1, 11)], format_
        assert sorted(row.id for row in driver.rows(few[format_])) == [*range(2, 11)], format_

    report = run_sweep(tide.project, as_of=tide.at(49), limits=Limits(max_share=0.5, min_bytes=1))
    assert exit_code(report) == 0
    for format_, driver in tide.drivers.items():
        assert sorted(row.id for row in driver.rows(many[format_])) == [*range(5, 11)], format_
