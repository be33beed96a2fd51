"""Partitions of the current main branch and their days (formats.md, "Partition dates")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ebbtide.formats.paimon.changes import Tracks
from ebbtide.formats.paimon.manifests import PaimonDataFile
from ebbtide.model.dataset import Partition
from ebbtide.model.ids import partition_id
from ebbtide.model.partition_dates import Candidate, DateSource, Days, date_source, parse_day

Values = Sequence[str | None]
_TYPED = ("DATE", "TIMESTAMP")
_WRITTEN = ("STRING", "VARCHAR", "CHAR", "TINYINT", "SMALLINT", "INT", "BIGINT")


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

    def candidates(self, partition: int) -> tuple[Candidate, ...]:
        """What a partition says of its date, column by column: `day=…/hour=05` says it in the day."""
        found = []
        for name, type_, value in zip(self.columns, self.types, self.values[partition], strict=True):
            if type_.startswith(_TYPED):
                found.append(Candidate(name, None if value is None else _days(type_, value)))
            elif type_.startswith(_WRITTEN):
                found.append(Candidate.written(name, value))
        return tuple(found)

    def date_source(self) -> DateSource:
        """The one partition column that the dates are in."""
        typed = [name for name, type_ in zip(self.columns, self.types, strict=True) if type_.startswith(_TYPED)]
        return date_source(typed, map(self.candidates, range(len(self.values)))) if self.columns else DateSource()


def _days(type_: str, value: str) -> Days | None:
    if type_.startswith("DATE"):
        return parse_day(value)
    # One with a zone was turned into text in the zone of this JVM, which may be on another day.
    return None if "LOCAL" in type_ else parse_day(value[: len("yyyy-MM-dd")])


def partitions_of(keys: Keys, tracks: Tracks) -> tuple[Partition, ...]:
    """The partitions that have live files on main, by id."""
    if not keys.columns:
        return ()
    members: dict[int, list[PaimonDataFile]] = {}
    for file in tracks.current.values():
        members.setdefault(file.partition, []).append(file)
    source = keys.date_source()
    found = [_partition(keys, source, index, files, tracks) for index, files in members.items()]
    return tuple(sorted(found, key=lambda partition: partition.id))


def _partition(keys: Keys, source: DateSource, index: int, files: list[PaimonDataFile], tracks: Tracks) -> Partition:
    candidates = keys.candidates(index)
    first_day, last_day = source.days(candidates) or (None, None)
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
        candidates=candidates,
    )
