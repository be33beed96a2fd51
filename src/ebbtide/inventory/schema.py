"""The information schema (spec §3): which sections there are, and their columns.

Every row carries `table_id` and the `scan_id` of the scan that read it; `current.py` says which scan counts.
"""

from __future__ import annotations

import pyarrow as pa

_TEXT, _LONG, _BOOL, _DAY = pa.string(), pa.int64(), pa.bool_(), pa.date32()
_TIME = pa.timestamp("us", tz="UTC")
_TEXTS = pa.list_(pa.field("element", _TEXT))
_SETTINGS = pa.map_(_TEXT, _TEXT)


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([("table_id", _TEXT), ("scan_id", _TEXT), *columns.items()])


SECTIONS: dict[str, pa.Schema] = {
    "tables": _schema(
        format=_TEXT,
        location=_TEXT,
        depends=_TEXT,
        classifiers=_TEXT,
        labels=_TEXTS,
        schedule=_TEXT,
        time_grain=_TEXT,
        is_pii=_BOOL,
        is_root=_BOOL,
        properties=_SETTINGS,
        floors=_SETTINGS,
        capabilities=_TEXTS,
        unknown=_TEXTS,
        scanned_at=_TIME,
        date_column=_TEXT,
        date_by=_TEXT,
        date_doubt=_TEXT,
        partitioned=_BOOL,
    ),
    "columns": _schema(column_id=_TEXT, type=_TEXT, position=_LONG, classifiers=_TEXT, labels=_TEXTS),
    "partitions": _schema(
        partition=_TEXT,
        _date=_DAY,
        first_day=_DAY,
        last_day=_DAY,
        landed_at=_TIME,
        rows=_LONG,
        files=_LONG,
        bytes=_LONG,
        last_transaction=_TEXT,
        candidates=pa.list_(
            pa.field("element", pa.struct([("column", _TEXT), ("value", _TEXT), ("first", _DAY), ("last", _DAY)]))
        ),
    ),
    "branches": _schema(name=_TEXT, kind=_TEXT, head=_TEXT, view_start=_TEXT, protected=_BOOL, main=_BOOL),
    "transactions": _schema(
        transaction_id=_TEXT,
        parent_id=_TEXT,
        branches=_TEXTS,
        kind=_TEXT,
        committed_at=_TIME,
        in_latest_view=_BOOL,
        rows_added=_LONG,
        rows_removed=_LONG,
        files_added=_LONG,
        files_removed=_LONG,
        bytes_added=_LONG,
        bytes_removed=_LONG,
        operation=_TEXT,
        staged=_BOOL,
        starts_view=_BOOL,
        in_views_of=_TEXTS,
        carried_into=_TEXTS,
        position=_LONG,
        expired=_BOOL,
    ),
    "files": _schema(
        path=_TEXT,
        role=_TEXT,
        bytes=_LONG,
        first_transaction=_TEXT,
        live=_BOOL,
        removed_by=_TEXTS,
        partition=_TEXT,
        rows=_LONG,
        versions=pa.list_(pa.field("element", pa.struct([("first", _LONG), ("last", _LONG)]))),
        kept_until=_TIME,
    ),
}
