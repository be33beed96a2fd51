"""How a plan of an erasure, and what came of one, look to people. Nobody is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebbtide.cli import render
from ebbtide.cli.render import escape
from ebbtide.errors import InputError

if TYPE_CHECKING:
    from ebbtide.app.results.erasure import ErasePlanResult, EraseRunResult, PlacePlan

_NOBODY = "nobody is to be erased: no request is open, or what is left of each has its day"


def show_plan(plan: ErasePlanResult, dataset: str | None = None) -> None:
    """Requests, then every place with its decision; one dataset in full where it is asked for."""
    if dataset is not None:
        found = next((place for place in plan.places if place.dataset == dataset), None)
        if found is None:
            raise InputError(f"{dataset} holds none of these people", hint="`erase plan` lists the datasets that do")
        _explain(found)
        return
    if not plan.requests:
        render.note(_NOBODY)
        return
    shown = render.table("request", "decision", "because")
    for each in plan.requests:
        shown.add_row(each.id, each.decision, escape(each.because))
    render.rows(shown, "none: no request is open")
    if plan.places:
        shown = render.table("dataset", "decision", "method", ">people", ">files", ">bytes", "versions", "because")
        for place in plan.places:
            shown.add_row(
                escape(place.dataset), place.decision, place.method, str(len(place.requests)), f"{place.files:,}",
                render.size(place.bytes.read), _fates(place), escape(place.because),
            )  # fmt: skip
        render.out().print(shown)
    _missed(plan)
    read = sum(place.bytes.read for place in plan.places if place.decision == "erase")
    render.note(f"{len(plan.places)} datasets hold them; {render.size(read)} to read and to write again")
    render.note(f"plan {plan.digest}")


def _fates(place: PlacePlan) -> str:
    fates: dict[str, int] = {}
    for ref in place.refs:
        fates[ref.fate] = fates.get(ref.fate, 0) + 1
    return ", ".join(f"{count} {fate}" for fate, count in sorted(fates.items()))


def _explain(place: PlacePlan) -> None:
    until = f", until {place.until}" if place.until else ""
    said = f"{place.dataset}: {place.decision} ({place.method}), because {place.because}{until}"
    render.out().print(escape(said), soft_wrap=True)
    shown = render.table("ref", ">rows", "fate", "because")
    for ref in place.refs:
        shown.add_row(escape(ref.ref), f"{ref.rows:,}", ref.fate, escape(ref.because or ""))
    render.out().print(shown)
    for waits in place.waits_for:
        render.note(f"waits for {escape(waits)}")


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
