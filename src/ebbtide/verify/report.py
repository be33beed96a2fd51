"""What a search is asked, and what it says. No value of a person stands in a report: paths that hold one are keyed."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ebbtide.model.dataset import Catalog, TableHandle


class Grade(StrEnum):
    """What was shown of one person: every byte was read and is clean; clean, but something could not be told; found."""

    A = "A"
    B = "B"
    F = "F"


@dataclass(frozen=True, slots=True)
class SearchPlace:
    """A prefix that is listed whole, with the options of its store: a dataset's location, a warehouse, one of ours."""

    name: str
    prefix: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    dataset: tuple[Catalog, TableHandle] | None = None


@dataclass(frozen=True, slots=True)
class FoundValue:
    """A value of this person stands there: `how` is row, bound, path or bytes. `referenced_by` is empty where nothing
    references the object any more. `dataset` is the one in whose folder the object lies, where it lies in one: it is
    for those who settle, and shown nowhere, as a table may be called like a person.
    """

    person: str
    path: str
    role: str
    how: str
    where: str
    referenced_by: tuple[str, ...]
    dataset: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Untold:
    """Something of an object could not be told. `people` is None where that is so of everybody. `is_place` says that it
    is no object, but all that may lie in a place.
    """

    path: str
    because: str
    people: frozenset[str] | None = None
    is_place: bool = False


@dataclass(frozen=True, slots=True)
class ObjectsRead:
    """What was read, one line an object: its keyed path, version, size and checksum, with a tab between; sorted."""

    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.text.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class SearchReport:
    """What was read, and what of whom stands where."""

    files: int
    bytes: int
    inventory: ObjectsRead
    found: tuple[FoundValue, ...]
    untold: tuple[Untold, ...]
    is_of_nothing: bool = False
    """Nothing was read: no object at all, or none of any dataset that was to be searched."""

    @property
    def cannot_tell(self) -> tuple[tuple[str, str], ...]:
        """What could not be told of somebody: paths with reasons."""
        return tuple(dict.fromkeys((each.path, each.because) for each in self.untold))

    def cannot_tell_of(self, person: str) -> tuple[tuple[str, str], ...]:
        """What could not be told of this person."""
        return tuple(
            (each.path, each.because) for each in self.untold if each.people is None or person in each.people
        )  # fmt: skip

    def found_of(self, person: str) -> tuple[FoundValue, ...]:
        return tuple(each for each in self.found if each.person == person)

    def grade(self, person: str) -> Grade:
        if any(each.person == person for each in self.found):
            return Grade.F
        return Grade.B if self.cannot_tell_of(person) else Grade.A


def keyed(path_key: bytes, path: str) -> str:
    """A path that says nothing to whoever lacks the key, and is the same for whoever has it."""
    return f"hmac-sha256:{hmac.new(path_key, path.encode('utf-8', 'surrogateescape'), hashlib.sha256).hexdigest()}"
