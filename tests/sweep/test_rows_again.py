"""A row delete that failed is made again, whatever others commit meanwhile: no row is called gone that lives."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ebbtide.app.world import read_state
from ebbtide.errors import ConflictError
from ebbtide.formats.iceberg import remove
from ebbtide.model.times import as_text
from tests.tide import Tide

POLICIES = """
policies:
  - name: gone
    select: {tables: ["**"]}
    rows: {where: "name = 'old'"}
    versions: {older_than: 1000d}
"""


def test_rows_go_though_two_sweeps_met_a_conflict(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tide = Tide(spark, tmp_path / "p", "iceberg", policies=POLICIES)
    driver = tide.drivers["iceberg"]
    table = driver.create("busy")
    driver.append(table, [(1, "old", "d"), (2, "new", "d")])
    tide.mark(40)

    def refuse(*_: object) -> None:
        raise ConflictError("a writer was quicker", hint="again later")

    with monkeypatch.context() as patched:
        patched.setattr(remove, "delete_rows", refuse)
        for number, days in ((3, 48), (4, 49)):
            assert [result.state for result in tide.sweep(days).results] == ["failed"]
            driver.append(table, [(number, "new", "d")])
    assert [row.id for row in driver.rows(table)] == [1, 2, 3, 4]

    before = driver.native_ids(table)[-1]
    (result,) = (found for found in tide.sweep(50).results if found.key.target == "rows")
    assert [row.id for row in driver.rows(table)] == [2, 3, 4], "nobody took the failed deletes for done"
    assert result.state == "waiting"
    tide.app.scan()
    history = {row.id: row for row in tide.app.history(str(table.id)).branches[0].transactions}
    assert before in history
    (mark,) = (mark for mark in read_state(tide.project).marks if mark.key.target == "rows")
    assert mark.acted_at is not None
    assert as_text(mark.acted_at) > history[before].committed_at, "the version just before the delete holds the rows"
