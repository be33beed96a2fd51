"""From counts per part of a dataset to counts per branch, tag and version."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ebbtide.erasure.places import NotReachable
from ebbtide.formats.versions import Retained

_ORDER = ("branch", "tag", "version")


@dataclass(frozen=True, slots=True)
class Held:
    """Rows of one person in one branch, tag or version of a dataset, and the columns in which they were found."""

    dataset: str
    ref: str
    rows: int
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class PersonalRow:
    """One row of a person's as JSON, with every branch, tag and version that has it."""

    dataset: str
    refs: tuple[str, ...]
    row: str

    def line(self) -> str:
        """As it stands in the file of an access request."""
        said = {"dataset": self.dataset, "refs": list(self.refs), "row": json.loads(self.row)}
        return json.dumps(said, ensure_ascii=False)


@dataclass(frozen=True, slots=True, repr=False)
class TableHits:
    """What a dataset holds of all people together. `parts` are its parts (data files, or whole versions where only the
    format's reader can merge one) in which somebody was found, each with the people.
    """

    retained: Retained
    parts: Mapping[str, frozenset[int]]

    @property
    def files(self) -> frozenset[str]:
        """The data files among them."""
        return frozenset(self.parts.keys() & self.retained.data.keys())

    @property
    def versions(self) -> frozenset[str]:
        """The versions among them."""
        return frozenset(self.parts.keys() & set(self.retained.ids))

    @property
    def people(self) -> frozenset[int]:
        return frozenset[int]().union(*self.parts.values())


@dataclass(frozen=True, slots=True, repr=False)
class DatasetSearch:
    """What was found of each person, by the number that it was asked with, and what was not looked at. `tables` says
    the same by dataset.
    """

    held: Mapping[int, tuple[Held, ...]]
    not_reachable: tuple[NotReachable, ...]
    rows: Mapping[int, tuple[PersonalRow, ...]] = field(default_factory=dict)
    tables: Mapping[str, TableHits] = field(default_factory=dict)

    def first(self, people: int) -> DatasetSearch:
        """The same of so many people alone."""
        found = {name: {p: {n for n in who if n < people} for p, who in hits.parts.items()} for name, hits in
                 self.tables.items()}  # fmt: skip
        return replace(
            self,
            held={number: held for number, held in self.held.items() if number < people},
            rows={number: rows for number, rows in self.rows.items() if number < people},
            tables={
                name: TableHits(self.tables[name].retained, {p: frozenset(who) for p, who in parts.items() if who})
                for name, parts in found.items()
                if any(parts.values())
            },
        )


@dataclass(frozen=True, slots=True, repr=False)
class Hit:
    """Rows of one person in one part of a dataset. `texts` are the rows themselves, where they are asked for."""

    person: int
    part: str
    rows: int
    columns: frozenset[str]
    texts: tuple[str, ...] = ()


@dataclass(slots=True)
class PartsLook:
    """Parts that were looked through together. `held` says which versions hold each of them so; of a part that was read
    `again`, with what hides rows of it, that reading counts for its versions.
    """

    held: Mapping[str, int]
    again: bool
    hits: list[Hit] = field(default_factory=list)


def held_by_ref(retained: Retained, looked: Iterable[PartsLook]) -> dict[int, list[Held]]:
    """For each person the rows in every branch and tag, and in versions that are neither's."""
    refs, dataset = _refs(retained), str(retained.found.id)
    found: dict[int, list[Held]] = {}
    for person, position, hits in _by_version(retained, list(looked)):
        columns = frozenset[str]().union(*(hit.columns for hit in hits))
        for ref in refs[position]:
            rows = sum(hit.rows for hit in hits)
            found.setdefault(person, []).append(Held(dataset, ref, rows, tuple(sorted(columns))))
    return {person: sorted(each, key=lambda one: _in_order(one.ref)) for person, each in found.items()}


def hits_of(retained: Retained, looked: Iterable[PartsLook]) -> TableHits | None:
    """The parts in which anybody was found; None where nobody was."""
    parts: dict[str, frozenset[int]] = {}
    for each in looked:
        for hit in each.hits:
            parts[hit.part] = parts.get(hit.part, frozenset()) | {hit.person}
    return TableHits(retained, parts) if parts else None


def rows_by_ref(retained: Retained, looked: Iterable[PartsLook]) -> dict[int, list[PersonalRow]]:
    """Each row once. Of rows that are equal there are as many as in the version that has most of them."""
    refs, dataset = _refs(retained), str(retained.found.id)
    where: dict[int, dict[tuple[str, int], list[str]]] = {}
    for person, position, hits in _by_version(retained, list(looked)):
        texts = Counter(text for hit in hits for text in hit.texts)
        for text, times in texts.items():
            for n in range(times):
                where.setdefault(person, {}).setdefault((text, n), []).extend(refs[position])
    return {
        person: [PersonalRow(dataset, tuple(sorted(at, key=_in_order)), text) for (text, _), at in rows.items()]
        for person, rows in where.items()
    }


def _by_version(retained: Retained, looked: list[PartsLook]) -> Iterator[tuple[int, int, list[Hit]]]:
    """Person, version, and what counts there."""
    seen: dict[str, int] = {}
    for each in looked:
        if each.again:
            for part, bits in each.held.items():
                seen[part] = seen.get(part, 0) | bits
    found: dict[tuple[int, int], list[Hit]] = {}
    for each in looked:
        for hit in each.hits:
            bits = each.held.get(hit.part, 0) & retained.readable
            bits = bits if each.again else bits & ~seen.get(hit.part, 0)
            for position in retained.positions(bits):
                found.setdefault((hit.person, position), []).append(hit)
    for (person, position), hits in found.items():
        yield person, position, hits


def _refs(retained: Retained) -> list[list[str]]:
    """What each version is called: by its branches and tags, else by its id."""
    named: dict[int, list[str]] = {}
    for ref, bits in retained.heads.items():
        for position in retained.positions(bits):
            named.setdefault(position, []).append(ref)
    return [named.get(n) or [f"version:{id_}"] for n, id_ in enumerate(retained.ids)]


def _in_order(ref: str) -> tuple[int, str]:
    return _ORDER.index(ref.partition(":")[0]), ref
