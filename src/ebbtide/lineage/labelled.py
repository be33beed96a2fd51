"""The inventory with lineage and labels: what the information schema says of tables and columns beyond the scan.

Everything is worked out anew from the project's files and the last scan, so that a label goes when its source goes.
Only the tracing of models is kept between runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.config import Project
from ebbtide.config.classifiers import PII, load_classifiers
from ebbtide.config.tables import TableSettings, load_tables
from ebbtide.errors import InputError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.kernel.engine import table_of
from ebbtide.lineage.cache import FlowCache
from ebbtide.lineage.dbt import Dbt, read_dbt
from ebbtide.lineage.declared import Collector, DeclaredLabels
from ebbtide.lineage.graph import Graph, build_graph, cycles
from ebbtide.lineage.labels import USER, Labels, propagate
from ebbtide.lineage.models import Model, sql_models, trace_models
from ebbtide.lineage.names import Names, written
from ebbtide.lineage.openlineage import Event, flows_of, read_events
from ebbtide.lineage.values import Flow, LineageProblem, ProblemKind

_CACHE = "lineage-cache.json"
EVENTS = "lineage/openlineage"
"""Where events lie when the project names no other folder; `lineage listen` puts them there."""

TABLE_LABELS = pa.schema(
    [
        ("table_id", pa.string()), ("depends", pa.string()), ("classifiers", pa.string()),
        ("labels", pa.list_(pa.field("element", pa.string()))),
        ("own_labels", pa.list_(pa.field("element", pa.string()))), ("schedule", pa.string()),
        ("time_grain", pa.string()), ("is_pii", pa.bool_()), ("is_root", pa.bool_()),
    ]
)  # fmt: skip
COLUMN_LABELS = pa.schema(
    [
        ("table_id", pa.string()), ("column_id", pa.string()), ("classifiers", pa.string()),
        ("labels", pa.list_(pa.field("element", pa.string()))),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lineage:
    """The joined graph, what could not be told, and how many models had to be traced for it."""

    graph: Graph
    flows: tuple[Flow, ...]
    problems: tuple[LineageProblem, ...]
    traced: int


@dataclass(frozen=True, slots=True)
class Labelled:
    """Lineage and labels of one inventory. `left` is what properties said of tables that no catalog lists any more."""

    lineage: Lineage
    labels: Labels
    settings: Mapping[str, TableSettings]
    known: frozenset[str]
    left: DeclaredLabels

    @property
    def problems(self) -> list[LineageProblem]:
        """Every row for a failing check, of lineage and of labels."""
        return sorted([*self.lineage.problems, *self.labels.declared.problems], key=lambda p: (p.where, p))

    def mislabelled(self, inventory: Inventory) -> list[str]:
        """Labels that are on nothing or are none, a line each: what they should protect goes as unlabelled.

        Without those of tables that are gone: they still hold what is left of one.
        """
        former = {each.table_id for each in inventory.current.former}
        return [
            f"{problem.where}: {problem.message}" + (f" ({problem.hint})" if problem.hint else "")
            for problem in self.problems
            if problem.kind is ProblemKind.LABEL and problem.subject not in former
        ]

    def tables(self) -> pa.Table:
        """What the section `tables` says of labels, a row per table that a catalog has."""
        depends = self.labels.graph.depends()
        declared, rows = self.labels.declared, []
        for n, (table_id, labels) in enumerate(zip(self.labels.graph.tables, self.labels.tables(), strict=True)):
            if table_id not in self.known:
                continue
            inputs, settings = depends.get(table_id, []), self.settings.get(table_id)
            is_pii = bool(self.labels.has_pii[n]) or bool(settings and settings.is_pii)
            rows.append(
                (
                    table_id, ",".join(inputs) or None, ",".join(labels) or None, list(labels),
                    sorted(declared.tables.get(table_id, ())), declared.schedules.get(table_id),
                    self.labels.time_grain(n), is_pii, not inputs,
                )
            )  # fmt: skip
        return table_of(rows, TABLE_LABELS)

    def of_former(self, table_id: str) -> list[str]:
        """What is said of a table that no catalog lists any more. Nothing flows into it, and a PII column counts."""
        labels: set[str] = set()
        for declared in (self.labels.declared, self.left):
            labels |= declared.tables.get(table_id, {}).keys()
            columns = (said for ref, said in declared.columns.items() if ref.table_id == table_id)
            if any(label.startswith(f"{PII}.") for said in columns for label in said):
                labels.add(USER)
        return sorted(labels)

    def columns(self) -> pa.Table:
        """What the section `columns` says of labels, a row per column of a table that a catalog has."""
        rows = [
            (ref.table_id, ref.column, ",".join(labels) or None, list(labels))
            for ref, labels in zip(self.labels.graph.columns, self.labels.columns(), strict=True)
            if ref.table_id in self.known
        ]
        return table_of(rows, COLUMN_LABELS)

    def personal_columns(self) -> set[tuple[str, str]]:
        """The columns that are labelled PII, each with its table."""
        labelled = zip(self.labels.graph.columns, self.labels.columns(), strict=True)
        return {(r.table_id, r.column) for r, labels in labelled if any(x.startswith(f"{PII}.") for x in labels)}

    def section(self, inventory: Inventory, name: str) -> pa.Table:
        """A section of the information schema with what labels and lineage add; the others as the scan left them."""
        if name == "lineage":
            return self.lineage.graph.to_arrow()
        rows = inventory.table(name)
        if name == "tables":
            return _filled(rows, self.tables(), ["table_id"])
        return _filled(rows, self.columns(), ["table_id", "column_id"]) if name == "columns" else rows


def _filled(rows: pa.Table, found: pa.Table, keys: list[str]) -> pa.Table:
    """`rows` with the columns of `found`, matched by `keys`."""
    wanted = pc.binary_join_element_wise(*(rows[key] for key in keys), "\n")
    known = pc.binary_join_element_wise(*(found[key] for key in keys), "\n")
    matched = found.take(pc.index_in(wanted, value_set=known.combine_chunks()))
    for name in found.column_names:
        if name in keys:
            continue
        place = rows.schema.get_field_index(name)
        added = (pa.field(name, found.schema.field(name).type), matched[name])
        rows = rows.append_column(*added) if place < 0 else rows.set_column(place, *added)
    return rows


def label_inventory(project: Project, inventory: Inventory) -> Labelled:
    """Read lineage and labels of a project, and carry the labels along. Wrong YAML is an `InputError`."""
    classifiers = load_classifiers(project.root / "classifiers")
    settings = load_tables(project.root / "tables", classifiers)
    columns = _columns(inventory)
    dbt = read_dbt(project.root / project.lineage.dbt) if project.lineage.dbt else Dbt()
    flows, problems, traced, known = _flows(project, inventory, columns, dbt)
    collector = Collector(classifiers, known)
    collector.settings(settings)
    for table_id, found_properties in _properties(inventory).items():
        collector.properties(table_id, found_properties)
    left = Collector(classifiers, {})  # of its own: a label that is wrong there is nobody's problem any more
    for former in inventory.current.former:
        left.properties(former.table_id, dict(former.said))
    _collect_dbt(collector, dbt, _names(project, inventory), {flow.target for flow in flows})
    declared = collector.declared
    for ref in (*declared.columns, *declared.reclassify):
        if ref.table_id in known and ref.column not in known[ref.table_id]:
            # Somebody says that it is there: its labels count until the problem row is looked at.
            known[ref.table_id] = [*known[ref.table_id], ref.column]
    graph = build_graph(flows, known)
    found = [*problems, *(p for flow in flows for p in flow.problems), *cycles(graph)]
    lineage = Lineage(graph, tuple(flows), tuple(sorted(set(found), key=lambda p: (p.where, p))), traced)
    labels = propagate(graph, declared, classifiers)
    return Labelled(lineage, labels, settings, frozenset(inventory.current.entries), left.declared)


def _flows(
    project: Project, inventory: Inventory, columns: Mapping[str, Sequence[str]], dbt: Dbt
) -> tuple[list[Flow], list[LineageProblem], int, dict[str, Sequence[str]]]:
    names = _names(project, inventory)
    known: dict[str, Sequence[str]] = dict(columns)
    for relation, described in dbt.columns.items():
        table_id = names.find(relation) or written(relation)
        if not known.get(table_id):
            known[table_id] = described
    models = [*_sql(project), *dbt.models]
    cache = FlowCache(inventory.folder / _CACHE)
    traced = trace_models(models, known, _locations(inventory), project.lineage.names, cache)
    cache.save()
    for flow in traced.flows:
        if not columns.get(flow.target):
            known[flow.target] = list(dict.fromkeys([*known.get(flow.target, ()), *flow.columns]))
    events, problems = _events(project)
    names = Names(_locations(inventory), project.lineage.names, [flow.target for flow in traced.flows])
    job_flows, unmatched = flows_of(events, names, known)
    flows = [*traced.flows, *job_flows]
    return flows, [*dbt.problems, *traced.problems, *problems, *unmatched], traced.traced, known


def _sql(project: Project) -> list[Model]:
    folder = project.root / (project.lineage.sql or "lineage/")
    if project.lineage.sql and not folder.is_dir():
        raise InputError(f"no folder {project.lineage.sql} for lineage", hint="make it, or correct `lineage: sql:`")
    return sql_models(folder, project.root)


def events_folder(project: Project) -> Path:
    """Where OpenLineage events lie."""
    return project.root / (project.lineage.openlineage or EVENTS)


def _events(project: Project) -> tuple[list[Event], list[LineageProblem]]:
    folder = events_folder(project)
    if project.lineage.openlineage and not folder.exists():
        hint = "`ebbtide lineage listen` makes it; or correct `lineage: openlineage:`"
        raise InputError(f"no folder {project.lineage.openlineage} for OpenLineage events", hint=hint)
    return read_events(folder, project.root)


def _names(project: Project, inventory: Inventory) -> Names:
    return Names(_locations(inventory), project.lineage.names)


def _locations(inventory: Inventory) -> dict[str, str]:
    return {table_id: entry.location for table_id, entry in inventory.current.entries.items()}


def _columns(inventory: Inventory) -> dict[str, list[str]]:
    """The columns of every dataset, in its order. One that could not be read has none that are known."""
    found: dict[str, list[str]] = {table_id: [] for table_id in inventory.current.entries}
    rows = inventory.table("columns").select(["table_id", "column_id", "position"]).sort_by("position")
    for table_id, name in zip(rows["table_id"].to_pylist(), rows["column_id"].to_pylist(), strict=True):
        found[table_id].append(name)
    return found


def _properties(inventory: Inventory) -> dict[str, dict[str, str]]:
    rows = inventory.table("tables").select(["table_id", "properties"]).to_pylist(maps_as_pydicts="lossy")
    return {row["table_id"]: row["properties"] or {} for row in rows}


def _collect_dbt(collector: Collector, dbt: Dbt, names: Names, filled: Collection[str]) -> None:
    """What dbt's meta says. A relation that no catalog has and no model fills is a problem: its labels go nowhere."""
    for said in dbt.labels:
        found = names.find(said.relation)
        table_id = found or written(said.relation)
        if found is None and table_id not in filled:
            collector.no_such_table(table_id, said.where, names.hint(said.relation))
        collector.table_labels(table_id, said.labels, said.where)
        for column, labels in said.columns.items():
            collector.column_labels(table_id, column, labels, said.where)
