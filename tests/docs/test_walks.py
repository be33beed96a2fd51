"""Pages with commands are true: each is walked as it stands, on a real lake that needs no session."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField

from tests.cli.command import ebbtide
from tests.docs.picture import PICTURE, picture
from tests.docs.walk import ROOT, Step, alike, follow, masked, steps, walk
from tests.inventory.lakes import SmallLake

PROJECT = """\
project: acme
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
ledger: {origin: example.org/acme, checkpoint: ../checkpoint}
"""
POLICIES = """\
policies:
  - {name: old-days, select: {tables: ["lake.app.*"]}, partitions: {older_than: 90d}}
  - {name: old-versions, select: {tables: ["lake.raw.*"]}, versions: {keep_max: 2}}
"""
DAYS = (date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 3))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A lake, and nothing of Ebbtide: events of three days of 2020, a table of five commits, one of a single commit."""
    root = tmp_path / "acme"
    tables = SmallLake(root).tables
    for namespace in ("app", "raw"):
        tables.create_namespace(namespace)
    columns = Schema(NestedField(1, "day", DateType()), NestedField(2, "id", LongType()))
    by_day = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    rows = pa.table({"day": pa.array([day for day in DAYS for _ in range(2)], pa.date32()), "id": [*range(6)]})
    tables.create_table(("app", "events"), columns, partition_spec=by_day).append(rows)
    ids = pa.table({"id": [1]})
    for name, commits in (("payments", 5), ("countries", 1)):
        made = tables.create_table(("raw", name), ids.schema)
        for _ in range(commits):
            made.append(ids)
    return root


@pytest.fixture
def marked(folder: Path) -> Path:
    """The lake in a project that has marked some of it."""
    (folder / "ebbtide.yml").write_text(PROJECT)
    (folder / "policies").mkdir()
    (folder / "policies" / "retention.yml").write_text(POLICIES)
    done = ebbtide("mark", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(("page", "least"), [("README.md", 3), ("docs/first-plan.md", 7)])
def test_a_newcomer_sees_what_the_page_shows(folder: Path, page: str, least: int) -> None:
    assert len(steps(ROOT / page)) >= least
    assert follow(ROOT / page, folder) == []


def test_who_marked_too_much_finds_every_command_at_work(marked: Path) -> None:
    page = ROOT / "docs" / "marked-too-much.md"
    assert len(steps(page)) == 8
    assert follow(page, marked) == []
    assert json.loads(ebbtide("marks", "--json", cwd=marked).stdout) == []
    stays = json.loads(ebbtide("unmarks", "--json", cwd=marked).stdout)
    assert {row["dataset"] for row in stays} == {"lake.app.events"}, "the others were released"


def test_every_page_with_commands_and_what_they_show_is_walked() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    walked = ["README.md", "first-plan.md", "marked-too-much.md", "runs.md"]
    assert [page.name for page in pages if steps(page)] == walked


def test_runs_are_listed_under_the_headings_of_the_page(marked: Path) -> None:
    """The page shows a run that is under way: here there is one that has ended."""
    assert follow(ROOT / "docs" / "runs.md", marked, headings_only=True) == []


def test_the_picture_is_that_of_the_walk() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(), "run `python -m tests.docs.picture`"


def test_a_page_that_shows_something_else_or_another_exit_code_is_found(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "readme.md"
    good = (
        "```yaml\n# ebbtide.yml\n"
        + PROJECT
        + "```\n```console\n$ ebbtide marks\n0 marked, 0 past their grace, 0 B\n```\n"
    )
    page.write_text(good)
    assert [type(step) for step in walk(page)] == [tuple, Step]
    assert follow(page, folder) == []
    page.write_text(good.replace("0 marked", "1 marked"))
    assert len(follow(page, folder)) == 1
    page.write_text(good.replace("marks", "marks  # exits 3"))
    assert len(follow(page, folder)) == 1


def test_what_differs_from_lake_to_lake_is_masked_and_nothing_else() -> None:
    line = "lake.a.b#versions:1147109379748814625  mark  1.8 KiB   2026-12-03 21:31"
    assert masked(line) == "lake.a.b#versions:<ID> mark <SIZE> <TIME>"
    assert masked("3 mark, 2 keep; 5 files") == "3 mark, 2 keep; 5 files"
    assert alike(["a", "…", "c"], ["a", "b", "b", "c"])
    assert not alike(["a", "…", "c"], ["a", "b"])
    assert not alike(["a"], ["a", "b"])
