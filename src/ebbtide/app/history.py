"""`ebbtide history DATASET`: the transactions of one dataset, branch by branch (design.md, "JSON shapes")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ebbtide.app.datasets import known_dataset
from ebbtide.app.history_states import States
from ebbtide.app.state import open_state
from ebbtide.config import Project
from ebbtide.errors import UnreadableError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.history import CONTENT
from ebbtide.model.times import as_text


def dataset_history(project: Project, dataset: str) -> dict[str, Any]:
    """The history of a dataset as the last scan saw it. Transactions run from oldest to newest."""
    inventory = Inventory.open(project.inventory)
    table_id = known_dataset(inventory, dataset)
    entry = inventory.current.entries[table_id]
    if not entry.segment:
        raise UnreadableError(table_id, entry.error or "it could not be read", hint=entry.hint)
    refs = inventory.rows("branches", table_id=table_id)
    transactions = {row["transaction_id"]: row for row in inventory.rows("transactions", table_id=table_id)}
    states = _states(project, inventory, table_id)
    gone = states.gone(transactions)
    known = {ref["name"] for ref in refs if ref["kind"] == "branch"}
    branches = [_branch(ref, transactions, gone, states) for ref in refs if ref["kind"] == "branch"]
    unreachable = [
        _transaction(row, states, in_view=False)
        for row in _ordered([*transactions.values(), *gone])
        if not known.intersection(row["branches"])
    ]
    return {
        "dataset": table_id,
        "branches": sorted(branches, key=lambda b: (not b["main"], b["name"])),
        "tags": [
            {"name": ref["name"], "head": ref["head"], "view_start": ref["view_start"]}
            for ref in refs
            if ref["kind"] == "tag"
        ],
        "unreachable": unreachable,
        "scanned_at": as_text(entry.scanned_at),
        "error": entry.error,
    }


def _ordered(rows: Any) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["committed_at"], row["transaction_id"]))


def _states(project: Project, inventory: Inventory, table_id: str) -> States:
    with open_state(project).reader() as state:
        marks, unmarks = state.marks(datasets=[table_id], only_open=False), state.unmarks([table_id])
    files = inventory.rows("files", table_id=table_id) if marks else []
    alive = {row["first_transaction"] for row in files if row["role"] in CONTENT and row["first_transaction"]}
    return States.of(marks, unmarks, alive, datetime.now(UTC))


def _branch(
    ref: Mapping[str, Any],
    transactions: Mapping[str, dict[str, Any]],
    gone: Sequence[dict[str, Any]],
    states: States,
) -> dict[str, Any]:
    """A branch with its line: walked from the head back to the oldest transaction that is left, before that (or
    between, where versions go in any order) what a sweep removed.
    """
    line: list[dict[str, Any]] = []
    at = ref["head"]
    while at in transactions and len(line) <= len(transactions):
        line.append(transactions[at])
        at = transactions[at]["parent_id"]
    line.reverse()
    line = _ordered([*line, *(row for row in gone if ref["name"] in row["branches"])]) if gone else line
    key = f"branch:{ref['name']}"
    return {
        "name": ref["name"],
        "main": ref["main"],
        "view_start": ref["view_start"],
        "transactions": [_transaction(row, states, in_view=key in row["in_views_of"]) for row in line],
    }


_COUNTS: Sequence[str] = ("rows_added", "rows_removed", "files_added", "files_removed", "bytes_added", "bytes_removed")


def _transaction(row: Mapping[str, Any], states: States, *, in_view: bool) -> dict[str, Any]:
    state, message = states.of_transaction(row["transaction_id"], expired=bool(row["expired"]))
    return {
        "id": row["transaction_id"],
        "parent_id": row["parent_id"],
        "kind": row["kind"],
        "operation": row["operation"],
        "committed_at": as_text(row["committed_at"]),
        "in_latest_view": in_view,
        "state": state,
        "staged": row["staged"],
        "carried_into": row["carried_into"],
        "message": message,
        **{name: row[name] for name in _COUNTS},
    }
