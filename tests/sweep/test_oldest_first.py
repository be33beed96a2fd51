"""Formats that remove oldest first, with more objects than one act holds: the next run goes on where this one ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ebbtide.sweep import act_planning
from tests.tide import Tide

POLICIES = """
policies:
  - name: old
    select: {tables: ["**"]}
    versions: {older_than: 30d, keep_min: 1}
"""


def test_younger_versions_are_not_sent_back_for_older_ones(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(act_planning, "OBJECTS_PER_ACT", 2)
    tide = Tide(spark, tmp_path / "p", "paimon", policies=POLICIES)
    driver = tide.drivers["paimon"]
    table = driver.create("t")
    for number in range(5):
        driver.overwrite(table, [(number, "x", "d")])
    ids = driver.native_ids(table)
    tide.mark(40)
    first, second = tide.sweep(48), tide.sweep(49)
    assert [result.state for report in (first, second) for result in report.results] == ["swept"] * 4
    assert driver.native_ids(table) == ids[-1:]
