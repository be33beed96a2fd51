"""What becomes of copies that no catalog lists (spec §4): they end within what they keep, or a person sees to them.

Whoever was in a dataset may be in its copies. The last day of such a row there is counted from the run that found it in
the dataset for the last time; when that day has passed, the request goes on by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ebbtide.config.copies import Copy, load_copies
from ebbtide.erasure.places import NotReachable, Places
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.durations import add
from ebbtide.plan.select import pattern
from ebbtide.state.erasure import ErasurePlace, PlaceState

KINDS = frozenset({"archive", "replica", "backup", "topic", "recipient"})
"""Kinds of places that nobody of us can reach."""
LOG = "log"
"""The kind of a server's log that holds rows which left a hot table (`hot_log.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyStep:
    """A copy that may hold these requests' people, and how long still; `until` is None where nobody says."""

    copy: str
    kind: str
    requests: tuple[str, ...]
    until: date | None
    because: str
    gone: bool = False
    """Whether somebody looked, and nothing of them is left there."""

    def to_dict(self) -> dict[str, Any]:
        until = None if self.until is None else self.until.isoformat()
        said = {"copy": self.copy, "kind": self.kind, "because": self.because, "until": until}
        return {**said, "requests": list(self.requests)}


def with_clones(places: Places, copies: Iterable[Copy], inventory: Inventory) -> Places:
    """The places, and the same columns of every clone of theirs; a clone that no catalog lists cannot be looked at."""
    columns = {name: dict(by_column) for name, by_column in places.columns.items()}
    missed = set(places.not_reachable)
    for copy in copies:
        if copy.dataset is None:
            continue
        if (known := _columns_of(copy.dataset, inventory)) is None:
            missed.add(NotReachable(copy.dataset, f"the clone {copy.name}: no catalog lists it", elsewhere=True))
            continue
        for source in _sources(copy, places.columns) - {copy.dataset}:
            own = columns.setdefault(copy.dataset, {})
            for column, names in places.columns[source].items():
                if column.partition(".")[0] in known or column in known:
                    own[column] = tuple(dict.fromkeys((*own.get(column, ()), *names)))
    return Places(columns, tuple(sorted(missed)))


def _sources(copy: Copy, datasets: Iterable[str]) -> set[str]:
    """Those of these datasets that a copy has rows of."""
    names = pa.array(sorted(datasets), pa.string())
    return set(names.filter(pc.match_substring_regex(names, pattern(copy.of))).to_pylist())


def _columns_of(dataset: str, inventory: Inventory) -> set[str] | None:
    if dataset not in inventory.current.entries:
        return None
    return set(inventory.table("columns", table_id=dataset)["column_id"].to_pylist())


def out_of_reach(root: Path) -> list[tuple[str, str]]:
    """What a project has beside its catalogs, and no search of storage reads, each with why."""
    return [
        (each.name, f"a declared {each.kind}: nobody reads it here") for each in load_copies(root) if each.kind in KINDS
    ]


def copy_steps(
    copies: Iterable[Copy],
    carrying: Mapping[str, Collection[str]],
    holding: Mapping[str, Collection[str]],
    stated: Sequence[ErasurePlace],
    *,
    now: datetime,
) -> tuple[CopyStep, ...]:
    """What is to be said of each copy. `carrying` are requests by the dataset whose columns could show their people,
    `holding` by the dataset that does so now, `stated` what was said of places before.

    Who is in no source any more may have been there when the copy was made: a day that was counted once stays, and
    where none was, it is counted from now.
    """
    before = {(each.place, each.request): each for each in stated if each.kind in KINDS}
    found: list[CopyStep] = []
    for copy in copies:
        if copy.kind not in KINDS:
            continue
        sources = _sources(copy, carrying)
        latest = None if copy.keeps is None else add(now.date(), copy.keeps)
        by_day: dict[date | None, list[str]] = {}
        for request in sorted({each for dataset in sources for each in carrying[dataset]}):
            known = before.get((copy.name, request))
            gone = known is not None and not any(request in holding.get(dataset, ()) for dataset in sources)
            by_day.setdefault(known.until if known is not None and gone else latest, []).append(request)
        found += [
            CopyStep(copy=copy.name, kind=copy.kind, requests=tuple(some), until=until, because=_because(copy, until))
            for until, some in sorted(by_day.items(), key=lambda one: (one[0] is None, one[0] or date.min))
        ]
    return tuple(found)


def _because(copy: Copy, until: date | None) -> str:
    if until is None:
        return f"a declared {copy.kind}: nobody says how long it keeps rows, and a person has to see to it"
    return f"a declared {copy.kind}: what left its source is gone from it after {copy.keeps}"


def places_of_copies(steps: Iterable[CopyStep], *, at: datetime) -> list[ErasurePlace]:
    """As places of requests. One whose day has passed holds nobody any more."""
    return [replace(_place(step, at), request=request) for step in steps for request in step.requests]


def _place(step: CopyStep, at: datetime) -> ErasurePlace:
    state = PlaceState.NOT_REACHABLE
    if step.gone:
        state = PlaceState.REMOVED
    elif step.until is not None:
        state = PlaceState.EXPIRES if at.date() <= step.until else PlaceState.REMOVED
    return ErasurePlace(
        request="", place=step.copy, kind=step.kind, state=state, because=step.because, until=step.until, updated_at=at
    )
