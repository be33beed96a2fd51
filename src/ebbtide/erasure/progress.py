"""How far requests are, by how their places stand: planned, deleted, purged (spec §4). Each step is an entry."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ebbtide.erasure.owner import DATASET, HOT
from ebbtide.erasure.plan import NOT_AWAITED
from ebbtide.ledger.batch import MAX_BATCH
from ebbtide.ledger.ledger import Ledger, Step
from ebbtide.ledger.request_entries import RequestMoved
from ebbtide.state import erasure as rows
from ebbtide.state import requests as request_rows
from ebbtide.state.erasure import OPEN, UNTOUCHED, ErasurePlace, PlaceState
from ebbtide.state.lease import Lease
from ebbtide.state.sweeper import SweepWriter
from ebbtide.state.values import NEXT_STATES, Request, RequestState

ELSEWHERE, LINEAGE = "elsewhere", "lineage"
"""Kinds of places that nobody looked at: what no catalog of ours has, or did not answer; what lineage could not follow,
which a search of all bytes makes up for.
"""
_BEFORE = (RequestState.RECEIVED, RequestState.CERTIFIED_WITH_EXCEPTIONS)


def say_planned(ledger: Ledger, lease: Lease, requests: Collection[str], early: Collection[str] = ()) -> None:
    """Work on these begins: whoever asked can no longer be told that nothing was done. Of which of them somebody passed
    the cool-off stands in the entry.
    """
    with ledger.sweeping(lease) as step:
        found = request_rows.requests_by_id(step.state.connection, sorted(requests))
        _move(ledger, step, [each for each in found if each.state in _BEFORE], RequestState.PLANNED, early)


def put_places(ledger: Ledger, lease: Lease, requests: Collection[str], places: Sequence[ErasurePlace]) -> None:
    """Say of these requests how places stand that no act works on. What can be reached again is none of them."""
    with ledger.sweeping(lease) as step:
        rows.drop_kinds(step.state.connection, requests, (ELSEWHERE, LINEAGE))
        rows.put_places(step.state.connection, places)


def advance(ledger: Ledger, lease: Lease, requests: Collection[str]) -> dict[str, RequestState]:
    """Move each request as far as its places let it. One without a place stays where it is: nothing of it was found."""
    with ledger.sweeping(lease) as step:
        connection = step.state.connection
        by_request: dict[str, list[ErasurePlace]] = {}
        for place in rows.places_of(connection, requests):
            by_request.setdefault(place.request, []).append(place)
        for state in (RequestState.DELETED, RequestState.PURGED):
            found = request_rows.requests_by_id(connection, sorted(by_request))
            _move(ledger, step, [each for each in found if state in _ahead(each.state, by_request[each.id])], state)
        return {each.id: each.state for each in request_rows.requests_by_id(connection, sorted(requests))}


def _ahead(state: RequestState, places: Collection[ErasurePlace]) -> tuple[RequestState, ...]:
    """The states that a request goes through from here on."""
    if any(place.state in UNTOUCHED or _cannot(place) for place in places):
        return ()
    if any(place.state in OPEN for place in places):
        return (RequestState.DELETED,)
    return (RequestState.PURGED,) if state is not RequestState.PLANNED else (RequestState.DELETED, RequestState.PURGED)


def _cannot(place: ErasurePlace) -> bool:
    """Whether rows are there that a format cannot erase: nothing was deleted. No reader sees what an act left."""
    return place.kind in (DATASET, HOT) and place.state is PlaceState.NOT_REACHABLE and place.act is None


def _move(
    ledger: Ledger,
    step: Step[SweepWriter],
    requests: Collection[Request],
    state: RequestState,
    early: Collection[str] = (),
) -> None:
    moving = [each.id for each in requests if each.state is not state and state in NEXT_STATES[each.state]]
    at = ledger.clock.now()
    entries = [
        RequestMoved(at=at, request=each, state=str(state), because=NOT_AWAITED if each in early else None)
        for each in moving
    ]
    if len(entries) == 1:
        step.append(*entries)
    for start in range(0, len(entries) if len(entries) > 1 else 0, MAX_BATCH):
        step.append_batch(entries[start : start + MAX_BATCH])
    request_rows.set_states(step.state.connection, moving, state, at=at)
