"""`subjects.yml`: what tells people apart, where it stands, which tables know one identifier by another, and how one
knows that somebody left (spec §3, §4).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field

from ebbtide.config import yaml
from ebbtide.config.hottier import colds_of_hot_tables
from ebbtide.config.policies import Days, Hours
from ebbtide.errors import InputError
from ebbtide.model.durations import Duration
from ebbtide.model.ids import DatasetId, written

Match = Literal["exact", "casefold", "normalised-email"]
"""How values of an identity are compared: as they stand, in any case, or without the space around them as well."""

NOTICE = Duration(14, "d")
"""How long a request for somebody who left is pending where nobody says."""


@dataclass(frozen=True, slots=True)
class IdentityColumn:
    """A column of a table, written `catalog.namespace.table.column`; a dot inside a name is written %2E."""

    table_id: str
    column: str

    def __str__(self) -> str:
        return f"{self.table_id}.{self.column}"


@dataclass(frozen=True, slots=True)
class Subject:
    """One kind of identifier. `left_at` is NULL for who is still here; its table has the identity in `key`.

    `gone_within` is None where a promise says it. `hot` are columns of hot tables, by the ids of these, and `mirrored`
    the same columns of their cold tables, which may not be there yet.
    """

    name: str
    where: str
    columns: tuple[IdentityColumn, ...]
    left_at: IdentityColumn | None = None
    key: IdentityColumn | None = None
    notice_before: Duration = NOTICE
    gone_within: Duration | None = None
    match: Match = "exact"
    hot: tuple[IdentityColumn, ...] = ()
    mirrored: tuple[IdentityColumn, ...] = ()

    def in_lake(self, there: Mapping[str, Collection[str]]) -> tuple[IdentityColumn, ...]:
        """Its columns in the lake, `there` being the columns of all tables; those that a mirror makes, once it did."""
        made = (each for each in self.mirrored if each.column in there.get(each.table_id, ()))
        return tuple(dict.fromkeys((*self.columns, *made)))


@dataclass(frozen=True, slots=True)
class IdentityTable:
    """A table that knows one identifier of a person by another: from the identity `key`, in any of the columns `by`, to
    each of `gives`.
    """

    table_id: str
    where: str
    key: str
    by: tuple[IdentityColumn, ...]
    gives: Mapping[str, IdentityColumn]


@dataclass(frozen=True, slots=True)
class Identities:
    """All of `subjects.yml`."""

    subjects: Mapping[str, Subject] = field(default_factory=dict)
    tables: tuple[IdentityTable, ...] = ()


class _Subject(BaseModel):
    """One kind of identifier, by its name."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    columns: tuple[str, ...] = Field(
        min_length=1,
        description="where it stands: `catalog.namespace.table.column`, or `schema.table.column` of a hot table",
    )
    left_at: str | None = Field(None, description="the column that says when somebody left; NULL who is still here")
    notice_before: Hours = Field(NOTICE, description="how long a request for somebody who left waits")
    gone_within: Days | None = Field(None, description="how long after they left everything has to be gone")
    match: Match = Field("exact", description="how values are compared")


class _IdentityTable(BaseModel):
    """A table that knows one identifier by another."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    table: str = Field(description="`catalog.namespace.table`")
    key: str = Field(description="the identity that one looks up by")
    gives: dict[str, str] = Field(min_length=1, description="the column of each identity that it gives")


class _SubjectFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    subjects: dict[str, _Subject]
    identities: tuple[_IdentityTable, ...] = ()


def load_subjects(root: Path) -> Mapping[str, Subject]:
    """The kinds of identifiers of a project; none where its folder has no `subjects.yml`."""
    return load_identities(root).subjects


def load_identities(root: Path) -> Identities:
    """Read `subjects.yml` of a project's folder; nothing where there is no such file.

    A column from which an identity table gives an identifier is one of that identity's columns.
    """
    path = root / "subjects.yml"
    if not path.exists():
        return Identities()
    file, where = yaml.load_with_places(path, _SubjectFile)
    subjects = _subjects(file, where, colds_of_hot_tables(root))
    tables = tuple(
        _identity_table(said, subjects, lambda *key, n=n: where(("identities", n, *key)))
        for n, said in enumerate(file.identities)
    )
    for table in tables:
        for name, place in table.gives.items():
            known = subjects[name]
            if place not in known.columns:
                subjects[name] = replace(known, columns=(*known.columns, place))
    return Identities(subjects, tables)


def _subjects(
    file: _SubjectFile, where: Callable[[yaml.Place], str], colds: Mapping[str, str | None]
) -> dict[str, Subject]:
    found = {}
    for name, said in file.subjects.items():
        here: yaml.Place = ("subjects", name)
        if not name.isascii() or '"' in name or not name:
            raise InputError(f"{name!r} cannot name a subject", where=where(here), hint="ASCII text such as user_id")
        columns, hot, mirrored = list[IdentityColumn](), list[IdentityColumn](), list[IdentityColumn]()
        for n, text in enumerate(said.columns):
            if (place := _hot_place(text, colds, where((*here, "columns", n)))) is None:
                columns.append(_place(text, where((*here, "columns", n)), hint=_COLUMN_OR_HOT))
                continue
            hot.append(place)
            if (cold := colds[place.table_id]) is not None:
                mirrored.append(IdentityColumn(cold, place.column))
        left_at = _place(said.left_at, where((*here, "left_at"))) if said.left_at is not None else None
        key = _key(tuple(columns), left_at, where((*here, "left_at"))) if left_at else None
        found[name] = Subject(
            name, where(here), tuple(columns), left_at, key, said.notice_before, said.gone_within, said.match,
            tuple(hot), tuple(mirrored),
        )  # fmt: skip
    return found


def _identity_table(said: _IdentityTable, subjects: Mapping[str, Subject], where: Callable[..., str]) -> IdentityTable:
    for name, place in ((said.key, where("key")), *((name, where("gives", name)) for name in said.gives)):
        if name not in subjects:
            raise InputError(
                f"{name!r} is no identity", where=place, hint=yaml.nearest(name, [str(each) for each in subjects])
            )
    if said.key in said.gives:
        raise InputError(
            f"{said.key!r} is the key, and is given, too", where=where("gives", said.key), hint="take it out"
        )
    table_id = _place(f"{said.table}.{said.key}", where("table")).table_id
    keys = tuple(place for place in subjects[said.key].columns if place.table_id == table_id)
    if not keys:
        raise InputError(
            f"{table_id} is known by {said.key}, and none of its columns is that identity",
            where=where("key"),
            hint=f"name a column of {table_id} under `columns:` of {said.key}",
        )
    gives = {name: IdentityColumn(table_id, unquote(column)) for name, column in said.gives.items()}
    return IdentityTable(table_id, where(), said.key, keys, gives)


_COLUMN = "write catalog.namespace.table.column"
_COLUMN_OR_HOT = f"{_COLUMN}, or schema.table.column of a table of hottier/*.yml"


def _place(text: str, where: str, *, hint: str = _COLUMN) -> IdentityColumn:
    table, _, column = text.rpartition(".")
    try:
        table_id = str(DatasetId.parse(table))
    except InputError:
        table_id = ""
    if not table_id or not column:
        raise InputError(f"not a column: {text!r}", where=where, hint=hint)
    return IdentityColumn(table_id, unquote(column))


def _hot_place(text: str, colds: Mapping[str, str | None], where: str) -> IdentityColumn | None:
    """A column of a hot table, `schema.table.column`; None where it is written otherwise."""
    table, _, column = text.rpartition(".")
    if not column or table.count(".") != 1:
        return None
    if (table_id := written(table)) not in colds:
        raise InputError(f"not a column: {text!r}", where=where, hint=_COLUMN_OR_HOT)
    return IdentityColumn(table_id, unquote(column))


def _key(columns: tuple[IdentityColumn, ...], left_at: IdentityColumn, where: str) -> IdentityColumn:
    keys = [place for place in columns if place.table_id == left_at.table_id]
    if len(keys) != 1:
        what = "none" if not keys else "several"
        raise InputError(
            f"{left_at.table_id} says who left, and {what} of its columns is the identity",
            where=where,
            hint=f"name one column of {left_at.table_id} under `columns:`",
        )
    return keys[0]
