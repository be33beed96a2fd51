"""The log of a hot table's server as a place of requests: it holds rows that left the table, and has a date of its own.

A place is `TABLE#log:POSITION`, one for each act: what the log has from before that position may hold its people.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from ebbtide.erasure.copies import LOG, CopyStep, places_of_copies
from ebbtide.hottier.recycled import LogFacts, fate_of
from ebbtide.hottier.setup import lsn_of, position_of
from ebbtide.model.ids import object_name
from ebbtide.state.erasure import ErasurePlace, PlaceState

_TARGET = "#log:"


def planned_log(table: str, facts: LogFacts, requests: Iterable[str], *, now: datetime) -> CopyStep:
    """The log that an erasure is going to write: no place of a request before it is written."""
    fate = fate_of(facts, None, now=now)
    return CopyStep(
        copy=f"{table}#log", kind=LOG, requests=tuple(sorted(requests)), until=fate.until, because=fate.because
    )


def written_log(
    table: str, facts: LogFacts, position: int, requests: Iterable[str], *, now: datetime
) -> list[ErasurePlace]:
    """The places of an act that took people out: the log up to where it ended."""
    name = object_name(table, "log", lsn_of(position))
    return places_of_copies([_step(name, facts, position, requests, now)], at=now)


def known_logs(stated: Sequence[ErasurePlace], facts: Mapping[str, LogFacts], *, now: datetime) -> list[CopyStep]:
    """What became of the log of earlier acts, where the server says so; of others what was said stays."""
    by_name: dict[str, list[str]] = {}
    for place in stated:
        if place.kind == LOG and place.state is not PlaceState.REMOVED:
            by_name.setdefault(place.place, []).append(place.request)
    return [
        _step(name, facts[table], position_of(at), requests, now)
        for name, requests in sorted(by_name.items())
        for table, _, at in [name.partition(_TARGET)]
        if table in facts
    ]


def is_planned(step: CopyStep) -> bool:
    """Whether it is of a log that is not written yet."""
    return step.kind == LOG and _TARGET not in step.copy


def _step(name: str, facts: LogFacts, position: int, requests: Iterable[str], now: datetime) -> CopyStep:
    fate = fate_of(facts, position, now=now)
    return CopyStep(
        copy=name, kind=LOG, requests=tuple(sorted(requests)), until=fate.until, because=fate.because, gone=fate.gone
    )
