"""Holds on people: nobody can read who it is, nothing that could show them goes, and a release ends it (spec §3)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ebbtide.app.ebbtide import Ebbtide
from ebbtide.app.ledger import open_ledger
from ebbtide.config import load_project
from ebbtide.erasure.found import DatasetSearch, Held, TableHits
from ebbtide.erasure.held_people import held_people, with_people_held
from ebbtide.erasure.places import NotReachable
from ebbtide.errors import InputError
from ebbtide.formats.versions import Retained
from ebbtide.model.dataset import TableHandle
from ebbtide.model.ids import DatasetId
from ebbtide.plan.held_back import HeldBack
from ebbtide.state.erasure import OpenErasure
from ebbtide.state.values import Hold, HoldScope, ObjectKey
from ebbtide.sweep.owner import _still_going
from ebbtide.sweep.values import ExpiringObject, ObjectBatch
from tests.cli.command import ebbtide
from tests.erasure.test_erase_request import PROJECT
from tests.inventory.lakes import SmallLake

SECRET = "8841302007"
POLICIES = """\
policies:
  - {name: old, select: {tables: ["lake.db.*"]}, versions: {older_than: 7d}}
"""
NOW = datetime(2026, 3, 1, tzinfo=UTC)
LATER = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def tide(tmp_path: Path) -> Ebbtide:
    """Users, whose columns tell people apart, and logs, which nobody stands in."""
    lake = SmallLake(tmp_path)
    for name in ("users", "logs"):
        lake.create(name, 2)
    (tmp_path / "ebbtide.yml").write_text(f"clock: simulated\n{PROJECT}")
    (tmp_path / "subjects.yml").write_text("subjects:\n  user_id: {columns: [lake.db.users.id]}\n")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "p.yml").write_text(POLICIES)
    tide = Ebbtide(load_project(tmp_path))
    tide.scan()
    return tide


def hold(tide: Ebbtide) -> str:
    return tide.hold(owner="counsel", reason="a suit", subject={"user_id": SECRET}, as_of=NOW).id or ""


def decided(tide: Ebbtide) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in tide.plan(as_of=LATER).objects():
        found.setdefault(row.dataset, set()).add(row.decision)
    return found


def test_a_person_is_held_by_a_command_and_nothing_anywhere_says_who(tide: Ebbtide) -> None:
    root = Path(tide.project.root)
    person = root.parent / "person.txt"
    person.write_text(f"user_id={SECRET}\n")
    said = ("hold", "add", "--subject", f"@{person}", "--owner", "counsel", "--reason", "a suit")
    tried = ebbtide(*said, "--dry-run", "--json", "--as-of", "2026-03-01", cwd=root)
    assert (tried.returncode, json.loads(tried.stdout)["id"]) == (0, None), tried.stderr
    assert tide.holds() == ()
    done = ebbtide(*said, "--json", "--as-of", "2026-03-01", cwd=root)
    assert done.returncode == 0, done.stderr
    (held,) = tide.holds()
    assert (held.scope, held.dataset, held.owner, held.reason) == ("subject", None, "counsel", "a suit")
    assert json.loads(done.stdout)["id"] == held.id
    listed = ebbtide("hold", "list", cwd=root)
    assert "a person" in listed.stdout
    for each in (tried, done, listed):
        assert SECRET not in each.stdout + each.stderr
    for path in (root / ".ebbtide").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    ledger = open_ledger(tide.project)
    with ledger.database.reader() as state:
        (one,) = held_people(ledger.home, state.holds())
    assert [(each.type, each.value) for each in one.identifiers] == [("user_id", SECRET)]
    assert tide.ledger.audit().findings == ()


def test_it_keeps_what_could_show_them_from_retention_and_nothing_else_and_ends_with_its_release(tide: Ebbtide) -> None:
    before = decided(tide)
    assert before == {"lake.db.users": {"keep", "mark"}, "lake.db.logs": {"keep", "mark"}}
    held = hold(tide)
    assert decided(tide) == {"lake.db.users": {"held"}, "lake.db.logs": {"keep", "mark"}}
    (row,) = {r.because for r in tide.plan(as_of=LATER).objects() if r.decision == "held"}
    assert row == "hold:counsel (a suit)"
    keys = open_ledger(tide.project).home.keys
    assert held in keys.names()
    assert tide.release_hold(held, as_of=NOW).released_at is not None
    assert decided(tide) == before
    assert held not in keys.names(), "who it was is gone with the hold"
    assert tide.ledger.audit().findings == ()


@pytest.mark.parametrize("lost", ["the key", "the identity", "all identities"])
def test_where_nobody_can_tell_what_shows_them_everything_stays(tide: Ebbtide, lost: str) -> None:
    held, subjects = hold(tide), Path(tide.project.root, "subjects.yml")
    if lost == "the key":
        open_ledger(tide.project).home.keys.destroy(held)
    else:
        subjects.write_text("subjects:\n  mail: {columns: [lake.db.users.name]}\n")
    if lost == "all identities":
        subjects.unlink()
    assert decided(tide) == {"lake.db.users": {"held"}, "lake.db.logs": {"held"}}


def test_a_hold_that_comes_between_a_plan_and_a_sweep_stops_it_everywhere(tide: Ebbtide) -> None:
    """The plan did not look at whom it is on, and nobody asks that in the transaction of an intent."""
    ledger = open_ledger(tide.project)
    with ledger.database.reader() as state:
        before = state.snapshot()
    objects: tuple[Any, ...] = (ExpiringObject(ObjectKey("lake.db.logs", "versions", "1"), {}, None),)
    batch = ObjectBatch(id="a", dataset="lake.db.logs", catalog=tide.project.catalogs["lake"], objects=objects)
    hold(tide)
    with ledger.writing() as step:
        now: Any = step
        assert _still_going(now, batch, before) == []
        assert _still_going(now, batch, step.state.snapshot()) == [*objects]


def test_a_hold_is_on_a_dataset_or_on_a_person(tide: Ebbtide) -> None:
    wrong: tuple[dict[str, Any], ...] = (
        {}, {"dataset": "lake.db.users", "subject": {"user_id": "1"}},
        {"subject": {"user_id": "1"}, "first_day": NOW.date()},
        {"subject": {"user_id": "nobody"}}, {"subject": {"shoe": "1"}}, {"subject": {}},
    )  # fmt: skip
    for given in wrong:
        with pytest.raises(InputError):
            tide.hold(owner="counsel", reason="a suit", as_of=NOW, **given)
    assert tide.holds() == ()


TABLE = TableHandle(DatasetId.parse("lake.db.t"), "file:///t", "token")
HOLD = Hold(
    id="h", scope=HoldScope.SUBJECT, dataset=None, first_day=None, last_day=None, commitments=("c",), sealed=b"s",
    owner="counsel", reason="", salt=b"s", created_at=NOW, released_at=None, released_by=None,
)  # fmt: skip


def test_an_erasure_is_kept_from_where_a_held_person_is_and_goes_on_elsewhere() -> None:
    place = Held("lake.db.t", "version:1", 1, ("who",))
    found = DatasetSearch({0: (place,), 1: (replace(place, dataset="lake.db.u"),)}, ())
    back = {"lake.db.t": HeldBack(settings=("x",)), "lake.db.u": HeldBack(holds=("hold:a",))}
    after = with_people_held(back, found, {1: HOLD}, [], timedelta(hours=1))
    assert after == {"lake.db.t": back["lake.db.t"], "lake.db.u": HeldBack(holds=("hold:a", "hold:counsel"))}


@pytest.mark.parametrize(
    ("free_from", "held"), [(timedelta(hours=1), True), (timedelta(days=-2), True), (timedelta(days=2), False)]
)
def test_files_that_were_replaced_before_a_hold_may_be_theirs(free_from: timedelta, held: bool) -> None:
    act = OpenErasure(act="a", dataset="lake.db.t", requests=frozenset(), free_from=NOW + free_from, files={})
    after = with_people_held({}, DatasetSearch({}, ()), {1: HOLD}, [act], timedelta(hours=1))
    assert after == ({"lake.db.t": HeldBack(holds=("hold:counsel",))} if held else {})


def test_rows_that_deletes_hide_and_versions_that_nobody_could_look_through_hold_a_table_too() -> None:
    hidden = TableHits(Retained(TABLE, ["1"], 1, {}, {"a": 1}, 0), {"a": frozenset({1}), "key": frozenset({1})})
    missed = (NotReachable("lake.db.u@7", "the log has a gap after it"), NotReachable("lake.db.v", "no column"))
    found = DatasetSearch({}, missed, tables={"lake.db.t": hidden})
    kept = HeldBack(holds=("hold:counsel",))
    assert with_people_held({}, found, {1: HOLD}, [], timedelta(hours=1)) == {"lake.db.t": kept, "lake.db.u": kept}
    assert with_people_held({}, found, {}, [], timedelta(hours=1)) == {}


def test_a_search_of_the_first_few_knows_of_nobody_else() -> None:
    retained = Retained(TABLE, ["1"], 1, {}, {"a": 1, "b": 1}, 0)
    both = TableHits(retained, {"a": frozenset({0, 1}), "b": frozenset({1})})
    held = Held("lake.db.t", "version:1", 1, ("who",))
    search = DatasetSearch(
        {0: (held,), 1: (held,)}, (), tables={"t": both, "u": TableHits(retained, {"a": frozenset({1})})}
    )
    assert search.first(1) == DatasetSearch({0: (held,)}, (), tables={"t": TableHits(retained, {"a": frozenset({0})})})
