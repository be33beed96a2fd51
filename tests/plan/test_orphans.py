"""Orphans in the plan: what a mark covers, what sends it back, and owners that are no datasets any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ebbtide.plan.world import MARKS, World
from tests.plan.worlds import NOW, Table, ago, decided, plan, policy, world

FOLDER = "file:///lake/t/data"
Orphan = tuple[str, str, str, int, Any]


def orphan(name: str, days: float, table: str = "lake.db.t") -> Orphan:
    return (table, FOLDER, f"{FOLDER}/{name}", 7, ago(days))


def lake(*orphans: Orphan, errors: tuple[str, ...] = ()) -> World:
    table = Table("lake.db.t")
    return world(table, orphans=orphans, errors=errors)


def row_of(tmp_path: Path, seen: World, *marks: tuple[Any, ...], guard: str = "3d") -> Any:
    with plan(policy(tmp_path, f"orphans: {{older_than: {guard}}}"), seen, marks=marks) as made:
        rows = decided(made)
        return rows[next(key for key in rows if key.endswith(f"orphans:{FOLDER}"))], sorted(made.paths())


@pytest.fixture
def mark(tmp_path: Path) -> tuple[Any, ...]:
    row, _ = row_of(tmp_path, lake(orphan("a", 9), orphan("b", 5), orphan("young", 1)))
    assert (row["decision"], row["files"]["count"]) == ("mark", 2)
    given = ("lake.db.t", "orphans", FOLDER, "p", row["fingerprint"], ago(8), ago(1), row["cutoff"])
    return (*given, *[None] * (len(MARKS) - len(given)))


def test_a_mark_covers_exactly_the_files_that_it_named(tmp_path: Path, mark: tuple[Any, ...]) -> None:
    # One that was too young then is old enough now: it waits for the next mark.
    seen = lake(orphan("a", 9), orphan("b", 5), orphan("young", 4))
    row, paths = row_of(tmp_path, seen, mark)
    assert (row["decision"], paths) == ("sweep", [f"{FOLDER}/a", f"{FOLDER}/b"])


@pytest.mark.parametrize(
    ("left", "guard", "because"),
    [
        ([orphan("a", 9)], "3d", "unmarked: it changed since it was marked"),
        ([orphan("a", 9), orphan("b", 6)], "3d", "unmarked: it changed since it was marked"),
        ([orphan("a", 9), orphan("b", 5)], "7d", "unmarked: no file is older than 7d"),
    ],
    ids=["one is gone or referenced", "one was written again", "the guard age is longer now"],
)
def test_what_changed_since_the_mark_sends_the_folder_back(
    tmp_path: Path, mark: tuple[Any, ...], left: list[Orphan], guard: str, because: str
) -> None:
    row, paths = row_of(tmp_path, lake(*left), mark, guard=guard)
    assert (row["decision"], row["because"], paths) == ("unmarked", because, [])


def test_an_unread_dataset_lets_a_mark_wait(tmp_path: Path, mark: tuple[Any, ...]) -> None:
    seen = lake(orphan("a", 9), orphan("b", 5), errors=("lake.db.x: broken",))
    row, _ = row_of(tmp_path, seen, mark)
    assert (row["decision"], row["waits_for"]) == ("marked", ["unknown:lake.db.x: broken"])


def test_without_a_guard_age_what_was_just_written_goes_too(tmp_path: Path) -> None:
    """Why such a policy is refused unless somebody says `--unsafe`."""
    row, paths = row_of(tmp_path, lake(orphan("just written", 0.001)), guard="0d")
    assert (row["decision"], paths) == ("mark", [f"{FOLDER}/just written"])


def test_a_file_without_a_time_is_kept(tmp_path: Path) -> None:
    row, paths = row_of(tmp_path, lake((*orphan("a", 9)[:4], None)))
    assert (row["decision"], paths) == ("keep", [])


def test_a_policy_of_orphans_alone_and_a_clean_lake_make_an_empty_plan(tmp_path: Path) -> None:
    rules = policy(
        tmp_path, "orphans: {older_than: 3d}", more="floors: [{tables: ['**'], keep_at_least: 7y, basis: b}]"
    )
    with plan(rules, world(Table("lake.db.t").commit("T1", 9))) as made:
        assert (list(made.rows()), list(made.paths()), set(made.counts.values())) == ([], [], {0})
        assert made.totals["mark"].bytes == 0


def test_a_dataset_that_is_no_more_owns_what_it_left_and_nothing_else(tmp_path: Path) -> None:
    seen = lake(orphan("a", 9, "lake.db.gone"))
    former = pa.Table.from_pylist([{"table_id": "lake.db.gone", "format": "iceberg"}], seen.tables.schema)
    seen = replace(seen, former=former, listed_at=NOW + timedelta(0))
    rules = policy(tmp_path, "orphans: {older_than: 3d}, tables: {older_than: 1d}, rows: {where: 'x = 1'}")
    with plan(rules, seen) as made:
        gone = [row for row in made.rows() if row["dataset"] == "lake.db.gone"]
        assert [(row["target"], row["decision"], row["bytes"]) for row in gone] == [("orphans", "mark", 7)]
        assert made.totals["mark"].bytes >= 7
