"""What `labels`, `lineage`, `classify`, `contract`, `check` and `departed` answer. No value of a person is among it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from ebbtide.app.results.shown import Shown


@dataclass(frozen=True, slots=True, repr=False)
class Problem(Shown):
    """What lineage or labels could not tell."""

    kind: str
    where: str
    subject: str
    message: str
    hint: str | None


@dataclass(frozen=True, slots=True, repr=False)
class TableLabels(Shown):
    """The labels of a table, its own among them, and what it is made of."""

    table_id: str
    depends: str | None
    classifiers: str | None
    labels: tuple[str, ...]
    own_labels: tuple[str, ...]
    schedule: str | None
    time_grain: str | None
    is_pii: bool
    is_root: bool


@dataclass(frozen=True, slots=True, repr=False)
class LabelsResult(Shown):
    tables: tuple[TableLabels, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, repr=False)
class LabelStep(Shown):
    """One stop on a label's way."""

    name: str
    label: str
    provenance: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class WhyLabel(Shown):
    """A label with the way that it took, from its origin to here."""

    label: str
    how: str
    because: str
    path: tuple[LabelStep, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ColumnLabels(Shown):
    column: str
    labels: tuple[str, ...]
    why: tuple[WhyLabel, ...]


@dataclass(frozen=True, slots=True, repr=False)
class LabelExplanation(Shown):
    """The labels of one table and of its columns, each with where it was said and how it came here."""

    table: str
    labels: tuple[str, ...]
    own_labels: tuple[str, ...]
    schedule: str | None
    time_grain: str | None
    is_pii: bool
    is_root: bool
    depends: tuple[str, ...]
    why: tuple[WhyLabel, ...]
    columns: tuple[ColumnLabels, ...]
    problems: tuple[Problem, ...]
    scanned_at: str


@dataclass(frozen=True, slots=True, repr=False)
class Edge(Shown):
    """A column that goes into another."""

    source_column: str
    target_column: str
    kind: str
    provenance: str
    masking: bool
    source_table: str
    target_table: str


@dataclass(frozen=True, slots=True, repr=False)
class Depends(Shown):
    table_id: str
    depends: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class LineageResult(Shown):
    edges: tuple[Edge, ...]
    tables: tuple[Depends, ...]
    problems: tuple[Problem, ...]
    models: int
    traced: int


@dataclass(frozen=True, slots=True, repr=False)
class Unread(Shown):
    """A place that could not be looked at; `failed` means: try again."""

    place: str
    because: str
    failed: bool


@dataclass(frozen=True, slots=True, repr=False)
class Suggestion(Shown):
    """A label for a column: `share` of the `sampled` values look like a `kind`."""

    table_id: str
    column: str
    label: str
    kind: str
    share: float
    sampled: int


@dataclass(frozen=True, slots=True, repr=False)
class SuggestionsResult(Shown):
    suggestions: tuple[Suggestion, ...]
    unread: tuple[Unread, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Drift(Shown):
    """Where a table differs from its contract, and the settings that would repair it."""

    table_id: str
    aspect: str
    found: str
    wanted: str
    fix: Mapping[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class Repair(Drift):
    """The same, and whether it was repaired."""

    done: bool
    because: str | None


@dataclass(frozen=True, slots=True, repr=False)
class CheckResult(Shown):
    """A check that passed has no rows. `do` is what to do about those of one that did not, as a command."""

    name: str
    passed: bool
    severity: str
    description: str
    rows: tuple[Mapping[str, Any], ...]
    do: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class DepartedPlace(Shown):
    """How many people who left are still in a column, and how many of them should be gone by now."""

    table_id: str
    column: str
    how: str
    ages_out: bool
    departed: int
    overdue: int
    earliest_due: date | None


@dataclass(frozen=True, slots=True, repr=False)
class DepartedSubject(Shown):
    """One kind of identifier. The counts of requests are None where none were to be filed."""

    subject: str
    gone_within: str
    places: tuple[DepartedPlace, ...]
    unread: tuple[Unread, ...]
    filed: int | None = None
    withdrawn: int | None = None
    too_late: int | None = None
    requests: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, repr=False)
class DepartedResult(Shown):
    as_of: str
    subjects: tuple[DepartedSubject, ...]
    notices: tuple[str, ...]
