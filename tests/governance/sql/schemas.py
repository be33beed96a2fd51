"""Small information schemas for checks and reports, made by the plan's worlds with labels beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ebbtide.config.classifiers import load_classifiers
from ebbtide.config.policies import load_policies
from ebbtide.formats.registry import load_contract_terms
from ebbtide.governance.contracts import leaves
from ebbtide.governance.packs import install
from ebbtide.governance.views import DRIFT, LINEAGE, PROBLEMS, READABLE, SCAN_ERRORS, Schema, register_views
from ebbtide.model.contract import Contract, Drift
from ebbtide.model.dataset import Partition
from ebbtide.model.durations import Duration
from ebbtide.model.history import Kind
from ebbtide.plan.world import HOLDS, MARKS, UNMARKS
from tests.plan.worlds import NOW, Table, world

_COLUMNS = "table_id string, column_id string, type string, position long, classifiers string, labels array<string>"
_OWN = "table_id string, own_labels array<string>"


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
            "is_pii": self.is_pii, "is_root": self.is_root,
            **{key: value for key, value in self.facts.items() if key not in ("format", "properties", "floors")},
        }  # fmt: skip
        made = Table(self.name, partitions=tuple(self.partitions), extra=extra)
        made = replace(made, **{k: v for k, v in self.facts.items() if k in ("format", "properties", "floors")})
        if self.written is not None:
            made.extra.setdefault("partitioned", False)
            # Settings that somebody changed later, or a VACUUM, are no write.
            made.commit("1", self.written).commit("2", 0, kind=Kind.METADATA, adds=[])
        if self.created is not None:
            made.extra["partitioned"] = False
            made.commit("1", self.created, kind=Kind.METADATA, adds=[])
        return made if self.tag is None else made.commit("1", 1).tag(self.tag, "1")


def drifts(format_: str, properties: Mapping[str, str], labels: Mapping[str, Sequence[str]]) -> list[Drift]:
    """What the format says of a table `t` with these columns, whatever its versions are."""
    personal = {name for name, of_column in labels.items() if any(one.startswith("PII.") for one in of_column)}
    contract = Contract("t", is_pii=True, pii_columns=leaves(list(labels), personal), keeps_versions=True)
    types = {name: "struct<…>" if any(o.startswith(f"{name}.") for o in labels) else "string" for name in labels}
    return load_contract_terms(format_).drift(contract, properties, types)


def readable(found: Sequence[Drift]) -> list[tuple[str, str]]:
    return [kept for one in found for kept in one.readable.items()]


def schema(spark: SparkSession, *tables: Labelled, **state: Sequence[tuple[Any, ...]]) -> Schema:
    """`state` gives rows of marks, unmarks, holds, lineage, problems and scan_errors."""
    made = world(spark, *(table.table() for table in tables))
    own = spark.createDataFrame([(t.name, list(t.own)) for t in tables], _OWN)
    columns = [
        (t.name, name, "string", n, ",".join(labels) or None, list(labels))
        for t in tables
        for n, (name, labels) in enumerate(t.columns.items())
    ]
    sections = {
        "marks": MARKS, "unmarks": UNMARKS, "holds": HOLDS, "lineage": LINEAGE, "problems": PROBLEMS,
        "scan_errors": SCAN_ERRORS, "contract_drift": DRIFT, "readable_statistics": READABLE,
    }  # fmt: skip
    state["readable_statistics"] = [
        (t.name, *kept)
        for t in tables
        for kept in readable(drifts(t.facts.get("format", "iceberg"), t.facts.get("properties", {}), t.columns))
    ]
    frames = {name: spark.createDataFrame(list(state.get(name, ())), type_) for name, type_ in sections.items()}
    labelled = replace(made, tables=made.tables.join(own, "table_id"), columns=spark.createDataFrame(columns, _COLUMNS))
    return Schema(world=labelled, **frames)


def with_pack(folder: Path, more: str = "") -> Path:
    """A project folder with the gdpr pack; `more` are policies that come before its own."""
    install("gdpr", folder)
    if more:
        (folder / "policies" / "a.yml").write_text(more)
    return folder


def registered(spark: SparkSession, root: Path, made: Schema, now: datetime = NOW) -> SparkSession:
    """The session in which the schema's views are."""
    policies, classifiers = load_policies(root), load_classifiers(root / "classifiers")
    register_views(made, policies, classifiers, tick=Duration(1, "d"), now=now)
    return spark
