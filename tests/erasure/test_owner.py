"""Requests as an owner of acts, on the one-file format: what a run that fails, pauses or is stopped must not forget."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ebbtide.acts import engine as engines
from ebbtide.acts.act import Act, ActResult, DeleteFiles, NamedFile, ReadReferences
from ebbtide.acts.engine import Carried, Engine, Lake
from ebbtide.acts.recovery import close_unfinished
from ebbtide.app.erase_look import asked_for, still_asking
from ebbtide.erasure.owner import Requests
from ebbtide.erasure.progress import _ahead
from ebbtide.erasure.stages import KIND, RewriteRows
from ebbtide.erasure.vanished import settle_vanished
from ebbtide.errors import RefusedError
from ebbtide.formats import registry
from ebbtide.formats.erasing import Erased
from ebbtide.inventory.current import CatalogError, Current, Former
from ebbtide.ledger.ledger import Ledger
from ebbtide.model.removal import Committed, FileDeletion
from ebbtide.run import RunContext
from ebbtide.state import erasure as rows
from ebbtide.state.erasure import OpenErasure, PlaceState
from ebbtide.state.lease import Lease
from ebbtide.state.requests import set_states
from ebbtide.state.values import RequestState
from ebbtide.storage.remove import remove_files
from tests.acts.test_seam import House
from tests.faults import folder
from tests.faults.place import AT, Place

REQUEST = "r1"


@dataclass
class Eraser:
    """Lets go of `d4`. `fails` is raised after a commit that let go of one more file, which was named before it."""

    ledger: Ledger
    lease: Lease
    done: dict[str, Erased]
    fails: Exception | None = None

    def commit(self, result: ActResult) -> ActResult:
        act = result.act
        assert act.found is not None
        table = Path(act.found.location.removeprefix("file://"))
        content = folder.load(table)
        folder.save(table, {**content, "versions": {**content["versions"], "v4": ["s4"]}})
        if self.fails is not None:
            with self.ledger.sweeping(self.lease) as step:
                rows.add_files(step.state.connection, act.id, {f"{act.found.location}/s3": 4})
            raise self.fails
        self.done[act.id] = Erased(version="v5")
        return replace(result, committed=Committed(version="v5"))

    def delete(self, result: ActResult, also: Collection[str]) -> ActResult:
        assert not also
        failed = remove_files(list(result.deletes), {}, lambda: None, result.act.places)
        return replace(result, deletion=FileDeletion(failed=failed))


@dataclass
class Case:
    house: House
    holds: list[str] = field(default_factory=list)

    def act(self, *, hours: float = 0, paused: bool = False) -> Act:
        found = self.house.place.scan().found("c.db.a")
        assert found is not None
        old = NamedFile(f"{found.location}/d4", 4)
        stages = (
            RewriteRows(people=1, files=1), ReadReferences(),
            DeleteFiles(files=(old,), not_before=AT + timedelta(hours=hours)),
        )  # fmt: skip
        return Act(
            id="act-a", kind=KIND, dataset="c.db.a", catalog=self.house.place.catalog, stages=stages, found=found,
            homes=(found.location,), root=found.location, paused=paused, requests=(REQUEST,),
        )  # fmt: skip

    def run(self, act: Act, requests: tuple[str, ...] = (REQUEST,), fails: Exception | None = None) -> Carried:
        done: dict[str, Erased] = {}
        owner = Requests({act.id: requests}, {}, frozenset(self.holds), done)
        nobody: Any = None
        lake = Lake(lambda: nobody, self.house.place.scan, lambda _: {}, self.house.place.unread)
        with self.house.open() as (ledger, lease):
            with ledger.sweeping(lease) as step:
                if not step.state.requests(only_open=False):
                    step.state.add_request(
                        REQUEST, law="gdpr", commitments=["c"], sealed=b"s", note="", received_at=AT, due_at=AT, at=AT
                    )  # fmt: skip
                run = step.state.start_run("erase", at=self.house.now).id
            context = replace(RunContext("somebody"), run=run)
            return Engine(lake, ledger, lease, context, {KIND: Eraser(ledger, lease, done, fails)}).carry_out(
                owner, [act]
            )

    def say(self, state: PlaceState) -> None:
        ledger = self.house.ledger()
        with ledger.database.writer() as writer:
            (place,) = rows.places_of(writer.connection, [REQUEST])
            rows.put_places(writer.connection, [replace(place, state=state, act=None)])
        ledger.database.close()

    def settle(self, current: Current, catalogs: Collection[str] = ("c",)) -> frozenset[str]:
        with self.house.open() as (ledger, lease):
            return settle_vanished(ledger, lease, current, catalogs, [REQUEST])

    def open_acts(self) -> tuple[list[OpenErasure], set[str], Mapping[str, PlaceState]]:
        ledger = self.house.ledger()
        with ledger.database.reader() as state:
            places = {each.place: each.state for each in rows.places_of(state.connection, [REQUEST])}
            found = rows.open_erasures(state.connection), set(state.paused_acts()), places
        ledger.database.close()
        return found


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setitem(registry._MODULES, "folder", folder.__name__)
    monkeypatch.setattr(engines, "activate", lambda _: None)  # there is no session here
    return Case(House(Place.new(tmp_path / "p")))


def test_files_that_a_commit_let_go_of_are_known_after_an_error_that_followed_it(case: Case) -> None:
    (result,) = case.run(case.act(), fails=RuntimeError("another branch was written to")).results
    assert result.error is not None
    ((act,), paused, places) = case.open_acts()
    assert {path.rpartition("/")[2] for path in act.files} == {"d4", "s3"}
    assert (paused, places) == (set(), {"c.db.a": PlaceState.FAILED})


def test_an_act_that_waits_for_readers_is_found_by_its_requests_whatever_else_is_said_of_the_place(case: Case) -> None:
    case.run(case.act(hours=2))
    case.say(PlaceState.HELD)
    ((act,), paused, _) = case.open_acts()
    assert (set(act.requests), paused) == ({REQUEST}, {"act-a"})
    case.house.now = AT + timedelta(hours=3)
    (result,) = case.run(case.act(hours=2, paused=True)).results
    assert len(result.removed) == 1
    assert case.open_acts() == ([], set(), {"c.db.a": PlaceState.REMOVED})


def test_an_act_whose_requests_are_all_closed_ends_and_keeps_its_list(case: Case) -> None:
    case.run(case.act(hours=2))
    case.house.now = AT + timedelta(hours=3)
    carried = case.run(case.act(hours=2, paused=True), requests=())
    assert carried.results == ()
    ((act,), paused, _) = case.open_acts()
    assert (list(act.files), paused) == ([f"file://{case.house.place.root}/lake/a/d4"], set())
    assert "d4" in case.house.place.files("a")


def test_nothing_is_begun_for_a_request_that_was_closed(case: Case) -> None:
    case.run(case.act(hours=2))
    ledger = case.house.ledger()
    with ledger.database.writer() as state:
        state.move_request(REQUEST, RequestState.WITHDRAWN, at=AT)
    ledger.database.close()
    case.house.now = AT + timedelta(hours=3)
    assert case.run(case.act(hours=2, paused=True)).results == ()
    assert "d4" in case.house.place.files("a")


def test_an_act_and_its_places_end_with_a_table_that_was_dropped(case: Case) -> None:
    case.run(case.act(hours=2))
    shutil.rmtree(case.house.place.root / "lake" / "a")
    current = case.house.place.scan().current
    silent = replace(current, catalog_errors=(CatalogError("c", "down", None),))
    assert case.settle(silent) == frozenset(), "what could not be read is there for all that anybody knows"
    assert case.settle(current, catalogs=()) == frozenset()
    assert case.open_acts()[2] == {"c.db.a": PlaceState.DELETED}
    assert case.settle(current) == {"act-a"}
    assert case.open_acts() == ([], set(), {"c.db.a": PlaceState.REMOVED})
    with case.house.open() as (ledger, lease):
        assert close_unfinished(ledger, lease) == 0, "its intent has its outcome"


def test_a_place_that_a_hold_keeps_stays_when_its_table_is_dropped(case: Case) -> None:
    case.run(case.act(hours=2))
    case.say(PlaceState.HELD)
    with case.house.open() as (ledger, _), ledger.writing() as step:
        step.state.hold_dataset("c.db.a", owner=step.state.actor("counsel"), reason="a suit", at=AT)
    shutil.rmtree(case.house.place.root / "lake" / "a")
    case.settle(case.house.place.scan().current)
    assert case.open_acts()[2] == {"c.db.a": PlaceState.HELD}


def test_what_was_begun_goes_on_under_the_new_name_of_a_table(case: Case) -> None:
    case.run(case.act(hours=2))
    current = case.house.place.scan().current
    entry = current.entries["c.db.a"]
    former = Former("c.db.a", "folder", entry.location)
    moved = {"c.db.b": current.entries["c.db.b"], "c.db.new": replace(entry, table_id="c.db.new")}
    assert case.settle(replace(current, entries=moved, former=(former,))) == {"act-a"}
    ((act,), paused, places) = case.open_acts()
    assert (act.dataset, len(act.files), paused) == ("c.db.new", 1, set())
    assert places == {"c.db.a": PlaceState.REMOVED, "c.db.new": PlaceState.FOUND}


def test_a_request_that_moved_meanwhile_is_left_out_of_the_second_look(case: Case) -> None:
    case.run(case.act(hours=2))
    ledger = case.house.ledger()
    assert [each.id for each in still_asking(ledger, [REQUEST])] == [REQUEST]
    with ledger.database.writer() as state:
        set_states(state.connection, [REQUEST], RequestState.VERIFIED, at=AT)
    assert still_asking(ledger, [REQUEST]) == []
    with pytest.raises(RefusedError):
        asked_for(ledger, [REQUEST], AT)
    assert asked_for(ledger, [], AT) == []
    ledger.database.close()


def test_files_outside_of_the_table_are_for_a_person_and_the_rest_goes_on(case: Case) -> None:
    outside = case.house.place.root / "elsewhere" / "x"
    outside.parent.mkdir()
    outside.write_text("rows")
    act = case.act()
    case.run(act.freeing({**act.paths, f"file://{outside}": 4}, not_before=None))
    ((open_act,), paused, places) = case.open_acts()
    assert (list(open_act.files), paused) == ([f"file://{outside}"], set()), "who removes them finds the list"
    assert places == {"c.db.a": PlaceState.NOT_REACHABLE}, "it is an exception, and what is found in the table is none"
    assert (outside.exists(), "d4" in case.house.place.files("a")) == (True, False)
    ledger = case.house.ledger()
    with ledger.database.reader() as state:
        (place,) = rows.places_of(state.connection, [REQUEST])
    ledger.database.close()
    assert _ahead(RequestState.PLANNED, [place]) == (RequestState.DELETED, RequestState.PURGED)
    assert _ahead(RequestState.PLANNED, [replace(place, act=None)]) == (), "a format that erases nobody deleted nothing"
