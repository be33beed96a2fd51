"""Who a request is about: identities of the project with their types, and people as somebody writes them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from sys import intern
from typing import IO

from ebbtide.config.subjects import Identities, IdentityColumn, Subject
from ebbtide.config.yaml import nearest
from ebbtide.erasure.values import DeclaredIdentity, canonical, types_in
from ebbtide.errors import InputError
from ebbtide.governance.carriers import enclosing
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.commitment import Identifier

_LONGEST = 1 << 20
_NO_TEXT = re.compile("[\ud800-\udfff]")
_FILE_HINT = "write CSV with a line of identities first, or a JSON object a line"


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A line of a file of people from which nothing was filed. It never says what stood there."""

    line: int
    because: str
    hint: str | None


def declared_identities(identities: Identities, inventory: Inventory) -> Mapping[str, DeclaredIdentity]:
    """Each identity with the types of its own columns, as the last scan saw them."""
    if not identities.subjects:
        raise InputError(
            "nothing tells people apart", hint="write `subjects: {user_id: {columns: […]}}` into subjects.yml"
        )
    types, former = column_types(inventory), inventory.former_names
    return {name: _declared(subject, types, former) for name, subject in identities.subjects.items()}


def _declared(subject: Subject, types: Mapping[str, Mapping[str, str]], former: Collection[str]) -> DeclaredIdentity:
    own, around = set[str](), set[str]()
    places = subject.in_lake(types)
    for place in places:
        among, is_nested = _types_of(place, types, former, subject.where)
        (around if is_nested else own).update(among)
    more = any(place.table_id in former or types.get(place.table_id) == {} for place in places)
    more = more or not places  # it stands in hot tables alone: their types are their servers' to say
    return DeclaredIdentity(subject, frozenset(own), frozenset(around), more)


def column_types(inventory: Inventory) -> Mapping[str, Mapping[str, str]]:
    """The columns of every table with their types, as its format spells them."""
    found: dict[str, dict[str, str]] = {table_id: {} for table_id in inventory.current.entries}
    rows = inventory.table("columns").select(["table_id", "column_id", "type"])
    for table_id, name, type_ in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        found[table_id][name] = type_
    return found


def _types_of(
    place: IdentityColumn, types: Mapping[str, Mapping[str, str]], former: Collection[str], where: str
) -> tuple[frozenset[str], bool]:
    """The types of a declared column, or those inside of the nested one that it is, or lies in."""
    if place.table_id in former:  # it was dropped: what its other columns hold is asked for as before
        return frozenset(), False
    if place.table_id not in types:
        raise InputError(f"no catalog has {place.table_id}", where=where, hint=nearest(place.table_id, list(types)))
    known = types[place.table_id]
    if not known:  # it could never be read: whatever it has, nothing is known of it
        return frozenset(), False
    column = enclosing(place.column, known)
    if column is None:
        raise InputError(
            f"{place.table_id} has no column {place.column!r}", where=where, hint=nearest(place.column, list(known))
        )
    # What lies around an identity, in a list or a map, has other values, too.
    return types_in(known[column]), column != place.column or "<" in known[column]


def person_of(values: Iterable[tuple[str, str]], declared: Mapping[str, DeclaredIdentity]) -> tuple[Identifier, ...]:
    """One person, each identifier once, in the order in which they were written."""
    found: dict[Identifier, None] = {}
    for name, text in values:
        if name not in declared:
            raise InputError(f"{shown_name(name)} is no identity", hint=nearest(name, list(declared)))
        found[Identifier(name, canonical(declared[name], text))] = None
    if not found:
        raise InputError("nobody is named", hint="write identity=value, such as user_id=…")
    return tuple(found)


def shown_name(name: str) -> str:
    """An unknown name, unless it looks like a value: whoever forgets the name writes the value there."""
    return repr(name) if name.isascii() and name.replace("_", "").isalpha() and len(name) <= 30 else "what was written"


class PeopleFile:
    """Many people: CSV with the identities in its first line, or a JSON object a line. `bad` fills while it is read."""

    def __init__(self, path: Path, declared: Mapping[str, DeclaredIdentity]) -> None:
        self.path, self.declared = path, declared
        self.bad: list[RefusedLine] = []

    def people(self) -> Iterator[tuple[Identifier, ...]]:
        """Everyone who can be read, as a line of the file says; never all of them in memory."""
        try:
            with self.path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
                first = file.readline(_LONGEST)
                file.seek(0)
                lines = _json_lines(file) if first.lstrip().startswith("{") else self._csv_lines(file)
                for number, found in lines:
                    try:
                        if isinstance(found, InputError):
                            raise found
                        yield person_of(found, self.declared)
                    except InputError as error:
                        # A million of them may be bad in the same way.
                        self.bad.append(RefusedLine(number, intern(error.message), error.hint and intern(error.hint)))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(self.path), hint=_FILE_HINT) from None

    def _csv_lines(self, file: IO[str]) -> Iterator[tuple[int, Sequence[tuple[str, str]] | InputError]]:
        names = [name.strip() for name in _cells(file.readline(_LONGEST)) or []]
        if not names:
            raise InputError("nobody is named", where=f"{self.path}:1", hint=_FILE_HINT)
        for name in names:
            if name not in self.declared:
                raise InputError(
                    f"{shown_name(name)} is no identity",
                    where=f"{self.path}:1",
                    hint=f"the first line names identities; {nearest(name, list(self.declared))}",
                )
        for number, line in _lines_of(file, 2):
            row = _cells(line) if isinstance(line, str) else None
            if isinstance(line, InputError):
                yield number, line
            elif row is None:
                yield number, InputError("not CSV", hint="close the quotes that were left open")
            elif len(row) != len(names):
                hint = "quote a value with a comma in it"
                yield number, InputError(f"{len(row)} values, and the first line names {len(names)}", hint=hint)
            else:  # an identity that this person lacks is left empty
                yield number, [(name, value) for name, value in zip(names, row, strict=True) if value.strip()]


def _lines_of(file: IO[str], start: int) -> Iterator[tuple[int, str | InputError]]:
    """The lines that are not empty, with their numbers, none of them held that is longer than a person's can be."""
    for number in count(start):
        line = file.readline(_LONGEST)
        if not line:
            return
        if len(line) == _LONGEST and not line.endswith("\n"):
            while (rest := file.readline(_LONGEST)) and not rest.endswith("\n"):
                pass
            yield number, InputError(f"longer than {_LONGEST >> 10} KiB", hint="write one person a line")
        elif not line.isascii() and _NO_TEXT.search(line):
            yield number, InputError("not text in UTF-8", hint="save the file as UTF-8")
        elif line.strip():
            yield number, line


def _cells(line: str) -> list[str] | None:
    """One line of CSV by itself: quotes that nobody closes end with their line. None where it is not CSV."""
    try:
        return next(csv.reader([line], strict=True), [])
    except csv.Error:
        return None


def _json_lines(file: IO[str]) -> Iterator[tuple[int, Sequence[tuple[str, str]] | InputError]]:
    for number, line in _lines_of(file, 1):
        if isinstance(line, InputError):
            yield number, line
            continue
        try:
            said = json.loads(line, object_pairs_hook=_once_each)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            yield (
                number,
                InputError(
                    "not a JSON object that has every key once", hint='write {"user_id": "…"} on a line of its own'
                ),
            )
            continue
        yield number, _pairs_in(said)


def _once_each(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """A parser would keep the last of two values, and nobody would look for the first."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _pairs_in(said: Mapping[str, object]) -> Sequence[tuple[str, str]] | InputError:
    found: list[tuple[str, str]] = []
    for name, value in said.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, bool) or not isinstance(each, str | int):
                return InputError(
                    f"{shown_name(name)} is neither a text nor a whole number", hint="put the value in quotes"
                )
            found.append((name, str(each)))
    return found
