"""Where an identity stands when lineage names columns that the tables do not have."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ebbtide.app.scan import run_scan
from ebbtide.config import load_project
from ebbtide.config.subjects import Place, Subject
from ebbtide.errors import InputError
from ebbtide.formats.base import Depth
from ebbtide.governance.carriers import Carriers, carriers
from ebbtide.inventory.information_schema import Inventory
from ebbtide.lineage.labelled import label_inventory
from tests.inventory.lakes import SmallLake

PROJECT = """\
project: acme
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
"""
MODELS = {
    "lake.db.daily": "SELECT id, name, id AS copy FROM lake.db.users",
    "lake.db.late": "SELECT copy AS id, uid AS name FROM lake.db.daily",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lake = SmallLake(tmp_path)
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    (tmp_path / "lineage").mkdir()
    for table in ("users", "daily", "late"):
        lake.create(table)
    for table, text in MODELS.items():
        (tmp_path / "lineage" / f"{table}.sql").write_text(text)
    run_scan(load_project(tmp_path), now=datetime.now(UTC), depth=Depth.HISTORY)
    return tmp_path


def carried(root: Path, table_id: str, column: str) -> Carriers:
    project = load_project(root)
    inventory = Inventory.open(project.inventory)
    subject = Subject("user_id", "subjects.yml:2", (Place(table_id, column),))
    return carriers(subject, label_inventory(project, inventory), inventory)


def test_a_column_that_only_lineage_names_is_followed_and_listed_and_not_looked_at(root: Path) -> None:
    found = carried(root, "lake.db.users", "id")
    assert set(found.columns) == {
        Place("lake.db.users", "id"), Place("lake.db.daily", "id"),
        Place("lake.db.late", "id"), Place("lake.db.late", "name"),
    }  # fmt: skip
    assert [(one.place, one.failed) for one in found.unread] == [("lake.db.daily.copy", False)]


def test_an_identity_cannot_stand_in_a_column_that_only_lineage_names(root: Path) -> None:
    with pytest.raises(InputError, match=r"lake\.db\.daily has no column 'uid'") as caught:
        carried(root, "lake.db.daily", "uid")
    assert caught.value.hint == "did you mean 'id'?"
