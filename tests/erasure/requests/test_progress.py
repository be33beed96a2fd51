"""How far a request is said to be, by how its places stand: nothing is called deleted that is there (spec §4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from ebbtide.app.erase_look import _due_again
from ebbtide.erasure.exceptions import exceptions_of
from ebbtide.erasure.progress import advance, put_places, say_planned
from ebbtide.ledger.ledger import Ledger
from ebbtide.state.erasure import ErasurePlace, PlaceState
from ebbtide.state.lease import Lease
from ebbtide.state.values import RequestState
from tests.erasure.requests.people import file, person

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def place(request: str, name: str, state: PlaceState, until: date | None = None) -> ErasurePlace:
    return ErasurePlace(
        request=request, place=name, kind="dataset", state=state, because="so", until=until, updated_at=NOW
    )


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((PlaceState.REMOVED,), RequestState.PURGED),
        ((PlaceState.REMOVED, PlaceState.RETAINED, PlaceState.HELD), RequestState.PURGED),
        ((PlaceState.REMOVED, PlaceState.DELETED), RequestState.DELETED),
        ((PlaceState.REMOVED, PlaceState.FOUND), RequestState.PLANNED),
        ((PlaceState.REMOVED, PlaceState.NOT_REACHABLE), RequestState.PLANNED),
    ],
)
def test_a_request_is_as_far_as_all_of_its_places(
    ledger: Ledger, states: Sequence[PlaceState], expected: RequestState
) -> None:
    (request,) = file(ledger, [person(1)]).requests
    with Lease.acquire(ledger.database, holder="test") as lease:
        say_planned(ledger, lease, [request])
        put_places(ledger, lease, [request], [place(request, f"t{n}", each) for n, each in enumerate(states)])
        assert advance(ledger, lease, [request]) == {request: expected}


def test_a_hold_that_was_released_is_no_reason_any_more_and_the_request_is_taken_again(ledger: Ledger) -> None:
    (request,) = file(ledger, [person(1)]).requests
    held = place(request, "lake.db.t", PlaceState.HELD)
    with Lease.acquire(ledger.database, holder="test") as lease:
        put_places(ledger, lease, [request], [held])
    with ledger.database.writer() as state:
        hold = state.hold_dataset("lake.db.t", owner=state.actor("counsel"), reason="a suit", at=NOW)
    assert list(exceptions_of(ledger, [request])) == [request]
    assert _due_again([held], [hold], NOW) == set()
    with ledger.database.writer() as state:
        state.release_hold(hold.id, actor=state.actor("counsel"), at=NOW)
    assert exceptions_of(ledger, [request]) == {}
    assert _due_again([held], [], NOW) == {request}


def test_what_has_a_day_is_taken_again_after_it_and_what_has_none_in_every_run() -> None:
    kept = place("r", "t", PlaceState.RETAINED, date(2026, 3, 1))
    assert (_due_again([kept], [], NOW), _due_again([kept], [], NOW.replace(day=2))) == (set(), {"r"})
    assert _due_again([replace(kept, until=None)], [], NOW) == {"r"}
