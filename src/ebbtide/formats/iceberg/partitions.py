"""Partitions of an Iceberg table: their ids, the days that they cover, and what lies in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyiceberg.partitioning import PartitionField
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform, TimeTransform, VoidTransform
from pyiceberg.types import (
    DateType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)

from ebbtide.model.dataset import FileRef, Partition, Role
from ebbtide.model.history import Transaction
from ebbtide.model.ids import partition_id
from ebbtide.model.partition_dates import Candidate, DateSource, Days, date_source, days_of_transform, narrowest

_WRITTEN = (StringType, IntegerType, LongType)
_NANOS = (TimestampNanoType, TimestamptzNanoType)
_INSTANTS = (TimestampType, TimestamptzType, *_NANOS)


class IcebergPartitionNames:
    """Turns a partition tuple of any of a table's specs into its id, and remembers what it says of its date."""

    def __init__(self, table: TableMetadata) -> None:
        self._specs = {spec.spec_id: spec.fields for spec in table.partition_specs}
        # A source column may be gone from the current schema; an older one still knows its name and type.
        self._types: dict[int, IcebergType] = {}
        self._names: dict[int, str] = {}
        for schema in (*table.schemas, table.schema()):
            for field_id in schema._lazy_id_to_field:
                self._types[field_id] = schema.find_type(field_id)
                self._names[field_id] = schema.find_column_name(field_id) or str(field_id)
        self.candidates: dict[str, tuple[Candidate, ...]] = {}

    def id_of(self, spec_id: int, values: tuple[Any, ...]) -> str | None:
        """The partition's id; None for an unpartitioned spec."""
        named: list[tuple[str, str | None]] = []
        for position, field in enumerate(self._specs[spec_id]):
            if isinstance(field.transform, VoidTransform):
                continue
            value, source = values[position], self._types.get(field.source_id)
            named.append((field.name, None if value is None else _text(field, source, value)))
        if not named:
            return None
        id_ = partition_id(str(spec_id), named)
        if id_ not in self.candidates:
            self.candidates[id_] = tuple(self._candidates(spec_id, values))
        return id_

    def _candidates(self, spec_id: int, values: tuple[Any, ...]) -> Iterator[Candidate]:
        """One for each source column that may be a date: of its transforms the narrowest, or the value itself."""
        typed: dict[str, list[Days]] = {}
        for position, field in enumerate(self._specs[spec_id]):
            value, source = values[position], self._types.get(field.source_id)
            name = self._names.get(field.source_id, field.name)
            if _is_typed(field, source):
                days = None if value is None else _days(field, source, value)
                typed.setdefault(name, []).extend([days] if days else [])
            elif isinstance(field.transform, IdentityTransform) and isinstance(source, _WRITTEN):
                yield Candidate.written(name, None if value is None else str(value))
        yield from (Candidate(name, narrowest(days)) for name, days in typed.items())

    def date_source(self) -> DateSource:
        """The one column of all specs that the dates are in."""
        fields = [field for spec in self._specs.values() for field in spec]
        typed = {self._names.get(f.source_id, f.name) for f in fields if _is_typed(f, self._types.get(f.source_id))}
        return date_source(typed, self.candidates.values())


def _text(field: PartitionField, source: IcebergType | None, value: object) -> str:
    if source is None:
        return str(value)
    # The manifest holds the transform's result; human strings want to know what it was made from.
    try:
        return str(field.transform.to_human_string(source, value))
    except (OverflowError, ValueError):  # a date that Python does not have
        return str(value)


def _is_typed(field: PartitionField, source: IcebergType | None) -> bool:
    """Whether the source column's type, or the transform, says that the value is a day or a span of days."""
    if isinstance(field.transform, IdentityTransform):
        return isinstance(source, (DateType, *_INSTANTS))
    return isinstance(field.transform, TimeTransform)


def _days(field: PartitionField, source: IcebergType | None, value: object) -> Days | None:
    if not isinstance(value, int):
        return None
    if not isinstance(field.transform, IdentityTransform):
        return days_of_transform(str(field.transform), value)
    if isinstance(source, DateType):
        return days_of_transform("day", value)
    day = _day_of_micros(value // 1000 if isinstance(source, _NANOS) else value)
    return (day, day) if day else None


def _day_of_micros(value: int) -> date | None:
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)).date()
    except OverflowError:
        return None


def partitions_of(
    files: Iterable[FileRef], names: IcebergPartitionNames, transactions: Iterable[Transaction], main: set[str]
) -> tuple[Partition, ...]:
    """The partitions of the main branch, from the data files that its head references (their paths in `main`)."""
    times = {t.id: t.committed_at for t in transactions}
    groups: dict[str, list[FileRef]] = {}
    for file in files:
        if file.role is Role.DATA and file.partition is not None and file.path in main:
            groups.setdefault(file.partition, []).append(file)
    source = names.date_source()
    return tuple(_partition(id_, source, names.candidates[id_], groups[id_], times) for id_ in sorted(groups))


def _partition(
    id_: str,
    source: DateSource,
    candidates: tuple[Candidate, ...],
    files: list[FileRef],
    times: Mapping[str, datetime],
) -> Partition:
    landed, last = max(
        ((times[t], t) for f in files if (t := f.first_transaction) is not None and t in times), default=(None, None)
    )
    first_day, last_day = source.days(candidates) or (None, None)
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
        candidates=candidates,
    )
