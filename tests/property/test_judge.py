"""The judge sees each of the faults that it is there for, made by hand on real tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.table import Table

from tests.oracle import lake_by_hand as oracle
from tests.property import iceberg_tables
from tests.property.judge import CHANGED, HELD, MISSING, UNNAMED, Judge, Outcome


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
