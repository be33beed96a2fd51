"""What an erasure would do, decided from facts alone: highest first, and every place with its reason (spec §3, §4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from ebbtide.config.tables import ErasureTerms
from ebbtide.erasure.copies import CopyStep
from ebbtide.erasure.costs import BytesEnd, Schedule
from ebbtide.erasure.found import Held, TableHits
from ebbtide.erasure.places import NotReachable
from ebbtide.erasure.plan import Asking, DatasetFacts, Decision, PlaceStep, plan_erasure
from ebbtide.formats.erasing import Fate, ForeseenVersion, VersionFate
from ebbtide.formats.versions import Retained
from ebbtide.model.dataset import TableHandle
from ebbtide.model.ids import DatasetId
from ebbtide.plan.held_back import HeldBack, Statute

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ADA = Asking(id="r1", number=0, due_at=NOW + timedelta(days=20), ready_from=NOW - timedelta(days=1))
BOB = replace(ADA, id="r2", number=1)
TABLE = "lake.db.t"
HELD = [Held(TABLE, "branch:main", 2, ("who",)), Held(TABLE, "version:1", 3, ("who",))]


def hits(*people: int) -> TableHits:
    """Two versions: the head has file b, the one before a and b; somebody is in both files."""
    retained = Retained(
        TableHandle(DatasetId.parse(TABLE), "file:///t", "token"), ["1", "2"], 3, {"branch:main": 2},
        {"a": 1, "b": 3}, 0,
    )  # fmt: skip
    return TableHits(retained, {"a": frozenset(people), "b": frozenset(people)})


FACTS = DatasetFacts(
    dataset=TABLE, hits=hits(0), sizes={"a": 10, "b": 20}, rows=100,
    foreseen={"1": ForeseenVersion(Fate.REWRITTEN), "2": ForeseenVersion(Fate.REWRITTEN)},
)  # fmt: skip


def decided(facts: DatasetFacts, *asking: Asking) -> PlaceStep:
    plan = plan_erasure(asking or (ADA,), {0: HELD, 1: HELD}, [facts], now=NOW)
    (place,) = plan.places
    return place


def test_a_dataset_that_holds_somebody_is_erased_with_what_it_costs() -> None:
    place = decided(FACTS)
    assert (place.decision, place.method, place.requests) == (Decision.ERASE, "delete", ("r1",))
    assert (place.files, place.bytes_read) == (2, 30)
    assert [(each.ref, each.rows, each.fate) for each in place.refs] == [
        ("branch:main", 2, Fate.REWRITTEN), ("version:1", 3, Fate.REWRITTEN)
    ]  # fmt: skip


def test_each_branch_and_version_says_the_files_that_it_has_of_them() -> None:
    place = decided(FACTS)
    assert {each.ref: (each.files, each.bytes) for each in place.refs} == {
        "branch:main": (1, 20), "version:1": (2, 30)
    }  # fmt: skip
    assert (place.store.read, place.store.written, place.store.deleted) == (4, 4, 4)


def test_of_a_version_that_only_a_reader_can_merge_all_files_count() -> None:
    merged = replace(hits(0), parts={"1": frozenset({0})})
    place = decided(replace(FACTS, hits=merged))
    assert (place.files, place.bytes_read) == (2, 30), "nobody knows before which of them are replaced"
    assert {each.ref: each.files for each in place.refs} == {"branch:main": 0, "version:1": 2}


def test_all_people_of_a_batch_are_one_step() -> None:
    place = decided(replace(FACTS, hits=hits(0, 1)), ADA, BOB)
    assert place.requests == ("r1", "r2")
    assert [each.rows for each in place.refs] == [4, 6]


@pytest.mark.parametrize(
    ("change", "decision", "because"),
    [
        ({"back": HeldBack(holds=("hold:counsel",))}, Decision.HELD, "hold:counsel"),
        ({"back": HeldBack(statutes=(Statute("floor:tax", date(2030, 1, 1)),))}, Decision.KEEP, "floor:tax"),
        ({"terms": ErasureTerms("keep", basis="law", until=date(2030, 1, 1))}, Decision.KEEP, "law"),
        ({"cannot": "no API"}, Decision.CANNOT, "no API"),
        ({"back": HeldBack(blocks=("locked:lake.db.u",))}, Decision.WAIT, "it waits for locked:lake.db.u"),
        ({"back": HeldBack(settings=("floor:gc",))}, Decision.WAIT, "it waits for floor:gc"),
        ({"busy": "an erasure that was begun"}, Decision.WAIT, "an erasure that was begun"),
    ],
)
def test_what_keeps_a_place(change: dict[str, object], decision: Decision, because: str) -> None:
    place = decided(replace(FACTS, **change))  # type: ignore[arg-type]
    assert (place.decision, place.because) == (decision, because)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"back": HeldBack(blocks=("locked:lake.db.u",))}, True),
        ({"back": HeldBack(settings=("floor:gc",))}, True),
        ({"cannot": "no API"}, True),
        ({"trouble": "its metadata cannot be read"}, True),
        ({"busy": "an erasure that was begun"}, False),
        ({"busy": "an erasure that was begun", "trouble": "its metadata cannot be read"}, False),
        ({"back": HeldBack(holds=("hold:counsel",), settings=("floor:gc",))}, False),
        ({"terms": ErasureTerms("keep", basis="law", until=date(2030, 1, 1))}, False),
        ({}, False),
    ],
)
def test_what_no_time_ends_is_left_for_a_person(change: dict[str, object], left: bool) -> None:
    assert decided(replace(FACTS, **change)).left == left  # type: ignore[arg-type]


def test_a_place_that_did_not_answer_is_told_beside_the_digest() -> None:
    down, gap = NotReachable("lake.db.u", "down", failed=True), NotReachable("lake.db.v", "a view")
    plan = plan_erasure([ADA], {0: HELD}, [FACTS], [down, gap], now=NOW)
    assert (plan.failed, plan.to_dict()["failed"]) == (("lake.db.u",), ["lake.db.u"])
    again = plan_erasure([ADA], {0: HELD}, [FACTS], [replace(down, failed=False), gap], now=NOW)
    assert (again.failed, again.digest) == ((), plan.digest)


def test_a_hold_outranks_a_floor_and_a_floor_the_request() -> None:
    back = HeldBack(holds=("hold:x",), statutes=(Statute("floor:tax", date(2030, 1, 1)),), blocks=("unknown:y",))
    assert decided(replace(FACTS, back=back)).decision is Decision.HELD
    kept = decided(replace(FACTS, back=replace(back, holds=())))
    assert (kept.decision, kept.until) == (Decision.KEEP, date(2030, 1, 1))


def test_of_floors_that_without_an_end_counts() -> None:
    back = HeldBack(statutes=(Statute("floor:a", date(2030, 1, 1)), Statute("floor:b", None)))
    assert (decided(replace(FACTS, back=back)).because, decided(replace(FACTS, back=back)).until) == ("floor:b", None)


def test_what_only_old_versions_hold_that_stay_waits_and_says_for_what() -> None:
    stays = {"1": ForeseenVersion(Fate.STAYS, "floor:snapshot.num-retained.min=10")}
    plan = plan_erasure([ADA], {0: HELD[1:]}, [replace(FACTS, foreseen=stays)], now=NOW)
    (place,) = plan.places
    assert (place.decision, place.waits_for) == (Decision.WAIT, ("floor:snapshot.num-retained.min=10",))


def test_a_head_is_rewritten_whatever_stays_of_what_it_showed() -> None:
    stays = {"1": ForeseenVersion(Fate.STAYS, "floor:x"), "2": ForeseenVersion(Fate.EXPIRES)}
    place = decided(replace(FACTS, foreseen=stays))
    assert place.decision is Decision.ERASE
    assert [(each.ref, each.fate) for each in place.refs] == [
        ("branch:main", Fate.REWRITTEN), ("version:1", Fate.STAYS)
    ]  # fmt: skip


def test_files_that_others_reference_are_said_to_stay() -> None:
    place = decided(replace(FACTS, shared=("lake.db.clone",)))
    assert (place.decision, place.waits_for) == (Decision.ERASE, ("lake.db.clone",))


def test_a_young_request_waits_for_its_cool_off_unless_it_is_told_not_to() -> None:
    young = replace(ADA, ready_from=NOW + timedelta(hours=1))
    waiting = plan_erasure([young], {0: HELD}, [FACTS], now=NOW)
    assert ([each.decision for each in waiting.requests], waiting.places) == (["wait"], ())
    at_once = plan_erasure([young], {0: HELD}, [FACTS], now=NOW, at_once=True)
    assert at_once.places[0].decision is Decision.ERASE
    assert (at_once.requests[0].early, at_once.requests[0].because.endswith("was not waited for")) == (True, True)
    assert not plan_erasure([ADA], {0: HELD}, [FACTS], now=NOW, at_once=True).requests[0].early


@pytest.mark.parametrize(
    ("rows", "known", "refused"),
    [(1000, 1000, False), (1001, 100_100, False), (1001, 100_000, True), (1001, None, True)],
)
def test_a_request_that_matches_too_much_is_refused_and_the_others_go_on(
    rows: int, known: int | None, refused: bool
) -> None:
    held = {0: [Held(TABLE, "branch:main", rows, ("who",))], 1: HELD}
    plan = plan_erasure([ADA, BOB], held, [replace(FACTS, rows=known, hits=hits(0, 1))], now=NOW)
    assert {each.id: each.decision for each in plan.requests} == {
        "r1": "refused" if refused else "erase",
        "r2": "erase",
    }
    assert plan.places[0].requests == (("r2",) if refused else ("r1", "r2"))


def test_who_allows_all_rows_is_asked_for_no_count() -> None:
    held = {0: [Held(TABLE, "branch:main", 5000, ("who",))]}
    facts = replace(FACTS, rows=None)
    assert plan_erasure([ADA], held, [facts], now=NOW).requests[0].decision == "refused"
    assert plan_erasure([ADA], held, [facts], now=NOW, most_share=1.0).requests[0].decision == "erase"


@pytest.mark.parametrize(
    ("change", "decision"),
    [
        ({"terms": ErasureTerms("keep", basis="law", until=date(2030, 1, 1))}, "erase"),
        ({"back": HeldBack(holds=("hold:counsel",))}, "erase"),
        ({"back": HeldBack(settings=("floor:gc",))}, "refused"),
    ],
)
def test_rows_that_something_keeps_are_not_too_many(change: dict[str, Any], decision: str) -> None:
    held = {0: [Held(TABLE, "branch:main", 5000, ("who",))]}
    plan = plan_erasure([ADA], held, [replace(FACTS, rows=6000, **change)], now=NOW)
    assert plan.requests[0].decision == decision


def test_the_same_facts_are_the_same_plan_whatever_their_order() -> None:
    other = replace(FACTS, dataset="lake.db.a", traced=frozenset({"r1"}), hits=None)
    missed = [NotReachable("x", "y"), NotReachable("a", "b")]
    one = plan_erasure([ADA, BOB], {0: HELD, 1: HELD}, [FACTS, other], missed, now=NOW)
    two = plan_erasure([BOB, ADA], {1: HELD, 0: HELD}, [other, FACTS], missed[::-1], now=NOW)
    assert one.digest == two.digest
    assert one.to_dict() == two.to_dict()
    assert [place.dataset for place in one.places] == ["lake.db.a", TABLE]


def ends(facts: DatasetFacts, **more: Any) -> tuple[datetime | None, str]:
    plan = plan_erasure([ADA], {0: HELD}, [facts], now=NOW, **more)
    (place,) = plan.places
    assert plan.requests[0].ends == place.ends
    return place.ends.at, place.ends.because


def test_bytes_end_with_the_first_run_after_readers_in_flight() -> None:
    assert ends(FACTS) == (NOW + timedelta(days=1), "the first run after readers in flight")
    often = Schedule(timedelta(minutes=40), timedelta(hours=1))
    assert ends(FACTS, schedule=often)[0] == NOW + timedelta(minutes=80)
    at_once = Schedule(timedelta(hours=1), timedelta(hours=1))
    assert ends(FACTS, schedule=at_once)[0] == NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    ("change", "days", "because"),
    [
        ({"back": HeldBack(ages={"floor:kept": timedelta(days=7)})}, 7, "floor:kept"),
        ({"back": HeldBack(ages={"floor:kept": timedelta(minutes=1)})}, 1, "the first run after readers in flight"),
        ({"back": HeldBack(ages={"floor:kept": None})}, None, "floor:kept"),
        ({"back": HeldBack(holds=("hold:counsel",))}, None, "hold:counsel"),
        ({"back": HeldBack(settings=("floor:gc",))}, None, "it waits for floor:gc"),
        ({"cannot": "no API"}, None, "no API"),
        ({"back": HeldBack(statutes=(Statute("floor:tax", date(2026, 3, 9)),))}, 10, ""),
        ({"back": HeldBack(statutes=(Statute("floor:tax", None),))}, None, "floor:tax"),
        ({"terms": ErasureTerms("keep", basis="law", until=date(2026, 3, 9))}, 10, ""),
        ({"busy": "an erasure", "free_from": NOW + timedelta(hours=30)}, 3, ""),
        ({"shared": ("lake.db.clone",)}, None, "files stay for lake.db.clone, which reference them"),
        ({"foreseen": {"1": ForeseenVersion(Fate.STAYS, "a tag")}}, None, "a tag"),
        (
            {"foreseen": {"1": ForeseenVersion(Fate.STAYS, "floor:kept, for now")},
             "back": HeldBack(ages={"floor:kept": timedelta(days=7)})},
            7, "floor:kept",
        ),
    ],
)  # fmt: skip
def test_when_a_place_ends_and_what_that_depends_on(change: dict[str, Any], days: int | None, because: str) -> None:
    at, why = ends(replace(FACTS, **change))
    assert at == (None if days is None else NOW + timedelta(days=days))
    assert why.startswith(because)


def test_who_waits_for_a_cool_off_is_told_when_it_would_end() -> None:
    young = replace(ADA, ready_from=NOW + timedelta(hours=30))
    (request,) = plan_erasure([young], {0: HELD}, [FACTS], now=NOW).requests
    assert (request.decision, request.ends) == (
        "wait", BytesEnd(NOW + timedelta(days=3), "the first run after readers in flight")
    )  # fmt: skip


def test_a_request_ends_with_its_last_place() -> None:
    kept = replace(FACTS, dataset="lake.db.kept", terms=ErasureTerms("keep", basis="law", until=date(2026, 3, 9)))
    held = {0: [*HELD, replace(HELD[0], dataset="lake.db.kept")]}
    plan = plan_erasure([ADA], held, [FACTS, kept], now=NOW)
    assert plan.requests[0].ends == BytesEnd(NOW + timedelta(days=10), "the first run after readers in flight")
    tapes = CopyStep(copy="tapes", kind="backup", requests=("r1",), until=date(2026, 4, 4), because="a backup")
    assert plan.with_copies((tapes,)).requests[0].ends == BytesEnd(datetime(2026, 4, 5, tzinfo=UTC), "a backup")
    assert plan.with_copies((replace(tapes, until=None),)).requests[0].ends == BytesEnd(None, "a backup")


def test_what_is_only_estimated_is_no_part_of_a_digest() -> None:
    one, two = (
        plan_erasure([ADA], {0: HELD}, [FACTS], now=NOW, schedule=Schedule(timedelta(days=days), timedelta(hours=1)))
        for days in (1, 2)
    )
    assert (one.digest, one.places[0].ends) != (two.digest, two.places[0].ends)
    assert one.digest == two.digest
    files = plan_erasure([ADA], {0: HELD}, [replace(FACTS, sizes={"a": 10, "b": 21})], now=NOW)
    assert files.digest != one.digest


def test_less_history_than_the_format_has_is_what_the_table_asks_for() -> None:
    assert decided(replace(FACTS, terms=ErasureTerms(history="expire"))).history is VersionFate.EXPIRE
