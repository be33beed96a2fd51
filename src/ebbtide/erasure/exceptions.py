"""What is left of a person in a place, and why, as a search and a certificate take it (spec §4, §5)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date

from ebbtide.erasure.copies import KINDS, LOG
from ebbtide.erasure.owner import DATASET, HOT
from ebbtide.erasure.progress import ELSEWHERE
from ebbtide.ledger.ledger import Ledger
from ebbtide.ledger.request_entries import Excepted
from ebbtide.state.erasure import EXCEPTIONS, ErasurePlace, PlaceState, places_of
from ebbtide.state.values import Hold, HoldScope

# What a place says is for people who may see names of tags and words of holds; a certificate goes to anybody.
_HELD = "a hold"
_BY_FORMAT = "its format cannot let go of it"
_OUTSIDE = "files of it lie outside of its folder"
_ELSEWHERE = "no catalog of this project lists it"
_WITHOUT_A_DATE = (PlaceState.RETAINED, PlaceState.NOT_REACHABLE)


def exceptions_of(ledger: Ledger, requests: Collection[str]) -> dict[str, list[ErasurePlace]]:
    """The places of each request in which something is left for a reason; what lineage could not follow is none, for a
    search reads every byte there. A hold that was released is no reason any more.
    """
    with ledger.database.reader() as state:
        places, holds = places_of(state.connection, requests), state.holds()
    found: dict[str, list[ErasurePlace]] = {}
    for place in places:
        if (
            place.state in EXCEPTIONS
            and place.kind in (DATASET, HOT, ELSEWHERE, LOG, *KINDS)
            and not is_released(place, holds)
        ):
            found.setdefault(place.request, []).append(place)
    return found


def is_released(place: ErasurePlace, holds: Collection[Hold]) -> bool:
    """Whether it was held, and no hold names it, or a person, any more. A hot table may be held by its cold one: of it
    the holds that are told keep it.
    """
    return place.state is PlaceState.HELD and not any(
        hold.dataset == place.place
        or hold.scope is HoldScope.SUBJECT
        or (place.kind == HOT and hold.id in place.because)
        for hold in holds
    )


def may_be_over(place: ErasurePlace, holds: Collection[Hold], today: date) -> bool:
    """Whether what kept something there may be gone: its day has passed, its hold was released, or a dataset keeps it
    for a reason that has no day.
    """
    if place.until is not None and place.until < today:
        return True
    undated = place.kind in (DATASET, HOT) and place.until is None and place.state in _WITHOUT_A_DATE
    return undated or is_released(place, holds)


def datasets_of(places: Sequence[ErasurePlace]) -> frozenset[str]:
    """The datasets among them in which somebody may be found. That a format cannot erase rows is no reason for them."""
    return frozenset(
        each.place for each in places if each.kind in (DATASET, HOT) and each.state is not PlaceState.NOT_REACHABLE
    )


def excepted(place: ErasurePlace) -> Excepted:
    """As a certificate says it."""
    if place.state is PlaceState.HELD:
        return Excepted(place=place.place, outcome="held", basis=_HELD)
    if place.until is not None:
        outcome = "expires" if place.state is PlaceState.EXPIRES else "retained"
        return Excepted(place=place.place, outcome=outcome, basis=place.because, until=place.until)
    if place.kind in (LOG, *KINDS):
        return Excepted(place=place.place, outcome="not reachable", basis=place.because)
    basis = _ELSEWHERE if place.kind == ELSEWHERE else _BY_FORMAT if place.act is None else _OUTSIDE
    return Excepted(place=place.place, outcome="not reachable", basis=basis)
