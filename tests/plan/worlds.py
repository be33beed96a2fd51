"""Small worlds for tests: histories written by hand, turned into the information schema by the real inventory code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from ebbtide.config.policies import PolicySet, load_policies
from ebbtide.config.project import Limits
from ebbtide.inventory.rows import rows_of
from ebbtide.inventory.schema import SECTIONS
from ebbtide.kernel.engine import table_of
from ebbtide.model.dataset import Column, FileRef, Partition, Reading, Role
from ebbtide.model.history import Ref, RefKind, Transaction, TransactionKind
from ebbtide.model.ids import DatasetId
from ebbtide.plan.build import build_plan
from ebbtide.plan.plan import Plan
from ebbtide.plan.world import MARKS, ORPHANS, Orders, World

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
ANY_ORDER, DROPS_FILES = "remove versions in any order", "drop exact data files"
EXACT = (ANY_ORDER, DROPS_FILES)


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


@dataclass
class Table:
    """One dataset, commit by commit. Each commit adds one file named after it unless told otherwise."""

    name: str
    format: str = "iceberg"
    capabilities: Sequence[str] = EXACT
    floors: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    partitions: tuple[Partition, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    transactions: list[Transaction] = field(default_factory=list)
    refs: dict[str, Ref] = field(default_factory=dict)
    live: dict[str, frozenset[str]] = field(default_factory=dict)
    files: dict[str, FileRef] = field(default_factory=dict)

    def commit(
        self,
        id_: str,
        days: float,
        *,
        on: str | None = "main",
        parent: str | None = None,
        kind: TransactionKind = TransactionKind.APPEND,
        adds: Sequence[str] | None = None,
        removes: Iterable[str] = (),
        staged: bool = False,
        size: int = 100,
        partition: str | None = None,
    ) -> Table:
        """Commit `days` ago. `on` moves that branch; `parent` is its head unless given. SNAPSHOT removes everything."""
        head = self.refs[on].head if on in self.refs else None
        parent = parent if parent is not None else head
        before = self.live.get(parent or "", frozenset())
        gone = before if kind is TransactionKind.SNAPSHOT else frozenset(removes)
        added = [id_] if adds is None else list(adds)
        for path in added:
            where = path if "/" in path else f"file:///lake/{self.name}/{path}"
            known = FileRef(where, Role.DATA, size, id_, False, partition=partition, rows=10)
            self.files.setdefault(path, known)
        self.live[id_] = (before - gone) | frozenset(added)
        starts = bool(before) and not (before - gone)
        self.transactions.append(Transaction(id_, parent, kind, ago(days), starts, staged))
        if on is not None and not staged:
            self.refs[on] = Ref(on, RefKind.BRANCH, id_, main=on == "main")
        return self

    def branch(self, name: str, at: str) -> Table:
        self.refs[name] = Ref(name, RefKind.BRANCH, at, main=name == "main")
        return self

    def tag(self, name: str, at: str) -> Table:
        self.refs[f"tag {name}"] = Ref(name, RefKind.TAG, at)
        return self

    def drop(self, name: str) -> Table:
        del self.refs[name]
        return self

    def reading(self) -> Reading:
        heads = [r.head for r in self.refs.values() if r.kind is RefKind.BRANCH]
        files = []
        for path, ref in self.files.items():
            mask = sum(1 << n for n, t in enumerate(self.transactions) if path in self.live[t.id])
            files.append(replace(ref, versions=mask, live=any(path in self.live[h] for h in heads if h)))
        return Reading(
            DatasetId.parse(self.name), self.format, f"file:///lake/{self.name}", self.properties, self.columns,
            tuple(self.refs.values()), tuple(self.transactions), self.partitions, tuple(files), self.floors,
            self.unknown,
        )  # fmt: skip


def world(*tables: Table, orphans: Sequence[tuple[Any, ...]] | None = None, **facts: Any) -> World:
    sections: dict[str, list[tuple[object, ...]]] = {name: [] for name in SECTIONS}
    extras = {}
    for table in tables:
        extras[table.name] = table.extra
        for section, rows in rows_of(table.reading(), sorted(table.capabilities), "scan", NOW):
            sections[section] += rows
    made = {name: table_of(rows, SECTIONS[name]).drop_columns(["scan_id"]) for name, rows in sections.items()}
    made["tables"] = _with_extras(made["tables"], extras)
    if orphans is not None:
        facts = {"orphans": table_of(orphans, ORPHANS), "listed_at": NOW, **facts}
    return World(**made, **facts)


def _with_extras(tables: pa.Table, extras: Mapping[str, Any]) -> pa.Table:
    texts = pa.list_(pa.string())
    schema = tables.schema.append(pa.field("locked_by", texts)).append(pa.field("own_labels", texts))
    for name in ("scan_error", "covers", "identity"):
        schema = schema.append(pa.field(name, pa.string()))
    rows = tables.to_pylist(maps_as_pydicts="lossy")
    return pa.Table.from_pylist([{**row, **extras[row["table_id"]]} for row in rows], schema)


def policies(folder: Path, text: str, *, labels: Sequence[str] = ()) -> PolicySet:
    """The policies of a project whose classifiers define these labels."""
    known = [label.split(".") for label in labels]
    for kind in ("classifiers", "policies"):
        (folder / kind).mkdir(exist_ok=True)
    for name in {name for name, _ in known}:
        words = [word for other, word in known if other == name]
        line = f"classifiers: [{{name: {name}, kind: table, propagate: false, labels: [{', '.join(words)}]}}]\n"
        (folder / "classifiers" / f"{name}.yml").write_text(line)
    (folder / "policies" / "p.yml").write_text(text)
    return load_policies(folder, unsafe=True)


def policy(folder: Path, targets: str, select: str = '{tables: ["**"]}', more: str = "") -> PolicySet:
    return policies(folder, f"policies:\n  - {{name: p, select: {select}, {targets}}}\n{more}")


def orders(
    marks: Iterable[tuple[Any, ...]] = (),
    unmarks: Iterable[tuple[Any, ...]] = (),
    holds: Iterable[tuple[Any, ...]] = (),
    marked_days: Iterable[tuple[Any, ...]] = (),
) -> Orders:
    # Most marks have neither `acted_at` nor `act`.
    whole = [(*mark, *[None] * (len(MARKS) - len(mark))) for mark in marks]
    return Orders.of(whole, unmarks, holds, marked_days)


def plan(
    policies_: PolicySet,
    world_: World,
    *,
    marks: Sequence[tuple[Any, ...]] = (),
    unmarks: Sequence[tuple[Any, ...]] = (),
    holds: Sequence[tuple[Any, ...]] = (),
    marked_days: Sequence[tuple[Any, ...]] = (),
    now: datetime = NOW,
    limits: Limits | None = None,
) -> Plan:
    return build_plan(policies_, world_, orders(marks, unmarks, holds, marked_days), now=now, limits=limits)


def decided(made: Plan) -> dict[str, dict[str, Any]]:
    """The objects by `target:id`, or `dataset#target:id` where there are several datasets."""
    rows = list(made.rows())
    several = len({row["dataset"] for row in rows}) > 1
    return {(f"{r['dataset']}#" if several else "") + f"{r['target']}:{r['object']}": r for r in rows}


def decisions(made: Plan) -> dict[str, str]:
    return {key: row["decision"] for key, row in decided(made).items()}


def marked(made: Plan) -> set[str]:
    return {key.split(":", 1)[1] for key, decision in decisions(made).items() if decision == "mark"}


def day_partition(day: date, *, files: int = 1, days: tuple[date | None, date | None] | None = None) -> Partition:
    first, last = days or (day, day)
    return Partition(f"0/day={day}", day, first, last, ago(1), 10, files, 100, "1")
