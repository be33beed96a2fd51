"""The columns of the information schema, as spec §3 lists them, for the tests of its sections and of its views."""

from __future__ import annotations

SPEC = {
    "tables": "table_id format location depends classifiers labels schedule time_grain is_pii is_root properties "
    "floors capabilities scanned_at",
    "columns": "table_id column_id type position classifiers labels",
    "partitions": "table_id partition _date first_day last_day landed_at rows files bytes last_transaction",
    "branches": "table_id name kind head view_start protected",
    "transactions": "table_id transaction_id parent_id branches kind committed_at in_latest_view rows_added "
    "rows_removed files_added files_removed bytes_added bytes_removed",
    "files": "table_id path role bytes first_transaction live",
    "scan_errors": "table_id error",
}
