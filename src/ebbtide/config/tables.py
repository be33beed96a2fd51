"""`tables/*.yml`: what people say of their tables: schedule, dates, labels, contracts (spec §3, design.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, field_validator, model_validator

from ebbtide.config import yaml
from ebbtide.config.classifiers import ClassifierKind, Classifiers
from ebbtide.config.project import WrongValueError
from ebbtide.errors import InputError
from ebbtide.model.contract import LONGEST, SHORTEST
from ebbtide.model.durations import parse_duration
from ebbtide.model.ids import DatasetId

_PATTERN = re.compile(r"(yyyy|MM|dd|HH|mm|ss|[-/._ T:])+")
# Types go into CREATE TABLE as they are: words, sizes and what nests them, nothing that ends a statement.
_TYPE = re.compile(r"[A-Za-z_]\w*(?:\([0-9, ]+\))?|(?:array|map|struct)<[\w<>(),: ]+>", re.IGNORECASE)
_TRANSFORM = re.compile(r"\w+|(?:years|months|days|hours)\(\w+\)|(?:bucket|truncate)\(\d+, ?\w+\)")
_PERIOD = re.compile(r"\+?([1-9][0-9]*)([dwmy])")


@dataclass(frozen=True, slots=True)
class PartitionDate:
    """Which partition column is the date, and whether it is the first day covered or the last (spec §3).

    `format` is a Java date pattern, for values that are not written `yyyy-MM-dd`, `yyyyMMdd` or `yyyy-MM`.
    """

    column: str
    covers: Literal["leading", "trailing"] | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Reclassify:
    """What becomes of the labels that flow into a column.

    `instead` stands in the place of all of them (of none, where it is empty). Where it is None, `changes` maps single
    labels to what stands in their place (None for nothing), and the others flow on.
    """

    instead: tuple[str, ...] | None = None
    changes: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContractSettings:
    """What a table is created with: Spark's types by column, in order. `versions` is the version window in days."""

    columns: Mapping[str, str] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    versions: int | None = None


@dataclass(frozen=True, slots=True)
class ErasureTerms:
    """What happens to a person's rows here (spec §4): they go, have columns replaced, or stay for a reason.

    `redact` maps columns to the text that takes their place, NULL where it is None. `history` is what becomes of
    versions that hold the person: the most that the format lets, unless less is asked for.
    """

    method: Literal["delete", "redact", "keep"] = "delete"
    redact: Mapping[str, str | None] = field(default_factory=dict)
    basis: str | None = None
    until: date | None = None
    history: Literal["rewrite", "refs", "expire", "refuse"] = "rewrite"

    def on(self, day: date) -> ErasureTerms:
        """What holds on a day: rows that were to be kept until one before it go like any others."""
        return ErasureTerms(history=self.history) if self.until is not None and self.until < day else self


@dataclass(frozen=True, slots=True)
class TableSettings:
    """One table as people described it. `where` is `file:line`; periods are spelled with their sign."""

    table_id: str
    where: str
    schedule: str | None = None
    time_grain: str | None = None
    partition_date: PartitionDate | None = None
    labels: tuple[str, ...] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reclassify: Mapping[str, Reclassify] = field(default_factory=dict)
    is_pii: bool | None = None
    enforce: bool = False
    contract: ContractSettings | None = None
    erasure: ErasureTerms = field(default_factory=ErasureTerms)


def _period(text: str) -> str:
    match = _PERIOD.fullmatch(text)
    if not match:
        raise WrongValueError(f"not a period: {text!r}", "write a number and d, w, m or y, such as +1d or +1m")
    return f"+{match[1]}{match[2]}"


Period = Annotated[str, AfterValidator(_period)]


def _date_pattern(text: str) -> str:
    if "yyyy" not in text or not _PATTERN.fullmatch(text):
        raise WrongValueError(f"not a date pattern: {text!r}", "yyyy, MM, dd, HH with separators, such as dd.MM.yyyy")
    return text


class _PartitionDate(BaseModel):
    """Which partition column is the table's date."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    column: str = Field(description="its name")
    covers: Literal["leading", "trailing"] | None = Field(None, description="whether it is the first day, or the last")
    format: Annotated[str, AfterValidator(_date_pattern)] | None = Field(
        None, description="a pattern such as `dd.MM.yyyy`, for values that are not written as dates are"
    )


def _as_written(schema: dict[str, Any]) -> None:
    """For editors: the two shapes that `_Reclassify` takes, in place of what it holds."""
    schema.pop("properties")
    schema.pop("additionalProperties")
    change = {"type": "object", "additionalProperties": {"type": ["string", "null"]}}
    schema |= {"type": ["array", "object"], "anyOf": [{"type": "array", "items": {"type": "string"}}, change]}


class _Reclassify(BaseModel):
    """Written as a list of labels, or as a map from label to label."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, json_schema_extra=_as_written)
    instead: tuple[str, ...] | None = None
    changes: dict[str, str | None] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _shape(cls, value: Any) -> Any:
        if isinstance(value, list):
            return {"instead": value}
        if isinstance(value, dict):
            return {"changes": value}
        raise WrongValueError("not a reclassification", "[] stops all labels, [A.b] or {A.a: A.b} replaces them")


class _Contract(BaseModel):
    """What the table is created with."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    columns: dict[str, str] = Field(default_factory=dict, description="Spark's type by the name of a column")
    partitioned_by: tuple[str, ...] = Field((), description="columns, or `days(column)` and the like")
    key: tuple[str, ...] = Field((), description="the columns of its key")
    versions: str | None = Field(None, description="how long versions stay: days or weeks")

    @field_validator("columns")
    @classmethod
    def _types(cls, value: dict[str, str]) -> dict[str, str]:
        for name, type_ in value.items():
            if not _TYPE.fullmatch(type_):
                raise WrongValueError(
                    f"{type_!r} of {name} is no type", "write Spark's types, such as bigint or string"
                )
        return value

    @field_validator("versions")
    @classmethod
    def _days(cls, value: str | None) -> str | None:
        try:
            duration = parse_duration(value) if value is not None else None
        except InputError as error:
            raise WrongValueError(error.message, error.hint or "") from None
        if duration is not None and (duration.months or duration.count < 1):
            raise WrongValueError(f"not a version window: {value!r}", "write days or weeks, such as 14d")
        return value

    @field_validator("partitioned_by")
    @classmethod
    def _transforms(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            if not _TRANSFORM.fullmatch(text):
                raise WrongValueError(f"cannot partition by {text!r}", "a column, or days(column) and the like")
        return value

    @model_validator(mode="after")
    def _known_columns(self) -> _Contract:
        unknown = [name for name in self.key if self.columns and name not in self.columns]
        if unknown:
            raise WrongValueError(f"the key {unknown[0]!r} is no column", yaml.nearest(unknown[0], list(self.columns)))
        return self

    def settings(self) -> ContractSettings:
        versions = parse_duration(self.versions).exact.days if self.versions else None
        return ContractSettings(self.columns, self.partitioned_by, self.key, versions)


class _Erasure(BaseModel):
    """What happens to rows of people who ask to be erased."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    method: Literal["delete", "redact", "keep"] = Field("delete", description="they go, have columns replaced, or stay")
    columns: dict[str, str | None] = Field(
        default_factory=dict, description="for `redact`: what takes a column's place"
    )
    basis: str | None = Field(None, min_length=1, pattern=r"\S", description="for `keep`: the law that says so")
    until: date | None = Field(None, description="for `keep`: until when, a date")
    history: Literal["rewrite", "refs", "expire", "refuse"] = Field(
        "rewrite", description="what becomes of versions that hold them"
    )

    @model_validator(mode="after")
    def _whole(self) -> _Erasure:
        if (self.method == "redact") != bool(self.columns):
            hint = "method: redact, columns: {card: null, name: gone}"
            raise WrongValueError("redact goes with the columns that it replaces", hint)
        if (self.method == "keep") != (self.basis is not None and self.until is not None):
            hint = "method: keep, basis: the law that says so, until: 2033-12-31"
            raise WrongValueError("keep goes with its basis, and until when", hint)
        return self

    def terms(self) -> ErasureTerms:
        return ErasureTerms(self.method, self.columns, self.basis, self.until, self.history)


class _TableDescription(BaseModel):
    """One table, as people know it."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    name: str = Field(description="`catalog.namespace.table`")
    schedule: Period | None = Field(None, description="how often it is written: `+1d`")
    time_grain: Period | None = Field(None, description="how much time a partition covers; the schedule without it")
    partition_date: _PartitionDate | None = None
    labels: tuple[str, ...] = Field((), description="labels of the table")
    columns: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="labels by the name of a column")
    reclassify: dict[str, _Reclassify] = Field(
        default_factory=dict, description="what becomes of labels that flow into a column, by its name"
    )
    is_pii: StrictBool | None = Field(None, description="whether it has personal data, whatever its labels are")
    enforce: StrictBool = Field(False, description="`true`: a scan repairs settings that differ from the contract")
    contract: _Contract | None = None
    erasure: _Erasure = Field(default_factory=_Erasure)

    @model_validator(mode="after")
    def _in_the_band(self) -> _TableDescription:
        days = self.contract.settings().versions if self.contract else None
        if self.is_pii and days is not None and not SHORTEST <= days <= LONGEST:
            raise WrongValueError(
                f"a version window of {days} d on a table with personal data", f"from {SHORTEST} to {LONGEST} days"
            )
        return self


class _TableFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    tables: tuple[_TableDescription, ...]


def load_tables(folder: Path, classifiers: Classifiers) -> dict[str, TableSettings]:
    """Read all files of the folder, by table id. Anything wrong is an `InputError` with file, line and a hint."""
    found: dict[str, TableSettings] = {}
    for path in yaml.files_in(folder):
        file, where = yaml.load_with_places(path, _TableFile)
        for n, table in enumerate(file.tables):
            settings = _settings(table, where, ("tables", n), classifiers)
            if settings.table_id in found:
                hint = f"the other one is at {found[settings.table_id].where}: join them"
                raise InputError(f"table {settings.table_id} is described twice", where=settings.where, hint=hint)
            found[settings.table_id] = settings
    return found


def _settings(
    table: _TableDescription, at: Callable[[yaml.Place], str], place: yaml.Place, classifiers: Classifiers
) -> TableSettings:
    where = at((*place, "name"))
    for n, label in enumerate(table.labels):
        classifiers.check(label, ClassifierKind.TABLE, where=at((*place, "labels", n)))
    for column, labels in table.columns.items():
        for n, label in enumerate(labels):
            classifiers.check(label, ClassifierKind.COLUMN, where=at((*place, "columns", column, n)))
    for column, change in table.reclassify.items():
        for label in [*(change.instead or ()), *change.changes, *filter(None, change.changes.values())]:
            classifiers.check(label, ClassifierKind.COLUMN, where=at((*place, "reclassify", column, label)))
    try:
        table_id = str(DatasetId.parse(table.name))
    except InputError as error:
        raise InputError(error.message, where=where, hint=error.hint) from None
    date = table.partition_date
    return TableSettings(
        table_id=table_id,
        where=where,
        schedule=table.schedule,
        time_grain=table.time_grain,
        partition_date=PartitionDate(date.column, date.covers, date.format) if date else None,
        labels=table.labels,
        columns=table.columns,
        reclassify={column: Reclassify(c.instead, c.changes) for column, c in table.reclassify.items()},
        is_pii=table.is_pii,
        enforce=table.enforce,
        contract=table.contract.settings() if table.contract else None,
        erasure=table.erasure.terms(),
    )
