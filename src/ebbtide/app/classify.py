"""`ebbtide classify --suggest`: labels for columns that look personal and have no PII label yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ebbtide.app.datasets import known_dataset
from ebbtide.app.scan import start_session
from ebbtide.config import Project
from ebbtide.config.classifiers import PII, load_classifiers
from ebbtide.governance.patterns import load_tests
from ebbtide.governance.suggest import suggest
from ebbtide.inventory.information_schema import Inventory
from ebbtide.lineage.labelled import label_inventory


def suggest_labels(project: Project, tables: Sequence[str] = ()) -> dict[str, Any]:
    """Proposals for the named tables, or for all, and the tables that could not be looked at."""
    load_tests()  # what is missing is told before Spark starts
    inventory = Inventory.open(project.inventory)
    wanted = {known_dataset(inventory, table) for table in tables} or set(inventory.current.entries)
    columns: dict[str, list[str]] = {}
    for row in label_inventory(project, inventory).section(inventory, "columns").to_pylist():
        is_known = any(label.startswith(f"{PII}.") for label in row["labels"] or ())
        if row["table_id"] in wanted and not is_known:
            columns.setdefault(row["table_id"], []).append(row["column_id"])
    classifiers = load_classifiers(project.root / "classifiers")
    found, unread = suggest(start_session(project), project.catalogs, columns, classifiers)
    return {"suggestions": [asdict(one) for one in found], "unread": [asdict(one) for one in unread]}
