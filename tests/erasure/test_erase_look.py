"""What a look at the lake takes as given: terms of tables by the day, places of before that may be over."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from ebbtide.app.erase_look import _terms
from ebbtide.app.scan import run_scan
from ebbtide.config import load_project
from ebbtide.config.tables import ErasureTerms
from ebbtide.formats.base import Depth
from ebbtide.inventory.information_schema import Inventory
from ebbtide.lineage.labelled import Labelled, label_inventory
from tests.inventory.lakes import SmallLake

PROJECT = """\
project: acme
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
"""
TABLES = """\
tables:
  - name: lake.db.kept
    erasure: {method: keep, basis: a contract, until: 2030-06-30}
"""


@pytest.fixture
def labelled(tmp_path: Path) -> Labelled:
    SmallLake(tmp_path).create("kept")
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.yml").write_text(TABLES)
    project = load_project(tmp_path)
    run_scan(project, now=datetime.now(UTC), depth=Depth.HISTORY)
    return label_inventory(project, Inventory.open(project.inventory))


def test_what_is_kept_until_a_day_is_not_kept_after_it(labelled: Labelled) -> None:
    kept = ErasureTerms("keep", basis="a contract", until=date(2030, 6, 30))
    assert _terms(labelled, datetime(2030, 6, 30, 23, tzinfo=UTC))["lake.db.kept"] == kept
    assert _terms(labelled, datetime(2030, 7, 1, tzinfo=UTC))["lake.db.kept"] == ErasureTerms()
