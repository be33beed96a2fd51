"""`subjects.yml`: what tells people apart, where it stands, and how one knows that somebody left (spec §3, §4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field

from ebbtide.config import yaml
from ebbtide.config.policies import Days, Hours
from ebbtide.errors import InputError
from ebbtide.model.durations import Duration
from ebbtide.model.ids import DatasetId

NOTICE = Duration(14, "d")
"""How long a request for somebody who left is pending where nobody says."""


@dataclass(frozen=True, slots=True)
class Place:
    """A column of a table, written `catalog.namespace.table.column`; a dot inside a name is written %2E."""

    table_id: str
    column: str

    def __str__(self) -> str:
        return f"{self.table_id}.{self.column}"


@dataclass(frozen=True, slots=True)
class Subject:
    """One kind of identifier. `left_at` is NULL for who is still here; its table has the identity in `key`.

    `gone_within` is None where a promise says it.
    """

    name: str
    where: str
    columns: tuple[Place, ...]
    left_at: Place | None = None
    key: Place | None = None
    notice_before: Duration = NOTICE
    gone_within: Duration | None = None


class _Subject(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    columns: tuple[str, ...] = Field(min_length=1)
    left_at: str | None = None
    notice_before: Hours = NOTICE
    gone_within: Days | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    subjects: dict[str, _Subject]


def load_subjects(root: Path) -> Mapping[str, Subject]:
    """Read `subjects.yml` of a project's folder; none where there is no such file."""
    path = root / "subjects.yml"
    if not path.exists():
        return {}
    file, where = yaml.load_with_places(path, _File)
    found = {}
    for name, said in file.subjects.items():
        here: yaml.Place = ("subjects", name)
        if not name.isascii() or '"' in name or not name:
            raise InputError(f"{name!r} cannot name a subject", where=where(here), hint="ASCII text such as user_id")
        columns = tuple(_place(text, where((*here, "columns", n))) for n, text in enumerate(said.columns))
        left_at = _place(said.left_at, where((*here, "left_at"))) if said.left_at is not None else None
        key = _key(columns, left_at, where((*here, "left_at"))) if left_at else None
        found[name] = Subject(
            name, where(here), columns, left_at, key, said.notice_before, said.gone_within
        )  # fmt: skip
    return found


def _place(text: str, where: str) -> Place:
    table, _, column = text.rpartition(".")
    try:
        table_id = str(DatasetId.parse(table))
    except InputError:
        table_id = ""
    if not table_id or not column:
        raise InputError(f"not a column: {text!r}", where=where, hint="write catalog.namespace.table.column")
    return Place(table_id, unquote(column))


def _key(columns: tuple[Place, ...], left_at: Place, where: str) -> Place:
    keys = [place for place in columns if place.table_id == left_at.table_id]
    if len(keys) != 1:
        what = "none" if not keys else "several"
        raise InputError(
            f"{left_at.table_id} says who left, and {what} of its columns is the identity",
            where=where,
            hint=f"name one column of {left_at.table_id} under `columns:`",
        )
    return keys[0]
