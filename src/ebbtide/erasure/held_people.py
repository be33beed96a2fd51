"""Holds on people (spec §3): sealed as requests are, each under a key of its own, and what they keep from removals.

1. Who is held stands nowhere in clear: the state has commitments and sealed identifiers, the ledger commitments. The
   key is on disk before the hold is committed, and is destroyed after its release.
2. An erasure looks held people up beside those of its requests: where rows of one are, nobody is erased.
3. Retention looks at no row: it keeps every dataset in which a column could show somebody, and where nobody can tell
   which these are, all of them.
4. Files that an erasure replaced may hold whoever is held since then: no search of versions sees these rows any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ebbtide.config.copies import Copy
from ebbtide.config.subjects import Identities
from ebbtide.erasure.copies import with_clones
from ebbtide.erasure.found import DatasetSearch
from ebbtide.erasure.places import places_of
from ebbtide.errors import EbbtideError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.commitment import Identifier, Opening, new_key
from ebbtide.ledger.entries import HoldPlaced, salted
from ebbtide.ledger.home import Home
from ebbtide.ledger.ledger import Ledger
from ebbtide.lineage.labelled import Labelled
from ebbtide.plan.held_back import HeldBack
from ebbtide.state.erasure import OpenErasure
from ebbtide.state.values import Hold, HoldScope
from ebbtide.state.writer import new_id

_MARGIN = timedelta(days=1)
"""How much longer than by today's settings readers may have been waited for when an erasure began."""


@dataclass(frozen=True, slots=True, repr=False)
class HeldPerson:
    """Somebody who is held, by all identifiers that were given."""

    hold: Hold
    identifiers: tuple[Identifier, ...]


def hold_person(ledger: Ledger, person: Sequence[Identifier], *, owner: str, reason: str, now: datetime) -> Hold:
    """Hold everything about a person. `owner` is who ordered it, by name."""
    hold_id, keys = new_id(), ledger.home.keys
    opening = Opening(hold_id, new_key(), tuple(person))
    destroy_released(ledger)
    keys.create_sealing(hold_id)
    try:
        with ledger.writing() as step:
            who = step.state.actor(owner)
            hold = step.state.hold_subject(
                hold_id, commitments=opening.commitments(), sealed=keys.seal(hold_id, opening.encode()), owner=who,
                reason=reason, at=now,
            )  # fmt: skip
            step.append(
                HoldPlaced(
                    at=now, hold=hold.id, scope=str(hold.scope), owner=who, reason=salted(hold.salt, reason),
                    commitments=hold.commitments,
                )
            )  # fmt: skip
    except Exception:
        with suppress(EbbtideError):
            _destroy_unless_held(ledger, hold_id)
        raise
    return hold


def _destroy_unless_held(ledger: Ledger, hold_id: str) -> None:
    """A commit whose answer was lost may have been one: then its key is needed."""
    with ledger.database.reader() as state:
        known = {hold.id for hold in state.holds(only_active=False)}
    if hold_id not in known:
        ledger.home.keys.destroy(hold_id)


def destroy_released(ledger: Ledger) -> None:
    """Destroy the keys of holds that were released: after a release, and for a process that died behind one."""
    with ledger.database.reader() as state:
        over = {hold.id for hold in state.holds(only_active=False) if not hold.active}
    for name in over.intersection(ledger.home.keys.names()):
        ledger.home.keys.destroy(name)


def held_people(home: Home, holds: Iterable[Hold]) -> list[HeldPerson]:
    """Who is held. A key that is missing is an error, never nobody."""
    people = []
    for hold in holds:
        if hold.scope is HoldScope.SUBJECT and hold.active and hold.sealed is not None:
            opening = Opening.parse(home.keys.unseal(hold.id, hold.sealed))
            people.append(HeldPerson(hold, opening.everything))
    return people


def datasets_of_people(
    home: Home,
    holds: Iterable[Hold],
    identities: Identities,
    labelled: Labelled,
    inventory: Inventory,
    copies: Iterable[Copy],
    condemned: Iterable[str],
) -> Collection[str]:
    """The datasets in which a column could show one of them, or leads to one: all, where nobody can tell. What is left
    of a table that was dropped or condemned is among them: its columns are known to nobody any more.
    """
    everything = inventory.current.entries
    gone = tuple({*inventory.former_names, *condemned} - everything.keys())
    try:
        types = {one.type for held in held_people(home, holds) for one in held.identifiers}
    except EbbtideError:
        return (*everything, *gone)
    if not types or types - identities.subjects.keys():
        return (*everything, *gone)
    # Any identity may lead to a person by tables of identities, whichever of theirs was given.
    places = with_clones(places_of(identities.subjects, identities, labelled, inventory), copies, inventory)
    unseen = {each.place for each in places.not_reachable}
    # A column of its hot table that a mirror has not made, or that nobody spells so: nobody can tell who is there.
    mirrored = {each.table_id for one in identities.subjects.values() for each in one.mirrored}
    shown = (
        name
        for name in everything
        if name in places.columns
        or name in mirrored
        or any(place == name or place.startswith(f"{name}.") for place in unseen)
    )
    return (*shown, *gone)


def with_people_held(
    back: Mapping[str, HeldBack],
    found: DatasetSearch,
    held: Mapping[int, Hold],
    acts: Iterable[OpenErasure],
    window: timedelta,
) -> dict[str, HeldBack]:
    """The same with datasets held in which these people were found, by their numbers in the search, also in rows that
    deletes hide; with those of which a version could not be looked through; and with those where files wait that an
    erasure replaced before one of them was held.
    """
    by_dataset: dict[str, set[str]] = {}
    for number, hold in held.items():
        for place in found.held.get(number, ()):
            by_dataset.setdefault(place.dataset, set()).add(_text(hold))
        for dataset, hits in found.tables.items():
            if number in hits.people:
                by_dataset.setdefault(dataset, set()).add(_text(hold))
    for missed in found.not_reachable:
        dataset, at, _ = missed.place.partition("@")
        if at:
            by_dataset.setdefault(dataset, set()).update(map(_text, held.values()))
    for act in acts:
        began = act.free_from - window - _MARGIN
        by_dataset.setdefault(act.dataset, set()).update(_text(h) for h in held.values() if h.created_at >= began)
    known = dict(back)
    for dataset, texts in by_dataset.items():
        if texts:
            one = known.get(dataset, HeldBack())
            known[dataset] = replace(one, holds=(*one.holds, *sorted(texts)))
    return known


def _text(hold: Hold) -> str:
    """As a plan says of a hold; its owner is a name by now."""
    return f"hold:{hold.owner} ({hold.reason})" if hold.reason else f"hold:{hold.owner}"
