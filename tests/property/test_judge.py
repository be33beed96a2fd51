"""The judge sees each of the faults that it is there for, made by hand on real tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.table import Table
from pyspark.sql import Row

from tests.oracle import lake_by_hand as oracle
from tests.property import iceberg_tables
from tests.property.judge import CHANGED, HELD, MISSING, UNNAMED, YOUNG, Judge, Outcome
from tests.property.planted import Planted


def _lose_a_live_file(table: Table) -> None:
    file = next(iter(table.scan().plan_files())).file.file_path
    Path(file.removeprefix("file://")).unlink()


def _lose_a_manifest_of_an_old_version(table: Table) -> None:
    Path(table.snapshots()[0].manifest_list.removeprefix("file://")).unlink()


def _expire(table: Table) -> None:
    table.maintenance.expire_snapshots().by_id(table.snapshots()[0].snapshot_id).commit()


def _drop_the_tag(table: Table) -> None:
    table.manage_snapshots().remove_tag("keep").commit()


def _delete_rows(table: Table) -> None:
    table.delete("id = 0")


def _delete_all(table: Table) -> None:
    table.delete("id >= 0")


@pytest.mark.parametrize(
    ("name", "fault", "held", "sentence"),
    [
        ("both_1", _lose_a_live_file, False, MISSING),
        ("both_1", _lose_a_live_file, False, CHANGED),
        ("both_1", _lose_a_manifest_of_an_old_version, False, MISSING),
        ("both_1", _expire, False, UNNAMED),
        ("both_1", _drop_the_tag, False, CHANGED),
        ("branches_1", _drop_the_tag, False, CHANGED),
        ("both_1", _delete_rows, False, CHANGED),
        ("days_1", _delete_all, False, CHANGED),
        ("latest_1", _delete_all, True, CHANGED),
        ("latest_1", _lose_a_live_file, True, HELD),
    ],
)
def test_it_sees(tmp_path: Path, name: str, fault: Callable[[Table], None], held: bool, sentence: str) -> None:
    lake = iceberg_tables.Lake("ice", tmp_path / "catalog.db", tmp_path / "ice")
    catalog = lake.open()
    catalog.create_namespace("db")
    history = iceberg_tables.create(catalog, "1", name, {})
    history.do("append")
    for _ in range(3):  # every day is there
        history.table.append(history.rows.table(8))
    history.table.manage_snapshots().create_tag(history.table.snapshots()[1].snapshot_id, "keep").commit()
    before = oracle.iceberg(lake.database, "ice")
    same, found = Outcome(), Outcome()
    Judge(same, "no fault", held={name}).compare(before, oracle.iceberg(lake.database, "ice"))
    assert not same.wrong
    fault(catalog.load_table(("db", name)))
    Judge(found, "a fault", held={name} if held else ()).compare(before, oracle.iceberg(lake.database, "ice"))
    assert sentence in found.wrong


@pytest.mark.parametrize(
    ("dataset", "going", "held", "may"),
    [
        ("c.db.gone_1", True, False, True),
        ("c.db.gone_1", False, False, False),
        ("c.db.gone_1", True, True, False),
        ("c.db.both_1", True, False, False),
    ],
)
def test_a_table_may_go_where_its_policy_and_its_plan_say_so(dataset: str, going: bool, held: bool, may: bool) -> None:
    found = Outcome()
    judge = Judge(found, "a drop", {dataset: {"it"}} if going else {}, {dataset} if held else ())
    judge.compare({dataset: oracle.Seen()}, {})
    assert found.wrong.keys() == (set() if may else {UNNAMED})


@pytest.mark.parametrize(
    ("old", "going", "held", "sentence"),
    [
        (True, True, False, None),
        (True, False, False, UNNAMED),
        (True, True, True, UNNAMED),
        (False, True, False, YOUNG),
    ],
)
def test_an_orphan_may_go_once_it_is_old_and_planned(
    tmp_path: Path, old: bool, going: bool, held: bool, sentence: str | None
) -> None:
    found, dataset = Outcome(), "c.db.both_1"
    judge = Judge(found, "a removal", {dataset: {"a folder"}} if going else {}, {dataset} if held else ())
    judge.orphans([Planted(dataset, tmp_path, old)])
    assert not found.wrong, "it is still there"
    judge.orphans([Planted(dataset, tmp_path / "gone", old)])
    assert found.wrong.keys() == ({sentence} if sentence else set())


@pytest.mark.parametrize(
    ("dataset", "head", "lost", "may"),
    [
        ("c.db.expired_1", "branch:main", "2026-01-01", True),
        ("c.db.expired_1", "branch:main", "2099-01-01", False),
        ("c.db.expired_1", "tag:t", "2026-01-01", False),
        ("c.db.both_1", "branch:main", "2026-01-01", False),
    ],
)
def test_rows_may_go_that_a_policy_names(dataset: str, head: str, lost: str, may: bool) -> None:
    found, kept = Outcome(), Row(id=1, day="2099-01-01")
    Judge(found, "a delete").read_by_spark(dataset, head, [kept, Row(id=2, day=lost)], [kept])
    assert found.wrong.keys() == (set() if may else {CHANGED})
