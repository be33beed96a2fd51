"""Small information schemas for checks and reports, made by the plan's worlds with labels beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from ebbtide.config.classifiers import load_classifiers
from ebbtide.config.policies import load_policies
from ebbtide.formats.registry import load_contract_terms
from ebbtide.governance.contracts import leaves
from ebbtide.governance.packs import install
from ebbtide.governance.views import (
    DRIFT,
    HOLDS,
    LINEAGE,
    MARKS,
    PROBLEMS,
    READABLE,
    SCAN_ERRORS,
    UNMARKS,
    Schema,
    register_views,
)
from ebbtide.inventory.schema import SECTIONS
from ebbtide.kernel.engine import table_of
from ebbtide.model.contract import Contract, ContractDrift
from ebbtide.model.dataset import Partition
from ebbtide.model.durations import Duration
from ebbtide.model.history import TransactionKind
from ebbtide.plan.views import plan_views
from ebbtide.plan.world import Orders, World
from tests.plan.worlds import NOW, Table, orders, world

_TICK = Duration(1, "d")


@dataclass
class Labelled:
    """A table with what labels say of it. `own` are those that somebody put on it."""

    name: str
    labels: Sequence[str] = ()
    own: Sequence[str] = ()
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    schedule: str | None = "+1d"
    grain: str | None = None
    is_root: bool = True
    partitions: Sequence[Partition] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    tag: str | None = None
    written: float | None = None
    """How many days ago a table without partitions was written to."""
    created: float | None = None
    """How many days ago one was made that nobody ever wrote to."""

    @property
    def is_pii(self) -> bool:
        return any(label.startswith("PII.") for labels in self.columns.values() for label in labels)

    def table(self) -> Table:
        grain = self.grain or self.schedule
        labels = sorted([*self.labels, *([f"TimeGrain.{grain}"] if grain else [])])
        extra = {
            "labels": labels, "classifiers": ",".join(labels) or None, "schedule": self.schedule, "time_grain": grain,
            "is_pii": self.is_pii, "is_root": self.is_root, "own_labels": list(self.own),
            **{key: value for key, value in self.facts.items() if key not in ("format", "properties", "floors")},
        }  # fmt: skip
        made = Table(self.name, partitions=tuple(self.partitions), extra=extra)
        made = replace(made, **{k: v for k, v in self.facts.items() if k in ("format", "properties", "floors")})
        if self.written is not None:
            made.extra.setdefault("partitioned", False)
            # Settings that somebody changed later, or a VACUUM, are no write.
            made.commit("1", self.written).commit("2", 0, kind=TransactionKind.METADATA, adds=[])
        if self.created is not None:
            made.extra["partitioned"] = False
            made.commit("1", self.created, kind=TransactionKind.METADATA, adds=[])
        return made if self.tag is None else made.commit("1", 1).tag(self.tag, "1")


def drifts(format_: str, properties: Mapping[str, str], labels: Mapping[str, Sequence[str]]) -> list[ContractDrift]:
    """What the format says of a table `t` with these columns, whatever its versions are."""
    personal = {name for name, of_column in labels.items() if any(one.startswith("PII.") for one in of_column)}
    contract = Contract("t", is_pii=True, pii_columns=leaves(list(labels), personal), keeps_versions=True)
    types = {name: "struct<…>" if any(o.startswith(f"{name}.") for o in labels) else "string" for name in labels}
    return load_contract_terms(format_).drift(contract, properties, types)


def readable(found: Sequence[ContractDrift]) -> list[tuple[str, str]]:
    return [kept for one in found for kept in one.readable.items()]


@dataclass(frozen=True)
class Small:
    """A world, what is ordered of it, and further rows of the information schema."""

    world: World
    orders: Orders
    rows: Mapping[str, Sequence[tuple[Any, ...]]]


def schema(*tables: Labelled, **state: Sequence[tuple[Any, ...]]) -> Small:
    """`state` gives rows of marks, unmarks, holds, lineage, problems and scan_errors."""
    made = world(*(table.table() for table in tables))
    columns = [
        (t.name, "", name, "string", n, ",".join(labels) or None, list(labels))
        for t in tables
        for n, (name, labels) in enumerate(t.columns.items())
    ]
    state["readable_statistics"] = [
        (t.name, *kept)
        for t in tables
        for kept in readable(drifts(t.facts.get("format", "iceberg"), t.facts.get("properties", {}), t.columns))
    ]
    ordered = orders(state.get("marks", ()), state.get("unmarks", ()), state.get("holds", ()))
    return Small(replace(made, columns=table_of(columns, SECTIONS["columns"])), ordered, state)


def with_pack(folder: Path, more: str = "") -> Path:
    """A project folder with the gdpr pack; `more` are policies that come before its own."""
    install("gdpr", folder)
    if more:
        (folder / "policies" / "a.yml").write_text(more)
    return folder


def registered(
    spark: SparkSession, root: Path, made: Small, now: datetime = NOW, tick: Duration = _TICK
) -> SparkSession:
    """The session in which the schema's views are."""
    policies, classifiers = load_policies(root), load_classifiers(root / "classifiers")
    views = plan_views(policies, made.world, made.orders, tick=tick, now=now)
    tables = {
        "tables": views.tables, "partitions": views.partitions, "retention": views.retention,
        "columns": made.world.columns, "branches": made.world.branches, "transactions": made.world.transactions,
        "files": made.world.files,
    }  # fmt: skip
    sections = {
        "marks": MARKS, "unmarks": UNMARKS, "holds": HOLDS, "lineage": LINEAGE, "problems": PROBLEMS,
        "scan_errors": SCAN_ERRORS, "contract_drift": DRIFT, "readable_statistics": READABLE,
    }  # fmt: skip
    frames = {name: _frame(spark, rows) for name, rows in tables.items()}
    for name, type_ in sections.items():
        width = type_.count(", ") + 1
        rows = [(*row, *[None] * (width - len(row))) for row in made.rows.get(name, ())]
        frames[name] = spark.createDataFrame(rows, type_)
    register_views(spark, Schema(**frames), views.proofs, classifiers, now=now)
    return spark


def _frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    values = [tuple(row.values()) for row in rows.to_pylist(maps_as_pydicts="lossy")]
    return spark.createDataFrame(values, from_arrow_schema(rows.schema))
