"""Which live files of a Delta table cannot hold somebody, by the bounds that the log has of them.

Bounds are believed for files that were committed since a search looked into all of them, and for no others. What has no
bounds, or none that can be compared, may hold anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation

from ebbtide.formats.delta.actions import DeltaDataFile, Metadata
from ebbtide.formats.erasing import People

Bounds = Mapping[str, tuple[str | None, str | None]]
"""The lowest and highest value of a file's columns, by physical names, as texts."""
_CUT = 32
"""The length that bounds of texts are cut to: one of that length may be the beginning of a larger one."""


_TYPED: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    "decimal": Decimal,
    "date": date.fromisoformat,
}


class Skipping:
    """The columns of a table that may hold somebody, as far as the log has bounds of such columns."""

    def __init__(self, people: People, metadata: Metadata) -> None:
        physical = {name.lower(): given for given, name in metadata.names.items()}
        self._people = people
        self._types = {column.name.lower(): column.type for column in metadata.columns}
        self._columns = {path: physical.get(path.lower()) for path in people.columns}
        self._partitioned = {physical.get(name.lower(), name) for name in metadata.partition_columns}

    @property
    def columns(self) -> list[str]:
        """The physical names of columns of which bounds are needed."""
        return sorted({name for name in self._columns.values() if name is not None} - self._partitioned)

    def may_hold(self, file: DeltaDataFile, bounds: Bounds) -> bool:
        values = dict(file.values)
        return any(self._may_lie(path, name, values, bounds) for path, name in self._columns.items())

    def _may_lie(self, path: str, name: str | None, values: Mapping[str, str | None], bounds: Bounds) -> bool:
        if name is None:
            return True  # inside of a nested column
        value = values.get(name)
        low, high = (value, value) if name in self._partitioned else bounds.get(name, (None, None))
        type_ = self._types[path.lower()]
        # A partition's value is whole, whatever its length.
        typed = [_typed(low, type_), _typed(high, type_, cut=name not in self._partitioned)]
        return self._people.may_lie(path, *typed)


def _typed(bound: str | None, type_: str, *, cut: bool = False) -> object:
    if not bound:
        return None  # an empty partition value is NULL
    if type_ == "string":
        return None if cut and len(bound) >= _CUT else bound
    convert = _TYPED.get(type_.partition("(")[0])
    try:
        return None if convert is None else convert(bound)
    except (ValueError, InvalidOperation):
        return None
