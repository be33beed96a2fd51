"""What an object is to the datasets, and how they still reference it: asked of the datasets only once something of a
person was found. An error is never "nothing references it".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ebbtide.errors import keep_trace
from ebbtide.formats.reading import load_reader
from ebbtide.model.dataset import FileRef, Reading
from ebbtide.model.paths import is_inside, normalise
from ebbtide.storage.versions import StoredVersion, VersionKind
from ebbtide.verify.report import SearchPlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNREFERENCED = "unreferenced"
_NEWEST = 3


@dataclass(frozen=True, slots=True)
class ObjectRole:
    """The role of an object, and who references it. Empty where nobody does."""

    role: str
    referenced_by: tuple[str, ...] = ()


def standings(
    objects: Collection[StoredVersion], places: Sequence[SearchPlace], spark: Callable[[], SparkSession] | None
) -> dict[StoredVersion, ObjectRole]:
    """What each of these objects is."""
    wanted = {normalise(each.path) for each in objects if each.latest and each.kind is VersionKind.OBJECT}
    references: dict[str, list[tuple[str, str]]] = {}
    unread: dict[str, str] = {}
    for place in places:
        if place.dataset is None or not wanted:
            continue
        catalog, handle = place.dataset
        try:
            reading = load_reader(catalog.format).read_files(handle, catalog, spark() if spark else None)
        except Exception as error:
            keep_trace(error)
            unread[normalise(handle.location)] = f"cannot be told: {handle.id} cannot be read"
            continue
        for file in reading.files:
            if file.path in wanted:
                references.setdefault(file.path, []).extend((file.role.value, by) for by in _referenced(file, reading))
    return {each: _standing(each, references, unread, places) for each in objects}


def _standing(
    stored: StoredVersion,
    references: Mapping[str, Sequence[tuple[str, str]]],
    unread: Mapping[str, str],
    places: Sequence[SearchPlace],
) -> ObjectRole:
    if stored.kind is not VersionKind.OBJECT:
        return ObjectRole(stored.kind.value)
    if not stored.latest:
        return ObjectRole("old version of an object")
    path = normalise(stored.path)
    known = references.get(path)
    if known:
        return ObjectRole(known[0][0], tuple(dict.fromkeys(by for _, by in known)))
    # Any dataset that could not be read may reference a file of any other (`add_files`, a shallow clone).
    inside = [because for location, because in unread.items() if is_inside(path, location)]
    if inside or unread:
        return ObjectRole("unknown", tuple(inside or unread.values()))
    own = [place.name for place in places if place.dataset is None and is_inside(path, normalise(place.prefix))]
    ours = next((name for name in own if name.startswith("ebbtide:")), None)
    return ObjectRole(ours or UNREFERENCED)


def _referenced(file: FileRef, reading: Reading) -> Iterator[str]:
    """By which branches, tags and versions; what has no version any more is kept by the format for a while."""
    ids = [each.id for each in reading.transactions]
    held = versions_of(file, reading)
    versions = [id_ for n, id_ in enumerate(ids) if held is not None and held >> n & 1]
    refs = [each for each in reading.refs if each.head in versions or (file.live and (each.main or held is None))]
    yield from (f"{reading.id} {each.kind.value}:{each.name}" for each in refs)
    others = [id_ for id_ in reversed(versions) if id_ not in {each.head for each in refs}]
    yield from (f"{reading.id} version:{id_}" for id_ in others[:_NEWEST])
    if len(others) > _NEWEST:
        yield f"{reading.id} and {len(others) - _NEWEST} more versions"
    if not refs and not others:
        yield f"{reading.id} {'head' if file.live else 'history'}"


def versions_of(file: FileRef, reading: Reading) -> int | None:
    """Which transactions' versions reference the file, as in `FileRef.versions`; None where that is not known."""
    if file.versions is not None or not file.removed_by or len(reading.refs) != 1:
        return file.versions
    place = {each.id: n for n, each in enumerate(reading.transactions)}
    first = place.get(file.first_transaction or "", 0)
    last = min(place.get(id_, 0) for id_ in file.removed_by)
    return sum(1 << n for n in range(first, last))
