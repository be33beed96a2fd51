"""What Hudi writes of a table beside its data: records of the timeline and of the metadata table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ebbtide.verify.read.avro import Everything
from ebbtide.verify.read.gather import Gathered


def is_metadata(name: str) -> bool:
    """Whether an object is Hudi's own, and no data of a table."""
    return "/.hoodie/" in f"/{name}"


class HudiRecord:
    """Takes records of the timeline and of the metadata table apart. Numbers only count, but in statistics."""

    def __init__(self, schema: Any) -> None:
        self._texts = Everything(schema, numbers=False)
        self._all = Everything(schema)

    def __call__(self, into: Gathered, record: Any) -> None:
        if not isinstance(record, Mapping) or not isinstance(record.get("ColumnStatsMetadata"), Mapping):
            self._texts(into, record)
            return
        stats = dict(record["ColumnStatsMetadata"])
        for side in ("minValue", "maxValue"):
            bound = Gathered()
            wrapped = stats.pop(side, None)
            value = wrapped.get("value", wrapped) if isinstance(wrapped, Mapping) else wrapped
            self._all(bound, value, f"bound of column {stats.get('columnName')}")
            into.take_over(bound, "bound", stats.get("fileName"))
        self._texts(into, {**record, "ColumnStatsMetadata": stats})
