"""Small worlds of tables and columns with labels, for tests of propagation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ebbtide.config.classifiers import Classifier, ClassifierKind, Classifiers
from ebbtide.config.tables import Reclassify
from ebbtide.lineage.declared import DeclaredLabels
from ebbtide.lineage.graph import build_graph
from ebbtide.lineage.label_explanation import Explainer, Why
from ebbtide.lineage.labels import propagate
from ebbtide.lineage.values import ColumnEdge, ColumnRef, EdgeKind, Flow

CLASSIFIERS = Classifiers.of(
    [
        Classifier("PII", ClassifierKind.COLUMN, True, ("tag", "email", "hashed")),
        Classifier("Note", ClassifierKind.COLUMN, False, ("old",)),
        Classifier("TableContent", ClassifierKind.TABLE, True, ("machine_data", "static_data", "user_data")),
        Classifier("LegalHold", ClassifierKind.TABLE, False, ("is_true",)),
        Classifier("Domain", ClassifierKind.TABLE, True, ("risk", "growth")),
    ]
)
USER, MACHINE, STATIC = "TableContent.user_data", "TableContent.machine_data", "TableContent.static_data"


@dataclass
class World:
    """Tables by letter, each with columns x and y; edges are written `a.x>b.x`, inputs of tables `a>b`."""

    edges: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    tables: Mapping[str, Iterable[str]] = field(default_factory=dict)
    columns: Mapping[str, Iterable[str]] = field(default_factory=dict)
    reclassify: Mapping[str, Reclassify] = field(default_factory=dict)
    schedules: Mapping[str, str] = field(default_factory=dict)
    grains: Mapping[str, str] = field(default_factory=dict)
    indirect: tuple[str, ...] = ()

    def explainer(self) -> tuple[Explainer, dict[str, int], dict[str, int]]:
        flows = []
        for n, (text, kind) in enumerate(
            [*((e, EdgeKind.DIRECT) for e in self.edges), *((e, EdgeKind.INDIRECT) for e in self.indirect)]
        ):
            source, target = (ref(part) for part in text.split(">"))
            edge = ColumnEdge(source, target, kind)
            flows.append(Flow(target.table_id, f"sql:{n}", (source.table_id,), (), (edge,)))
        for text in self.inputs:
            source_table, target_table = (f"l.d.{name}" for name in text.split(">"))
            flows.append(Flow(target_table, f"table:{text}", (source_table,)))
        names = set("".join([*self.edges, *self.inputs, *self.tables, *self.columns, *self.schedules, *self.grains]))
        tables = sorted(names & set("abcdefgh"))
        graph = build_graph(flows, {f"l.d.{name}": ["x", "y"] for name in tables})
        declared = DeclaredLabels(
            tables={f"l.d.{name}": dict.fromkeys(labels, "here") for name, labels in self.tables.items()},
            columns={ref(name): dict.fromkeys(labels, "here") for name, labels in self.columns.items()},
            reclassify={ref(name): change for name, change in self.reclassify.items()},
            schedules={f"l.d.{name}": text for name, text in self.schedules.items()},
            grains={f"l.d.{name}": text for name, text in self.grains.items()},
        )
        labels = propagate(graph, declared, CLASSIFIERS)
        table_numbers = {table_id.removeprefix("l.d."): n for n, table_id in enumerate(graph.tables)}
        column_numbers = {str(one).removeprefix("l.d."): n for n, one in enumerate(graph.columns)}
        return Explainer(labels), table_numbers, column_numbers

    def labels(self, name: str) -> set[str]:
        return {why.label for why in self.why(name)}

    def why(self, name: str) -> list[Why]:
        explainer, tables, columns = self.explainer()
        return explainer.column(columns[name]) if "." in name else explainer.table(tables[name])


def ref(text: str) -> ColumnRef:
    table, _, column = text.partition(".")
    return ColumnRef(f"l.d.{table}", column)
