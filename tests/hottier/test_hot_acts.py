"""Acts that take people out of hot tables: wherever a run dies, the next one finishes (spec §4, §6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ebbtide.acts import intents
from ebbtide.acts.recovery import close_unfinished
from ebbtide.app.erase_hot import hot_side, hot_unacted
from ebbtide.app.erase_look import ErasureLook
from ebbtide.app.hot_places import look_in_hot
from ebbtide.app.ledger import open_for_writing
from ebbtide.app.round import sweeper
from ebbtide.app.runs import recorded
from ebbtide.config.subjects import load_identities
from ebbtide.config.tables import ErasureTerms
from ebbtide.erasure import hot_act
from ebbtide.erasure.filing import opening_of
from ebbtide.erasure.found import DatasetSearch
from ebbtide.erasure.gather import Gathering
from ebbtide.erasure.held_people import with_people_held
from ebbtide.erasure.hot_plan import behind, hot_facts, look_of, waiting
from ebbtide.erasure.owner import HOT
from ebbtide.erasure.places import Places
from ebbtide.erasure.plan import Asking, plan_erasure
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.commitment import Identifier
from ebbtide.ledger.ledger import Ledger
from ebbtide.plan.held_back import HeldBack, Statute
from ebbtide.run import RunContext, quiet
from ebbtide.state import erasure as rows
from ebbtide.state.erasure import ErasurePlace, PlaceState
from ebbtide.state.hottier import HotReader
from tests.hottier.kills import KilledError
from tests.hottier.tier import NOW, TABLE, Hot

COLD = "lake.hot.m"


@pytest.fixture
def asked(hot: Hot) -> Hot:
    """Two people in two chunks, and in the lake, too."""
    (hot.root / "subjects.yml").write_text("subjects:\n  user_id: {columns: [public.m.id]}\n")
    hot.fill(1, 2).added()
    with hot.tide as tide:
        tide.scan()
    return hot


def _request(hot: Hot, *ids: int) -> list[str]:
    with hot.tide as tide:
        filed = [tide.erase.request({"user_id": str(id_)}, law="gdpr", as_of=NOW).id for id_ in ids]
    return [each for each in filed if each is not None]


def _stated(ledger: Ledger, requests: list[str]) -> list[ErasurePlace]:
    with ledger.database.reader() as state:
        return rows.places_of(state.connection, requests)


def _look(
    hot: Hot,
    ledger: Ledger,
    requests: list[str],
    *,
    terms: Mapping[str, ErasureTerms] | None = None,
    back: Mapping[str, HeldBack] | None = None,
    mirrors: Mapping[str, str] | None = None,
) -> ErasureLook:
    """What a run would see of the hot tier, beside a lake that nobody looked at."""
    project = hot.tide.project
    identities, inventory = load_identities(project.root), Inventory.open(project.inventory)
    people = {each: tuple(opening_of(ledger, each).everything) for each in requests}
    places = Places({}, ())
    found, search = look_in_hot(
        project, ledger.database, list(people.values()), ["user_id"], identities, places, inventory
    )  # fmt: skip
    stated = _stated(ledger, requests)
    with ledger.database.reader() as state:
        holds, records = state.holds(), {each.id: each for each in HotReader(state.connection).tables()}
    there = look_of(found, search, back or {}, terms or {}, holds)
    facts = waiting(hot_facts(there, requests, stated), behind(search, records, mirrors or {}), there, stated)
    due = NOW + timedelta(days=30)
    asking = [Asking(id=each, number=n, due_at=due, ready_from=NOW) for n, each in enumerate(requests)]
    plan = plan_erasure(asking, search.held, facts, search.missed, now=NOW)

    def no_session() -> Any:
        raise AssertionError("hot tables need no session")

    gathering = Gathering(no_session, project.catalogs, inventory, identities, places)
    numbers = {each: n for n, each in enumerate(requests)}
    from ebbtide.erasure.found import DatasetSearch

    lake = DatasetSearch(search.held, search.missed)
    return ErasureLook(gathering, people, numbers, lake, plan, tuple(holds), (), frozenset(), there)


def _carry_out(hot: Hot, look: Callable[[Ledger], ErasureLook]) -> dict[str, str]:
    """A run: acts of runs that died are closed, mirrors brought up, people taken out. Gives mirrors that failed."""
    context: RunContext = quiet(None, as_of=NOW)
    project = hot.tide.project
    ledger, now = open_for_writing(project, context)
    with (
        sweeper(ledger, context) as lease,
        recorded(context, ledger, "erase", lease) as run,
        hot_side(project, ledger, lease, run.context, now) as side,
    ):
        close_unfinished(ledger, lease)
        side.bring_up()
        side.carry_out(look(ledger))
        run.ended(0, "")
        return dict(side.failed)


def _places(hot: Hot, requests: list[str]) -> dict[tuple[str, str], str]:
    ledger, _ = open_for_writing(hot.tide.project, quiet(None, as_of=NOW))
    names = {each: n for n, each in enumerate(requests)}
    return {
        (str(names[each.request]), each.place.split(":")[0]): str(each.state) for each in _stated(ledger, requests)
    }  # fmt: skip


def test_everybody_of_a_batch_leaves_by_one_act_and_the_mirror_has_applied_it(asked: Hot) -> None:
    requests = _request(asked, 1003, 2004, 9999)
    others = [row for row in asked.here() if row[0] not in (1003, 2004)]
    assert _carry_out(asked, lambda ledger: _look(asked, ledger, requests)) == {}
    assert (asked.here(), asked.in_lake()) == (others, others)
    assert _places(asked, requests) == {
        ("0", TABLE): "removed", ("0", f"{TABLE}#log"): "expires",
        ("1", TABLE): "removed", ("1", f"{TABLE}#log"): "expires",
    }  # fmt: skip


_PLACES: dict[str, tuple[Any, str, bool]] = {
    "after the intent": (intents, "begin", True),
    "before the transaction": (hot_act, "take_out", False),
    "after the transaction": (hot_act, "take_out", True),
    "before the outcome": (intents, "finish", False),
    "after the outcome": (intents, "finish", True),
}


_ALWAYS = ("after the transaction", "before the outcome")
"""The rest is part of the deep tier."""


@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=() if place in _ALWAYS else pytest.mark.deep) for place in _PLACES]
)
def test_a_run_that_dies_is_finished_by_the_next_one(asked: Hot, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    requests = _request(asked, 1003)
    others = [row for row in asked.here() if row[0] != 1003]
    where, name, after = _PLACES[place]
    real = getattr(where, name)

    def dies(*args: Any, **more: Any) -> Any:
        if after:
            real(*args, **more)
        raise KilledError

    monkeypatch.setattr(where, name, dies)
    with suppress(KilledError):
        _carry_out(asked, lambda ledger: _look(asked, ledger, requests))
    monkeypatch.setattr(where, name, real)
    assert asked.here() in (others, sorted([*others, *(row for row in asked.here() if row[0] == 1003)]))
    assert _carry_out(asked, lambda ledger: _look(asked, ledger, requests)) == {}
    assert (asked.here(), asked.in_lake()) == (others, others)
    assert _places(asked, requests) == {("0", TABLE): "removed", ("0", f"{TABLE}#log"): "expires"}


def test_what_keeps_the_cold_table_keeps_the_hot_one(asked: Hot) -> None:
    requests, before = _request(asked, 1003), asked.here()
    ledger, _ = open_for_writing(asked.tide.project, quiet(None, as_of=NOW))
    floor = {COLD: HeldBack(statutes=(Statute("floor:tax", None),))}
    (step,) = _look(asked, ledger, requests, back=floor).plan.places
    assert (step.kind, step.decision, step.because) == ("hot table", "keep", "floor:tax")
    terms = {COLD: ErasureTerms(method="redact", redact={"v": None})}
    (step,) = _look(asked, ledger, requests, terms=terms).plan.places
    assert (step.decision, "leaves 'id'" in step.because) == ("cannot", True)
    asked.sql.execute("ALTER TABLE m ALTER v SET NOT NULL")
    terms = {COLD: ErasureTerms(method="redact", redact={"id": "0", "v": None})}
    (step,) = _look(asked, ledger, requests, terms=terms).plan.places
    assert (step.decision, "empties 'v', which may not be empty" in step.because) == ("cannot", True)
    with asked.tide as tide:
        tide.hold(TABLE, owner="legal", reason="case 1", as_of=NOW)
    (step,) = _look(asked, ledger, requests).plan.places
    assert step.decision == "held"
    _carry_out(asked, lambda ledger: _look(asked, ledger, requests))
    assert asked.here() == before


def test_rows_that_come_again_are_told_once_whatever_keeps_them(asked: Hot) -> None:
    requests = _request(asked, 1003)
    ledger, _ = open_for_writing(asked.tide.project, quiet(None, as_of=NOW))
    gone = ErasurePlace(
        request=requests[0], place=TABLE, kind=HOT, state=PlaceState.REMOVED, because="", updated_at=NOW
    )  # fmt: skip
    (again,) = hot_unacted(_look(asked, ledger, requests), [gone], NOW)
    assert (again.place, again.state) == (TABLE, PlaceState.WAITING)
    with asked.tide as tide:
        tide.hold(TABLE, owner="legal", reason="case 1", as_of=NOW)
    look = _look(asked, ledger, requests)
    assert [step.decision for step in look.plan.places] == ["held"]
    assert hot_unacted(look, [gone], NOW) == []


def test_a_table_in_which_somebody_is_held_is_kept_whoever_asks(asked: Hot) -> None:
    ledger, _ = open_for_writing(asked.tide.project, quiet(None, as_of=NOW))
    with asked.tide as tide:
        tide.hold(COLD, owner="legal", reason="case 1", as_of=NOW)
    with ledger.database.reader() as state:
        (hold,) = state.holds()
    project, who = asked.tide.project, [[Identifier("user_id", "1003")], [Identifier("user_id", "2004")]]
    identities, inventory = load_identities(project.root), Inventory.open(project.inventory)
    found, both = look_in_hot(project, ledger.database, who, ["user_id"], identities, Places({}, ()), inventory)
    for number, kept in ((1, True), (2, False)):
        in_both = both.beside(DatasetSearch({}, ()))
        back = with_people_held({}, in_both, {number: hold}, [], timedelta(hours=1))
        there = look_of(found, both.first(1), back, {}, ())
        assert (bool(there.back[TABLE].holds), there.search.people_in(TABLE)) == (kept, {0})


def test_a_hold_that_comes_after_the_plan_keeps_the_rows(asked: Hot) -> None:
    requests, before = _request(asked, 1003), asked.here()

    def look(ledger: Ledger) -> ErasureLook:
        found = _look(asked, ledger, requests)
        with asked.tide as tide:
            tide.hold(TABLE, owner="legal", reason="case 1", as_of=NOW)
        return found

    _carry_out(asked, look)
    assert asked.here() == before
    assert _places(asked, requests) == {("0", TABLE): "held"}


def test_the_cold_table_waits_for_a_mirror_that_stopped(asked: Hot) -> None:
    """Whoever would be taken out of the lake before would come back with the next merge."""
    requests = _request(asked, 1003)
    asked.sql.execute("TRUNCATE m_2")
    failed = _carry_out(asked, lambda ledger: _look(asked, ledger, requests))
    assert "TRUNCATE" in failed[TABLE]
    assert 1003 not in {row[0] for row in asked.here()}
    ledger, _ = open_for_writing(asked.tide.project, quiet(None, as_of=NOW))
    plan = _look(asked, ledger, requests, mirrors=failed).plan
    (cold,) = [step for step in plan.places if step.dataset == COLD]
    assert (cold.decision, cold.left, "may bring people back" in cold.because) == ("wait", True, True)


@pytest.mark.parametrize("copied", [False, True])
def test_the_cold_table_waits_for_a_hot_one_that_cannot_be_asked(
    asked: Hot, monkeypatch: pytest.MonkeyPatch, copied: bool
) -> None:
    """Its server is down, or the file has no address by now; it is followed, or copied whole."""
    requests = _request(asked, 1003)
    ledger, _ = open_for_writing(asked.tide.project, quiet(None, as_of=NOW))
    with ledger.database.reader() as state:
        records = {each.id: each for each in HotReader(state.connection).tables()}
    if copied:
        records = {name: replace(each, slot=None, publication=None) for name, each in records.items()}
    people = [tuple(opening_of(ledger, each).everything) for each in requests]
    for address in ("host=/nowhere user=postgres dbname=x", None):
        if address is not None:
            asked.dsn = address
            asked.write(asked.policy)
        else:
            monkeypatch.delenv("EBBTIDE_HOT_URL")
        project = asked.tide.project
        identities, inventory = load_identities(project.root), Inventory.open(project.inventory)
        _, search = look_in_hot(project, ledger.database, people, ["user_id"], identities, Places({}, ()), inventory)
        assert "may bring people back" in behind(search, records, {})[COLD]
