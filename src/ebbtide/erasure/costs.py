"""What a place costs and when it ends, as far as anybody can tell before (spec §4). Nothing here decides.

Where only a format's reader can merge a version, nobody knows before which of its files are replaced: all of them
count, and so files and bytes are an upper bound there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from ebbtide.erasure.found import TableHits
from ebbtide.model.times import as_text


@dataclass(frozen=True, slots=True)
class Schedule:
    """Runs come at least every `tick`; files that were replaced stay for `window` after the commit."""

    tick: timedelta
    window: timedelta

    def run_after(self, begin: datetime, at: datetime) -> datetime:
        """The first run that is not before `at`, where one is at `begin`."""
        return begin + max(0, -((begin - at) // self.tick)) * self.tick


@dataclass(frozen=True, slots=True)
class StoreCalls:
    """Requests to a store, at least: one for each file, and one for what describes each branch, tag or version."""

    read: int
    written: int
    deleted: int

    @classmethod
    def of(cls, files: int, refs: int) -> StoreCalls:
        return cls(files + refs, files + refs, files + refs)

    def to_dict(self) -> dict[str, int]:
        return {"read": self.read, "written": self.written, "deleted": self.deleted}


@dataclass(frozen=True, slots=True)
class BytesEnd:
    """When the last byte is gone, where runs come in time; `at` is None where no time alone ends it."""

    at: datetime | None
    because: str

    def to_dict(self) -> dict[str, Any]:
        return {"at": None if self.at is None else as_text(self.at), "because": self.because}


def ends_after(begin: datetime, schedule: Schedule, ages: Mapping[str, timedelta | None]) -> BytesEnd:
    """When bytes end that leave the heads with the run at `begin`. `ages` are settings of the format that keep what was
    superseded, each with how long; None where that cannot be told.
    """
    if unknown := next((text for text, age in sorted(ages.items()) if age is None), None):
        return BytesEnd(None, unknown)
    text, age = max(
        ((text, age) for text, age in ages.items() if age is not None), key=lambda one: (one[1], one[0]),
        default=("", timedelta(0)),
    )  # fmt: skip
    if age > schedule.window:
        return BytesEnd(schedule.run_after(begin, begin + age), text)
    return BytesEnd(schedule.run_after(begin, begin + schedule.window), "the first run after readers in flight")


def day_after(day: date) -> datetime:
    """When what is kept through a day is kept no more."""
    return datetime.combine(day + timedelta(days=1), time(), UTC)


def latest(ends: Iterable[BytesEnd]) -> BytesEnd | None:
    """The last of these to end, one that has no end before all; None where there is none."""
    return max(ends, key=lambda one: (one.at is None, one.at or datetime.min, one.because), default=None)  # noqa: DTZ901


def files_of(hits: TableHits, people: Collection[int], shown: int | None = None) -> frozenset[str]:
    """The data files that are replaced for these people, of the versions whose bits are in `shown`, or of all. A delete
    by somebody's key is none of them.
    """
    retained, found = hits.retained, set[str]()
    for part, whose in hits.parts.items():
        if whose.isdisjoint(people) or part not in retained.data.keys() | set(retained.ids):
            continue
        if part in retained.data:
            if shown is None or retained.data[part] & shown:
                found.add(part)
            continue
        bit = 1 << retained.ids.index(part)
        if shown is None or bit & shown:
            found.update(path for path, bits in retained.data.items() if bits & bit)
    return frozenset(found)


def shown_by(hits: TableHits) -> dict[str, int]:
    """The bits of the version that each branch, tag or version shows."""
    versions = {f"version:{id_}": 1 << at for at, id_ in enumerate(hits.retained.ids)}
    return {**versions, **{ref: bits for ref, bits in hits.retained.heads.items() if bits}}
