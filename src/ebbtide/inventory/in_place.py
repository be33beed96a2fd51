"""Datasets whose metadata was changed in place: the same commit says something else than when it was read before.

A token names a commit (an Iceberg metadata file, a listing of a log). Commits are written once, so equal tokens
mean that nothing changed, unless somebody wrote into a file that was there. Only reading it again shows that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ebbtide.inventory.current import DatasetEntry
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.schema import SECTIONS
from ebbtide.kernel.engine import Parquet, connection, current, hand_in

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_OF_THE_SCAN = ("scan_id", "scanned_at", "capabilities")
"""What says when and by which Ebbtide a dataset was read, not what it holds."""


def changed_in_place(before: Inventory, after: Inventory) -> tuple[str, ...]:
    """The datasets that both scans read whole, at the same commit, with other results."""
    entries = after.current.entries
    both = [
        entry
        for entry in before.current.entries.values()
        if entry.table_id in entries and _is_comparable(entry, entries[entry.table_id])
    ]
    if not both:
        return ()
    ids = [entry.table_id for entry in both]
    with connection() as engine:
        first, second = (_digests(engine, inventory, ids) for inventory in (before, after))
    return tuple(sorted(name for name in ids if any(first[s].get(name) != second[s].get(name) for s in SECTIONS)))


def _is_comparable(entry: DatasetEntry, other: DatasetEntry) -> bool:
    was_read = entry.error is None and other.error is None and bool(entry.segment) and bool(other.segment)
    return was_read and bool(entry.token) and (entry.token, entry.depth) == (other.token, other.depth)


def _digests(engine: DuckDBPyConnection, inventory: Inventory, ids: list[str]) -> dict[str, dict[str, int]]:
    """Per section and dataset a number of all its rows, in whatever order they lie."""
    scans = [inventory.current.entries[table_id].scan_id for table_id in ids]
    engine.execute("DROP TABLE IF EXISTS scans")
    hand_in(engine, "scans", pa.table({"table_id": ids, "scan_id": scans}))
    found: dict[str, dict[str, int]] = {}
    for section, schema in SECTIONS.items():
        rows, left_out = inventory.section(section), [name for name in _OF_THE_SCAN if name in schema.names]
        if not isinstance(rows, Parquet):
            found[section] = {}
            continue
        query = (
            "SELECT table_id, sum(hash(r)::HUGEINT) FROM "
            f"(SELECT * EXCLUDE ({', '.join(left_out)}) FROM {current(rows, 'scans')}) r GROUP BY table_id"
        )
        found[section] = dict(engine.execute(query).fetchall())
    return found
