"""Partitions of an Iceberg table: their ids, the days that they cover, and what lies in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyiceberg.partitioning import PartitionField
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform, VoidTransform
from pyiceberg.types import DateType, IcebergType, IntegerType, LongType, StringType, TimestampType, TimestamptzType

from ebbtide.model.dataset import FileRef, Partition, Role
from ebbtide.model.history import Transaction
from ebbtide.model.ids import partition_id
from ebbtide.model.partition_dates import Days, days_of_transform, narrowest, parse_day


class PartitionNames:
    """Turns a partition tuple of any of a table's specs into its id, and remembers the days that it covers."""

    def __init__(self, table: TableMetadata) -> None:
        self._specs = {spec.spec_id: spec.fields for spec in table.partition_specs}
        # A source column may be gone from the current schema; an older one still knows its type.
        self._types: dict[int, IcebergType] = {}
        for schema in table.schemas:
            for field_id in schema._lazy_id_to_field:
                self._types[field_id] = schema.find_type(field_id)
        self.days: dict[str, Days | None] = {}

    def id_of(self, spec_id: int, values: tuple[Any, ...]) -> str | None:
        """The partition's id; None for an unpartitioned spec."""
        named: list[tuple[str, str | None]] = []
        days: list[Days] = []
        for position, field in enumerate(self._specs[spec_id]):
            if isinstance(field.transform, VoidTransform):
                continue
            value, source = values[position], self._types.get(field.source_id)
            named.append((field.name, None if value is None else _text(field, source, value)))
            if value is not None and (covered := _days(field, source, value)):
                days.append(covered)
        if not named:
            return None
        id_ = partition_id(str(spec_id), named)
        self.days[id_] = narrowest(days)
        return id_


def _text(field: PartitionField, source: IcebergType | None, value: object) -> str:
    if source is None:
        return str(value)
    # The manifest holds the transform's result; human strings want to know what it was made from.
    try:
        return str(field.transform.to_human_string(source, value))
    except (OverflowError, ValueError):  # a date that Python does not have
        return str(value)


def _days(field: PartitionField, source: IcebergType | None, value: object) -> Days | None:
    if isinstance(field.transform, IdentityTransform):
        if isinstance(source, DateType) and isinstance(value, int):
            return days_of_transform("day", value)
        if isinstance(source, TimestampType | TimestamptzType) and isinstance(value, int):
            day = _day_of_micros(value)
            return (day, day) if day else None
        if isinstance(source, StringType | IntegerType | LongType):
            return parse_day(str(value))
        return None
    return days_of_transform(str(field.transform), value) if isinstance(value, int) else None


def _day_of_micros(value: int) -> date | None:
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)).date()
    except OverflowError:
        return None


def partitions_of(
    files: Iterable[FileRef], days: Mapping[str, Days | None], transactions: Iterable[Transaction], main: set[str]
) -> tuple[Partition, ...]:
    """The partitions of the main branch, from the data files that its head references (their paths in `main`)."""
    times = {t.id: t.committed_at for t in transactions}
    groups: dict[str, list[FileRef]] = {}
    for file in files:
        if file.role is Role.DATA and file.partition is not None and file.path in main:
            groups.setdefault(file.partition, []).append(file)
    return tuple(_partition(id_, days.get(id_), groups[id_], times) for id_ in sorted(groups))


def _partition(id_: str, days: Days | None, files: list[FileRef], times: Mapping[str, datetime]) -> Partition:
    landed, last = max(
        ((times[t], t) for f in files if (t := f.first_transaction) is not None and t in times), default=(None, None)
    )
    first_day, last_day = days or (None, None)
    return Partition(
        id=id_,
        date=first_day,
        first_day=first_day,
        last_day=last_day,
        landed_at=landed,
        rows=sum(f.rows or 0 for f in files),
        files=len(files),
        bytes=sum(f.bytes or 0 for f in files),
        last_transaction=last,
    )
