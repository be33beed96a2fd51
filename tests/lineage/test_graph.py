"""One graph of all sources: provenance per edge, and cycles that are told and survived."""

from __future__ import annotations

from ebbtide.lineage.graph import build_graph, cycles
from ebbtide.lineage.values import ColumnEdge, ColumnRef, EdgeKind, Flow


def flow(source: str, target: str, provenance: str = "sql:a", kind: EdgeKind = EdgeKind.DIRECT) -> Flow:
    edge = ColumnEdge(ColumnRef(source, "x"), ColumnRef(target, "x"), kind)
    return Flow(target, provenance, (source,), ("x",), (edge,))


def test_an_edge_keeps_every_source_that_knows_it() -> None:
    graph = build_graph([flow("l.d.a", "l.d.b", "sql:one"), flow("l.d.a", "l.d.b", "openlineage:two")], {})
    rows = graph.to_arrow().to_pylist()
    assert [(r["source_column"], r["target_column"], r["kind"]) for r in rows] == [("l.d.a.x", "l.d.b.x", "direct")] * 2
    assert {row["provenance"] for row in rows} == {"sql:one", "openlineage:two"}
    assert {(row["source_table"], row["target_table"]) for row in rows} == {("l.d.a", "l.d.b")}
    assert graph.depends() == {"l.d.b": ["l.d.a"]}
    assert graph.direct_arcs().ends.size == 1


def test_the_graph_does_not_depend_on_the_order_of_its_sources() -> None:
    flows = [flow("l.d.a", "l.d.b", "p"), flow("l.d.b", "l.d.c", "q"), flow("l.d.a", "l.d.c", "r")]
    columns = {"l.d.a": ["x"], "l.d.b": ["x"]}
    assert build_graph(flows, columns).to_arrow() == build_graph(flows[::-1], columns).to_arrow()


def test_only_direct_edges_carry_labels() -> None:
    graph = build_graph([flow("l.d.a", "l.d.b", kind=EdgeKind.INDIRECT)], {})
    assert graph.direct_arcs().ends.size == 0
    assert graph.depends() == {"l.d.b": ["l.d.a"]}


def test_cycles_are_told_once_each_and_a_table_that_reads_itself_is_none() -> None:
    pairs = ["ab", "bc", "ca", "cd", "de", "ed", "fa", "gg", "dh"]
    graph = build_graph([flow(f"l.d.{pair[0]}", f"l.d.{pair[1]}", pair) for pair in pairs], {})
    found = cycles(graph)
    assert [problem.message for problem in found] == [
        "these tables feed each other: l.d.a, l.d.b, l.d.c",
        "these tables feed each other: l.d.d, l.d.e",
    ]


def test_an_empty_project_has_an_empty_graph() -> None:
    graph = build_graph([], {"l.d.a": ["x"]})
    assert graph.to_arrow().num_rows == 0
    assert cycles(graph) == []
    assert graph.tables == ("l.d.a",)
