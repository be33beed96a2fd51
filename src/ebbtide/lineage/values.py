"""What lineage is made of: edges between columns, inputs of tables, and what could not be told (spec §3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

WHOLE = "*"
"""Stands for the columns of a table whose columns nobody knows."""


class EdgeKind(StrEnum):
    """A value that goes into another (labels flow), or one that only decides which rows there are (they do not)."""

    DIRECT = "direct"
    INDIRECT = "indirect"


@dataclass(frozen=True, slots=True, order=True)
class ColumnRef:
    """One column of one table; a field of a struct is `parent.child`."""

    table_id: str
    column: str

    def __str__(self) -> str:
        return f"{self.table_id}.{self.column}"


@dataclass(frozen=True, slots=True, order=True)
class ColumnEdge:
    """One column feeds another. `masking` says that the value went through a hash, a mask or a count: still direct."""

    source: ColumnRef
    target: ColumnRef
    kind: EdgeKind
    masking: bool = False


class ProblemKind(StrEnum):
    UNREADABLE = "unreadable"  # a file that does not parse, or of a version that is not known
    UNMATCHED = "unmatched"  # a name that no catalog and no model has
    FALLBACK = "fallback"  # a column that could not be told: every input column was taken
    CYCLE = "cycle"  # tables that feed each other
    LABEL = "label"  # a label that is not defined, or on something that is not there


@dataclass(frozen=True, slots=True, order=True)
class LineageProblem:
    """One thing that lineage or labels could not tell: a row for a failing check, never a silent gap."""

    kind: ProblemKind
    where: str
    subject: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    """What one model, or one job, does: it fills `target` from `inputs`.

    `columns` are those that it produces, in order; they are the schema of a view that no catalog knows. `rows` are the
    columns that decide which rows there are, and so stand in an indirect edge to each of `columns`; `edges` has the
    others. `provenance` names the source: `sql:file`, `dbt:model`, `openlineage:job`.
    """

    target: str
    provenance: str
    inputs: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    edges: tuple[ColumnEdge, ...] = ()
    rows: tuple[ColumnRef, ...] = ()
    problems: tuple[LineageProblem, ...] = ()
    is_view: bool = False

    def filled(self) -> list[ColumnRef]:
        """The columns that it produces; the whole table where they are not known."""
        return [ColumnRef(self.target, name) for name in self.columns or (WHOLE,)]

    def all_edges(self) -> Iterator[ColumnEdge]:
        """Every edge, those of `rows` one by one."""
        yield from self.edges
        known = {(edge.source, edge.target) for edge in self.edges if edge.kind is EdgeKind.INDIRECT}
        for source in self.rows:
            for target in self.filled():
                if source != target and (source, target) not in known:
                    yield ColumnEdge(source, target, EdgeKind.INDIRECT)
