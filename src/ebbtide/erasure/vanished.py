"""Datasets that their catalog lists no more: nobody can be erased from one, and no request waits for one for ever.

A search reads what is left in the folder of a table that was dropped. One that was renamed is another place, in which
there is something to do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime

from ebbtide.acts.intents import let_go
from ebbtide.erasure.exceptions import may_be_over
from ebbtide.erasure.owner import DATASET
from ebbtide.erasure.stages import MOST_NAMED
from ebbtide.inventory.current import Current
from ebbtide.inventory.renames import called_now
from ebbtide.ledger.ledger import Ledger, Step
from ebbtide.model.ids import DatasetId
from ebbtide.state import erasure as rows
from ebbtide.state.erasure import OPEN, ErasurePlace, OpenErasure, PlaceState
from ebbtide.state.lease import Lease
from ebbtide.state.sweeper import SweepWriter

_GONE = "its table is gone; a search reads what is left"


def settle_vanished(
    ledger: Ledger, lease: Lease, current: Current, catalogs: Collection[str], requests: Collection[str]
) -> frozenset[str]:
    """Settle the places of datasets that are gone, and close their acts, in one step. Gives the acts.

    Only of a catalog that answered: what could not be read is there for all that anybody knows.
    """
    silent = {each.catalog for each in current.catalog_errors}

    def is_gone(dataset: str) -> bool:
        catalog = DatasetId.parse(dataset).catalog
        return dataset not in current.entries and catalog in catalogs and catalog not in silent

    with ledger.sweeping(lease) as step:
        acts = [each for each in rows.open_erasures(step.state.connection) if is_gone(each.dataset)]
        whose = {*requests, *(each for act in acts for each in act.requests)}
        said = rows.places_of(step.state.connection, whose)
        at, holds = ledger.clock.now(), step.state.holds()
        over = [
            each for each in said
            if each.kind == DATASET and (each.state in OPEN or may_be_over(each, holds, at.date()))
            and is_gone(each.place)
        ]  # fmt: skip
        names = called_now(current) if acts or over else {}
        _close(step, acts, names, at)
        rows.put_places(step.state.connection, list(_settled(over, said, names, at)))
    return frozenset(each.act for each in acts)


def _close(
    step: Step[SweepWriter], acts: Collection[OpenErasure], names: Mapping[str, tuple[str, ...]], at: datetime
) -> None:
    """What these acts let go of is for the next one on the same table, where that is called otherwise now."""
    paused = step.state.paused_acts()
    for each in acts:
        if each.act in paused:
            asked = tuple(sorted(each.requests)) if len(each.requests) <= MOST_NAMED else ()
            let_go(step, each.act, asked, at, "its table is not listed by its name any more")
        if len(now := names.get(each.dataset, ())) == 1:
            rows.move_erasure(step.state.connection, each.act, now[0])
            rows.keep_files(step.state.connection, each.act, each.files)
        else:
            rows.close_erasure(step.state.connection, [each.act])


def _settled(
    over: Collection[ErasurePlace],
    said: Collection[ErasurePlace],
    names: Mapping[str, tuple[str, ...]],
    at: datetime,
) -> list[ErasurePlace]:
    known = {(each.request, each.place) for each in said}
    found: list[ErasurePlace] = []
    settled: Callable[[ErasurePlace, str], ErasurePlace] = lambda place, because: replace(  # noqa: E731
        place, state=PlaceState.REMOVED, because=because, until=None, updated_at=at
    )
    for place in over:
        now = names.get(place.place, ())
        found.append(settled(place, f"it is {', '.join(now)} now" if now else _GONE))
        found += [
            replace(place, place=name, state=PlaceState.FOUND, because=f"it was {place.place} when this began",
                    until=None, act=None, updated_at=at)
            for name in now
            if (place.request, name) not in known
        ]  # fmt: skip
    return found
