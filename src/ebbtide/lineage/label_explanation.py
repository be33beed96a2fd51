"""Why a table or column has a label: where it was said, and the way that it took (spec §3; `ebbtide labels TABLE`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ebbtide.config.classifiers import PII, TIME_GRAIN
from ebbtide.lineage.label_propagation import Arcs, Ints, shortest_path
from ebbtide.lineage.labels import MACHINE, STATIC, USER, ContentGrade, Labels, Word, own_grain


@dataclass(frozen=True, slots=True)
class LabelStop:
    """One stop on the way: a column or table with the label that it had there, and from where that edge is known."""

    name: str
    label: str
    provenance: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Why:
    """One label. `how` is own, reclassified, propagated, derived or schedule; the path runs from the origin to here."""

    label: str
    how: str
    because: str
    path: tuple[LabelStop, ...] = ()


class Explainer:
    """Answers for one set of labels. The edges are turned round once, and asked many times."""

    def __init__(self, labels: Labels) -> None:
        graph = labels.graph
        self._labels, self._graph = labels, graph
        direct = graph.is_direct
        self._column_into = Arcs.of(len(graph.columns), graph.targets[direct], graph.sources[direct])
        self._table_into = Arcs.of(len(graph.tables), graph.table_targets, graph.table_sources)
        self._column_labels, self._table_labels = labels.columns(), labels.tables()

    def columns_of(self, table: int) -> list[int]:
        """The columns of a table, in its order."""
        return np.flatnonzero(self._graph.column_tables == table).tolist()

    def column(self, column: int) -> list[Why]:
        return [self._column_label(column, label) for label in self._column_labels[column]]

    def table(self, table: int) -> list[Why]:
        return [self._table_label(table, label) for label in self._table_labels[table]]

    def _column_label(self, column: int, label: str) -> Why:
        declared, ref = self._labels.declared, self._graph.columns[column]
        if said := declared.columns.get(ref, {}).get(label):
            return Why(label, "own", f"said at {said}", (LabelStop(str(ref), label),))
        change = declared.reclassify.get(ref)
        if change is not None and change.instead is not None:
            return Why(
                label, "reclassified", "its table says so in place of what flows in", (LabelStop(str(ref), label),)
            )
        word = next(word for word in self._labels.column_words if label in word.labels)
        path = self._column_path(column, label, word)
        origin = self._graph.columns[path[0][0]]
        said = declared.columns.get(origin, {}).get(word.labels[path[0][1]])
        first = f"said at {said}" if said else f"reclassified at {origin}"
        steps = [LabelStop(str(origin), word.labels[path[0][1]])]
        for (source, _), (target, bit) in pairwise(path):
            steps.append(
                LabelStop(str(self._graph.columns[target]), word.labels[bit], self._known_from(source, target))
            )
        return Why(label, "propagated", f"flows from {origin}, {first}", tuple(steps))

    def _column_path(self, column: int, label: str, word: Word) -> list[tuple[int, int]]:
        def before(node: int, bit: int, source: int) -> Sequence[int]:
            change = self._labels.declared.reclassify.get(self._graph.columns[node])
            wanted = word.labels[bit]
            if change is not None and change.instead is not None:
                return ()
            changes = change.changes if change is not None else {}
            olds = [old for old, new in changes.items() if new == wanted]
            olds += [wanted] if wanted not in changes else []
            state = int(word.state[source]) & word.flowing
            return [n for old in olds if old in word.labels and state >> (n := word.labels.index(old)) & 1]

        def is_origin(node: int, bit: int) -> bool:
            return bool(int(word.seeds[node]) >> bit & 1)

        return shortest_path(self._column_into, (column, word.labels.index(label)), is_origin, before)

    def _table_label(self, table: int, label: str) -> Why:
        declared, table_id = self._labels.declared, self._graph.tables[table]
        if label.startswith(f"{TIME_GRAIN}."):
            return self._grain(table, label)
        said = declared.tables.get(table_id, {}).get(label)
        if label == USER and self._labels.has_pii[table]:
            return self._derived(table, said)
        if said:
            return Why(label, "own", f"said at {said}", (LabelStop(table_id, label),))
        if label in (MACHINE, STATIC):
            level = ContentGrade.MACHINE if label == MACHINE else ContentGrade.STATIC
            return self._from_inputs(table, label, self._labels.content, int(level), "the strictest of its inputs")
        word = next(word for word in self._labels.table_words if label in word.labels)
        has = ((word.state & np.uint64(word.bit(label))) != 0).astype(np.int64)
        return self._from_inputs(table, label, has, 1, "flows along table lineage")

    def _derived(self, table: int, said: str | None) -> Why:
        for column in self.columns_of(table):
            for why in self.column(column):
                if why.label.startswith(f"{PII}."):
                    also = f"; also said at {said}" if said else ""
                    because = f"{self._graph.columns[column]} has {why.label}{also}"
                    return Why(USER, "derived", because, (*why.path, LabelStop(self._graph.tables[table], USER)))
        raise AssertionError("a table is user data without a PII column")

    def _grain(self, table: int, label: str) -> Why:
        declared, table_id = self._labels.declared, self._graph.tables[table]
        if f"{TIME_GRAIN}.{own_grain(declared, table_id)}" == label:
            how = "own" if table_id in declared.grains else "schedule"
            what = "its time grain" if how == "own" else "its schedule, as it has no time grain of its own"
            return Why(label, how, what, (LabelStop(table_id, label),))
        rank = int(self._labels.grain[table])
        return self._from_inputs(table, label, self._labels.grain, rank, "the longest of its inputs")

    def _from_inputs(self, table: int, label: str, state: Ints, value: int, because: str) -> Why:
        """A path through tables that all have `value`, back to the nearest one that has it of its own."""

        def is_origin(node: int, _: int) -> bool:
            table_id, declared = self._graph.tables[node], self._labels.declared
            own = {*declared.tables.get(table_id, ()), f"{TIME_GRAIN}.{own_grain(declared, table_id)}"}
            return node != table and label in own

        def before(_: int, bit: int, source: int) -> Sequence[int]:
            return (bit,) if int(state[source]) == value else ()

        path = shortest_path(self._table_into, (table, 0), is_origin, before) or [(table, 0)]
        names = [self._graph.tables[node] for node, _ in path]
        return Why(label, "propagated", f"{because}: from {names[0]}", tuple(LabelStop(name, label) for name in names))

    def _known_from(self, source: int, target: int) -> tuple[str, ...]:
        graph = self._graph
        rows = np.flatnonzero((graph.sources == source) & (graph.targets == target) & graph.is_direct)
        return tuple(sorted({graph.provenances[n] for n in graph.origins[rows].tolist()}))
