"""Which data files of one version go in an erasure, and which deletes go with them.

A delete goes with the last file that it is for. Deletes by the key of somebody, and files of deletes that name a
partition which is called by one of them, go in any case: all data files that they are for are rewritten.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pyiceberg.table.snapshots import Snapshot

from ebbtide.formats.iceberg.survey import Survey
from ebbtide.model.paths import normalise

DeleteKey = tuple[str, int | None]
"""Where a delete lies: several vectors may lie in one file."""


@dataclass(frozen=True, slots=True)
class Going:
    files: tuple[str, ...]
    deletes: Mapping[DeleteKey, Any]
    """Iceberg's own objects."""
    deleting: frozenset[str]
    """Files of deletes by the key of somebody, whether a data file has them or not."""


def going_from(survey: Survey, snapshot: Snapshot, tasks: Mapping[str, Any], hits: Collection[str]) -> Going:
    """`tasks` are all data files of the version."""
    deletes = {path: {key_of(each): each for each in task.deletes()} for path, task in tasks.items()}
    hit = tasks.keys() & set(hits)
    deleting = survey.deleting(snapshot)
    telling = deleting | {place for path in hit & survey.called(snapshot) for place, _ in deletes[path]}
    hit |= {path for path, each in deletes.items() if any(place in telling for place, _ in each)}
    kept = {key for path, each in deletes.items() if path not in hit for key in each}
    gone = {key: delete for path in sorted(hit) for key, delete in deletes[path].items() if key not in kept}
    return Going(tuple(sorted(hit)), gone, deleting)


def key_of(delete: Any) -> DeleteKey:
    return normalise(delete.location()), delete.contentOffset()
