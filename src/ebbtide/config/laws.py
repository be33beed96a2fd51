"""Laws as data: the clock of a request, and where it is written (spec §4). `laws.yml` beside this file ships."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from ebbtide.config import yaml
from ebbtide.config.policies import Days, Hours
from ebbtide.errors import InputError
from ebbtide.model.durations import Duration, add

SHIPPED = Path(__file__).with_name("laws.yml")
FILE = "laws.yml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """One law. `due` and `extended` both count from the receipt; without `extended` there is no extension."""

    name: str
    title: str
    due: Duration
    source: str
    counsel: str
    extended: Duration | None = None
    notice: Duration | None = None
    minimum_retention: Duration | None = None

    def due_at(self, received_at: datetime) -> datetime:
        """When a request must be done: calendar-true, a month from 31 January ends on 28 February."""
        return add(received_at, self.due)

    def latest(self, received_at: datetime) -> datetime:
        """When it must be done at the latest, every extension included."""
        return add(received_at, self.extended or self.due)


class _Law(BaseModel):
    """A law, by its name."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    title: str = Field(min_length=1, description="what it is called in full")
    due: Days = Field(description="when a request must be done, counted from its receipt")
    source: str = Field(min_length=1, description="where that is written")
    counsel: str = Field(min_length=1, description="what a lawyer should look at")
    extended: Days | None = Field(None, description="when it must be done where it was extended, counted likewise")
    notice: Hours | None = Field(None, description="how long before the data goes a person is told")
    minimum_retention: Days | None = Field(None, description="how long data and logs of a processing stay after it")


class _LawFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    laws: dict[str, _Law]


def load_laws(root: Path | None = None) -> Mapping[str, Law]:
    """The laws that ship, and those of a project, which replace them by name."""
    files = [SHIPPED] + ([root / FILE] if root is not None and (root / FILE).exists() else [])
    return {name: law for path in files for name, law in _read(path)}


def law_of(root: Path | None, name: str) -> Law:
    """One law by its name."""
    laws = load_laws(root)
    if name not in laws:
        raise InputError(f"no law {name!r}", hint=f"it is one of {', '.join(sorted(laws))}; more in {FILE}")
    return laws[name]


def _read(path: Path) -> list[tuple[str, Law]]:
    file, where = yaml.load_with_places(path, _LawFile)
    found = []
    for name, said in file.laws.items():
        law = Law(name=name, **{key: getattr(said, key) for key in _Law.model_fields})
        if law.due.count <= 0 or (law.extended is not None and add(_ANY, law.extended) <= add(_ANY, law.due)):
            raise InputError(
                f"the law {name} is due before it is received, or extended to an earlier day",
                where=where(("laws", name)),
                hint="`due` and `extended` both count from the receipt",
            )
        found.append((name, law))
    return found


_ANY = datetime(2001, 1, 1)  # noqa: DTZ001 - only lengths are compared
