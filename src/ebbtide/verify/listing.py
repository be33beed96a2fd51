"""Everything that lies under the places, each object once, and groups of about the same size to be read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from ebbtide.errors import UnreadableError
from ebbtide.model.paths import is_inside, local_path, normalise
from ebbtide.run import RunContext
from ebbtide.storage.versions import list_versions
from ebbtide.verify.look import LookOrder
from ebbtide.verify.report import SearchPlace, Untold

_GROUP = 512 << 20
"""What a task reads at the most: starting one costs as much as reading some 20 MiB."""
_MOST_OBJECTS = 2000
_AT_LEAST = 8 << 10
"""What opening an object costs, in bytes of reading."""


def list_all(places: Sequence[SearchPlace], run: RunContext) -> tuple[list[LookOrder], list[Untold]]:
    """Every object once, in the order of paths and versions, and what could not be listed."""
    found: dict[tuple[str, str], LookOrder] = {}
    untold: list[Untold] = []
    if not places:
        untold.append(Untold("", "no place was named: nothing was read", is_place=True))
    for place in _outermost(places):
        try:
            for stored in list_versions(place.prefix, place.options):
                found[stored.path, stored.version or ""] = LookOrder(0, stored, place.options)
        except UnreadableError as error:
            untold.append(Untold(place.prefix, error.reason, is_place=True))
        run.advance(0)
    for place in places:
        inside = normalise(place.prefix)
        if local_path(place.prefix) is None and _plain(inside) != _plain(place.prefix):
            untold.append(
                Untold(place.prefix, "its name has empty or dot segments: another prefix was listed", is_place=True)
            )
        if not lies_in(place, (path for path, _ in found)):
            untold.append(Untold(place.prefix, "nothing lies there: nothing was read", is_place=True))
    ordered = sorted(found.items())
    return [LookOrder(n, each.stored, each.options) for n, (_, each) in enumerate(ordered)], untold


def lies_in(place: SearchPlace, paths: Iterable[str]) -> bool:
    """Whether any of these objects lies in a place."""
    inside = normalise(place.prefix)
    return any(is_inside(normalise(path), inside) for path in paths)


def _plain(prefix: str) -> str:
    """A prefix of an object store as it is written: there an empty segment makes another key."""
    return prefix.partition("://")[2].rstrip("/")


def _outermost(places: Sequence[SearchPlace]) -> Iterator[SearchPlace]:
    """Places that lie in no other one: what lies in several is read once."""
    last: str | None = None
    for place in sorted(places, key=lambda each: normalise(each.prefix) + "/"):
        prefix = normalise(place.prefix)
        if last is None or not is_inside(prefix, last):
            yield place
            last = prefix


def groups(listed: Sequence[LookOrder], size: int) -> list[tuple[list[LookOrder], int]]:
    """Groups of about the same size, the largest objects first: what is left at the end is small."""
    most = max(_AT_LEAST, min(_GROUP, size // (4 * (os.cpu_count() or 1))))
    groups: list[tuple[list[LookOrder], int]] = []
    cost = most
    for order in sorted(listed, key=lambda each: (-each.stored.bytes, each.number)):
        weight = max(order.stored.bytes, _AT_LEAST)
        if not groups or cost + weight > most or len(groups[-1][0]) >= _MOST_OBJECTS:
            groups.append(([], 0))
            cost = 0
        group, before = groups[-1]
        group.append(order)
        groups[-1] = (group, before + order.stored.bytes)
        cost += weight
    return groups
