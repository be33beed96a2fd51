"""What lineage says of columns, fitted to the columns that tables have.

A column that its table lacks (renamed, dropped, misspelt) would be a node that labels neither leave nor reach. It
stands for every column that it may be instead, and is a problem with the nearest name (spec §3: never a silent gap).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ebbtide.config import yaml
from ebbtide.lineage.values import ColumnEdge, ColumnRef, Flow, LineageProblem, ProblemKind


def around(path: str, known: Collection[str]) -> list[str]:
    """A column with the structs around it and the fields inside it; nothing where the table lacks it."""
    spelled = _spelled(path, known)
    if spelled is None:
        return []
    return [
        name for name in known if name == spelled or name.startswith(spelled + ".") or spelled.startswith(name + ".")
    ]


def _spelled(path: str, known: Collection[str]) -> str | None:
    """A column as its table spells it, whatever the case. A field that is not known is its struct."""
    while path and path not in known:
        if (same := next((name for name in known if name.lower() == path.lower()), None)) is not None:
            return same
        path = path.rpartition(".")[0]
    return path or None


class Fit:
    """Fits what one event or one model says of `target`. `columns` gives the columns of each table, as far as known."""

    def __init__(self, columns: Mapping[str, Sequence[str]], where: str, target: str) -> None:
        self._columns, self._where, self._target = columns, where, target
        self.problems: dict[str, LineageProblem] = {}

    def sources(self, ref: ColumnRef) -> list[ColumnRef]:
        """The columns that one column means where it is read: every one of its table where that lacks it.

        The missing one stays among them, because somebody may have put a label on it.
        """
        known = self._columns.get(ref.table_id, ())
        if not known:
            return [ref]
        found = around(ref.column, known)
        if not found:
            self._complain(ref, known, "every input column was taken")
        return [ColumnRef(ref.table_id, name) for name in found or (*known, ref.column)]

    def targets(self, names: Iterable[str]) -> dict[str, list[str]]:
        """The columns of the target that each name fills. One that the target lacks is any that no other name fills."""
        known = self._columns.get(self._target, ())
        if not known:
            return {name: [name] for name in names}
        spelled = {name: _spelled(name, known) for name in names}
        taken = {column.partition(".")[0] for column in spelled.values() if column}
        rest = [column for column in known if "." not in column and column not in taken]
        for name in [name for name, column in spelled.items() if column is None]:
            self._complain(ColumnRef(self._target, name), known, "it was taken for each that nothing else fills")
        return {name: (rest or [name]) if column is None else [column] for name, column in spelled.items()}

    def _complain(self, ref: ColumnRef, known: Sequence[str], instead: str) -> None:
        message = f"{ref.table_id} has no column {ref.column}: {instead}"
        hint = yaml.nearest(ref.column, list(known))
        self.problems[message] = LineageProblem(ProblemKind.FALLBACK, self._where, self._target, message, hint)


def fitted(flow: Flow, columns: Mapping[str, Sequence[str]], where: str) -> Flow:
    """The flow with what it fills as the catalog's table has it."""
    known = set(columns.get(flow.target, ()))
    if not known or known.issuperset(flow.columns):
        return flow
    fit = Fit(columns, where, flow.target)
    filled = fit.targets(flow.columns)
    edges = {
        ColumnEdge(edge.source, ColumnRef(flow.target, name), edge.kind, edge.masking)
        for edge in flow.edges
        for name in filled.get(edge.target.column, [edge.target.column])
    }
    return replace(
        flow,
        columns=tuple(dict.fromkeys(name for names in filled.values() for name in names)),
        edges=tuple(sorted(edge for edge in edges if edge.source != edge.target)),
        problems=(*flow.problems, *fit.problems.values()),
    )
