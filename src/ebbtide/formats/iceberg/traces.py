"""What Iceberg's metadata says of people: bounds of files, values of partitions, and what is made of them.

Whether a value of theirs may be among these is asked of them, in the types of the columns; never the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.partitioning import PartitionField
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import BucketTransform, IdentityTransform, TruncateTransform, VoidTransform
from pyiceberg.types import DecimalType, IcebergType, IntegerType, LongType, PrimitiveType, StringType

from ebbtide.formats.erasing import People
from ebbtide.formats.iceberg.edits import EntryRecord, Record

PATH, LOWER, UPPER = 100, 125, 128
_PARTITION = 102
_SIZES, _COUNTS, _EQUALITY_IDS = 108, 109, 135
_MOST = "\U0010ffff"
_NAMED = "partitions."
_NAMES_PARTITIONS = "partition-summaries-included"


class Traces:
    """People, and the columns of one table that may show them, dropped ones included."""

    def __init__(self, people: People, table: TableMetadata) -> None:
        self._people = people
        self._columns: dict[int, str] = {}
        self._types: dict[int, IcebergType] = {}
        for schema in (*table.schemas, table.schema()):
            for id_, name in schema._lazy_id_to_name.items():
                self._types[id_] = schema.find_type(id_)
                if name in people.columns:
                    self._columns[id_] = name
        self._specs = {spec.spec_id: spec.fields for spec in table.partition_specs}
        self.by_partition = any(self._shows(field) for fields in self._specs.values() for field in fields)
        """Whether partitions of the table may be called by them."""

    @property
    def by_bounds(self) -> bool:
        """Whether bounds can tell of all of their columns: those of values inside of lists and maps have none."""
        plain = {name for id_, name in self._columns.items() if isinstance(self._types[id_], PrimitiveType)}
        return plain == set(self._people.columns)

    def may_hold(self, entry: EntryRecord) -> bool:
        """Whether a data file may hold one of them, where `by_bounds`: without a bound it may."""
        low, high = entry.map(LOWER), entry.map(UPPER)
        return any(
            self._people.may_lie(name, self._value(id_, low.get(id_)), self._value(id_, high.get(id_)))
            for id_, name in self._columns.items()
        )

    def in_bounds(self, entry: EntryRecord) -> bool:
        """Whether a file may hold one of them, by its bounds alone."""
        low, high = entry.map(LOWER), entry.map(UPPER)
        if not low and not high:
            return False
        return any(
            self._people.may_lie(name, self._value(id_, low.get(id_)), self._value(id_, high.get(id_)))
            for id_, name in self._columns.items()
        )

    def in_deleting(self, entry: EntryRecord) -> bool:
        """Whether a file of deletes may hold one of them: those columns count that it has."""
        there = {*entry.map(_SIZES), *entry.map(_COUNTS)}
        known = {*(entry.get(_EQUALITY_IDS) or ()), *there} if there else self._columns.keys()
        low, high = entry.map(LOWER), entry.map(UPPER)
        return any(
            self._people.may_lie(name, self._value(id_, low.get(id_)), self._value(id_, high.get(id_)))
            for id_, name in self._columns.items()
            if id_ in known
        )

    def in_partition(self, spec_id: int, entry: EntryRecord, names: Mapping[int, str]) -> bool:
        """Whether the partition of a file may be called by one of them."""
        values = entry.get(_PARTITION) or {}
        return any(
            self._is_theirs(field, _stored(self._types.get(field.source_id), values.get(names.get(field.field_id, ""))))
            for field in self._specs[spec_id]
            if self._shows(field) and values.get(names.get(field.field_id, "")) is not None
        )

    def in_values(self, spec_id: int, values: Sequence[object]) -> bool:
        """The same of a partition's values, in the order of its spec."""
        return any(
            self._is_theirs(field, value)
            for field, value in zip(self._specs[spec_id], values, strict=False)
            if value is not None and self._shows(field)
        )

    def in_summary(self, spec_id: int, summaries: list[Record] | None) -> bool:
        """Whether a bound of a manifest's partitions may be one of theirs."""
        for field, summary in zip(self._specs[spec_id], summaries or (), strict=False):
            if self._shows(field):
                for key in ("lower_bound", "upper_bound"):
                    if summary.get(key) is not None and self._is_theirs(
                        field, self._value(field.source_id, summary[key])
                    ):
                        return True
        return False

    def without_partitions(self, summary: Mapping[str, str]) -> dict[str, str]:
        """A version's summary without partitions by their names, where these may be theirs."""
        if not self.by_partition or not any(key.startswith(_NAMED) for key in summary):
            return dict(summary)
        return {k: v for k, v in summary.items() if not k.startswith(_NAMED) and k != _NAMES_PARTITIONS}

    def names_partitions(self, summaries: Iterator[Mapping[str, str]]) -> bool:
        return self.by_partition and any(key.startswith(_NAMED) for summary in summaries for key in summary)

    def _shows(self, field: PartitionField) -> bool:
        return field.source_id in self._columns and not isinstance(field.transform, (VoidTransform, BucketTransform))

    def _is_theirs(self, field: PartitionField, value: object) -> bool:
        column, transform = self._columns[field.source_id], field.transform
        if isinstance(transform, IdentityTransform):
            return self._people.may_lie(column, value, value)
        if isinstance(transform, TruncateTransform) and isinstance(value, str):
            return self._people.may_lie(column, value, value + _MOST)
        if isinstance(transform, TruncateTransform) and isinstance(value, int):
            return self._people.may_lie(column, value, value + transform.width - 1)
        return True

    def _value(self, id_: int, stored: bytes | None) -> object:
        """A bound in the type that Python has for it; None where that cannot be told."""
        type_ = self._types.get(id_)
        if stored is None or not isinstance(type_, PrimitiveType):
            return None
        try:
            found: object = from_bytes(type_, stored)
        except Exception:  # a bound of a column that was widened since, or one that is damaged
            return None
        return found


def _stored(type_: IcebergType | None, value: Any) -> object:
    """A partition's value as Avro stores it, in the type that Python has for it; None where that cannot be told."""
    if isinstance(type_, StringType) and isinstance(value, str):
        return value
    if isinstance(type_, (IntegerType, LongType)) and isinstance(value, int):
        return value
    if isinstance(type_, DecimalType) and isinstance(value, bytes):
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-type_.scale)
    return None
