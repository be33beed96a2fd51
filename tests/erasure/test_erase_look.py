"""What a look at the lake takes as given: terms of tables by the day, places of before that may be over."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.types import NestedField, StringType, StructType

from ebbtide.app.erase_look import ErasureLook, _looked_through, _over, _terms, _traced
from ebbtide.app.erase_run import _unacted
from ebbtide.app.scan import run_scan
from ebbtide.config import load_project
from ebbtide.config.subjects import Identities, IdentityColumn, Subject
from ebbtide.config.tables import ErasureTerms
from ebbtide.erasure import gather
from ebbtide.erasure.found import DatasetSearch
from ebbtide.erasure.hot import HotSearch
from ebbtide.erasure.hot_plan import HotLook
from ebbtide.erasure.owner import DATASET
from ebbtide.erasure.places import NotReachable, Places
from ebbtide.erasure.plan import ErasurePlan
from ebbtide.erasure.progress import ELSEWHERE
from ebbtide.formats.base import Depth
from ebbtide.inventory.information_schema import Inventory
from ebbtide.lineage.labelled import Labelled, label_inventory
from ebbtide.model.dataset import Catalog
from ebbtide.plan.held_back import HeldBack
from ebbtide.state.erasure import ErasurePlace, OpenErasure, PlaceState
from ebbtide.state.values import Hold, HoldScope
from tests.inventory.lakes import SmallLake

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PLACE = ErasurePlace(
    request="r1", place="lake.db.t", kind=DATASET, state=PlaceState.RETAINED, because="a tag stays", updated_at=NOW
)
PROJECT = """\
project: acme
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
"""
TABLES = """\
tables:
  - name: lake.db.kept
    erasure: {method: keep, basis: a contract, until: 2030-06-30, history: refs}
"""


@pytest.fixture
def inventory(tmp_path: Path, labelled: Labelled) -> Inventory:
    assert labelled.settings
    return Inventory.open(load_project(tmp_path).inventory)


@pytest.fixture
def labelled(tmp_path: Path) -> Labelled:
    lake = SmallLake(tmp_path)
    lake.create("kept")
    with lake.tables.load_table("db.kept").update_schema() as schema:
        schema.add_column("who", StructType(NestedField(9, "card", StringType(), required=False)))
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.yml").write_text(TABLES)
    project = load_project(tmp_path)
    run_scan(project, now=datetime.now(UTC), depth=Depth.HISTORY)
    return label_inventory(project, Inventory.open(project.inventory))


def test_what_is_kept_until_a_day_is_not_kept_after_it(labelled: Labelled) -> None:
    kept = ErasureTerms("keep", basis="a contract", until=date(2030, 6, 30), history="refs")
    assert _terms(labelled, datetime(2030, 6, 30, 23, tzinfo=UTC))["lake.db.kept"] == kept
    assert _terms(labelled, datetime(2030, 7, 1, tzinfo=UTC))["lake.db.kept"] == ErasureTerms(history="refs")


@pytest.mark.parametrize(
    ("change", "over"),
    [
        ({}, True),
        ({"state": PlaceState.NOT_REACHABLE}, True),
        ({"until": date(2026, 2, 28)}, True),
        ({"until": date(2026, 3, 1)}, False),
        ({"state": PlaceState.REMOVED}, False),
        ({"state": PlaceState.HELD}, True),
        ({"state": PlaceState.HELD, "place": "lake.db.held"}, False),
        ({"place": "lake.db.unread"}, False),
        ({"place": "lake.db.begun"}, False),
        ({"kind": "elsewhere"}, False),
    ],
)
def test_a_place_that_ended_with_an_exception_is_looked_at_again_where_that_may_be_over(
    change: dict[str, Any], over: bool
) -> None:
    place = replace(PLACE, **change)
    begun = OpenErasure(act="a", dataset="lake.db.begun", requests=frozenset({"r1"}), free_from=NOW, files={})
    held = Hold(
        id="h", scope=HoldScope.DATASET, dataset="lake.db.held", first_day=None, last_day=None, commitments=(),
        sealed=None, owner="counsel", reason="a suit", salt=b"s", created_at=NOW, released_at=None, released_by=None,
    )  # fmt: skip
    looked = {"lake.db.t", "lake.db.held", "lake.db.begun"}
    found = _over([place], [begun], [held], NOW, looked)
    assert found == ({("r1", place.place)} if over else frozenset())


@pytest.mark.parametrize(
    ("columns", "identity", "unknown"),
    [
        ({"id": None, "name": "gone"}, "id", None),
        ({"id": None, "Name": None}, "id", "names 'Name'"),
        ({"nmae": None}, "id", "names 'nmae'"),
        ({"who.card": None}, "who.card", "names 'who.card'"),
        ({"who": None}, "who.card", None),
        ({"who": None}, "WHO.card", None),
        ({"name": "gone"}, "id", "leaves 'id'"),
        ({"name": "gone"}, "who.card", "leaves 'who.card'"),
    ],
)
def test_a_redaction_that_would_erase_nobody_is_none(
    inventory: Inventory,
    monkeypatch: pytest.MonkeyPatch,
    columns: dict[str, str | None],
    identity: str,
    unknown: str | None,
) -> None:
    monkeypatch.setattr(gather, "activate", lambda _: None)  # there is no session here
    nobody: Any = None
    catalogs = {"lake": Catalog("lake", "iceberg", "there")}
    terms = {"lake.db.kept": ErasureTerms("redact", columns)}
    known = Identities({"user": Subject("user", "subjects.yml:2", (IdentityColumn("lake.db.kept", identity),))})
    places = Places({"lake.db.kept": {identity: ("user",)}}, ())
    gathering = gather.Gathering(lambda: nobody, catalogs, inventory, known, places, {}, terms)
    (facts,) = gathering.facts([], DatasetSearch({}, ()), {"lake.db.kept": frozenset({"r1"})}, {})
    assert (facts.cannot is None) == (unknown is None)
    assert unknown is None or unknown in (facts.cannot or "")


def test_what_could_not_be_read_was_not_looked_through() -> None:
    columns = {f"lake.db.{name}": {"id": ("user",)} for name in ("t", "unread", "half", "version")}
    missed = ("lake.db.unread", "lake.db.half.id", "lake.db.version@7")
    search = DatasetSearch({}, tuple(NotReachable(each, "why") for each in missed), {}, {})
    assert _looked_through(Places(columns, ()), search) == {"lake.db.t"}


def test_a_table_that_was_only_not_read_has_no_traces_of_anybody() -> None:
    """An act on it would end versions of which nobody knows that they hold somebody."""
    unread = replace(PLACE, kind=ELSEWHERE, state=PlaceState.WAITING)
    assert _traced([unread], (), ()) == {}
    assert _traced([unread, replace(PLACE, state=PlaceState.FOUND)], (), ()) == {"lake.db.t": {"r1"}}


def test_a_catalog_that_left_the_project_is_told_of_its_tables_alone(
    inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "activate", lambda _: None)  # there is no session here
    nobody: Any = None
    gathering = gather.Gathering(lambda: nobody, {}, inventory, Identities({}), Places({}, ()), {}, {})
    (facts,) = gathering.facts([], DatasetSearch({}, ()), {"lake.db.kept": frozenset({"r1"})}, {})
    assert facts.trouble == "its catalog is in ebbtide.yml no more"


def test_a_place_that_was_missed_for_several_reasons_is_said_once_and_can_be_tried_again() -> None:
    """A catalog that is down takes its tables along: whatever kept them before is said once more by the search."""
    back = {"lake.db.t": HeldBack(blocks=("unknown:catalog lake",))}
    nothing: Any = None
    gathering = gather.Gathering(nothing, {}, nothing, Identities({}), Places({}, ()), back, {})
    missed = tuple(
        NotReachable(place, why, failed=failed)
        for place, why, failed in (
            ("lake.db.t", "the last scan could not read it", True), ("lake.db.u", "a column of another type", False),
            ("lake.db.u", "the last scan could not read it", True),
        )
    )  # fmt: skip
    begun = OpenErasure(act="a", dataset="lake.db.t", requests=frozenset({"r1"}), free_from=NOW, files={})
    look = ErasureLook(
        gathering, {"r1": ()}, {"r1": 0}, DatasetSearch({}, missed), ErasurePlan(NOW, (), (), missed), (), (begun,),
        frozenset({"a"}), HotLook((), HotSearch(), {}, {}),
    )  # fmt: skip
    places = _unacted(look, ["r1"], NOW)
    found = {(each.request, each.place): (each.kind, each.state) for each in places}
    assert len(places) == len(found), "the state keeps one of each"
    assert found == {
        ("r1", "lake.db.t"): (DATASET, PlaceState.WAITING), ("r1", "lake.db.u"): (ELSEWHERE, PlaceState.WAITING)
    }  # fmt: skip
