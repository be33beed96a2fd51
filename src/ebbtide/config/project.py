"""`ebbtide.yml`: catalogs, state, Spark and the rest of a project (design.md, "The project")."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, field_validator, model_validator

from ebbtide.config import yaml
from ebbtide.config.environment import from_environment
from ebbtide.config.operations import Metrics, MetricsSettings, Notifier, NotifySettings
from ebbtide.config.wrong import WrongValueError as WrongValueError
from ebbtide.errors import InputError
from ebbtide.model.dataset import ICEBERG_CATALOGS, Catalog
from ebbtide.model.ids import DatasetId
from ebbtide.model.times import parse_time

FORMATS = ("iceberg", "delta", "hudi", "paimon")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BYTES = re.compile(r"([0-9]+)\s*(B|KiB|MiB|GiB|TiB)?")
_TICK = re.compile(r"[1-9][0-9]*[hdw]")
Scalar = str | int | float | bool
"""What people write where a text is meant, and YAML reads as something else."""
_UNITS = {None: 0, "B": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4}


class _Settings(BaseModel):
    # Built when the project's file is read, all in one, not each by itself before that.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


_ELSEWHERE = ("mysql", "mariadb", "oracle", "mssql", "duckdb", "mongodb", "redis")
"""Databases that people try; anything else in an address may be a secret."""
_BY_URI = {"jdbc": '"jdbc:sqlite:catalog.db"', "rest": "https://catalog.example.org"}
"""Types of Iceberg catalogs that nothing but an address can find, with one."""


class CatalogSettings(BaseModel):
    """A catalog, by its name: letters, digits and `_`. Further keys go to the engine as they are."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)
    format: str = Field(description="`iceberg`, `delta`, `hudi` or `paimon`", json_schema_extra={"enum": list(FORMATS)})
    warehouse: str = Field(description="where the tables lie: a path from the project's folder, or a URI")
    type: str | None = Field(None, description="of an Iceberg catalog: `jdbc`, `hadoop`, `rest`, `hive` or `glue`")
    shares_files: StrictBool = Field(
        True, description="`false`: no table outside of it references its files, so that others need not wait for it"
    )

    @field_validator("format")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in FORMATS:
            raise WrongValueError(f"unknown format {value!r}", yaml.nearest(value, list(FORMATS)))
        return value

    @model_validator(mode="after")
    def _known_type(self) -> CatalogSettings:
        if self.format == "iceberg" and self.type is not None and self.type not in ICEBERG_CATALOGS:
            message = f"unknown type {self.type!r} of an Iceberg catalog"
            raise WrongValueError(message, yaml.nearest(self.type, list(ICEBERG_CATALOGS)), place=("type",))
        if self.format == "iceberg" and self.type in _BY_URI and "uri" not in (self.model_extra or {}):
            message = f"'uri' of an Iceberg catalog of type {self.type} is missing"
            raise WrongValueError(message, f"add the key 'uri', as in {_BY_URI[self.type]}", place=("type",))
        return self


class SparkSettings(_Settings):
    """What Spark runs on."""

    master: str = Field("local[*]", description="Spark's master URL")
    conf: dict[str, str] = Field(default_factory=dict, description="any of Spark's settings, by name")

    @field_validator("conf", mode="before", json_schema_input_type=dict[str, Scalar])
    @classmethod
    def _texts(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: str(v).lower() if isinstance(v, bool) else str(v) for key, v in value.items()}


class LedgerSettings(_Settings):
    """What the ledger is called, and where it is vouched for."""

    origin: str | None = Field(
        None,
        description="the ledger's name, such as `example.org/acme`; it cannot be changed once the ledger has begun",
    )
    checkpoint: str | None = Field(
        None, description="the copy of the last signed checkpoint, outside of the state; without it one for each user"
    )


class LineageSettings(_Settings):
    """Where lineage is read, beside `lineage/`."""

    sql: str | None = Field(None, description="the folder of models, in place of `lineage/`")
    dbt: str | None = Field(None, description="a dbt project, its `target/` or its `manifest.json`")
    openlineage: str | None = Field(None, description="a file or a folder of events")
    names: dict[str, str] = Field(default_factory=dict, description="a name of others, and the dataset that it means")


class Limits(_Settings):
    """How much one run may take. Shares count only where more than `min_bytes` would go."""

    max_share: float = Field(0.3, strict=True, ge=0, le=1, description="most of one dataset's bytes")
    lake_max_share: float = Field(0.1, strict=True, ge=0, le=1, description="most of the lake's bytes")
    min_bytes: int = Field(1 << 30, strict=True, description="below this nothing is limited by share: `1GiB`, or bytes")
    max_objects: int | None = Field(None, strict=True, ge=0, description="most objects, whatever their size")
    erase_share: float = Field(
        0.01, strict=True, ge=0, le=1,
        description="most of a table's rows that one request may match, where that is more than a thousand rows",
    )  # fmt: skip

    @field_validator("min_bytes", mode="before", json_schema_input_type=int | str)
    @classmethod
    def _bytes(cls, value: Any) -> Any:
        if isinstance(value, str):
            match = _BYTES.fullmatch(value)
            if not match:
                raise WrongValueError(f"not a size: {value!r}", "write a number and B, KiB, MiB, GiB or TiB")
            return int(match.group(1)) << (10 * _UNITS[match.group(2)])
        return value


class PlanSettings(_Settings):
    """Up to `in_process` rows of transactions, files and partitions a plan is made without a JVM; and up to as many
    listed and referenced files are searched for orphans.
    """

    in_process: int = Field(2_000_000, strict=True, ge=0, description="most rows that are planned without a JVM")


class ErasureSettings(_Settings):
    """Requests younger than `cool_off` wait; files that an erasure replaced stay for `reader_window`."""

    cool_off: str = Field("72h", description="how long a request can be taken back before anything is erased")
    reader_window: str = Field(
        "1h", description="how long readers and writers in flight may still need what was replaced"
    )

    @field_validator("cool_off", "reader_window")
    @classmethod
    def _time(cls, value: str) -> str:
        if not _TICK.fullmatch(value):
            raise WrongValueError(f"not a time: {value!r}", "write a number and h, d or w, such as 72h")
        return value


class Warehouse(_Settings):
    """A place of tables, beside the locations of datasets."""

    prefix: str = Field(description="a path from the project's folder, or a URI")
    exclusive: StrictBool = Field(
        False, description="`true`: nothing else lies there, so that what no catalog lists is seen"
    )


class _Ignore(_Settings):
    """What nobody waits for while it cannot be read: a dataset, or a catalog that is gone. It goes into the ledger."""

    dataset: str | None = Field(None, description="as `catalog.namespace.table`")
    catalog: str | None = Field(None, description="the name of a catalog that the project no longer has")
    reason: str = Field(min_length=1, pattern=r"\S", description="why")
    until: str | None = Field(None, description="a date or an instant, UTC; not of a catalog")

    @field_validator("until", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return value.isoformat() if isinstance(value, date) else value

    def value(self) -> Ignored:
        if (self.dataset is None) == (self.catalog is None):
            raise InputError("ignore: name a dataset, or a catalog that is gone", hint="one of the two")
        if self.catalog is not None:
            if not _NAME.fullmatch(self.catalog):
                raise InputError(f"ignore: not a catalog's name: {self.catalog!r}", hint="as in `catalog: lake`")
            if self.until is not None:
                raise InputError("ignore: a catalog that is gone is ignored for good", hint="without `until`")
            return Ignored(self.catalog, self.reason)
        return Ignored(
            str(DatasetId.parse(self.dataset or "")),
            self.reason,
            None if self.until is None else parse_time(self.until),
        )


class _ProjectFile(_Settings):
    project: str = Field(description="its name")
    catalogs: dict[str, CatalogSettings]
    state: str = Field(
        "sqlite:///.ebbtide/state.db", description="the state's database: `sqlite:///path` or `postgresql://…`"
    )
    inventory: str = Field(".ebbtide/inventory", description="the folder of what the last scan found")
    spark: SparkSettings = Field(default_factory=SparkSettings)
    clock: Literal["real", "simulated"] = Field(
        "real",
        description="`simulated`: a rehearsal, in which `--as-of` is the time; every entry of the ledger says so",
    )
    ledger: LedgerSettings = Field(default_factory=LedgerSettings)
    lineage: LineageSettings = Field(default_factory=LineageSettings)
    limits: Limits = Field(default_factory=Limits)
    plan: PlanSettings = Field(default_factory=PlanSettings)
    erasure: ErasureSettings = Field(default_factory=ErasureSettings)
    warehouses: list[Warehouse] = Field(default_factory=list)
    tick: str = Field("1d", description="how often `run` runs, which promises count with: `12h`, `1d`, `1w`")
    ignore: list[_Ignore] = Field(default_factory=list)
    notify: list[NotifySettings] = Field(default_factory=list)
    metrics: MetricsSettings = Field(default_factory=MetricsSettings)

    @field_validator("tick")
    @classmethod
    def _time(cls, value: str) -> str:
        if not _TICK.fullmatch(value):
            raise WrongValueError(f"tick: not a time: {value!r}", "write a number and h, d or w, such as 12h or 1d")
        return value

    @field_validator("ignore")
    @classmethod
    def _datasets(cls, value: list[_Ignore]) -> list[_Ignore]:
        for n, each in enumerate(value):
            try:
                each.value()
            except InputError as error:
                raise WrongValueError(error.message, error.hint or "", place=(n,)) from None
        return value

    @model_validator(mode="after")
    def _names(self) -> _ProjectFile:
        for name in self.catalogs:
            if not _NAME.fullmatch(name) or name == "spark_catalog":
                raise WrongValueError(
                    f"catalog name {name!r} cannot be used", "letters, digits and _; not spark_catalog",
                    place=("catalogs", name),
                )  # fmt: skip
        for n, each in enumerate(self.ignore):
            if each.catalog in self.catalogs:
                message, hint = f"ignore: catalog {each.catalog!r} is there", "say `shares_files: false` of it"
                raise WrongValueError(message, hint, place=("ignore", n, "catalog"))
            if each.dataset is not None and (name := DatasetId.parse(each.dataset).catalog) not in self.catalogs:
                hint = f"{yaml.nearest(name, list(self.catalogs))}; one that is gone is ignored by `catalog:`"
                message, place = f"ignore: no catalog {name!r} of {each.dataset}", ("ignore", n, "dataset")
                raise WrongValueError(message, hint, place=place)
        return self


@dataclass(frozen=True, slots=True)
class Ignored:
    """A dataset whose references somebody said not to wait for while it cannot be read (spec §7), or the name of a
    catalog that the project no longer has, with all that was known of it.
    """

    dataset: str
    reason: str
    until: datetime | None = None

    @property
    def is_catalog(self) -> bool:
        return "." not in self.dataset

    def holds(self, now: datetime) -> bool:
        return self.until is None or now < self.until


@dataclass(frozen=True, slots=True)
class Project:
    """A loaded project. Every path is absolute; `root` is the folder of the project file."""

    path: Path
    name: str
    catalogs: dict[str, Catalog]
    state: str = field(repr=False)
    inventory: Path
    spark: SparkSettings
    clock: Literal["real", "simulated"]
    ledger: LedgerSettings
    lineage: LineageSettings = field(default_factory=LineageSettings)
    limits: Limits = field(default_factory=Limits)
    plan: PlanSettings = field(default_factory=PlanSettings)
    erasure: ErasureSettings = field(default_factory=ErasureSettings)
    warehouses: tuple[Warehouse, ...] = ()
    tick: str = "1d"
    ignore: tuple[Ignored, ...] = ()
    notify: tuple[Notifier, ...] = ()
    metrics: Metrics = field(default_factory=Metrics)
    unsafe: bool = False
    """`--unsafe` of this run, never of the file: guard ages of orphans may be below a day."""

    @property
    def root(self) -> Path:
        return self.path.parent


def load_project(path: Path) -> Project:
    """Read `ebbtide.yml`. Anything wrong is an `InputError` with file, line and a hint."""
    if path.is_dir():
        path = path / "ebbtide.yml"
    path = path.absolute()
    file, where = yaml.load_with_places(path, _ProjectFile)
    root = path.parent
    checkpoint = file.ledger.checkpoint
    return Project(
        path=path,
        name=file.project,
        catalogs={name: _catalog(name, settings, root, where) for name, settings in file.catalogs.items()},
        state=_database(_state(file.state, where(("state",))), "sqlite:///", root),
        inventory=root / file.inventory,
        spark=file.spark,
        clock=file.clock,
        ledger=LedgerSettings(origin=file.ledger.origin, checkpoint=checkpoint and str(root / checkpoint)),
        lineage=file.lineage,
        limits=file.limits,
        plan=file.plan,
        erasure=file.erasure,
        warehouses=tuple(Warehouse(prefix=_place(w.prefix, root), exclusive=w.exclusive) for w in file.warehouses),
        tick=file.tick,
        ignore=tuple(each.value() for each in file.ignore),
        notify=tuple(each.value(where(("notify", n)), root) for n, each in enumerate(file.notify)),
        metrics=file.metrics.value(root),
    )


def _state(address: str, where: str) -> str:
    """The state's address, which is a file's or a PostgreSQL's. What comes from the environment is not told."""
    found = from_environment(address, where=where)
    scheme, slashes, _ = found.partition("://")
    kind = scheme.partition("+")[0]
    if kind in ("postgresql", "postgres") or found.startswith("sqlite:///"):
        return found
    said = f"the state cannot live in {kind}" if slashes and kind in _ELSEWHERE else "state: not an address of a state"
    raise InputError(said, where=where, hint="write sqlite:///.ebbtide/state.db or postgresql://…")


def _catalog(name: str, settings: CatalogSettings, root: Path, where: Callable[[yaml.Place], str]) -> Catalog:
    def value(key: str, text: str) -> str:
        return from_environment(text, where=where(("catalogs", name, key)))

    options = {key: value(key, str(given)) for key, given in (settings.model_extra or {}).items()}
    if "uri" in options:
        options["uri"] = _database(options["uri"], "jdbc:sqlite:", root)
    place = _place(value("warehouse", settings.warehouse), root)
    return Catalog(name, settings.format, place, settings.type, options, settings.shares_files)


def _place(path: str, root: Path) -> str:
    return path if re.match(r"^[A-Za-z][A-Za-z0-9+.-]*:", path) else str((root / path).resolve())


def _database(address: str, scheme: str, root: Path) -> str:
    """A SQLite address with its path made absolute; every other address as it is."""
    if not address.startswith(scheme) or address == scheme:
        return address
    return scheme + str((root / address.removeprefix(scheme)).resolve())
