"""How a plan of an erasure, and what came of one, look to people. Nobody is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebbtide.app.results.erasure import CopyPlan, PlaceMissed
from ebbtide.cli import render
from ebbtide.cli.render import escape
from ebbtide.errors import InputError

if TYPE_CHECKING:
    from ebbtide.app.results.erasure import ErasePlanResult, EraseRunResult, PlacePlan, PlannedEnd

_NOBODY = "nobody is to be erased: no request is open, or what is left of each has its day"


def show_plan(plan: ErasePlanResult) -> None:
    """Requests, then every place with its decision."""
    if not plan.requests:
        render.note(_NOBODY)
        return
    shown = render.table("request", "decision", "because", "gone by (UTC)")
    for each in plan.requests:
        shown.add_row(each.id, each.decision, escape(each.because), _until(each.ends))
    render.rows(shown, "none: no request is open")
    if plan.places:
        shown = render.table(
            "dataset", "decision", "method", ">people", ">files", ">bytes", "versions", "gone by (UTC)", "because"
        )
        for place in plan.places:
            shown.add_row(
                escape(place.dataset), place.decision, place.method, str(len(place.requests)), f"{place.files:,}",
                render.size(place.bytes.read), _fates(place), _until(place.ends), escape(place.because),
            )  # fmt: skip
        render.out().print(shown)
    _missed(plan)
    going = [place for place in plan.places if place.decision == "erase"]
    read, asked = sum(place.bytes.read for place in going), sum(place.store_requests.read for place in going)
    render.note(
        f"{len(plan.places)} datasets hold them; {render.size(read)} to read and to write again, "
        f"{asked:,} requests to the store each way at least"
    )
    render.note(f"plan {plan.digest}")


def _until(ends: PlannedEnd | None) -> str:
    if ends is None:
        return ""
    return ends.at[:16].replace("T", " ") if ends.at is not None else "nobody can tell"


def _fates(place: PlacePlan) -> str:
    fates: dict[str, int] = {}
    for ref in place.refs:
        fates[ref.fate] = fates.get(ref.fate, 0) + 1
    return ", ".join(f"{count} {fate}" for fate, count in sorted(fates.items()))


def place_of(plan: ErasePlanResult, name: str) -> PlacePlan | CopyPlan | PlaceMissed:
    """One place of a plan: a dataset, a declared copy, or what was not looked at."""
    named: tuple[tuple[str, PlacePlan | CopyPlan | PlaceMissed], ...] = (
        *((each.dataset, each) for each in plan.places),
        *((each.copy, each) for each in plan.copies),
        *((each.place, each) for each in plan.not_reachable),
    )
    for known, each in named:
        if known == name:
            return each
    raise InputError(f"{name} holds none of these people", hint="`erase plan` lists the places that do")


def show_place(place: PlacePlan | CopyPlan | PlaceMissed) -> None:
    """One place in full: what is decided and why, ref by ref, what it costs and when it ends."""
    if isinstance(place, PlaceMissed):
        render.out().print(escape(f"{place.place}: not looked at, because {place.because}"), soft_wrap=True)
        return
    until = f", until {place.until}" if place.until else ""
    if isinstance(place, CopyPlan):
        render.out().print(escape(f"{place.copy}: {place.because}{until}"), soft_wrap=True)
        return
    said = f"{place.dataset}: {place.decision} ({place.method}), because {place.because}{until}"
    render.out().print(escape(said), soft_wrap=True)
    shown = render.table("ref", ">rows", ">files", ">bytes", "fate", "because")
    for ref in place.refs:
        shown.add_row(
            escape(ref.ref), f"{ref.rows:,}", f"{ref.files:,}", render.size(ref.bytes), ref.fate,
            escape(ref.because or ""),
        )  # fmt: skip
    render.out().print(shown)
    for waits in place.waits_for:
        render.note(f"waits for {escape(waits)}")
    store = place.store_requests
    render.note(
        f"costs {render.size(place.bytes.read)} read and as much written at most; requests to the store, at least: "
        f"{store.read:,} to read, {store.written:,} to write, {store.deleted:,} to delete"
    )
    render.note(f"gone by {_until(place.ends)}: {escape(place.ends.because)}")


def show_run(done: EraseRunResult, *, dry_run: bool) -> None:
    """A row per dataset, and how far each request is."""
    if not done.plan.requests:
        render.note(_NOBODY)
        return
    if dry_run:
        show_plan(done.plan)
        for each in done.stages:
            render.note(f"{each.dataset}: {'; '.join(each.stages)}")
        render.note("nothing was changed")
        return
    if done.datasets:
        shown = render.table("dataset", "state", ">files gone", ">bytes", "because")
        for row in done.datasets:
            shown.add_row(
                escape(row.dataset), row.state, f"{row.files:,}", render.size(row.bytes), escape(row.because)
            )  # fmt: skip
        render.out().print(shown)
    shown = render.table("request", "state")
    for moved in done.requests:
        shown.add_row(moved.id, moved.state)
    render.out().print(shown)
    for request in done.plan.requests:
        if request.decision != "erase":
            render.note(f"{request.id}: {request.because}")
    _missed(done.plan)
    for name in done.left:
        render.note(f"left: {escape(name)}, which waits for somebody")
    if any(moved.state == "purged" for moved in done.requests):
        render.note("`ebbtide erase verify` looks through every object for what is left")


def _missed(plan: ErasePlanResult) -> None:
    for copy in plan.copies:
        until = f", until {copy.until}" if copy.until else ""
        render.note(f"{copy.kind} {escape(copy.copy)}, {len(copy.requests)} people: {escape(copy.because)}{until}")
    for missed in plan.not_reachable:
        render.note(f"not looked at: {missed.place}: {missed.because}")
