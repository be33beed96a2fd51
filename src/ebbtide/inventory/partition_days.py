"""The days of partitions where `tables/*.yml` says which column is the date, or how it is written (spec §3).

The scan keeps what every column says that may hold a date, so another declaration needs no other scan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.config.tables import PartitionDate, TableSettings
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.partition_dates import Days, parse_day


@dataclass(slots=True)
class DeclaredDates:
    """What people declared, looked up in the scan: the column of each table, and the days of its partitions.

    A table of which no partition has the declared column gets a doubt, and none of its partitions a date.
    """

    tables: list[tuple[str, str, str | None]] = field(default_factory=list)
    partitions: list[tuple[str, str, date | None, date | None]] = field(default_factory=list)


def declared_dates(inventory: Inventory, settings: Mapping[str, TableSettings]) -> DeclaredDates:
    """The dates of every table whose settings declare them."""
    declared = {table_id: about.partition_date for table_id, about in settings.items() if about.partition_date}
    found = DeclaredDates()
    if not declared:
        return found
    rows = inventory.table("partitions").select(["table_id", "partition", "candidates"])
    by_table: dict[str, list[dict[str, Any]]] = {}
    for row in rows.filter(pc.is_in(rows["table_id"], pa.array(sorted(declared), pa.string()))).to_pylist():
        by_table.setdefault(row["table_id"], []).append(row)
    for table_id, partitions in by_table.items():
        about = declared[table_id]
        known = sorted({each["column"] for row in partitions for each in row["candidates"] or ()})
        column = _spelled(about.column, known)
        found.tables.append((table_id, column or about.column, None if column else _doubt(about.column, known)))
        for row in partitions:
            days = _days(row["candidates"] or (), column, about)
            found.partitions.append((table_id, row["partition"], *(days or (None, None))))
    return found


def named_by_dates(
    inventory: Inventory, settings: Mapping[str, TableSettings], personal: Collection[tuple[str, str]]
) -> frozenset[str]:
    """The tables whose partitions' dates are dates by the type of their column, or by a format that somebody declared.

    Digits make no date: a user's number may look like one. Nor does a date of birth: `personal` are the columns, with
    their tables, that are labelled so.
    """
    found: set[str] = set()
    rows = inventory.table("tables").select(["table_id", "date_column", "date_by"]).to_pylist()
    for row in rows:
        table_id, column, is_date = row["table_id"], row["date_column"], row["date_by"] == "type"
        about = settings[table_id].partition_date if table_id in settings else None
        if about is not None:
            same = column is not None and column.lower() == about.column.lower()
            column, is_date = about.column, about.format is not None or (is_date and same)
        if is_date and not any(of == table_id and _is_within(column, name) for of, name in personal):
            found.add(table_id)
    return frozenset(found)


def _is_within(column: str, labelled: str) -> bool:
    """Whether a column is the labelled one, or a field of it."""
    column, labelled = column.lower(), labelled.lower()
    return column == labelled or column.startswith(f"{labelled}.")


def _spelled(column: str, known: list[str]) -> str | None:
    """The declared column as the table spells it."""
    same = [name for name in known if name.lower() == column.lower()]
    return column if column in known else same[0] if len(same) == 1 else None


def _doubt(column: str, known: list[str]) -> str:
    those = f"{', '.join(known)} could be" if known else "no other column could be"
    return f"it is not partitioned by {column}, which partition_date names; {those}"


def _days(candidates: Iterable[Mapping[str, Any]], column: str | None, about: PartitionDate) -> Days | None:
    """A value that cannot be read as declared is no date. What a type or a transform makes a date needs no format."""
    for each in candidates:
        if each["column"] == column:
            if each["value"] is not None and about.format is not None:
                return parse_day(each["value"], about.format)
            return None if each["first"] is None else (each["first"], each["last"])
    return None
