"""Tracing one statement over a few tables, for tests that say what must come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ebbtide.lineage.names import Names
from ebbtide.lineage.sql import flow_of
from ebbtide.lineage.statements import outline
from ebbtide.lineage.values import ColumnEdge, EdgeKind, Flow
from ebbtide.model.ids import DatasetId

TABLES: dict[str, list[str]] = {
    "lake.app.users": ["Uid", "email", "name", "addr", "addr.city", "addr.zip", "country", "tags"],
    "lake.app.orders": ["id", "uid", "amount", "ts"],
    "lake.app.t": ["uid", "email", "n"],
    "lake.app.people": ["uid", "addr", "addr.city", "addr.zip"],
    "lake.a.b.deep": ["x", "y"],
}


def trace(sql: str, target: str = "lake.app.t", tables: Mapping[str, Sequence[str]] = TABLES) -> Flow:
    found = outline(sql, where="model.sql")
    names = Names(dict.fromkeys(tables, ""), {})
    near = DatasetId.parse(target)
    resolved = {parts: id_ for parts in found.references if (id_ := names.find(parts, near)) is not None}
    return flow_of(found, target, resolved, tables, where="model.sql", provenance="sql:model.sql")


def short(edge: ColumnEdge) -> str:
    """`users.email > t.email` for a direct edge, `~>` where masked, `?>` for one that only decides about rows."""
    arrow = "?>" if edge.kind is EdgeKind.INDIRECT else "~>" if edge.masking else ">"
    return f"{_short(str(edge.source))} {arrow} {_short(str(edge.target))}"


def _short(name: str) -> str:
    return name.removeprefix("lake.app.").removeprefix("lake.a.b.")


def direct(flow: Flow) -> set[str]:
    return {short(edge) for edge in flow.edges if edge.kind is EdgeKind.DIRECT}


def rows(flow: Flow) -> set[str]:
    """The columns that decide about rows of any target column."""
    return {_short(str(edge.source)) for edge in flow.all_edges() if edge.kind is EdgeKind.INDIRECT}
