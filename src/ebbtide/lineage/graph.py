"""All lineage in one graph: columns and tables as numbers, every edge with where it is known from (spec §3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ebbtide.lineage.label_propagation import Arcs, Ints
from ebbtide.lineage.values import ColumnRef, EdgeKind, Flow, LineageProblem, ProblemKind

LINEAGE = pa.schema(
    [
        ("source_column", pa.string()),
        ("target_column", pa.string()),
        ("kind", pa.string()),
        ("provenance", pa.string()),
        ("masking", pa.bool_()),
        ("source_table", pa.string()),
        ("target_table", pa.string()),
    ]
)
_MOST_CYCLE_NAMES = 20


@dataclass(frozen=True, slots=True)
class Graph:
    """Columns and tables by number. Edges are arrays of equal length; the same edge may be known from several sources.

    `column_tables` has the table of each column, `table_sources` and `table_targets` the edges between tables,
    `numbers` the number of each column.
    """

    tables: tuple[str, ...]
    columns: tuple[ColumnRef, ...]
    column_tables: Ints
    sources: Ints
    targets: Ints
    is_direct: npt.NDArray[np.bool_]
    is_masking: npt.NDArray[np.bool_]
    origins: Ints
    provenances: tuple[str, ...]
    table_sources: Ints
    table_targets: Ints
    numbers: Mapping[ColumnRef, int]

    def direct_arcs(self) -> Arcs:
        """The edges along which labels flow."""
        return Arcs.of(len(self.columns), self.sources[self.is_direct], self.targets[self.is_direct])

    def table_arcs(self) -> Arcs:
        return Arcs.of(len(self.tables), self.table_sources, self.table_targets)

    def depends(self) -> dict[str, list[str]]:
        """The tables that each table is made of, sorted."""
        found: dict[str, set[str]] = {}
        for source, target in zip(self.table_sources.tolist(), self.table_targets.tolist(), strict=True):
            found.setdefault(self.tables[target], set()).add(self.tables[source])
        return {table: sorted(inputs) for table, inputs in found.items()}

    def to_arrow(self) -> pa.Table:
        """The section `lineage` of the information schema."""
        names = pa.array([str(ref) for ref in self.columns], pa.string())
        tables = pa.array(self.tables, pa.string())
        kinds = pa.array([EdgeKind.INDIRECT.value, EdgeKind.DIRECT.value], pa.string())
        arrays = [
            names.take(pa.array(self.sources)),
            names.take(pa.array(self.targets)),
            kinds.take(pa.array(self.is_direct.astype(np.int64))),
            pa.array(self.provenances, pa.string()).take(pa.array(self.origins)),
            pa.array(self.is_masking),
            tables.take(pa.array(self.column_tables[self.sources])),
            tables.take(pa.array(self.column_tables[self.targets])),
        ]
        return pa.Table.from_arrays(arrays, schema=LINEAGE)


def build_graph(flows: Iterable[Flow], columns: Mapping[str, Sequence[str]]) -> Graph:
    """Join all flows. Every column of `columns` is a node, and so is every other that an edge names."""
    flows = sorted(flows, key=lambda flow: (flow.provenance, flow.target))
    tables: dict[str, int] = {table_id: n for n, table_id in enumerate(sorted(columns))}
    nodes: dict[ColumnRef, int] = {}
    for table_id in tables:
        for name in columns[table_id]:
            nodes.setdefault(ColumnRef(table_id, name), len(nodes))
    provenances: dict[str, int] = {}
    parts: list[Ints] = []
    between: set[tuple[int, int]] = set()
    for flow in flows:
        origin = provenances.setdefault(flow.provenance, len(provenances))
        target = tables.setdefault(flow.target, len(tables))
        between |= {(tables.setdefault(input_, len(tables)), target) for input_ in flow.inputs}
        filled = [nodes.setdefault(ref, len(nodes)) for ref in (flow.filled() if flow.columns or flow.rows else ())]
        rows = [
            (nodes.setdefault(e.source, len(nodes)), nodes.setdefault(e.target, len(nodes)), e.kind is EdgeKind.DIRECT,
             e.masking, origin)
            for e in flow.edges
        ]  # fmt: skip
        parts.append(np.array(rows, dtype=np.int64).reshape(-1, 5))
        deciding = [nodes.setdefault(ref, len(nodes)) for ref in flow.rows]
        parts.append(_all_pairs(deciding, filled, origin))
    table = np.array([tables.setdefault(ref.table_id, len(tables)) for ref in nodes], dtype=np.int64)
    arrays = np.concatenate([np.empty((0, 5), np.int64), *parts])
    if len(arrays):  # `unique` loads numpy's masked arrays, for nothing where there is no lineage
        arrays = np.unique(arrays, axis=0)
    # A table that reads itself (an incremental model) brings nothing new into it.
    pairs = np.array(sorted(pair for pair in between if pair[0] != pair[1]), dtype=np.int64).reshape(-1, 2)
    return Graph(
        tables=tuple(tables),
        columns=tuple(nodes),
        column_tables=table,
        sources=arrays[:, 0].copy(),
        targets=arrays[:, 1].copy(),
        is_direct=arrays[:, 2].astype(bool),
        is_masking=arrays[:, 3].astype(bool),
        origins=arrays[:, 4].copy(),
        provenances=tuple(provenances),
        table_sources=pairs[:, 0].copy(),
        table_targets=pairs[:, 1].copy(),
        numbers=nodes,
    )


def _all_pairs(deciding: Sequence[int], filled: Sequence[int], origin: int) -> Ints:
    """The indirect edges from what decides about rows to every column that is filled."""
    sources, targets = (
        np.repeat(np.array(deciding, np.int64), len(filled)),
        np.tile(np.array(filled, np.int64), len(deciding)),
    )
    apart = sources != targets
    zeros = np.zeros(int(apart.sum()), np.int64)
    return np.stack([sources[apart], targets[apart], zeros, zeros, zeros + origin], axis=1)


def cycles(graph: Graph) -> list[LineageProblem]:
    """Tables that feed each other, a problem per knot. They are reported; labels reach their fixpoint all the same."""
    problems = []
    for knot in _knots(_cyclic_part(graph)):
        names = sorted(graph.tables[n] for n in knot)
        more = f" and {len(names) - _MOST_CYCLE_NAMES} more" if len(names) > _MOST_CYCLE_NAMES else ""
        message = f"these tables feed each other: {', '.join(names[:_MOST_CYCLE_NAMES])}{more}"
        problems.append(
            LineageProblem(ProblemKind.CYCLE, names[0], names[0], message, "break the cycle where it is not meant")
        )
    return sorted(problems)


def _cyclic_part(graph: Graph) -> dict[int, list[int]]:
    """Successors of the tables that may lie on a cycle: whatever has no way in or no way out is taken off first."""
    sources, targets = graph.table_sources, graph.table_targets
    while sources.size:
        stays = np.isin(sources, targets) & np.isin(targets, sources)
        if stays.all():
            break
        sources, targets = sources[stays], targets[stays]
    found: dict[int, list[int]] = {}
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        found.setdefault(source, []).append(target)
    return found


def _knots(after: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """The strongly connected components of more than one node (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_: list[int] = []
    is_open: set[int] = set()
    knots: list[list[int]] = []
    for root in sorted(after):
        if root in index:
            continue
        work = [(root, iter(after.get(root, ())))]
        index[root] = low[root] = len(index)
        open_.append(root)
        is_open.add(root)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    knot: list[int] = []
                    while not knot or knot[-1] != node:
                        knot.append(open_.pop())
                        is_open.discard(knot[-1])
                    if len(knot) > 1:
                        knots.append(knot)
            elif following not in index:
                index[following] = low[following] = len(index)
                open_.append(following)
                is_open.add(following)
                work.append((following, iter(after.get(following, ()))))
            elif following in is_open:
                low[node] = min(low[node], index[following])
    return knots
