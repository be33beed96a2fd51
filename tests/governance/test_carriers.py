"""Where an identity stands when lineage names columns that the tables do not have."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ebbtide.app.erase_verify import needles_of
from ebbtide.app.scan import run_scan
from ebbtide.config import load_project
from ebbtide.config.subjects import Identities, IdentityColumn, Subject
from ebbtide.erasure.subjects import declared_identities
from ebbtide.erasure.values import DeclaredIdentity
from ebbtide.errors import InputError
from ebbtide.formats.base import Depth
from ebbtide.governance.carriers import Carriers, carriers
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.commitment import Identifier
from ebbtide.lineage.labelled import label_inventory
from ebbtide.verify.needles import Needle, number_of, text_forms
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
    subject = Subject("user_id", "subjects.yml:2", (IdentityColumn(table_id, column),))
    return carriers(subject, label_inventory(project, inventory), inventory)


def test_a_column_that_only_lineage_names_is_followed_and_listed_and_not_looked_at(root: Path) -> None:
    found = carried(root, "lake.db.users", "id")
    assert set(found.columns) == {
        IdentityColumn("lake.db.users", "id"), IdentityColumn("lake.db.daily", "id"),
        IdentityColumn("lake.db.late", "id"), IdentityColumn("lake.db.late", "name"),
    }  # fmt: skip
    assert [(one.place, one.failed) for one in found.unread] == [("lake.db.daily.copy", False)]


def test_an_identity_cannot_stand_in_a_column_that_only_lineage_names(root: Path) -> None:
    with pytest.raises(InputError, match=r"lake\.db\.daily has no column 'uid'") as caught:
        carried(root, "lake.db.daily", "uid")
    assert caught.value.hint == "did you mean 'id'?"


def test_a_table_that_was_dropped_stops_nobody_and_lineage_goes_on_from_it(root: Path) -> None:
    SmallLake(root).tables.drop_table("db.users")
    run_scan(load_project(root), now=datetime.now(UTC), depth=Depth.HISTORY)
    found = carried(root, "lake.db.users", "id")
    assert IdentityColumn("lake.db.daily", "id") in found.columns
    assert all(place.table_id != "lake.db.users" for place in found.columns)
    assert ("lake.db.users.id", False) in [(one.place, one.failed) for one in found.unread]
    assert found.elsewhere == ()
    with pytest.raises(InputError, match=r"no catalog has lake\.db\.nobody"):
        carried(root, "lake.db.nobody", "id")


def test_a_model_that_was_dropped_is_no_place_of_others(root: Path) -> None:
    SmallLake(root).tables.drop_table("db.late")
    run_scan(load_project(root), now=datetime.now(UTC), depth=Depth.HISTORY)
    found = carried(root, "lake.db.users", "id")
    assert {one.place for one in found.unread if not one.failed} >= {"lake.db.late.id", "lake.db.late.name"}
    assert found.elsewhere == ()


def test_of_a_dropped_table_no_type_is_known_and_a_search_looks_for_all_of_them(root: Path) -> None:
    SmallLake(root).tables.drop_table("db.users")
    run_scan(load_project(root), now=datetime.now(UTC), depth=Depth.HISTORY)
    inventory = Inventory.open(load_project(root).inventory)

    def said(*tables: str) -> DeclaredIdentity:
        places = tuple(IdentityColumn(table, "id") for table in tables)
        return declared_identities(Identities({"id": Subject("id", "s:1", places)}), inventory)["id"]

    assert said("lake.db.users", "lake.db.daily").types == said("lake.db.daily").types != frozenset()
    alone = said("lake.db.users")
    assert (alone.types, alone.more, said("lake.db.daily").more) == (frozenset(), True, False)
    with pytest.raises(InputError, match=r"no catalog has lake\.db\.nobody"):
        said("lake.db.nobody")
    needles = list(needles_of(["r1"], [(Identifier("id", "0042"),)], {"id": alone}))
    assert "0042" in {text_of(needle) for needle in needles}, "as a text, whatever else it may be"
    assert {number for needle in needles if (number := number_of(needle)) is not None} == set(), "42 is another one"
    (_, plain) = needles_of(["r1"], [(Identifier("id", "8841302"),)], {"id": alone})
    assert number_of(plain) == 8841302
    assert len(list(needles_of(["r1"], [(Identifier("id", "1e999999999"),)], {"id": alone}))) == 2


def text_of(needle: Needle) -> str:
    return next(iter(text_forms(needle))).content.decode()
