"""What is left of a person in a place, and why, as a search and a certificate take it (spec §4, §5)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ebbtide.erasure.copies import KINDS
from ebbtide.erasure.owner import DATASET
from ebbtide.erasure.progress import ELSEWHERE
from ebbtide.ledger.ledger import Ledger
from ebbtide.ledger.request_entries import Excepted
from ebbtide.state.erasure import EXCEPTIONS, ErasurePlace, PlaceState, places_of

# What a place says is for people who may see names of tags and words of holds; a certificate goes to anybody.
_HELD = "a hold"
_BY_FORMAT = "its format cannot let go of it"
_ELSEWHERE = "no catalog of this project lists it"


def exceptions_of(ledger: Ledger, requests: Collection[str]) -> dict[str, list[ErasurePlace]]:
    """The places of each request in which something is left for a reason; what lineage could not follow is none, for a
    search reads every byte there.
    """
    with ledger.database.reader() as state:
        places = places_of(state.connection, requests)
    found: dict[str, list[ErasurePlace]] = {}
    for place in places:
        if place.state in EXCEPTIONS and place.kind in (DATASET, ELSEWHERE, *KINDS):
            found.setdefault(place.request, []).append(place)
    return found


def datasets_of(places: Sequence[ErasurePlace]) -> frozenset[str]:
    """The datasets among them."""
    return frozenset(each.place for each in places if each.kind == DATASET)


def excepted(place: ErasurePlace) -> Excepted:
    """As a certificate says it."""
    if place.state is PlaceState.HELD:
        return Excepted(place=place.place, outcome="held", basis=_HELD)
    if place.until is not None:
        outcome = "expires" if place.state is PlaceState.EXPIRES else "retained"
        return Excepted(place=place.place, outcome=outcome, basis=place.because, until=place.until)
    if place.kind in KINDS:
        return Excepted(place=place.place, outcome="not reachable", basis=place.because)
    basis = _ELSEWHERE if place.kind == ELSEWHERE else _BY_FORMAT
    return Excepted(place=place.place, outcome="not reachable", basis=basis)
