"""`ebbtide labels [TABLE]`: the labels of every table, or those of one with the way that each of them took."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pyarrow.compute as pc

from ebbtide.app.datasets import known_dataset
from ebbtide.config import Project
from ebbtide.inventory.information_schema import Inventory
from ebbtide.lineage.label_explanation import Explainer, Why
from ebbtide.lineage.labelled import Labelled, label_inventory
from ebbtide.lineage.values import LineageProblem, ProblemKind
from ebbtide.model.times import as_text


def list_labels(project: Project) -> dict[str, Any]:
    """A row per table of the inventory, and what could not be told."""
    inventory = Inventory.open(project.inventory)
    labelled = label_inventory(project, inventory)
    return {
        "tables": sorted(labelled.tables().to_pylist(), key=lambda row: row["table_id"]),
        "problems": problem_rows(labelled.problems),
    }


def table_labels(project: Project, dataset: str) -> dict[str, Any]:
    """The labels of one table and of its columns, each with where it was said and how it came here."""
    inventory = Inventory.open(project.inventory)
    table_id = known_dataset(inventory, dataset)
    labelled = label_inventory(project, inventory)
    graph = labelled.labels.graph
    table = graph.tables.index(table_id)
    explainer = Explainer(labelled.labels)
    (row,) = labelled.tables().filter(pc.field("table_id") == table_id).to_pylist()
    scanned_at = inventory.current.entries[table_id].scanned_at
    return {
        "table": table_id,
        **{key: row[key] for key in ("labels", "own_labels", "schedule", "time_grain", "is_pii", "is_root")},
        "depends": row["depends"].split(",") if row["depends"] else [],
        "why": [asdict(why) for why in explainer.table(table)],
        "columns": [
            _column(graph.columns[column].column, explainer.column(column)) for column in explainer.columns_of(table)
        ],
        "problems": problem_rows(_that_touch(labelled, table_id)),
        "scanned_at": as_text(scanned_at),
    }


def _column(name: str, whys: list[Why]) -> dict[str, Any]:
    return {"column": name, "labels": [why.label for why in whys], "why": [asdict(why) for why in whys]}


def _that_touch(labelled: Labelled, table_id: str) -> list[LineageProblem]:
    """What may keep a label from this table: what is said of it and of all that it is made of, and broken files."""
    depends = labelled.lineage.graph.depends()
    above, queue = {table_id}, [table_id]
    for at in queue:
        queue += [name for name in depends.get(at, ()) if name not in above]
        above |= set(depends.get(at, ()))
    return [p for p in labelled.problems if p.kind is ProblemKind.UNREADABLE or p.subject in above]


def problem_rows(problems: list[LineageProblem]) -> list[dict[str, Any]]:
    return [{**asdict(problem), "kind": problem.kind.value} for problem in problems]
