"""`ebbtide erase plan|run`: what becomes of every place of a batch of requests, and carrying it out (spec §4).

1. Acts of runs that died are closed. One look at the lake finds all pending people at once.
2. Acts whose readers are done go on; every other dataset that holds somebody gets one act for all of them.
3. Where an act of before ended in this run, and others are to go from the same dataset, there is a second look.
4. What the inventory still says of what went is forgotten, and requests move as far as their places let them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from ebbtide.acts.act import ActResult
from ebbtide.acts.engine import Engine, Lake
from ebbtide.acts.recovery import close_unfinished
from ebbtide.app.erase_hot import hot_asked, hot_side, hot_unacted, stages_of
from ebbtide.app.erase_look import ASKING, ErasureLook, asked_for, look_for, still_asking
from ebbtide.app.erase_marks import marked_partitions, rebind
from ebbtide.app.ledger import Ledger, open_for_writing
from ebbtide.app.observed import observed
from ebbtide.app.proof import prove
from ebbtide.app.round import in_turn, sweeper
from ebbtide.app.runs import recorded
from ebbtide.app.scan import run_scan, start_session
from ebbtide.app.world import in_doubt
from ebbtide.config import Project
from ebbtide.erasure.acting import Acts
from ebbtide.erasure.copies import places_of_copies
from ebbtide.erasure.eraser import Eraser
from ebbtide.erasure.hot_log import is_planned
from ebbtide.erasure.keyring import keep_resolved
from ebbtide.erasure.mending import left_behind, mend_tables
from ebbtide.erasure.owner import DATASET, HOT, Requests
from ebbtide.erasure.plan import Decision, ErasurePlan, PlaceStep
from ebbtide.erasure.progress import ELSEWHERE, LINEAGE, advance, put_places, say_planned
from ebbtide.erasure.stages import KIND
from ebbtide.erasure.vanished import settle_vanished
from ebbtide.inventory.doubts import names_to_wait_for
from ebbtide.inventory.forget import forget_what_is_gone
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.durations import parse_duration
from ebbtide.run import RunContext, quiet
from ebbtide.state import erasure as rows
from ebbtide.state.erasure import ErasurePlace, OpenErasure, PlaceState
from ebbtide.state.lease import Lease
from ebbtide.state.requests import requests_by_id

_logger = logging.getLogger(__name__)
_STATES = {
    Decision.HELD: PlaceState.HELD,
    Decision.KEEP: PlaceState.RETAINED,
    Decision.WAIT: PlaceState.WAITING,
    Decision.CANNOT: PlaceState.NOT_REACHABLE,
}


def plan_requests(
    project: Project,
    requests: Sequence[str] = (),
    *,
    at_once: bool = False,
    most_share: float | None = None,
    as_of: datetime | None = None,
    context: RunContext | None = None,
) -> dict[str, Any]:
    """What a run would do. Nothing is written but the inventory."""
    context = quiet(context, as_of=as_of)
    ledger, now = open_for_writing(project, context)
    if not (asked := asked_for(ledger, requests, now)):
        return _nothing(now).to_dict()
    look = look_for(
        project, ledger, asked, context, now=now, at_once=at_once, most_share=most_share, again=bool(requests)
    )
    return look.plan.to_dict()


def run_erasure(
    project: Project,
    requests: Sequence[str] = (),
    *,
    at_once: bool = False,
    most_share: float | None = None,
    as_of: datetime | None = None,
    dry_run: bool = False,
    context: RunContext | None = None,
) -> dict[str, Any]:
    """Carry out what is due of these requests, or of all. A dry run shows plan and stages, and changes nothing."""
    context = quiet(context, as_of=as_of)
    with observed(project, "erase", context, dry_run=dry_run) as seen:
        report = _run_erasure(project, requests, at_once, most_share, dry_run, context)
        seen.ended(report["exit_code"], run=report["run"], over=_left_out(report), counts=_counts(report))
        return report


def _run_erasure(
    project: Project,
    requests: Sequence[str],
    at_once: bool,
    most_share: float | None,
    dry_run: bool,
    context: RunContext,
) -> dict[str, Any]:
    ledger, now = open_for_writing(project, context)
    asked = [each.id for each in asked_for(ledger, requests, now)]

    mirrors: Mapping[str, str] = {}

    def look(context: RunContext) -> ErasureLook | None:
        if not (found := still_asking(ledger, asked)):
            return None
        return look_for(project, ledger, found, context, now=now, at_once=at_once, most_share=most_share,
                        again=bool(requests), mirrors=mirrors)  # fmt: skip

    if dry_run or not (asked or left_behind(ledger, project.inventory)):
        tried = look(context)
        acts = [] if tried is None else _acts(project, ledger, tried, now)[0].acts
        stages = [] if tried is None else stages_of(hot_asked(tried))
        stages += [{"dataset": act.dataset, "stages": [str(stage) for stage in act.stages]} for act in acts]
        plan = _nothing(now) if tried is None else tried.plan
        told = {
            "run": None, "plan": plan.to_dict(), "datasets": [], "requests": [], "stages": stages,
            "failed": list(plan.failed), "left": [] if tried is None else _left(tried),
        }  # fmt: skip
        return {**told, "exit_code": exit_code(told)}
    with (
        sweeper(ledger, context) as lease,
        recorded(context, ledger, "erase", lease) as run,
        hot_side(project, ledger, lease, run.context, now) as hot,
    ):
        mirrors = hot.failed
        carried = _Run(project, ledger, lease, run.context, now)
        close_unfinished(ledger, lease)
        hot.bring_up()
        first = look(run.context)
        if first is None:
            run_scan(project, now=datetime.now(UTC), context=run.context)
            mend_tables(Inventory.open(project.inventory), project.catalogs, lambda: start_session(project))
        elif mend_tables(first.inventory, project.catalogs, first.gathering.session):
            first = look(run.context)  # what a table keeps is others by now
        if first is not None and carried.begin_in_hot(first) and hot.carry_out(first):
            first = look(run.context)  # mirrors have brought it to the lake
        again = carried.carry_out(first) if first is not None else frozenset()
        if again and (second := look(run.context)) is not None:
            carried.carry_out(second, only=again)
        if carried.results:
            in_turn(lambda: forget_what_is_gone(project.inventory), run.context)
        report = carried.report(asked)
        ledger.database.scrub()
        report["exit_code"] = exit_code(report)
        run.ended(report["exit_code"], f"{len(report['datasets'])} datasets")
        return report


def _nothing(now: datetime) -> ErasurePlan:
    """The plan for nobody."""
    return ErasurePlan(now, (), (), ())


def _left(look: ErasureLook) -> list[str]:
    """The datasets in which something was left that neither a hold nor a term keeps, and no time alone ends."""
    stopped = {
        act.dataset
        for act in look.open_acts
        if act.act in look.paused and (kept := look.kept(act.dataset)) is not None and kept[0] is Decision.WAIT
    }
    return sorted(stopped | {step.dataset for step in look.plan.places if step.left})


def exit_code(report: dict[str, Any]) -> int:
    """What failed, could not be read or was left, then what a limit left out; waiting for readers is none of it."""
    if any(each["state"] == PlaceState.FAILED for each in report["datasets"]) or report["failed"] or report["left"]:
        return 4
    if any(each["findings"] for each in report["datasets"]):
        return 1
    return 3 if _left_out(report) else 0


def _left_out(report: dict[str, Any]) -> bool:
    """Whether a request matches more than it may."""
    return any(each["decision"] == "refused" for each in report["plan"]["requests"])


def _counts(report: dict[str, Any]) -> dict[str, int]:
    datasets = report["datasets"]
    return {
        "requests": len(report["requests"]), "datasets": len(datasets),
        "failed": sum(each["state"] == PlaceState.FAILED for each in datasets), "unread": len(report["failed"]),
        "files": sum(each["files"] for each in datasets), "bytes": sum(each["bytes"] for each in datasets),
    }  # fmt: skip


@dataclass(slots=True)
class _Run:
    """One run under one lease."""

    project: Project
    ledger: Ledger
    lease: Lease
    context: RunContext
    now: datetime
    looks: list[ErasureLook] = field(default_factory=list)
    results: dict[str, ActResult] = field(default_factory=dict)

    def begin_in_hot(self, look: ErasureLook) -> bool:
        """Whether somebody leaves a hot table; what is known of them is kept with their requests before."""
        going = {each for one in hot_asked(look).values() for each in one.requests}
        if going:
            self.looks.append(look)
            with self.ledger.sweeping(self.lease) as step:
                keep_resolved(step, self.ledger.home, {each: look.people[each] for each in going})
            early = [each.id for each in look.plan.requests if each.early]
            say_planned(self.ledger, self.lease, going, early)
        return bool(going)

    def carry_out(self, look: ErasureLook, *, only: frozenset[str] | None = None) -> frozenset[str]:
        """Do what a look asks for; of some datasets where it is the second one. Gives the datasets that another look
        is to be had at: an act of before ended there, and others are to go.
        """
        gone = settle_vanished(
            self.ledger, self.lease, look.inventory.current, self.project.catalogs, look.people.keys()
        )
        look = replace(look, open_acts=tuple(each for each in look.open_acts if each.act not in gone))
        self.looks.append(look)
        acts, resumed = _acts(self.project, self.ledger, look, self.now, only=only)
        for place in look.plan.places:
            told = "%s is decided %s for %d requests"
            _logger.info(told, place.dataset, place.decision, len(place.requests), extra={"run": self.context.run})
        going = [each.id for each in look.plan.requests if each.decision == "erase"]
        with self.ledger.sweeping(self.lease) as step:
            keep_resolved(step, self.ledger.home, {each: look.people[each] for each in going})
        at = self.ledger.clock.now()
        with self.ledger.database.reader() as state:
            stated = rows.places_of(state.connection, going)
        put_places(self.ledger, self.lease, going, [*_unacted(look, going, at), *hot_unacted(look, stated, at)])
        early = [each.id for each in look.plan.requests if each.early]
        say_planned(self.ledger, self.lease, {each for ids in acts.by_act.values() for each in ids}, early)
        window = parse_duration(self.project.erasure.reader_window, hours=True)
        assert self.context.run is not None
        eraser = Eraser(
            look.gathering, self.ledger, self.lease, self.context.run, self._check, window.exact, acts.asked
        )
        redacted = {name for name, terms in look.gathering.terms.items() if terms.method == "redact"}
        owner = Requests(
            acts.by_act, redacted, frozenset(hold.id for hold in look.holds), eraser.done, acts.taken_over, eraser.came
        )
        before = marked_partitions(self.project, self.ledger, look.inventory, {act.dataset for act in acts.acts})
        engine = Engine(self._lake(), self.ledger, self.lease, self.context, {KIND: eraser})
        carried = engine.carry_out(owner, acts.acts)
        for result in (*carried.results, *carried.refused):
            self.results[result.act.dataset] = result
        rebind(self.project, self.ledger, self.lease, self.context.run, before, carried.results)
        advance(self.ledger, self.lease, look.people.keys())
        left = {step.dataset for step in look.plan.places if step.dataset in resumed}
        return frozenset(left) if only is None else frozenset()

    def _check(self) -> None:
        self.lease.check()
        self.context.cancellation.check()

    def _lake(self) -> Lake:
        project, session = self.project, cache(lambda: start_session(self.project))

        def rescan() -> Inventory:
            in_turn(lambda: run_scan(project, now=datetime.now(UTC), context=self.context), self.context)
            return Inventory.open(project.inventory)

        def unread(inventory: Inventory) -> Sequence[str]:
            return names_to_wait_for(in_doubt(project, inventory, now=self.now))

        proof: Callable[[Sequence[str]], Any] = lambda touched: prove(project, session(), touched)  # noqa: E731
        return Lake(session, rescan, proof, unread)

    def report(self, requests: Sequence[str]) -> dict[str, Any]:
        """What came of it, as the state has it by now."""
        with self.ledger.database.reader() as state:
            places = rows.places_of(state.connection, requests)
            states = {each: str(state.get_request(each).state) for each in requests}
        by_dataset: dict[str, ErasurePlace] = {place.place: place for place in places if place.kind in (DATASET, HOT)}
        plan = self.looks[0].plan if self.looks else _nothing(self.now)
        unread = {
            name
            for name, result in self.results.items()
            if result.unread is not None or (name in by_dataset and by_dataset[name].state is PlaceState.NOT_REACHABLE)
        }
        return {
            "run": self.context.run,
            "plan": plan.to_dict(),
            "datasets": [
                {
                    "dataset": name, "state": str(place.state), "because": place.because,
                    "files": len(self.results[name].removed) if name in self.results else 0,
                    "bytes": sum(self.results[name].removed.values()) if name in self.results else 0,
                    "findings": self.results[name].findings or 0 if name in self.results else 0,
                }
                for name, place in sorted(by_dataset.items())
            ],
            "requests": [{"id": each, "state": state} for each, state in states.items()],
            "stages": [],
            "failed": sorted({place for look in self.looks for place in look.plan.failed}),
            "left": sorted(unread.union(_left(self.looks[-1]) if self.looks else ())),
        }  # fmt: skip


def _acts(
    project: Project, ledger: Ledger, look: ErasureLook, now: datetime, *, only: frozenset[str] | None = None
) -> tuple[Acts, set[str]]:
    """The acts of a look, and the datasets of those that go on; none where nobody can tell now who is in a dataset."""
    untold = {each.place for each in look.search.not_reachable if each.failed}
    acts = Acts(look.inventory, project.catalogs, look.people, look.numbers, look.search)
    resumed: set[str] = set()
    if only is None:
        for earlier, requests in _going_on(ledger, look, now):
            if earlier.dataset not in untold:
                acts.go_on(earlier, requests)
                resumed.add(earlier.dataset)
    for step in look.plan.places:
        if step.kind == HOT or step.decision is not Decision.ERASE or step.dataset in untold:
            continue
        if only is not None and step.dataset not in only:
            continue
        left = [each for each in look.open_acts if each.dataset == step.dataset and each.act not in look.paused]
        acts.begin(step, left, free_from=now)
    return acts, resumed


def _going_on(ledger: Ledger, look: ErasureLook, now: datetime) -> Iterator[tuple[OpenErasure, set[str]]]:
    """Acts whose readers are done, with those of their requests that are open: all of these have to be in this run, for
    what is left of them is looked for by who they are. Not where by now something keeps every erasure from the dataset.
    """
    due = [each for each in look.open_acts if each.act in look.paused and each.free_from <= now]
    with ledger.database.reader() as state:
        known = requests_by_id(state.connection, sorted({request for each in due for request in each.requests}))
    open_ones = {request.id for request in known if request.state in ASKING}
    for each in due:
        going, found = each.requests & open_ones, look.inventory.found(each.dataset)
        if going <= look.people.keys() and found is not None and look.kept(each.dataset) is None:
            yield each, set(going)


def _unacted(look: ErasureLook, going: Sequence[str], at: datetime) -> list[ErasurePlace]:
    """Places that no act works on now, and what could not be reached, for every request that goes on."""
    begun = {(act.dataset, each) for act in look.open_acts if act.act in look.paused for each in act.requests}
    found = [
        _unacted_place(look, step, each, at)
        for step in look.plan.places
        if step.decision in _STATES
        for each in step.requests
        # Where an act of before waits there for readers, what is said of it counts for those whom it is about.
        if step.decision is not Decision.WAIT or (step.dataset, each) not in begun
    ]  # fmt: skip
    said = {(place.request, place.place) for place in found}
    found += [place for place in _stopped(look, at) if (place.request, place.place) not in said]
    found += places_of_copies((each for each in look.plan.copies if not is_planned(each)), at=at)
    # What can be tried again comes first: that a place was not looked at for another reason, too, does not end it.
    for missed in sorted(look.search.not_reachable, key=lambda one: not one.failed):
        state = PlaceState.WAITING if missed.failed else PlaceState.NOT_REACHABLE
        kind = ELSEWHERE if missed.elsewhere or missed.failed else LINEAGE
        found += [
            ErasurePlace(request=each, place=missed.place, kind=kind, state=state, because=missed.because,
                         updated_at=at)
            for each in going
        ]  # fmt: skip
    once: dict[tuple[str, str], ErasurePlace] = {}
    for place in found:
        once.setdefault((place.request, place.place), place)
    return list(once.values())


def _unacted_place(look: ErasureLook, step: PlaceStep, request: str, at: datetime) -> ErasurePlace:
    state, because, until = _STATES[step.decision], step.because, step.until
    if (request, step.dataset) in look.over and step.decision in (Decision.KEEP, Decision.CANNOT):
        state, because, until = PlaceState.REMOVED, "no row of theirs is left there", None
    return ErasurePlace(
        request=request, place=step.dataset, kind=step.kind, state=state, because=because, until=until, updated_at=at
    )


def _stopped(look: ErasureLook, at: datetime) -> Iterator[ErasurePlace]:
    """Acts that were begun and that something keeps from going on: no reader sees these people, but files are there."""
    for act in look.open_acts:
        if act.act in look.paused and (kept := look.kept(act.dataset)) is not None:
            decision, because, until, _ = kept
            for request in sorted(act.requests & look.people.keys()):
                yield ErasurePlace(
                    request=request, place=act.dataset, kind=DATASET, state=_STATES[decision],
                    because=f"{because}; files that were replaced stay", until=until, updated_at=at,
                )  # fmt: skip
