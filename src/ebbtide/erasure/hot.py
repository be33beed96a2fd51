"""Hot tables as places where people lie (spec §4, §6): the columns that tell people apart there, and whose rows are in
which chunk.

A hot table's columns are those that `subjects.yml` names, and those to which lineage leads in its cold table: the
mirror calls them alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from uuid import UUID

from ebbtide.config.hottier import HotTable
from ebbtide.config.subjects import Identities
from ebbtide.erasure.found import DatasetSearch, Held, PersonalRow
from ebbtide.erasure.places import NotReachable, Places
from ebbtide.erasure.plan import FEW_ROWS
from ebbtide.erasure.values import bytes_of, form
from ebbtide.errors import EbbtideError
from ebbtide.hottier.columns import ServerColumn
from ebbtide.hottier.people import LeafRows, Value, Way, can_compare, count_rows, find_rows, refuse_without
from ebbtide.hottier.recycled import LogFacts, log_facts
from ebbtide.hottier.server import connect
from ebbtide.hottier.table import ServerTable, find
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.commitment import Identifier

NOBODY_SAYS = "a hot table: nobody says which of its columns tell people apart (subjects.yml)"
NO_COLUMN = "no value of its type can be compared, or it is no column of the table any more"
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class HotPlace:
    """A hot table, and its columns that carry identities, with their names."""

    table: HotTable
    columns: Mapping[str, tuple[str, ...]]

    @property
    def name(self) -> str:
        return self.table.id

    def ways(self, found: ServerTable, identities: Identities) -> tuple[list[Way], set[NotReachable]]:
        """How people are told apart there, and the columns by which nobody can be."""
        known = {column.name: column for column in found.columns.columns if can_compare(column)}
        missed = {NotReachable(f"{self.name}.{each}", NO_COLUMN) for each in self.columns if each not in known}
        return [
            Way(known[column], name, identities.subjects[name].match)
            for column, names in self.columns.items()
            if column in known
            for name in names
        ], missed


@dataclass(frozen=True, slots=True, repr=False)
class HotSearch:
    """What is in hot tables of each person, by the number that it was asked with. By table: `counts` is how many rows
    one has in which somebody has many, `columns` what it has by now, `logs` what its server says of its log.
    """

    held: Mapping[int, tuple[Held, ...]] = field(default_factory=dict)
    missed: tuple[NotReachable, ...] = ()
    rows: Mapping[int, tuple[PersonalRow, ...]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, tuple[ServerColumn, ...]] = field(default_factory=dict)
    logs: Mapping[str, LogFacts] = field(default_factory=dict)

    def beside(self, search: DatasetSearch) -> DatasetSearch:
        """The search of the lake with this one."""
        numbers = search.held.keys() | self.held.keys()
        return replace(
            search,
            held={n: (*search.held.get(n, ()), *self.held.get(n, ())) for n in sorted(numbers)},
            rows={n: (*search.rows.get(n, ()), *self.rows.get(n, ())) for n in sorted(numbers)},
            not_reachable=tuple(sorted({*search.not_reachable, *self.missed})),
        )

    def first(self, people: int) -> HotSearch:
        """The same of so many people alone."""
        return replace(
            self,
            held={number: held for number, held in self.held.items() if number < people},
            rows={number: rows for number, rows in self.rows.items() if number < people},
        )

    def people_in(self, table: str) -> set[int]:
        return {n for n, some in self.held.items() if any(each.dataset == table for each in some)}


def hot_places(
    tables: Iterable[HotTable], names: Collection[str], identities: Identities, places: Places, inventory: Inventory
) -> tuple[list[HotPlace], list[NotReachable]]:
    """The tables with columns that carry one of these identities, and those of which nobody can tell."""
    found: list[HotPlace] = []
    missed: list[NotReachable] = []
    for table in tables:
        columns = {column: set(some) for column, some in places.columns.get(table.cold or "", {}).items()}
        for name in names:
            for place in identities.subjects[name].hot:
                if place.table_id == table.id:
                    columns.setdefault(place.column, set()).add(name)
        if columns:
            found.append(HotPlace(table, {column: tuple(sorted(some)) for column, some in sorted(columns.items())}))
        elif not _is_told_of(table, inventory):
            missed.append(NotReachable(table.id, NOBODY_SAYS, elsewhere=True))
    return found, missed


def _is_told_of(table: HotTable, inventory: Inventory) -> bool:
    """Whether lineage knows its columns, from its cold table."""
    entry = inventory.current.entries.get(table.cold or "")
    return entry is not None and entry.error is None


def find_hot(
    places: Iterable[HotPlace],
    people: Sequence[Sequence[Identifier]],
    identities: Identities,
    *,
    with_rows: bool = False,
) -> HotSearch:
    """Ask every server; one that does not answer stops no other."""
    values = values_of(people)
    held: dict[int, list[Held]] = {}
    rows: dict[int, list[PersonalRow]] = {}
    missed: set[NotReachable] = set()
    counts: dict[str, int] = {}
    columns: dict[str, tuple[ServerColumn, ...]] = {}
    logs: dict[str, LogFacts] = {}
    for place in places:
        try:
            with connect(place.table.server) as connection:
                found = find(connection, place.table)
                refuse_without(connection, found, ("SELECT",))
                ways, unknown = place.ways(found, identities)
                hits = find_rows(connection, found, ways, values, with_rows=with_rows)
                if _has_many(hits):
                    counts[place.name] = count_rows(connection, found)
                logs[place.name], columns[place.name] = log_facts(connection), found.columns.columns
        except EbbtideError as error:
            missed.add(NotReachable(place.name, error.message, failed=True))
            continue
        missed |= unknown
        called = {leaf.oid: f"chunk:{leaf.name}" for leaf in found.leaves}
        for hit in hits:
            ref = called.get(hit.leaf, "table")
            held.setdefault(hit.person, []).append(Held(place.name, ref, hit.rows, hit.columns))
            rows.setdefault(hit.person, []).extend(PersonalRow(place.name, (ref,), text) for text in hit.texts)
    return HotSearch(
        {n: tuple(sorted(some, key=lambda each: (each.dataset, each.ref))) for n, some in held.items()},
        tuple(sorted(missed)),
        {n: tuple(some) for n, some in rows.items()},
        counts, columns, logs,
    )  # fmt: skip


def _has_many(hits: Iterable[LeafRows]) -> bool:
    """Whether somebody has so many rows that it is asked how many there are at all."""
    rows: dict[int, int] = {}
    for hit in hits:
        rows[hit.person] = rows.get(hit.person, 0) + hit.rows
    return max(rows.values(), default=0) > FEW_ROWS


def values_of(people: Sequence[Sequence[Identifier]]) -> list[Value]:
    """Every value of every person, as each type of column may have it: as the lake compares its text."""
    return [value for n, person in enumerate(people) for one in person for value in _values(one, n)]


def _values(one: Identifier, person: int) -> Iterable[Value]:
    text = one.value
    raw = [bytes(each) for each in bytes_of(text)]
    yield Value(
        one.type, person, text, _whole(text), _number(text), _day(text), _uuid(text), raw[0]
    )  # fmt: skip
    yield from (Value(one.type, person, raw=more) for more in raw[1:])


def _whole(text: str) -> int | None:
    return int(text) if form("bigint", text) == text else None


def _number(text: str) -> Decimal | None:
    """As a decimal column's text has it: without zeros behind its point."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        return None
    return number if (format(number.normalize(), "f") if number else "0") == text else None


def _day(text: str) -> date | None:
    return date.fromisoformat(text) if form("date", text) == text else None


def _uuid(text: str) -> UUID | None:
    return UUID(text) if form("uuid", text) == text else None
