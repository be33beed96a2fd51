"""`ebbtide lineage`: every edge with where it is known from, and every name or column that could not be told."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from ebbtide.app.datasets import known_dataset
from ebbtide.app.labels import problem_rows
from ebbtide.config import Project
from ebbtide.inventory.information_schema import Inventory
from ebbtide.lineage.labelled import label_inventory


def list_lineage(project: Project, *, table: str | None = None) -> dict[str, Any]:
    """The joined lineage of SQL files, dbt and OpenLineage events; only the edges into and out of `table` if named."""
    inventory = Inventory.open(project.inventory)
    table_id = known_dataset(inventory, table) if table else None
    lineage = label_inventory(project, inventory).lineage
    edges = lineage.graph.to_arrow()
    if table_id:
        edges = edges.filter((pc.field("source_table") == table_id) | (pc.field("target_table") == table_id))
    keys = [(name, "ascending") for name in ("target_column", "source_column", "kind", "provenance")]
    depends = lineage.graph.depends()
    return {
        "edges": edges.sort_by(keys).to_pylist(),
        "tables": [
            {"table_id": name, "depends": inputs}
            for name, inputs in sorted(depends.items())
            if table_id in (None, name) or table_id in inputs
        ],
        "problems": problem_rows(list(lineage.problems)),
        "models": len(lineage.flows),
        "traced": lineage.traced,
    }
