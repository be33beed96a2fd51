"""`policies/*.yml`: what may live how long (spec §2), with the promises and floors beside it (spec §3).

Files are read in the order of their names, policies in the order in which they stand. Everything wrong is found before
anything runs: an `InputError` with file, line and a hint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    ValidationInfo,
    field_validator,
    model_validator,
)

from ebbtide.config import yaml
from ebbtide.config.classifiers import TIME_GRAIN, ClassifierKind, Classifiers, load_classifiers
from ebbtide.config.predicates import check_predicate
from ebbtide.config.project import FORMATS, Scalar, WrongValueError
from ebbtide.errors import InputError
from ebbtide.model.durations import Duration, parse_duration

TARGETS = ("transactions", "versions", "partitions", "rows", "orphans", "branches", "tables")
"""The targets in the order in which they are taken inside a policy (spec §2)."""
CHUNKS = "chunks"
"""The target of hot tables: their own files are its policies (`config.hottier`)."""
EVERY_TARGET = (*TARGETS, CHUNKS)

AUTO: Literal["auto"] = "auto"


def _duration(*, hours: bool = False, auto: bool = False) -> PlainValidator:
    def read(value: Any) -> Any:
        if isinstance(value, Duration) or (auto and value == AUTO):
            return value
        try:
            return parse_duration(value, hours=hours)
        except InputError as error:
            raise WrongValueError(error.message, error.hint or "") from None

    pattern = rf"^\+?[0-9]{{1,6}}[{'hdwy' if hours else 'dwmy'}]$"
    text = Annotated[str, Field(pattern=pattern)]
    return PlainValidator(read, json_schema_input_type=text | Literal["auto"] if auto else text)


def _not_empty(values: Any) -> Any:
    if not values:
        raise WrongValueError("an empty list selects nothing", "leave the key out to select everything")
    return values


Retention = Annotated[Duration | Literal["auto"], _duration(auto=True)]
Days = Annotated[Duration, _duration()]
Hours = Annotated[Duration, _duration(hours=True)]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
"""How many of something. More than a million is a slip, and far more would not fit the plan's numbers."""
Texts = Annotated[tuple[str, ...], AfterValidator(_not_empty)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _is_there(cls, value: Any, info: ValidationInfo) -> Any:
        # A key that was left empty would be one that is not there: `tables:` would select every table.
        if value is None:
            raise WrongValueError(f"{info.field_name!r} is empty", "leave the key out, or write its value")
        return value


class _Selection(_Strict):
    tables: Texts | None = Field(None, description="names, with `*` inside of one part and `**` for any")
    formats: Texts | None = Field(None, description="`iceberg`, `delta`, `hudi`, `paimon`")
    branches: Texts | None = Field(None, description="names of branches, with `*`; all of them without it")
    any_labels: Texts | None = Field(None, description="tables with one of these labels")
    all_labels: Texts | None = Field(None, description="tables with all of these labels")
    properties: dict[str, str] | None = Field(None, description="tables with these properties")

    @field_validator("formats")
    @classmethod
    def _known(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in value or ():
            if name not in FORMATS:
                raise WrongValueError(f"unknown format {name!r}", yaml.nearest(name, list(FORMATS)))
        return value

    @field_validator("properties", mode="before", json_schema_input_type=dict[str, Scalar])
    @classmethod
    def _texts(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        for key, v in _not_empty(value).items():
            if v is None:
                raise WrongValueError(f"property {key!r} has no value", "write the value in quotes")
        return {key: str(v).lower() if isinstance(v, bool) else str(v) for key, v in value.items()}

    @property
    def is_empty(self) -> bool:
        return not any(getattr(self, name) is not None for name in _Selection.model_fields)


class Exclude(_Selection):
    """What is left out of a selection: a dataset to which any of the keys applies (rather too much than too little)."""

    @model_validator(mode="after")
    def _says_something(self) -> Exclude:
        if self.is_empty:
            raise WrongValueError("the exclusion is empty", "leave the key out where nothing is excluded")
        return self


class Select(_Selection):
    """Which datasets: every key that stands here must apply. Branches are all branches where none are named."""

    exclude: Exclude | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Select:
        if self.is_empty:
            raise WrongValueError("the selection is empty", 'write tables: ["**"] where every dataset is meant')
        return self


class Transactions(_Strict):
    """The data that a transaction brought in. `keep_views`: the last n views of each branch, the latest included."""

    older_than: Retention = Field(description="the age from which it goes; `auto` is what promises leave")
    keep_views: Count = Field(1, description="how many views of each branch stay, whatever their age")
    allow_latest_view: StrictBool = Field(False, description="`true`: what the latest view shows may go, too")
    staged: StrictBool = Field(False, description="`true`: what was written and never published goes, too")


class Versions(_Strict):
    """Old versions for time travel. Without `keep_min` it is 10 on Paimon and 1 elsewhere."""

    older_than: Annotated[Duration | Literal["auto"], _duration(hours=True, auto=True)] | None = Field(
        None, description="the age from which a version goes; `auto` is what promises leave"
    )
    keep_min: Count | None = Field(None, description="how many versions stay, whatever their age")
    keep_max: Count | None = Field(None, description="how many versions stay at most, however young they are")
    limit: Count | None = Field(None, description="how many go in one run at most")

    @model_validator(mode="after")
    def _sensible(self) -> Versions:
        if self.older_than is None and self.keep_max is None:
            raise WrongValueError("versions needs older_than or keep_max", "write older_than: 7d")
        if self.keep_max is not None and self.keep_min is not None and self.keep_max < self.keep_min:
            raise WrongValueError(
                f"keep_max {self.keep_max} is less than keep_min {self.keep_min}", "raise keep_max or lower keep_min"
            )
        return self


class Partitions(_Strict):
    """Partitions by the date that they cover."""

    older_than: Retention = Field(description="the age from which it goes; `auto` is what promises leave")
    age_of: Literal["newest", "oldest"] = Field("newest", description="which of a partition's days counts")


class Rows(_Strict):
    """Rows past a time to live by `column`, or matching a predicate."""

    column: str | None = Field(None, min_length=1, description="the column that has a row's time")
    older_than: Retention | None = Field(None, description="the age from which a row goes")
    where: str | None = Field(None, min_length=1, description="a condition in Spark's SQL, in place of an age")

    @model_validator(mode="after")
    def _one_way(self) -> Rows:
        if (self.where is None) == (self.column is None) or (self.column is None) != (self.older_than is None):
            raise WrongValueError("rows goes by age or by predicate", "write {column, older_than}, or {where}")
        if self.where is not None:
            check_predicate(self.where)
        return self


class Orphans(_Strict):
    """Files that nothing references. `older_than` is the guard age: `load_policies` refuses one below a day."""

    older_than: Days = Field(Duration(3, "d"), description="the guard age: younger files may be of a writer")


class Branches(_Strict):
    """Branches that nobody uses."""

    unused_for: Days = Field(description="how long nobody committed to it")


class Tables(_Strict):
    """Ad hoc tables, which go whole. `unpartitioned` leaves alone what could go by partitions, and `own_label` what has
    its class from its columns or inputs only: nobody said of the table itself what it is.
    """

    older_than: Retention = Field(description="how long ago the last write was")
    unpartitioned: StrictBool = Field(False, description="`true`: only tables without partitions")
    own_label: StrictBool = Field(False, description="`true`: only where somebody labelled the table itself")


class Policy(_Strict):
    """One policy: whom it selects, what goes per target, and how long a mark waits."""

    name: str = Field(min_length=1, pattern=r"\S", description="its name, in plans and in the ledger")
    select: Select
    grace: Hours = Field(Duration(7, "d"), description="how long what is marked can be rescued")
    transactions: Transactions | None = None
    versions: Versions | None = None
    partitions: Partitions | None = None
    rows: Rows | None = None
    orphans: Orphans | None = None
    branches: Branches | None = None
    tables: Tables | None = None

    @model_validator(mode="after")
    def _has_a_target(self) -> Policy:
        if not self.targets:
            raise WrongValueError(f"policy {self.name!r} has no target", f"add one of {', '.join(TARGETS)}")
        whole = [target for target in ("orphans", "tables") if getattr(self, target) is not None]
        if whole and self.select.branches is not None:
            raise WrongValueError(
                f"{whole[0]} concerns all branches of a dataset", "leave select.branches out, or use two policies"
            )
        if self.tables and self.tables.own_label and not (self.select.any_labels or self.select.all_labels):
            raise WrongValueError(
                "own_label asks for a label of the selection", "add select.any_labels or select.all_labels"
            )
        return self

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(target for target in TARGETS if getattr(self, target) is not None)


def _select_in_place(value: Any) -> Any:
    """Floors and promises may name their selection in place, as in `{any_labels: […], gone_within: 110d}`."""
    if not isinstance(value, dict) or "select" in value:
        return value
    inside = {key: value[key] for key in Select.model_fields if key in value}
    return {**{key: v for key, v in value.items() if key not in inside}, "select": inside}


class Promise(_Strict):
    """What is proved of every selected table: gone within this time."""

    select: Select
    gone_within: Days = Field(description="when it is gone at the latest, counted from the day that it is of")
    name: str | None = Field(None, description="its name")
    in_place: ClassVar = tuple(Select.model_fields)
    _move = model_validator(mode="before")(_select_in_place)


class Floor(_Strict):
    """A statutory minimum, with the law it rests on (spec §3, "Holds and floors")."""

    select: Select
    keep_at_least: Days = Field(description="how long nothing of it goes by any policy")
    basis: str = Field(min_length=1, pattern=r"\S", description="the law that says so")
    name: str | None = Field(None, description="its name")
    in_place: ClassVar = tuple(Select.model_fields)
    _move = model_validator(mode="before")(_select_in_place)

    @property
    def label(self) -> str:
        """How a plan names it."""
        return self.name or f"{self.keep_at_least} ({self.basis})"


class _PolicyFile(_Strict):
    policies: tuple[Policy, ...] = ()
    promises: tuple[Promise, ...] = ()
    floors: tuple[Floor, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicySet:
    """All policies of a project in order, with its promises and floors."""

    policies: tuple[Policy, ...] = ()
    promises: tuple[Promise, ...] = ()
    floors: tuple[Floor, ...] = ()

    def canonical(self) -> dict[str, Any]:
        """Plain values that say everything that can change a plan, for its digest."""
        return {
            "policies": [_plain(policy) for policy in self.policies],
            "floors": [_plain(floor) for floor in self.floors],
            "promises": [_plain(promise) for promise in self.promises],
        }


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return {key: _plain(v) for key in type(value).model_fields if (v := getattr(value, key)) is not None}
    if isinstance(value, dict):
        return dict(sorted(value.items()))
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Duration) else value


def load_policies(root: Path, *, unsafe: bool = False) -> PolicySet:
    """Read `policies/*.yml` under the project's folder. No folder means no policies.

    `unsafe` lets guard ages below a day pass: for `--unsafe`, and for those who neither mark nor remove.
    """
    files = [(path, *yaml.load_with_places(path, _PolicyFile)) for path in _policy_files(root / "policies")]
    _refuse_double_names((path, file, where) for path, file, where in files)
    if not unsafe:
        for _, file, where in files:
            _refuse_young_guards(file, where)
    classifiers = load_classifiers(root / "classifiers")
    for _, file, where in files:
        _check_labels(file, where, classifiers)
    return PolicySet(
        tuple(policy for _, file, _ in files for policy in file.policies),
        tuple(promise for _, file, _ in files for promise in file.promises),
        tuple(floor for _, file, _ in files for floor in file.floors),
    )


def _policy_files(folder: Path) -> list[Path]:
    # A file that is passed over in silence could hold a floor, so both endings count.
    found = [path for ending in ("*.yml", "*.yaml") for path in folder.glob(ending)]
    return sorted(found, key=lambda path: path.name)


def _check_labels(file: _PolicyFile, where: Callable[[yaml.Place], str], classifiers: Classifiers) -> None:
    """A label that nothing defines selects nothing in silence, and in an exclusion it protects nothing."""
    places: list[tuple[yaml.Place, Select]] = [(("policies", n), p.select) for n, p in enumerate(file.policies)]
    places += [(("promises", n), p.select) for n, p in enumerate(file.promises)]
    places += [(("floors", n), f.select) for n, f in enumerate(file.floors)]
    for place, select in places:
        for selection in filter(None, (select, select.exclude)):
            for label in (*(selection.any_labels or ()), *(selection.all_labels or ())):
                if not label.startswith(f"{TIME_GRAIN}."):
                    classifiers.check(label, ClassifierKind.TABLE, where=where(place))


def _refuse_young_guards(file: _PolicyFile, where: Callable[[yaml.Place], str]) -> None:
    for number, policy in enumerate(file.policies):
        if policy.orphans is not None and policy.orphans.older_than.count < 1:
            raise InputError(
                "a guard age below a day takes files of writers that still run",
                where=where(("policies", number, "orphans", "older_than")),
                hint="write at least 1d; 3d is the default; or say --unsafe where no writer runs",
            )


def _refuse_double_names(files: Iterator[tuple[Path, _PolicyFile, Callable[[yaml.Place], str]]]) -> None:
    first: dict[str, str] = {}
    for _, file, where in files:
        for number, policy in enumerate(file.policies):
            here = where(("policies", number, "name"))
            if policy.name in first:
                raise InputError(
                    f"two policies are named {policy.name!r}",
                    where=here,
                    hint=f"the other one stands at {first[policy.name]}; rename one of them",
                )
            first[policy.name] = here
