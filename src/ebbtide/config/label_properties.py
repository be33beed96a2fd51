"""Table properties in which people write labels: `ebbtide.labels` and `ebbtide.column.<name>.labels` (spec §3)."""

from __future__ import annotations

from collections.abc import Mapping

_TABLE, _COLUMN, _END = "ebbtide.labels", "ebbtide.column.", ".labels"


def label_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Those of a table's properties that hold labels."""
    return {
        key: text
        for key, text in properties.items()
        if key == _TABLE or (key.startswith(_COLUMN) and key.endswith(_END))
    }


def column_of(key: str) -> str | None:
    """The column that a property of labels is about; None where it is about the table."""
    return None if key == _TABLE else key[len(_COLUMN) : -len(_END)]
