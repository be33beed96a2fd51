"""The files that cut bounds describe: whether each holds the value of a neighbour, whose bound it may be instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from urllib.parse import unquote

from ebbtide.model.paths import is_inside, normalise
from ebbtide.verify.bounds import Suspicion
from ebbtide.verify.look import LookOrder, ObjectLook
from ebbtide.verify.report import SearchPlace

Asked = tuple[LookOrder, list[Suspicion]]
Read = Callable[[list[tuple[Asked, int]]], list[list[bool | None]]]
"""Reads described files, each with its bytes, and answers for each of its bounds."""
Bounds = dict[tuple[int, Suspicion], bool | None]
"""For each object with a bound that was cut: whether that is explained. None: cannot be told."""


def look_at_bounds(
    listed: Sequence[LookOrder], looked: Iterable[ObjectLook], places: Sequence[SearchPlace], read: Read
) -> Bounds:
    """Whether bounds that were cut are of neighbours, by the files that they describe."""
    there = {normalise(each.stored.path): each for each in listed if each.stored.latest}
    by_name: dict[str, list[LookOrder]] = {}
    for order in there.values():
        by_name.setdefault(order.stored.path.rpartition("/")[2], []).append(order)
    answers: Bounds = {}
    work: dict[int, list[tuple[int, Suspicion]]] = {}
    for each in looked:
        for suspicion in sorted(each.findings.suspicions, key=in_order):
            described = _described(suspicion, listed[each.number], there, by_name)
            if described is None:
                answers[each.number, suspicion] = None if _is_elsewhere(suspicion, places) else False
            else:
                work.setdefault(described.number, []).append((each.number, suspicion))
    parts = [
        ((listed[number], [suspicion for _, suspicion in asked]), listed[number].stored.bytes)
        for number, asked in sorted(work.items())
    ]
    for (_, asked), told in zip(sorted(work.items()), read(parts) if parts else (), strict=True):
        answers.update(zip(asked, told, strict=True))
    return answers


def in_order(suspicion: Suspicion) -> tuple[int, str, str, str]:
    """An order that is the same in every run."""
    return suspicion.needle, suspicion.where, suspicion.describes or "", str(suspicion.start)


def _described(
    suspicion: Suspicion, holder: LookOrder, there: dict[str, LookOrder], by_name: dict[str, list[LookOrder]]
) -> LookOrder | None:
    """The file that a bound is of: named by its whole path, below the table's folder, or by its bare name."""
    if suspicion.describes is None:
        return None
    # Delta names files percent-encoded.
    for named in (suspicion.describes, unquote(suspicion.describes)):
        if normalise(named) in there:
            return there[normalise(named)]
        tail = "/" + named.split("://", 1)[-1].lstrip("/")
        near = [each for each in by_name.get(tail.rpartition("/")[2], ()) if each.stored.path.endswith(tail)]
        if near:
            return max(near, key=lambda each: _shared(holder.stored.path, each.stored.path))
    return None


def _shared(one: str, other: str) -> int:
    """How much of their ways two objects share: of two tables with files of one name, the nearer is meant."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _is_elsewhere(suspicion: Suspicion, places: Sequence[SearchPlace]) -> bool:
    """Whether the file that a bound describes lies where nobody looked."""
    named = suspicion.describes
    if named is None or (not named.startswith(("/", "file:")) and "://" not in named):
        return False
    return not any(is_inside(normalise(named), normalise(place.prefix)) for place in places)
