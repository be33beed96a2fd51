"""Copies in a plan: they end by themselves on a day that no later run moves further, or a person sees to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from ebbtide.config.copies import Copy
from ebbtide.erasure.copies import CopyStep, copy_steps, out_of_reach, places_of_copies
from ebbtide.model.durations import Duration
from ebbtide.state.erasure import ErasurePlace, PlaceState

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
TAPES = Copy("tapes", "backup", "here", ("lake.app.*",), Duration(1, "m"))
AGENCY = Copy("agency", "recipient", "here", ("lake.app.users",))
USERS = {"lake.app.users": ("r1", "r2")}


def steps(
    copy: Copy,
    holding: Mapping[str, Collection[str]],
    stated: list[ErasurePlace] | None = None,
    carrying: Mapping[str, Collection[str]] = USERS,
    now: datetime = NOW,
) -> list[tuple[tuple[str, ...], date | None]]:
    return [(each.requests, each.until) for each in copy_steps([copy], carrying, holding, stated or [], now=now)]


def said(request: str, until: date | None, state: PlaceState = PlaceState.EXPIRES) -> ErasurePlace:
    return ErasurePlace(
        request=request, place="tapes", kind="backup", state=state, because="", until=until, updated_at=NOW
    )


def test_what_is_in_a_source_now_ends_a_calendar_true_period_from_now() -> None:
    assert steps(TAPES, USERS) == [(("r1", "r2"), date(2026, 2, 28))]


def test_the_day_stays_once_a_person_has_left_every_source() -> None:
    before = [said("r1", date(2026, 2, 10))]
    assert steps(TAPES, {"lake.app.users": ("r2",)}, before) == [
        (("r1",), date(2026, 2, 10)), (("r2",), date(2026, 2, 28))
    ]  # fmt: skip


def test_who_came_back_is_counted_anew() -> None:
    assert steps(TAPES, USERS, [said("r1", date(2026, 2, 10))]) == [(("r1", "r2"), date(2026, 2, 28))]


def test_who_is_in_no_source_now_may_have_been_when_the_copy_was_made() -> None:
    assert steps(TAPES, {}) == [(("r1", "r2"), date(2026, 2, 28))]


def test_a_copy_of_other_tables_holds_nobody() -> None:
    assert steps(TAPES, {}, carrying={"lake.app.x.users": ("r1",), "events.app.users": ("r1",)}) == []


@pytest.mark.parametrize(
    ("now", "state"),
    [(datetime(2026, 2, 28, tzinfo=UTC), PlaceState.EXPIRES), (datetime(2026, 3, 1, tzinfo=UTC), PlaceState.REMOVED)],
)
def test_a_copy_holds_a_person_through_its_last_day(now: datetime, state: PlaceState) -> None:
    found = copy_steps([TAPES], USERS, {}, [said("r1", date(2026, 2, 28)), said("r2", date(2026, 2, 28))], now=now)
    assert [(each.request, each.place, each.state) for each in places_of_copies(found, at=now)] == [
        ("r1", "tapes", state), ("r2", "tapes", state)
    ]  # fmt: skip


def test_where_nobody_says_how_long_a_person_has_to_see_to_it() -> None:
    (step,) = copy_steps([AGENCY], USERS, USERS, [], now=NOW)
    assert isinstance(step, CopyStep)
    assert {each.state for each in places_of_copies([step], at=NOW)} == {PlaceState.NOT_REACHABLE}
    assert "a person has to see to it" in step.because


def test_what_no_search_of_storage_reads_is_named_whoever_is_asked_for(tmp_path: Path) -> None:
    """Clones are datasets like others."""
    (tmp_path / "copies").mkdir()
    (tmp_path / "copies" / "all.yml").write_text(
        "copies:\n  - {name: tapes, kind: backup, of: ['lake.**'], keeps: 35d}\n"
        "  - {name: dev, kind: clone, of: [lake.app.users], dataset: lake.dev.users}\n"
    )
    assert [name for name, _ in out_of_reach(tmp_path)] == ["tapes"]
