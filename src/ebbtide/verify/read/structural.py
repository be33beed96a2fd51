"""Columns that hold places, counts and versions by their format's own definition, and never a value of a person.

A number of seven digits is soon found among the positions of rows. Only whole numbers are passed over, and only where
the format itself says what they are: by field ids that it reserves, or by names beside others that only it writes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

_ICEBERG_RESERVED = 2147483447
"""Iceberg keeps the ids from here on for itself: row ids, positions, sequence numbers."""
_DELTA_ROW_IDS = ("_row-id-col-", "_row-commit-version-col-")
_PAIMON = ("_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL")
_DELTA_ACTIONS = {"add", "remove", "metaData", "protocol", "txn"}
_DELTA_VALUES = ("partitionValues", "partitionValues_parsed", "stats", "stats_parsed", "tags", "configuration")


def is_place(path: Sequence[str], field_id: int | None, tops: Collection[str]) -> bool:
    """Whether an integer column of a data file is the format's own. `tops` are the names of the top columns."""
    name = path[0]
    if len(path) > 1:
        return False
    if field_id is not None and field_id >= _ICEBERG_RESERVED:
        return True
    if name.startswith(_DELTA_ROW_IDS):
        return True
    return name in _PAIMON and set(_PAIMON[:2]) <= set(tops)


def is_checkpoint(name: str, tops: Collection[str]) -> bool:
    """Whether a Parquet file is a checkpoint of a Delta log, or a sidecar of one."""
    return "/_delta_log/" in name and bool(_DELTA_ACTIONS & set(tops))


def is_fact_of_checkpoint(path: Sequence[str]) -> bool:
    """Whether an integer column of a checkpoint is a size, a time, a count or a version."""
    if len(path) < 2 or path[0] not in (*_DELTA_ACTIONS, "checkpointMetadata", "sidecar", "domainMetadata"):
        return False
    if path[1] in _DELTA_VALUES:
        return len(path) > 2 and path[2] in ("nullCount", "numRecords", "tightBounds")
    return True
