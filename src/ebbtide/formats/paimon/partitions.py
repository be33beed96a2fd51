"""Partitions of the current main branch and their days (formats.md, "Partition dates")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ebbtide.formats.paimon.changes import Tracks
from ebbtide.formats.paimon.manifests import DataFile
from ebbtide.model.dataset import Partition
from ebbtide.model.ids import partition_id
from ebbtide.model.partition_dates import Days, narrowest, parse_day

Values = Sequence[str | None]


@dataclass(frozen=True, slots=True)
class Keys:
    """The partition columns of a table with their types, and the values of each partition that was met."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    values: tuple[tuple[str | None, ...], ...]

    def id_of(self, partition: int) -> str | None:
        """A partition's id; None for a table without partitions. Paimon has one spec for ever."""
        if not self.columns:
            return None
        return partition_id("0", list(zip(self.columns, self.values[partition], strict=True)))

    def days_of(self, partition: int) -> Days | None:
        """The days that a partition covers. A column that is no date says nothing: `day=…/hour=05` is the day."""
        pairs = zip(self.types, self.values[partition], strict=True)
        dated = [days for type_, value in pairs if value is not None and (days := _days(type_, value)) is not None]
        return narrowest(dated)


def _days(type_: str, value: str) -> Days | None:
    if type_.startswith("TIMESTAMP"):
        # One with a zone was turned into text in the zone of this JVM, which may be on another day.
        return None if "LOCAL" in type_ else parse_day(value[:10])
    return parse_day(value)


def partitions_of(keys: Keys, tracks: Tracks) -> tuple[Partition, ...]:
    """The partitions that have live files on main, by id."""
    if not keys.columns:
        return ()
    members: dict[int, list[DataFile]] = {}
    for file in tracks.current.values():
        members.setdefault(file.partition, []).append(file)
    found = [_partition(keys, index, files, tracks) for index, files in members.items()]
    return tuple(sorted(found, key=lambda partition: partition.id))


def _partition(keys: Keys, index: int, files: list[DataFile], tracks: Tracks) -> Partition:
    first_day, last_day = keys.days_of(index) or (None, None)
    adders = [tracks.transactions[by] for file in files if (by := tracks.added_by.get(file.path)) is not None]
    return Partition(
        id=keys.id_of(index) or "",
        date=first_day,
        first_day=first_day,
        last_day=last_day,
        landed_at=max((adder.committed_at for adder in adders), default=None),
        rows=sum(file.rows for file in files),
        files=len(files),
        bytes=sum(file.bytes for file in files),
        last_transaction=tracks.touched.get(index),
    )
