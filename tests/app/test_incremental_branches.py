"""Reading what is new on a branch: its line goes past the fork into main's (spec §8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from ebbtide.errors import FullReadNeededError, InputError, MarkedError
from ebbtide.spark.session import formats_of_session
from tests.conformance.driver import Driver, Table
from tests.tide import Tide

POLICIES = """
policies:
  - name: old
    select: {tables: ["*.db.marked"]}
    transactions: {older_than: 30d}
"""
DAY = "2026-01-01"


@dataclass
class Lake:
    tide: Tide
    driver: Driver

    def new(self, table: Table, since: str | None, **options: Any) -> list[str]:
        return names(self.tide.app.incremental(str(table.id), since=since, **options))

    def append(self, table: Table, *rows: str, branch: str | None = None) -> str:
        """One commit with these rows; its native id."""
        before = set(self.driver.native_ids(table))
        self.driver.append(table, [(ord(row[-1]), row, DAY) for row in rows], branch=branch)
        (id_,) = set(self.driver.native_ids(table)) - before
        return id_

    def overwrite(self, table: Table, row: str, branch: str) -> str:
        before = set(self.driver.native_ids(table))
        self.driver.overwrite(table, [(9, row, DAY)], branch=branch)
        (id_,) = set(self.driver.native_ids(table)) - before
        return id_


def names(frame: DataFrame) -> list[str]:
    assert frame.columns == ["id", "name", "day"]
    return sorted(row["name"] for row in frame.collect())


@pytest.fixture(scope="module", params=[f for f in ("iceberg", "paimon") if f in formats_of_session()])
def lake(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    tide = Tide(spark, tmp_path_factory.mktemp("branches") / "p", str(request.param), policies=POLICIES)
    return Lake(tide, tide.drivers[str(request.param)])


def forked(lake: Lake, name: str) -> tuple[Table, list[str], list[str]]:
    """`main: m1 m2 m3`, `x: m1 m2 x1 x2`; the native ids of main's and of the branch's own."""
    table = lake.driver.create(name, partitioned=True)
    main = [lake.append(table, "m1"), lake.append(table, "m2")]
    lake.driver.create_branch(table, "x", at=main[1])
    main.append(lake.append(table, "m3"))
    return table, main, [lake.append(table, "x1", branch="x"), lake.append(table, "x2", branch="x")]


def test_a_branch_is_read_from_its_fork_from_before_it_and_from_the_beginning(lake: Lake) -> None:
    table, main, own = forked(lake, "forked")
    assert lake.new(table, own[0], branch="x") == ["x2"]
    assert lake.new(table, own[1], branch="x") == []
    assert lake.new(table, main[1], branch="x") == ["x1", "x2"], "from the fork"
    assert lake.new(table, main[0], branch="x") == ["m2", "x1", "x2"], "from before it"
    assert lake.new(table, None, branch="x") == ["m1", "m2", "x1", "x2"]
    assert lake.new(table, main[1]) == lake.new(table, main[1], branch="main") == ["m3"]
    # What lies beside a line is not before it.
    for branch, since in (("x", main[2]), ("main", own[0])):
        for allow_retention in (False, True):
            with pytest.raises(FullReadNeededError, match=f"not on {branch}'s line"):
                lake.new(table, since, branch=branch, allow_retention=allow_retention)
    with pytest.raises(InputError, match="no transaction of x"):
        lake.new(table, "main/77777" if lake.driver.format == "paimon" else "77777", branch="x")
    lake.driver.create_tag(table, "pinned", at=main[1])
    for unknown in ("y", "pinned"):
        with pytest.raises(InputError, match=f"no branch '{unknown}'") as caught:
            lake.new(table, main[1], branch=unknown)
        assert caught.value.hint == "one of main, x"


def test_what_retention_removed_from_a_line_is_said_and_skipped_only_when_asked(lake: Lake) -> None:
    table, main, own = forked(lake, "expired")
    lake.driver.expire(table)
    with pytest.raises(FullReadNeededError, match="retention removed"):
        lake.new(table, main[0])
    assert lake.new(table, main[0], allow_retention=True) == ["m3"], "from the oldest that is left"
    assert lake.new(table, main[1]) == ["m3"], "nothing between is missing"
    with pytest.raises(FullReadNeededError, match="after the beginning"):
        lake.new(table, None, branch="x")
    assert lake.new(table, own[0], branch="x") == ["x2"]
    if lake.driver.format == "iceberg":
        with pytest.raises(FullReadNeededError, match="retention removed"):
            lake.new(table, main[1], branch="x")
        assert lake.new(table, main[1], branch="x", allow_retention=True) == ["x2"]
        with pytest.raises(FullReadNeededError, match="not on x's line"):
            lake.new(table, lake.append(table, "m4"), branch="x", allow_retention=True)
    else:
        # Paimon's expiry takes main's snapshots; the branch has its own, and its own copy of the one it was made from.
        assert lake.new(table, main[0], branch="x") == ["m2", "x1", "x2"]


def test_marked_transactions_of_a_branch_are_refused_unless_asked_for(lake: Lake) -> None:
    table, main, own = forked(lake, "marked")
    replaced = lake.overwrite(table, "all", "x")
    last = lake.append(table, "x4", branch="x")
    marked = {key.object for key in lake.tide.mark(40).marked if key.dataset == str(table.id)}
    assert marked == set(own), "main's are in its latest view"
    for since in (main[0], main[1]):
        with pytest.raises(MarkedError, match=f"{own[0]} is scheduled for deletion"):
            lake.new(table, since, branch="x")
        with pytest.raises(FullReadNeededError, match=f"{replaced} is SNAPSHOT"):
            lake.new(table, since, branch="x", allow_marked=True)
    assert lake.new(table, replaced, branch="x") == ["x4"], "who is past them reads on"
    assert lake.new(table, main[0]) == ["m2", "m3"], "and so does who reads main"
    assert lake.new(table, last, branch="x") == []
