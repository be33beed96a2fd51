"""`classifiers/*.yml`: which labels there are, what they stand on and whether they flow (spec §3, "Labels")."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, StrictBool, field_validator, model_validator

from ebbtide.config import yaml
from ebbtide.config.project import WrongValueError
from ebbtide.errors import InputError

PII, TABLE_CONTENT, LEGAL_HOLD, TIME_GRAIN = "PII", "TableContent", "LegalHold", "TimeGrain"
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class ClassifierKind(StrEnum):
    """What the labels of a classifier stand on."""

    TABLE = "table"
    COLUMN = "column"


@dataclass(frozen=True, slots=True)
class Classifier:
    name: str
    kind: ClassifierKind
    propagate: bool
    labels: tuple[str, ...]


# The rules of spec §3 give these names a meaning, so a project cannot give them another one.
_FIXED: dict[str, tuple[ClassifierKind, bool]] = {
    PII: (ClassifierKind.COLUMN, True),
    TABLE_CONTENT: (ClassifierKind.TABLE, True),
    LEGAL_HOLD: (ClassifierKind.TABLE, False),
}


@dataclass(frozen=True, slots=True)
class Classifiers:
    """Every classifier of a project, by name."""

    by_name: dict[str, Classifier]

    @classmethod
    def of(cls, some: Iterable[Classifier]) -> Classifiers:
        return cls({classifier.name: classifier for classifier in some})

    def check(self, label: str, kind: ClassifierKind, *, where: str | None = None) -> None:
        """Raise `InputError` for a label that is not defined, or that stands on the other kind of thing."""
        name, dot, value = label.partition(".")
        classifier = self.by_name.get(name)
        if not dot or not value:
            raise InputError(
                f"not a label: {label!r}", where=where, hint=f"Classifier.label; {self._near(label, kind)}"
            )
        if name == TIME_GRAIN:
            raise InputError(f"{label!r} is no label to put on", where=where, hint="write `time_grain: +7d` instead")
        if classifier is None:
            raise InputError(f"unknown classifier {name!r} in {label!r}", where=where, hint=self._near(label, kind))
        if value not in classifier.labels:
            raise InputError(f"unknown label {label!r}", where=where, hint=self._near(label, kind))
        if classifier.kind is not kind:
            place = "columns" if classifier.kind is ClassifierKind.COLUMN else "labels"
            raise InputError(
                f"{label!r} is for {classifier.kind}s, not for {kind}s", where=where, hint=f"put it under `{place}:`"
            )

    def _near(self, label: str, kind: ClassifierKind) -> str:
        if not self.by_name:
            return "there are no classifiers: define it in classifiers/*.yml"
        known = [f"{c.name}.{value}" for c in self.by_name.values() if c.kind is kind for value in c.labels]
        return yaml.nearest(label, known)

    def propagates(self, label: str) -> bool:
        """Whether a label flows along lineage."""
        classifier = self.by_name.get(label.partition(".")[0])
        return classifier is not None and classifier.propagate


class _Classifier(BaseModel):
    """Labels of one kind."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    name: str = Field(description="the first half of its labels' names")
    kind: ClassifierKind = Field(description="what its labels stand on")
    propagate: StrictBool = Field(description="whether they flow along lineage")
    labels: tuple[str, ...] = Field(description="the second halves, as in `[tag, email]`")

    @field_validator("kind", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        if value not in list(ClassifierKind):
            raise WrongValueError(
                f"unknown kind {value!r}", yaml.nearest(str(value), [kind.value for kind in ClassifierKind])
            )
        return value

    @field_validator("name")
    @classmethod
    def _word(cls, value: str) -> str:
        if not _WORD.fullmatch(value):
            raise WrongValueError(f"{value!r} cannot name a classifier", "letters, digits, _ and -")
        if value == TIME_GRAIN:
            raise WrongValueError(f"{value} is built in", "write `time_grain: +7d` on a table instead")
        return value

    @field_validator("labels")
    @classmethod
    def _words(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if not values:
            raise WrongValueError("a classifier without labels says nothing", "give it at least one label")
        for value in values:
            if not _WORD.fullmatch(value):
                raise WrongValueError(f"{value!r} cannot be a label", "letters, digits, _ and -, without a dot")
        if len(set(values)) < len(values):
            raise WrongValueError("a label stands twice", "remove one of them")
        return values

    @model_validator(mode="after")
    def _fixed_meaning(self) -> _Classifier:
        fixed = _FIXED.get(self.name)
        if fixed and (self.kind, self.propagate) != fixed:
            wanted = f"kind: {fixed[0]}, propagate: {str(fixed[1]).lower()}"
            raise WrongValueError(f"{self.name} has a fixed meaning", f"write {wanted}")
        return self


class _ClassifierFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    classifiers: tuple[_Classifier, ...]


def load_classifiers(folder: Path) -> Classifiers:
    """Read all files of the folder. Anything wrong is an `InputError` with file, line and a hint."""
    classifiers: dict[str, Classifier] = {}
    places: dict[str, str] = {}
    for path in yaml.files_in(folder):
        file, place = yaml.load_with_places(path, _ClassifierFile)
        for n, c in enumerate(file.classifiers):
            where = place(("classifiers", n, "name"))
            if c.name in classifiers:
                hint = f"the other one is at {places[c.name]}: join them"
                raise InputError(f"classifier {c.name!r} is defined twice", where=where, hint=hint)
            classifiers[c.name], places[c.name] = Classifier(c.name, c.kind, c.propagate, c.labels), where
    return Classifiers(classifiers)


def names_in(path: Path) -> set[str]:
    """The names of the classifiers that one file defines."""
    return {classifier.name for classifier in yaml.load(path, _ClassifierFile).classifiers}
