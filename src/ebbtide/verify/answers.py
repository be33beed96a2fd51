"""What was read becomes the report: people by their ids, paths that hold a value keyed, everything in one order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ebbtide.model.paths import is_inside, normalise
from ebbtide.storage.versions import StoredVersion, VersionKind
from ebbtide.verify.described import Bounds, in_order
from ebbtide.verify.listing import lies_in
from ebbtide.verify.look import LookOrder, ObjectLook
from ebbtide.verify.matcher import UNKNOWN_BYTES, Matcher
from ebbtide.verify.needles import Needle
from ebbtide.verify.read.pieces import Unsearched
from ebbtide.verify.report import FoundValue, ObjectsRead, SearchPlace, SearchReport, Untold, keyed
from ebbtide.verify.roles import standings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPAQUE = ("ebbtide:state", "ebbtide:keys")
"""Stores of our own whose bytes are known: keys, hashes, salts and what is sealed. A short value among them is chance,
and a longer one is searched for there as anywhere.
"""
_NOT_READ = "the file that a bound describes was not read: whose bound it is cannot be told"


def report_of(
    listed: Sequence[LookOrder],
    looked: Sequence[ObjectLook],
    bounds: Bounds,
    untold: Sequence[Untold],
    places: Sequence[SearchPlace],
    spark: Callable[[], SparkSession] | None,
    everyone: Matcher,
    path_key: bytes,
) -> SearchReport:
    needles = everyone.needles
    short = frozenset(needles[n].person for n in everyone.short)
    found: list[tuple[int, int, str, str]] = []
    hide = _Hiding(everyone, path_key)
    doubts = list(hide.untold(untold))
    opaque = [normalise(place.prefix) for place in places if place.name in _OPAQUE]
    for each in looked:
        path = listed[each.number].stored.path
        is_folder = listed[each.number].stored.kind is VersionKind.UNLISTED
        is_opaque = any(is_inside(normalise(path), prefix) for prefix in opaque)
        shown = keyed(path_key, path) if each.hides else path
        found += [(each.number, n, how, hide(where)) for n, how, where in sorted(each.findings.found)]
        people: dict[str, set[str] | None] = {}
        for n, because in sorted(each.findings.untold, key=lambda item: (item[0] is not None, item)):
            if n is None:
                people[because] = None
            elif (known := people.setdefault(because, set())) is not None:
                known.add(needles[n].person)
        for suspicion in sorted(each.findings.suspicions, key=in_order):
            answer = bounds[each.number, suspicion]
            if answer is False:
                found.append((each.number, suspicion.needle, "bound", hide(suspicion.where)))
            elif answer is None and (known := people.setdefault(_NOT_READ, set())) is not None:
                known.add(needles[suspicion.needle].person)
        if is_opaque:
            people.pop(Unsearched.NO_FORMAT, None)
            people.pop(Unsearched.GOES_ON, None)
        elif each.findings.unknown_bytes and short:
            people[UNKNOWN_BYTES] = set(short)
        doubts += [
            Untold(shown, hide(because), None if whose is None else frozenset(whose), is_folder)
            for because, whose in sorted(people.items())
        ]
    return SearchReport(
        files=sum(1 for each in listed if each.stored.kind is VersionKind.OBJECT),
        bytes=sum(each.bytes for each in looked),
        inventory=_inventory(listed, looked, path_key),
        found=_found(found, listed, looked, places, spark, needles, path_key, hide),
        untold=tuple(doubts),
        is_of_nothing=_is_of_nothing(
            [each.stored for each in listed if each.stored.kind is VersionKind.OBJECT], places
        ),
    )


def _found(
    found: Iterable[tuple[int, int, str, str]],
    listed: Sequence[LookOrder],
    looked: Sequence[ObjectLook],
    places: Sequence[SearchPlace],
    spark: Callable[[], SparkSession] | None,
    needles: Sequence[Needle],
    path_key: bytes,
    hide: _Hiding,
) -> tuple[FoundValue, ...]:
    found = list(dict.fromkeys(found))
    objects: dict[StoredVersion, None] = dict.fromkeys(listed[number].stored for number, *_ in found)
    known = standings(objects, places, spark) if objects else {}
    values = []
    for number, n, how, where in found:
        stored = listed[number].stored
        path = keyed(path_key, stored.path) if looked[number].hides else stored.path
        standing = known[stored]
        by = tuple(map(hide, standing.referenced_by))
        dataset = _dataset_around(stored, places)
        values.append(FoundValue(needles[n].person, path, hide(standing.role), how, where, by, dataset))
    return tuple(dict.fromkeys(values))


def _is_of_nothing(objects: Sequence[StoredVersion], places: Sequence[SearchPlace]) -> bool:
    """Whether no object was read of anything that was to be searched: our own stores are always there."""
    datasets = [place for place in places if place.dataset is not None] or places
    return not any(lies_in(place, (each.path for each in objects)) for place in datasets)


def _dataset_around(stored: StoredVersion, places: Sequence[SearchPlace]) -> str | None:
    """The dataset in whose folder an object lies, the innermost where they nest."""
    path = normalise(stored.path)
    around = [(normalise(p.prefix), p.name) for p in places if p.dataset is not None]
    inside = [(len(prefix), name) for prefix, name in around if is_inside(path, prefix)]
    return max(inside)[1] if inside else None


class _Hiding:
    """Words of a report without values of people. Columns, tables, branches and tags may be called by them."""

    def __init__(self, matcher: Matcher, path_key: bytes) -> None:
        self._matcher, self._path_key = matcher, path_key
        self._known: dict[str, str] = {}

    def __call__(self, words: str) -> str:
        if words not in self._known:
            self._known[words] = "(not named: it holds a value)" if self._matcher.holds(words) else words
        return self._known[words]

    def untold(self, untold: Iterable[Untold]) -> Iterator[Untold]:
        for each in untold:
            path = keyed(self._path_key, each.path) if self._matcher.holds(each.path) else each.path
            yield Untold(path, self(each.because), each.people, each.is_place)


def hidden(untold: Iterable[Untold], needles: Sequence[Needle], path_key: bytes) -> tuple[Untold, ...]:
    """What else could not be told, with no value of these people in it."""
    return tuple(_Hiding(Matcher(needles), path_key).untold(untold))


def _inventory(listed: Sequence[LookOrder], looked: Sequence[ObjectLook], path_key: bytes) -> ObjectsRead:
    lines = (
        "\t".join((keyed(path_key, stored.path), stored.version or "-", str(each.bytes), each.checksum))
        for stored, each in zip((each.stored for each in listed), looked, strict=True)
    )
    return ObjectsRead(tuple(sorted(lines)))
