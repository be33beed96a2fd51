"""Keeping the number of segments small: many small scans would otherwise leave many small files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.inventory.current import Current
from ebbtide.inventory.schema import SECTIONS
from ebbtide.inventory.segments import SegmentWriter, read_section

_MOST_SEGMENTS = 64


def current_rows(rows: pa.Table, current: Current) -> pa.Table:
    """Only the rows that the current state counts: those of each dataset's own scan."""
    counted = pa.array([f"{e.table_id}\n{e.scan_id}" for e in current.entries.values() if e.segment], pa.string())
    keys = pc.binary_join_element_wise(rows["table_id"], rows["scan_id"], "\n")
    return rows.filter(pc.is_in(keys, value_set=counted))


def compact(inventory: Path, current: Current) -> Current:
    """Join all segments into one where there are too many. The state that is returned names the new one."""
    return current if len(current.segments) <= _MOST_SEGMENTS else joined(inventory, current, "all")


def joined(inventory: Path, current: Current, suffix: str) -> Current:
    """The same state with all of its rows, and none that no longer count, in one new segment of that name."""
    writer = SegmentWriter(inventory, f"{current.scan_id}-{suffix}")
    for section in SECTIONS:
        for rows in read_section(inventory, section, current.segments):
            writer.write(section, current_rows(rows, current))
    writer.close()
    entries = {
        table_id: replace(entry, segment=writer.segment if entry.segment else "")
        for table_id, entry in current.entries.items()
    }
    return replace(current, entries=entries)
