"""`ebbtide tables`: every dataset that the inventory knows, with its sizes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.config import Project
from ebbtide.inventory.information_schema import Inventory


def list_tables(project: Project) -> list[dict[str, Any]]:
    """One row per dataset: the columns of `tables`, counts, and what keeps it from being trusted."""
    inventory = Inventory.open(project.inventory)
    rows = {row["table_id"]: row for row in inventory.rows("tables")}
    transactions = _counts(inventory.table("transactions"), [("transaction_id", "count"), ("committed_at", "max")])
    refs, all_files = inventory.table("branches"), inventory.table("files")
    branches = _counts(refs.filter(pc.equal(refs["kind"], "branch")), [("name", "count")])
    tags = _counts(refs.filter(pc.equal(refs["kind"], "tag")), [("name", "count")])
    live = all_files.filter(pc.and_(pc.equal(all_files["role"], "data"), all_files["live"]))
    data = _counts(live, [("path", "count"), ("bytes", "sum"), ("rows", "sum")])
    files = _counts(all_files, [("path", "count"), ("bytes", "sum")])
    answer = []
    for table_id, entry in sorted(inventory.current.entries.items()):
        row = rows.get(table_id, {"table_id": table_id, "format": None, "location": entry.location or None})
        answer.append(
            row
            | {
                "branches": branches.get(table_id, {}).get("name_count", 0),
                "tags": tags.get(table_id, {}).get("name_count", 0),
                "transactions": transactions.get(table_id, {}).get("transaction_id_count", 0),
                "last_commit": transactions.get(table_id, {}).get("committed_at_max"),
                "rows": data.get(table_id, {}).get("rows_sum"),
                "data_files": data.get(table_id, {}).get("path_count", 0),
                "data_bytes": data.get(table_id, {}).get("bytes_sum") or 0,
                "files": files.get(table_id, {}).get("path_count", 0),
                "bytes": files.get(table_id, {}).get("bytes_sum") or 0,
                "locked_by": list(entry.locked_by),
                "error": entry.error,
                "hint": entry.hint,
            }
        )
    return answer


def _counts(found: pa.Table, aggregates: list[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    rows: list[dict[str, Any]] = found.group_by("table_id").aggregate(aggregates).to_pylist()
    return {row["table_id"]: row for row in rows}
