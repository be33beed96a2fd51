"""Who is to be erased and where they are: what `erase plan` shows, and `erase run` carries out (spec §4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache

from ebbtide.app.hot_places import look_in_hot
from ebbtide.app.scan import run_scan, start_session
from ebbtide.app.world import orders_of, read_state, world_of
from ebbtide.config import Project
from ebbtide.config.copies import load_copies
from ebbtide.config.policies import load_policies
from ebbtide.config.subjects import Identities, load_identities
from ebbtide.config.tables import ErasureTerms
from ebbtide.erasure.copies import copy_steps, with_clones
from ebbtide.erasure.costs import Schedule
from ebbtide.erasure.exceptions import may_be_over
from ebbtide.erasure.filing import ENDS_BY_ITSELF
from ebbtide.erasure.find import Finder
from ebbtide.erasure.found import DatasetSearch
from ebbtide.erasure.gather import Gathering
from ebbtide.erasure.held_people import held_people, with_people_held
from ebbtide.erasure.hot_log import known_logs, planned_log
from ebbtide.erasure.hot_plan import HotLook, behind, hot_facts, look_of, waiting
from ebbtide.erasure.identities import resolve
from ebbtide.erasure.keyring import open_sealed
from ebbtide.erasure.leavers import pending_until
from ebbtide.erasure.owner import DATASET, HOT
from ebbtide.erasure.places import Places, places_of
from ebbtide.erasure.plan import Asking, Decision, ErasurePlan, KeptFrom, kept_from, plan_erasure
from ebbtide.errors import RefusedError, UnreadableError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.commitment import Identifier
from ebbtide.ledger.ledger import Ledger
from ebbtide.lineage.labelled import Labelled, label_inventory
from ebbtide.model.durations import add, parse_duration
from ebbtide.plan.held_back import HeldBack, held_back
from ebbtide.run import RunContext
from ebbtide.state import erasure as rows
from ebbtide.state.erasure import OPEN, ErasurePlace, OpenErasure
from ebbtide.state.hottier import HotReader
from ebbtide.state.values import Hold, HoldScope, Request, RequestState

ASKING = (
    RequestState.RECEIVED,
    RequestState.PLANNED,
    RequestState.DELETED,
    RequestState.PURGED,
    RequestState.CERTIFIED_WITH_EXCEPTIONS,
)
"""Requests that a run takes: those that are purged, too, for rows that came since."""


@dataclass(frozen=True, slots=True)
class ErasureLook:
    """One look at the lake for a batch of requests. `open_acts` are earlier acts whose files are not gone yet."""

    gathering: Gathering
    people: Mapping[str, tuple[Identifier, ...]]
    numbers: Mapping[str, int]
    search: DatasetSearch
    plan: ErasurePlan
    holds: tuple[Hold, ...]
    open_acts: tuple[OpenErasure, ...]
    paused: frozenset[str]
    hot: HotLook
    over: frozenset[tuple[str, str]] = frozenset()
    """Request and dataset where something was left for a reason, and no row of theirs is any more."""

    @property
    def inventory(self) -> Inventory:
        return self.gathering.inventory

    def kept(self, dataset: str) -> KeptFrom | None:
        """What keeps every erasure from a dataset, one that was begun included."""
        gathering = self.gathering
        return kept_from(gathering.back.get(dataset, HeldBack()), gathering.terms.get(dataset, ErasureTerms()))


def asked_for(ledger: Ledger, requests: Sequence[str], now: datetime) -> list[Request]:
    """The requests by these ids, or all that something is still to be done for."""
    with ledger.database.reader() as state:
        if requests:
            found = [state.get_request(each) for each in dict.fromkeys(requests)]
        else:
            every = [each for each in state.requests(only_open=True) if each.state in ASKING]
            due = _due_again(rows.places_of(state.connection, [each.id for each in every]), state.holds(), now)
            found = [
                each for each in every if each.state is not RequestState.CERTIFIED_WITH_EXCEPTIONS or each.id in due
            ]
    for request in found:
        if request.state not in ASKING:
            raise RefusedError(
                f"request {request.id} is {request.state}: nothing of it is to be erased now",
                hint="`erase list --open` shows those that are",
            )
    return found


def still_asking(ledger: Ledger, requests: Sequence[str]) -> list[Request]:
    """Those of them that something is still to be done for: others may have moved one meanwhile."""
    with ledger.database.reader() as state:
        found = [state.get_request(each) for each in requests]
    return [each for each in found if each.state in ASKING]


def _due_again(places: Collection[ErasurePlace], holds: Collection[Hold], now: datetime) -> set[str]:
    """Requests with an exception that may be over."""
    return {each.request for each in places if may_be_over(each, holds, now.date())}


def look_for(
    project: Project,
    ledger: Ledger,
    requests: Sequence[Request],
    context: RunContext,
    *,
    now: datetime,
    at_once: bool = False,
    most_share: float | None = None,
    again: bool = False,
    mirrors: Mapping[str, str] | None = None,
) -> ErasureLook:
    """Scan, find these people everywhere, and plan what becomes of every place. `again` also tries where an act left
    files that a person has to remove: whoever names a request may have done so. `mirrors` are hot tables whose mirror
    could not be brought up, each with why.
    """
    opened = {found.id: opening.everything for found, opening in open_sealed(ledger.home, requests)}
    run_scan(project, now=datetime.now(UTC), context=context)
    identities, inventory = load_identities(project.root), Inventory.open(project.inventory)
    session = cache(lambda: start_session(project))
    asked, snapshot = [(each, opened[each.id]) for each in requests], read_state(project)
    held = held_people(ledger.home, snapshot.holds)
    everybody = [*(who for _, who in asked), *(each.identifiers for each in held)]
    resolved = resolve(session(), project.catalogs, identities, inventory, everybody, context)
    if held and resolved.not_reachable:
        missed = resolved.not_reachable[0]
        raise UnreadableError(
            missed.place, f"{missed.because}, and it may know who else a hold on a person is about",
            hint="`ebbtide scan` says more; nobody is erased until it is read",
        )  # fmt: skip
    labelled, people_asked = label_inventory(project, inventory), resolved.people[: len(asked)]
    names = {one.type for person in resolved.people for one in person}
    copies = load_copies(project.root)
    places = with_clones(places_of(names, identities, labelled, inventory), copies, inventory)
    with ledger.database.reader() as state:
        open_acts, paused = tuple(rows.open_erasures(state.connection)), state.paused_acts()
        stated = rows.places_of(state.connection, [each.id for each in requests])
        standing = state.holds()
        records = {record.id: record for record in HotReader(state.connection).tables()}
    # Where a search of all bytes found somebody, what metadata says of values may be wrong.
    doubted = _traced([each for each in stated if each.state in OPEN], open_acts, paused)
    finder = Finder(session(), project.catalogs, identities, inventory, all_files=doubted.keys())
    of_lake = finder.find(resolved.people, places, context)
    context.step("ask hot tables")
    asked_hot, hot_of_everybody = look_in_hot(
        project, ledger.database, resolved.people, names, identities, places, inventory
    )  # fmt: skip
    of_everybody = hot_of_everybody.beside(of_lake)
    search, hot_search = of_everybody.first(len(asked)), hot_of_everybody.first(len(asked))
    search = replace(search, not_reachable=tuple(sorted({*search.not_reachable, *resolved.not_reachable})))
    in_the_way = [each for each in open_acts if not again or each.act in paused]
    over = _over(stated, in_the_way, standing, now, _looked_through(places, search))
    traced = _traced([each for each in stated if each.state in OPEN or _key(each) in over], open_acts, paused)
    traces = {*traced, *(each.dataset for each in open_acts)}
    traces |= {each.table.cold for each in asked_hot if each.table.cold is not None}
    touched = {*search.tables, *(name for name in traces if name in inventory.current.entries)}
    context.step("planning")
    policies, world = load_policies(project.root, unsafe=True), world_of(labelled, inventory)
    # People who are held are looked up here, and keep what they were found in.
    named = replace(snapshot, holds=tuple(hold for hold in snapshot.holds if hold.scope is not HoldScope.SUBJECT))
    back = held_back(policies, world, orders_of(project, named, inventory), touched, now=now)
    schedule = _schedule(project)
    holds = {len(asked) + n: each.hold for n, each in enumerate(held)}
    begun_acts = [each for each in open_acts if each.act in paused]
    back = with_people_held(back, of_everybody, holds, open_acts, schedule.window)
    gathering = Gathering(session, project.catalogs, inventory, identities, places, back, _terms(labelled, now))
    busy = {each.dataset: each.free_from for each in begun_acts}
    hot = look_of(asked_hot, hot_search, back, gathering.terms, standing)
    facts = waiting(
        [
            *gathering.facts(people_asked, search, traced, busy),
            *hot_facts(hot, [each.id for each in requests], stated),
        ],
        behind(hot_search, records, mirrors or {}),
        hot,
        stated,
    )
    plan = plan_erasure(
        [_asking(each, n, who, project, identities) for n, (each, who) in enumerate(asked)],
        search.held, facts, search.not_reachable,
        now=now, at_once=at_once, most_share=project.limits.erase_share if most_share is None else most_share,
        schedule=schedule,
    )  # fmt: skip
    people = {request.id: person for (request, _), person in zip(asked, people_asked, strict=True)}
    going = {each.id for each in plan.requests if each.decision == "erase"}
    carrying = _carrying(places, {request: who for request, who in people.items() if request in going})
    holding = {step.dataset: step.requests for step in plan.places}
    logs = [
        planned_log(step.dataset, hot_search.logs[step.dataset], step.requests, now=now)
        for step in plan.places
        if step.kind == HOT and step.decision is Decision.ERASE
    ]
    logs += known_logs(stated, hot_search.logs, now=now)
    plan = plan.with_copies((*copy_steps(copies, carrying, holding, stated, now=now), *logs))
    numbers = {request.id: number for number, request in enumerate(requests)}
    begun = {(request, act.dataset) for act in open_acts for request in act.requests}
    over = frozenset(
        (request, dataset)
        for request, dataset in over - begun
        if not any(held.dataset == dataset for held in search.held.get(numbers[request], ()))
    )
    return ErasureLook(gathering, people, numbers, search, plan, snapshot.holds, open_acts, paused, hot, over)


def _schedule(project: Project) -> Schedule:
    times = (parse_duration(text, hours=True).exact for text in (project.tick, project.erasure.reader_window))
    return Schedule(*times)


def _carrying(places: Places, people: Mapping[str, Collection[Identifier]]) -> dict[str, tuple[str, ...]]:
    """By dataset, the requests whose people its columns could show."""
    asked = {request: {one.type for one in person} for request, person in people.items()}
    found: dict[str, tuple[str, ...]] = {}
    for dataset, columns in places.columns.items():
        names = {name for some in columns.values() for name in some}
        found[dataset] = tuple(request for request, types in asked.items() if types & names)
    return found


def _terms(labelled: Labelled, now: datetime) -> dict[str, ErasureTerms]:
    return {table_id: settings.erasure.on(now.date()) for table_id, settings in labelled.settings.items()}


def _looked_through(places: Places, search: DatasetSearch) -> frozenset[str]:
    """The datasets of which every column and version that could show these people was looked at."""
    missed = {each.place for each in search.not_reachable}
    return frozenset(
        dataset
        for dataset, columns in places.columns.items()
        if dataset not in missed
        and not any(f"{dataset}.{column}" in missed for column in columns)
        and not any(place.startswith(f"{dataset}@") for place in missed)
    )


def _over(
    places: Collection[ErasurePlace],
    open_acts: Collection[OpenErasure],
    holds: Collection[Hold],
    now: datetime,
    looked: Collection[str],
) -> frozenset[tuple[str, str]]:
    """Request and dataset where something was left for a reason that may be over; whoever has rows there still has
    them. Not where files that were replaced are there, or where nobody could look.
    """
    kept = {(request, act.dataset) for act in open_acts for request in act.requests}
    return frozenset(
        _key(each)
        for each in places
        if each.kind == DATASET and each.place in looked and _key(each) not in kept
        and may_be_over(each, holds, now.date())
    )  # fmt: skip


def _key(place: ErasurePlace) -> tuple[str, str]:
    return place.request, place.place


def _traced(
    places: Collection[ErasurePlace], open_acts: Collection[OpenErasure], paused: Collection[str]
) -> dict[str, frozenset[str]]:
    """By dataset, requests with a place there that an act of before did not end, or in which a search found them."""
    waiting = {each.act for each in open_acts if each.act in paused}
    found: dict[str, set[str]] = {}
    for place in places:
        # One that could not be read is told as elsewhere: nobody was found there.
        if place.kind == DATASET and place.act not in waiting:
            found.setdefault(place.place, set()).add(place.request)
    return {dataset: frozenset(who) for dataset, who in found.items()}


def _asking(
    request: Request, number: int, person: Sequence[Identifier], project: Project, identities: Identities
) -> Asking:
    """When a request may begin: after its cool-off; one of who left, after the notice that their subject asks for."""
    ready = add(request.received_at, parse_duration(project.erasure.cool_off, hours=True))
    if request.law == ENDS_BY_ITSELF:
        known = {one.type for one in person}
        ready = max([ready, *(pending_until(request, s) for name, s in identities.subjects.items() if name in known)])
    return Asking(id=request.id, number=number, due_at=request.deadline, ready_from=ready)
