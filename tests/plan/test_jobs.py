"""All datasets together, in a handful of jobs (spec §1): how many of them does not depend on how many datasets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from ebbtide.config.policies import PolicySet
from ebbtide.model.history import Kind
from tests.plan.worlds import NOW, Table, ago, day_partition, plan, policies, world

RULES = """\
policies:
  - name: all
    select: {tables: ["**"]}
    transactions: {older_than: 90d}
    versions: {older_than: 7d, keep_min: 1}
    partitions: {older_than: 90d}
    branches: {unused_for: 30d}
    orphans: {older_than: 3d}
floors:
  - {name: tax, tables: ["lake.db.t1"], keep_at_least: 7y, basis: tax code}
"""
MOST = 48
"""Jobs of a plan of these targets with marks, unmarks and holds: 39 when this was written, and less than datasets."""


def table(name: str) -> Table:
    day = NOW.date().replace(year=2025)
    made = Table(name, partitions=(day_partition(day),)).commit("T1", 400, partition=f"0/day={day}")
    return made.commit("T2", 300).commit("T3", 200, kind=Kind.SNAPSHOT).branch("old", "T2")


def jobs_of_plan(spark: SparkSession, rules: PolicySet, count: int) -> tuple[int, dict[str, int]]:
    """How many jobs a plan of so many datasets starts, and its decisions."""
    names = [f"lake.db.t{n}" for n in range(count)]
    orphans: Sequence[Any] = [(name, f"file:///{name}", f"file:///{name}/o", 7, ago(9)) for name in names]
    seen = world(spark, *(table(name) for name in names), orphans=orphans)
    marks = [(name, "versions", "T1", "all", "another", ago(9), ago(1), None) for name in names]
    unmarks = [(name, None, "old", None, "needed") for name in names]
    holds = [("lake.db.t2", None, NOW.date(), "legal", None)]
    context, group = spark.sparkContext, uuid4().hex
    context.setJobGroup(group, "a plan")
    try:
        with plan(spark, rules, seen, marks=marks, unmarks=unmarks, holds=holds) as made:
            return len(context.statusTracker().getJobIdsForGroup(group)), dict(made.counts)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


@pytest.fixture
def rules(tmp_path: Path) -> PolicySet:
    return policies(tmp_path, RULES)


def test_a_plan_takes_as_many_jobs_for_sixty_datasets_as_for_three(spark: SparkSession, rules: PolicySet) -> None:
    few, counted = jobs_of_plan(spark, rules, 3)
    many, counted_too = jobs_of_plan(spark, rules, 60)
    assert sum(counted_too.values()) == 20 * sum(counted.values())
    assert counted_too["mark"] > 20 * counted["mark"], "a floor and a hold keep two of three, and two of sixty"
    assert few == many
    assert 0 < many <= MOST
