"""Partitions of the current table and their dates (formats.md, "Partition dates")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from ebbtide.formats.delta.actions import DataFile, Metadata, Values
from ebbtide.formats.delta.replay import Replay
from ebbtide.model.dataset import Partition
from ebbtide.model.ids import partition_id
from ebbtide.model.partition_dates import Days, narrowest, parse_day

_SPEC = "0"
_WRITTEN = {"string", "tinyint", "smallint", "int", "bigint", "date"}
Named = tuple[tuple[str, str | None], ...]


class PartitionNames:
    """Partition values with the columns' names and in the table's order, and their ids; each is worked out once.

    Values of a table that was replaced keep the names and the order that they were written with.
    """

    def __init__(self, versions: Iterable[Metadata]) -> None:
        self._names: dict[str, str] = {}
        self._order: tuple[str, ...] = ()
        for metadata in versions:
            self._names |= metadata.names
            self._order = metadata.partition_columns
        self._known: dict[Values, Named] = {}
        self._ids: dict[Values, str | None] = {}

    def named(self, values: Values) -> Named:
        if values not in self._known:
            # The protocol writes NULL as an absent, a null or an empty value, of strings too.
            given = {self._names.get(physical, physical): value or None for physical, value in values}
            if given.keys() <= set(self._order):
                given = {name: given.get(name) for name in self._order}
            self._known[values] = tuple(given.items())
        return self._known[values]

    def id(self, values: Values) -> str | None:
        if values not in self._ids:
            named = self.named(values)
            self._ids[values] = partition_id(_SPEC, list(named)) if named else None
        return self._ids[values]


def partitions_of(
    outcome: Replay, metadata: Metadata, names: PartitionNames, times: Mapping[int, datetime]
) -> tuple[Partition, ...]:
    """The partitions of the head that hold a file, sorted by id; none where the table is not partitioned."""
    if not metadata.partition_columns:
        return ()
    types = {column.name: column.type for column in metadata.columns}
    groups: dict[Named, list[DataFile]] = {}
    for file in outcome.live.values():
        groups.setdefault(names.named(file.values), []).append(file)
    touched = _latest(outcome.touched, names)
    landed = _latest(outcome.landed, names)
    found = [_partition(named, files, types, touched, landed, times) for named, files in groups.items()]
    return tuple(sorted(found, key=lambda partition: partition.id))


def _latest(versions: Mapping[Values, int], names: PartitionNames) -> dict[Named, int]:
    latest: dict[Named, int] = {}
    for values, version in versions.items():
        named = names.named(values)
        latest[named] = max(version, latest.get(named, version))
    return latest


def _partition(
    named: Named,
    files: list[DataFile],
    types: Mapping[str, str],
    touched: Mapping[Named, int],
    landed: Mapping[Named, int],
    times: Mapping[int, datetime],
) -> Partition:
    parsed = (days_of(value, types.get(name, "")) for name, value in named if value is not None)
    days = narrowest([d for d in parsed if d is not None])
    rows = [file.live_rows for file in files]
    return Partition(
        id=partition_id(_SPEC, list(named)),
        date=days[0] if days else None,
        first_day=days[0] if days else None,
        last_day=days[1] if days else None,
        landed_at=times[landed[named]] if named in landed else None,
        rows=None if None in rows else sum(row for row in rows if row is not None),
        files=len(files),
        bytes=sum(file.bytes or 0 for file in files),
        last_transaction=str(touched[named]) if named in touched else None,
    )


def days_of(value: str, type_: str) -> Days | None:
    """The days of one partition value.

    A timestamp counts by its UTC day. Old writers left its zone out, and nothing says which one it was: no date then.
    """
    if type_ in _WRITTEN:
        return parse_day(value)
    if type_ == "timestamp_ntz":
        return parse_day(value[:10])
    if type_ != "timestamp":
        return None
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        return None
    if instant.tzinfo is None:
        return None
    day = instant.astimezone(UTC).date()
    return day, day
