"""`copies/*.yml`: what else holds rows of the catalogs' tables, and no table format knows of (spec §4).

A clone that a catalog lists is a dataset like any other, and only its source is to be named. Everything else cannot be
reached from here: it ends by itself within what it `keeps`, or a person has to see to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ebbtide.config import yaml
from ebbtide.config.policies import Days
from ebbtide.errors import InputError
from ebbtide.model.durations import Duration
from ebbtide.model.ids import DatasetId

Kind = Literal["clone", "archive", "replica", "backup", "topic", "recipient"]


@dataclass(frozen=True, slots=True)
class Copy:
    """Something that holds rows of the datasets that `of` names (patterns as in policies).

    `keeps` is how long a row stays there after it left its source; None where nobody says. `dataset` is a clone's own.
    """

    name: str
    kind: Kind
    where: str
    of: tuple[str, ...]
    keeps: Duration | None = None
    dataset: str | None = None


class _Copy(BaseModel):
    """Something else that holds rows of tables."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    name: str = Field(min_length=1, description="its name")
    kind: Kind = Field(description="what it is")
    of: tuple[str, ...] = Field(min_length=1, description="the tables whose rows it holds, as patterns")
    keeps: Days | None = Field(None, description="how long a row stays there after it left its table")
    dataset: str | None = Field(None, description="of a clone: its own name, `catalog.namespace.table`")


class _CopyFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    copies: tuple[_Copy, ...]


def load_copies(root: Path) -> tuple[Copy, ...]:
    """Every copy that a project declares, in order of its files."""
    copies: dict[str, Copy] = {}
    for path in yaml.files_in(root / "copies"):
        file, where = yaml.load_with_places(path, _CopyFile)
        for n, said in enumerate(file.copies):
            here = where(("copies", n))
            if said.name in copies:
                first = copies[said.name].where
                raise InputError(f"the copy {said.name!r} stands twice", where=here, hint=f"see {first}")
            copies[said.name] = _checked(said, here)
    return tuple(copies.values())


def _checked(said: _Copy, here: str) -> Copy:
    if (said.kind == "clone") != (said.dataset is not None):
        hint = "a clone names its own table, as in dataset: dev.app.users; no other kind has one"
        raise InputError(f"{said.name}: {said.kind} and `dataset` do not fit", where=here, hint=hint)
    if said.dataset is not None:
        DatasetId.parse(said.dataset)
        if said.keeps is not None:
            raise InputError(
                f"{said.name}: `keeps` of a clone", where=here, hint="it is erased itself: take `keeps` out"
            )
    if said.keeps is not None and said.keeps.count <= 0:
        raise InputError(f"{said.name}: it keeps nothing", where=here, hint="say how long, as in keeps: 35d")
    return Copy(said.name, said.kind, here, said.of, said.keeps, said.dataset)
