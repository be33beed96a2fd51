"""Partitions of the current table and their dates (formats.md, "Partition dates")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from ebbtide.formats.delta.actions import DeltaDataFile, Metadata, Values
from ebbtide.formats.delta.replay import DeltaReplay
from ebbtide.model.dataset import Partition
from ebbtide.model.ids import partition_id
from ebbtide.model.partition_dates import Candidate, DateSource, Days, date_source, parse_day

_SPEC = "0"
_WRITTEN = {"string", "tinyint", "smallint", "int", "bigint"}
_TYPED = {"date", "timestamp", "timestamp_ntz"}
Named = tuple[tuple[str, str | None], ...]


class DeltaPartitionNames:
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

    def all_named(self) -> Iterable[Named]:
        """The values of every partition that was met."""
        return self._known.values()

    def id(self, values: Values) -> str | None:
        if values not in self._ids:
            named = self.named(values)
            self._ids[values] = partition_id(_SPEC, list(named)) if named else None
        return self._ids[values]


def dates_of(metadata: Metadata, names: DeltaPartitionNames) -> DateSource:
    """The one column of the table's partitioning that the dates are in."""
    types = _types(metadata)
    typed = [name for name in metadata.partition_columns if types.get(name) in _TYPED]
    return date_source(typed, (_candidates(named, types) for named in names.all_named()))


def _types(metadata: Metadata) -> dict[str, str]:
    return {column.name: column.type for column in metadata.columns}


def _candidates(named: Named, types: Mapping[str, str]) -> tuple[Candidate, ...]:
    found = []
    for name, value in named:
        type_ = types.get(name, "")
        if type_ in _TYPED:
            found.append(Candidate(name, None if value is None else days_of(value, type_)))
        elif type_ in _WRITTEN:
            found.append(Candidate.written(name, value))
    return tuple(found)


def partitions_of(
    outcome: DeltaReplay,
    metadata: Metadata,
    names: DeltaPartitionNames,
    source: DateSource,
    times: Mapping[int, datetime],
) -> tuple[Partition, ...]:
    """The partitions of the head that hold a file, sorted by id; none where the table is not partitioned."""
    if not metadata.partition_columns:
        return ()
    types = _types(metadata)
    groups: dict[Named, list[DeltaDataFile]] = {}
    for file in outcome.live.values():
        groups.setdefault(names.named(file.values), []).append(file)
    touched = _latest(outcome.touched, names)
    landed = _latest(outcome.landed, names)
    found = [
        _partition(named, files, source, _candidates(named, types), touched, landed, times)
        for named, files in groups.items()
    ]
    return tuple(sorted(found, key=lambda partition: partition.id))


def _latest(versions: Mapping[Values, int], names: DeltaPartitionNames) -> dict[Named, int]:
    latest: dict[Named, int] = {}
    for values, version in versions.items():
        named = names.named(values)
        latest[named] = max(version, latest.get(named, version))
    return latest


def _partition(
    named: Named,
    files: list[DeltaDataFile],
    source: DateSource,
    candidates: tuple[Candidate, ...],
    touched: Mapping[Named, int],
    landed: Mapping[Named, int],
    times: Mapping[int, datetime],
) -> Partition:
    days = source.days(candidates)
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
        candidates=candidates,
    )


def days_of(value: str, type_: str) -> Days | None:
    """The days of one value of a date or a timestamp.

    A timestamp counts by its UTC day. Old writers left its zone out, and nothing says which one it was: no date then.
    """
    if type_ != "timestamp":
        return parse_day(value[: len("yyyy-MM-dd")] if type_ == "timestamp_ntz" else value)
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        return None
    if instant.tzinfo is None:
        return None
    day = instant.astimezone(UTC).date()
    return day, day
