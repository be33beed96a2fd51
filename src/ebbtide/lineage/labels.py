"""Labels after propagation: columns along column lineage, tables along table lineage (spec §3, "Labels").

The rules, in order:

1. A column has its own labels, and those that flow in along direct edges, as its table reclassifies them.
2. `TableContent.user_data` is derived: a table with a PII column has it, whatever else is written on the table. Put on
   by hand it counts too. It does not flow along table lineage.
3. Of what flows in of `TableContent` the strictest wins: machine if any input is, static only if every input is. User
   data is not static, and so is nothing that is made of it. A table's own label beats what flows in.
4. Labels of other table classifiers flow where the classifier propagates; own ones beat those of the same classifier.
5. `TimeGrain` is the longest of the table's own (which defaults to the schedule) and its inputs'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from ebbtide.config.classifiers import PII, TABLE_CONTENT, TIME_GRAIN, Classifiers
from ebbtide.config.tables import Reclassify
from ebbtide.errors import InputError
from ebbtide.lineage.declared import DeclaredLabels
from ebbtide.lineage.graph import Graph
from ebbtide.lineage.label_propagation import Arcs, Bits, Ints, LabelChanges, spread_bits, spread_most
from ebbtide.lineage.values import ColumnRef
from ebbtide.model.durations import as_interval, parse_duration

USER, MACHINE, STATIC = (f"{TABLE_CONTENT}.{name}" for name in ("user_data", "machine_data", "static_data"))
_WORD = 64


class ContentGrade(IntEnum):
    """How strict the content is that flows out of a table. UNTOLD: only from tables that feed each other."""

    UNTOLD = 0
    STATIC = 1
    NONE = 2
    MACHINE = 3


@dataclass(frozen=True, slots=True)
class Word:
    """Up to 64 labels as bits: where they are said, the state that they reached, and which of them flow."""

    labels: tuple[str, ...]
    seeds: Bits
    state: Bits
    flowing: int

    def bit(self, label: str) -> int:
        return 1 << self.labels.index(label) if label in self.labels else 0


@dataclass(frozen=True, slots=True)
class Labels:
    """What propagation found. Columns and tables are numbered as in the graph."""

    graph: Graph
    declared: DeclaredLabels
    column_words: tuple[Word, ...]
    table_words: tuple[Word, ...]
    is_user_data: npt.NDArray[np.bool_]
    has_pii: npt.NDArray[np.bool_]
    content: Ints
    grains: tuple[str, ...]
    grain: Ints

    def columns(self) -> list[tuple[str, ...]]:
        """The labels of every column, sorted."""
        return _decoded(self.column_words, len(self.graph.columns))

    def tables(self) -> list[tuple[str, ...]]:
        """The labels of every table, sorted, `TableContent` and `TimeGrain` included."""
        found = []
        for n, labels in enumerate(_decoded(self.table_words, len(self.graph.tables))):
            grain = self.time_grain(n)
            more = (self.content_label(n), grain and f"{TIME_GRAIN}.{grain}")
            found.append(tuple(sorted([*labels, *filter(None, more)])))
        return found

    def content_label(self, table: int) -> str | None:
        """The one `TableContent` label that counts, or another own label of that classifier."""
        own = [x for x in self.declared.tables.get(self.graph.tables[table], ()) if x.startswith(f"{TABLE_CONTENT}.")]
        if self.is_user_data[table]:
            return USER
        if own:
            return min(own, key=lambda label: (label != MACHINE, label == STATIC, label))
        return {ContentGrade.MACHINE: MACHINE, ContentGrade.STATIC: STATIC}.get(ContentGrade(int(self.content[table])))

    def time_grain(self, table: int) -> str | None:
        """The effective grain, spelled as the table itself does where its own is as long."""
        rank = int(self.grain[table])
        if not rank:
            return None
        own = own_grain(self.declared, self.graph.tables[table])
        return own if own and _days(own) == _days(self.grains[rank - 1]) else self.grains[rank - 1]


def propagate(graph: Graph, declared: DeclaredLabels, classifiers: Classifiers) -> Labels:
    """Carry labels along lineage until nothing changes any more."""
    table_index = {table_id: n for n, table_id in enumerate(graph.tables)}
    columns = _spread_columns(graph, declared, classifiers, graph.numbers)
    has_pii = np.zeros(len(graph.tables), bool)
    for word in columns:
        bits = sum(word.bit(label) for label in word.labels if label.startswith(f"{PII}."))
        has_pii[graph.column_tables[(word.state & np.uint64(bits)) != 0]] = True
    arcs = graph.table_arcs()
    is_user = has_pii.copy()
    for table_id, labels in declared.tables.items():
        if USER in labels and table_id in table_index:
            is_user[table_index[table_id]] = True
    grains = sorted({*declared.grains.values(), *declared.schedules.values()}, key=lambda text: (_days(text), text))
    return Labels(
        graph=graph,
        declared=declared,
        column_words=columns,
        table_words=_spread_tables(graph, arcs, declared, classifiers, table_index),
        is_user_data=is_user,
        has_pii=has_pii,
        content=_spread_content(graph, arcs, declared, is_user),
        grains=tuple(grains),
        grain=_spread_grain(graph, arcs, declared, grains),
    )


def own_grain(declared: DeclaredLabels, table_id: str) -> str | None:
    """A table's own time grain: what is written, else its schedule (spec §3)."""
    return declared.grains.get(table_id) or declared.schedules.get(table_id)


def _spread_columns(
    graph: Graph, declared: DeclaredLabels, classifiers: Classifiers, index: Mapping[ColumnRef, int]
) -> tuple[Word, ...]:
    used = {label for labels in declared.columns.values() for label in labels}
    for change in declared.reclassify.values():
        used |= {*(change.instead or ()), *filter(None, change.changes.values())}
    arcs = graph.direct_arcs()
    words = []
    for labels in _words(sorted(used), declared.reclassify.values()):
        bit = {label: 1 << n for n, label in enumerate(labels)}
        seeds, closed = np.zeros(len(graph.columns), np.uint64), np.zeros(len(graph.columns), np.uint64)
        changes: list[tuple[int, int, int]] = []
        for ref, own in declared.columns.items():
            if ref in index:
                seeds[index[ref]] |= np.uint64(sum(bit.get(label, 0) for label in own))
        for ref, change in declared.reclassify.items():
            if ref not in index:
                continue
            node = index[ref]
            if change.instead is not None:
                seeds[node] |= np.uint64(sum(bit.get(label, 0) for label in set(change.instead)))
                closed[node] = np.uint64((1 << _WORD) - 1)
            for old, new in change.changes.items():
                closed[node] |= np.uint64(bit.get(old, 0))
                changes.append((node, bit.get(old, 0), bit.get(new or "", 0)))
        flowing = sum(bit[label] for label in labels if classifiers.propagates(label))
        words.append(Word(labels, seeds, spread_bits(arcs, seeds, closed, LabelChanges.of(changes), flowing), flowing))
    return tuple(words)


def _spread_tables(
    graph: Graph, arcs: Arcs, declared: DeclaredLabels, classifiers: Classifiers, index: Mapping[str, int]
) -> tuple[Word, ...]:
    used = {label for labels in declared.tables.values() for label in labels}
    words = []
    for labels in _words(sorted(label for label in used if not label.startswith(f"{TABLE_CONTENT}.")), ()):
        bit = {label: 1 << n for n, label in enumerate(labels)}
        seeds, closed = np.zeros(len(graph.tables), np.uint64), np.zeros(len(graph.tables), np.uint64)
        for table_id, own in declared.tables.items():
            if table_id in index:
                seeds[index[table_id]] = np.uint64(sum(bit.get(label, 0) for label in own))
                said = {label.partition(".")[0] for label in own}
                closed[index[table_id]] = np.uint64(sum(bit[x] for x in labels if x.partition(".")[0] in said))
        flowing = sum(bit[label] for label in labels if classifiers.propagates(label))
        words.append(Word(labels, seeds, spread_bits(arcs, seeds, closed, LabelChanges.of(()), flowing), flowing))
    return tuple(words)


def _spread_content(graph: Graph, arcs: Arcs, declared: DeclaredLabels, is_user: npt.NDArray[np.bool_]) -> Ints:
    own = np.zeros(len(graph.tables), np.int64)
    is_root = np.ones(len(graph.tables), bool)
    is_root[graph.table_targets] = False
    own[is_root | is_user] = ContentGrade.NONE
    fixed = is_root.copy()
    for n, table_id in enumerate(graph.tables):
        said = {label for label in declared.tables.get(table_id, ()) if label.startswith(f"{TABLE_CONTENT}.")}
        if said:
            fixed[n] = True
            own[n] = (
                ContentGrade.MACHINE
                if MACHINE in said
                else ContentGrade.STATIC
                if said == {STATIC}
                else ContentGrade.NONE
            )
            if is_user[n]:
                own[n] = max(own[n], ContentGrade.NONE)
    return spread_most(arcs, own, fixed)


def _spread_grain(graph: Graph, arcs: Arcs, declared: DeclaredLabels, grains: list[str]) -> Ints:
    rank = {text: n for n, text in enumerate(grains, 1)}
    own = [rank.get(own_grain(declared, table_id) or "", 0) for table_id in graph.tables]
    return spread_most(arcs, np.array(own, np.int64), np.zeros(len(own), bool))


def _days(text: str) -> int:
    return as_interval(parse_duration(text))


def _words(labels: list[str], changes: Iterable[Reclassify]) -> list[tuple[str, ...]]:
    """Labels in groups of at most 64; those that reclassifications turn into each other stay together."""
    group = {label: {label} for label in labels}
    for change in changes:
        for old, new in change.changes.items():
            if new is not None and old in group and new in group and group[old] is not group[new]:
                group[old] |= group[new]
                for label in group[new]:
                    group[label] = group[old]
    words: list[list[str]] = []
    for together in sorted({id(one): sorted(one) for one in group.values()}.values(), key=lambda one: (-len(one), one)):
        if len(together) > _WORD:
            raise InputError(
                f"{len(together)} labels are reclassified into each other", hint=f"at most {_WORD} can be: use fewer"
            )
        place = next((word for word in words if len(word) + len(together) <= _WORD), None)
        if place is None:
            words.append(place := [])
        place += together
    return [tuple(word) for word in words]


def _decoded(words: tuple[Word, ...], count: int) -> list[tuple[str, ...]]:
    """The labels of each node, from its bits."""
    found: list[tuple[str, ...]] = [()] * count
    for word in words:
        state = word.state.tolist()
        labels = {bits: tuple(x for n, x in enumerate(word.labels) if bits >> n & 1) for bits in set(state)}
        found = [have + labels[bits] for have, bits in zip(found, state, strict=True)]
    return [tuple(sorted(labels)) for labels in found] if len(words) > 1 else found
