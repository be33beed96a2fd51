"""What the last run traced, so that the next one traces only what changed. Losing it costs time, nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ebbtide.lineage.names import Parts
from ebbtide.lineage.values import ColumnEdge, ColumnRef, EdgeKind, Flow, LineageProblem, ProblemKind
from ebbtide.private import private_file, private_folder

_LAYOUT = f"3 {version('sqlglot')}"  # another parser may trace otherwise


@dataclass(frozen=True, slots=True)
class CachedModel:
    """One model as it was: digest of its text, what it names, fingerprint of what its lineage hangs on, the lineage."""

    digest: str
    target: Parts
    references: tuple[Parts, ...]
    is_view: bool
    fingerprint: str
    flow: Flow


class FlowCache:
    """By provenance. What was not kept in this run is forgotten when it is saved."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._old: dict[str, Any] = {}
        self._new: dict[str, Any] = {}
        if path is not None and path.exists():
            try:
                stored = json.loads(path.read_text(encoding="utf-8"))
                if isinstance(stored, dict) and stored.get("layout") == _LAYOUT:
                    self._old = stored["models"]
            except (OSError, ValueError, KeyError):
                self._old = {}

    def kept(self, key: str) -> CachedModel | None:
        cached = self._old.get(key)
        if cached is None:
            return None
        parts = tuple(tuple(reference) for reference in cached["references"])
        flow = Flow(cached["flow"]["target"], key)
        return CachedModel(
            cached["digest"], tuple(cached["target"]), parts, cached["is_view"], cached["fingerprint"], flow
        )

    def flow(self, key: str, fingerprint: str) -> Flow | None:
        cached = self._old.get(key)
        if cached is None or cached["fingerprint"] != fingerprint:
            return None
        return _flow(cached["flow"], key)

    def keep(self, key: str, kept: CachedModel) -> None:
        old = self._old.get(key)
        if old is not None and old["digest"] == kept.digest and old["fingerprint"] == kept.fingerprint:
            self._new[key] = old
            return
        self._new[key] = {
            "digest": kept.digest, "target": kept.target, "references": kept.references, "is_view": kept.is_view,
            "fingerprint": kept.fingerprint, "flow": _plain(kept.flow),
        }  # fmt: skip

    def save(self) -> None:
        """Write it in one step, where anything changed."""
        if self._path is None or self._new == self._old:
            return
        private_folder(self._path.parent)
        draft = private_file(self._path.with_suffix(f".{os.getpid()}"))
        draft.write_text(json.dumps({"layout": _LAYOUT, "models": self._new}), encoding="utf-8")
        draft.replace(self._path)


def _plain(flow: Flow) -> dict[str, Any]:
    tables = sorted({*(edge.source.table_id for edge in flow.edges), *(ref.table_id for ref in flow.rows)})
    number = {table_id: n for n, table_id in enumerate(tables)}
    return {
        "target": flow.target, "inputs": flow.inputs, "columns": flow.columns, "is_view": flow.is_view,
        "tables": tables,
        "edges": [
            [number[e.source.table_id], e.source.column, e.target.column, e.kind is EdgeKind.DIRECT, e.masking]
            for e in flow.edges
        ],
        "rows": [[number[ref.table_id], ref.column] for ref in flow.rows],
        "problems": [[p.kind, p.where, p.subject, p.message, p.hint] for p in flow.problems],
    }  # fmt: skip


def _flow(plain: dict[str, Any], provenance: str) -> Flow:
    return Flow(
        target=plain["target"],
        provenance=provenance,
        inputs=tuple(plain["inputs"]),
        columns=tuple(plain["columns"]),
        edges=tuple(_edges(plain)),
        rows=tuple(ColumnRef(plain["tables"][table], column) for table, column in plain["rows"]),
        problems=tuple(LineageProblem(ProblemKind(kind), *rest) for kind, *rest in plain["problems"]),
        is_view=plain["is_view"],
    )


def _edges(plain: dict[str, Any]) -> Iterator[ColumnEdge]:
    sources: dict[tuple[int, str], ColumnRef] = {}
    targets: dict[str, ColumnRef] = {}
    for table, source, target, is_direct, masking in plain["edges"]:
        from_ = sources.get((table, source))
        if from_ is None:
            from_ = sources[table, source] = ColumnRef(plain["tables"][table], source)
        to = targets.get(target)
        if to is None:
            to = targets[target] = ColumnRef(plain["target"], target)
        yield ColumnEdge(from_, to, EdgeKind.DIRECT if is_direct else EdgeKind.INDIRECT, masking)
