"""What is gone from a dataset is gone from the inventory as well, once somebody says so; what is there stays."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from ebbtide.app.orphans import list_orphans
from ebbtide.config import load_project
from ebbtide.inventory.forget import forget_what_is_gone
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.listing import last_listing
from ebbtide.inventory.scan import scan
from tests.inventory.lakes import SmallLake

GONE, STAYS = "somebody-who-left", "somebody-who-stays"


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    lake = SmallLake(tmp_path)
    lake.create("other", 2)
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
    people = lake.tables.create_table(("db", "people"), schema, partition_spec=spec)
    for name in (GONE, STAYS):
        people.append(pa.table({"id": [1], "name": [name]}))
    return lake


def _scan(lake: SmallLake) -> Inventory:
    scan([lake.catalog], lake.root / "inventory", no_session, now=datetime.now(UTC))
    return Inventory.open(lake.root / "inventory")


def no_session() -> NoReturn:
    raise AssertionError("nothing here needs a session")


def said(inventory: Path) -> str:
    """All that lies in the folder, tables as text."""
    files = [path for path in inventory.rglob("*") if path.is_file()]
    tables = [str(pq.ParquetFile(path).read().to_pylist()) for path in files if path.suffix == ".parquet"]
    return "\n".join([*tables, *(path.read_text() for path in files if path.suffix != ".parquet")])


def test_what_a_dataset_let_go_of_is_forgotten_and_the_rest_is_as_it_was(lake: SmallLake) -> None:
    _scan(lake)
    people = lake.tables.load_table("db.people")
    people.delete(f"name = '{GONE}'")
    people.refresh()
    past = [each.snapshot_id for each in people.snapshots()][:-1]
    people.maintenance.expire_snapshots().by_ids(past).commit()
    before = _scan(lake)
    assert GONE in said(lake.root / "inventory"), "an older segment still says it"
    sections = {name: before.table(name).to_pylist() for name in ("tables", "files", "partitions", "transactions")}

    forget_what_is_gone(lake.root / "inventory")

    assert GONE not in said(lake.root / "inventory")
    assert STAYS in said(lake.root / "inventory")
    after = Inventory.open(lake.root / "inventory")
    assert {name: after.table(name).to_pylist() for name in sections} == sections
    assert after.current.scan_id == before.current.scan_id
    forget_what_is_gone(lake.root / "inventory")
    again = Inventory.open(lake.root / "inventory")
    assert {name: again.table(name).to_pylist() for name in sections} == sections


def test_a_listing_is_forgotten_and_made_anew_when_asked_for(lake: SmallLake) -> None:
    (lake.root / "ebbtide.yml").write_text(
        "project: p\ncatalogs:\n"
        '  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}\n'
    )
    project = load_project(lake.root / "ebbtide.yml")
    list_orphans(project, now=datetime.now(UTC))
    assert last_listing(project.inventory) is not None
    forget_what_is_gone(project.inventory)
    assert last_listing(project.inventory) is None
    assert not list(project.inventory.glob("listing-*"))
    list_orphans(project, now=datetime.now(UTC))
    assert last_listing(project.inventory) is not None
