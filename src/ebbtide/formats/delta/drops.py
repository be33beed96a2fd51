"""Taking whole partitions out of the current version, by the exact list of their files, in one commit of Delta's own.

`DELETE WHERE partition = …` would take a late file too, and writes its predicate, values included, into the log.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.formats.delta.java import DeltaJavaTable, LiveAction
from ebbtide.formats.delta.partitions import DeltaPartitionNames
from ebbtide.model.removal import Drop

_APPEND_ONLY = "delta.appendOnly"


def drop_partitions(table: DeltaJavaTable, drops: Sequence[Drop]) -> dict[str, str]:
    """One attempt at the drops; gives those that were sent back, by object."""
    attempt = table.begin()
    metadata = attempt.metadata
    if metadata.configuration.get(_APPEND_ONLY, "").lower() == "true":
        return {drop.object: f"{_APPEND_ONLY} is set" for drop in drops}
    names = DeltaPartitionNames([metadata])
    by_partition: dict[str | None, list[LiveAction]] = {}
    for live in attempt.live_files():
        by_partition.setdefault(names.id(live.file.values), []).append(live)
    going: list[LiveAction] = []
    sent_back: dict[str, str] = {}
    for drop in drops:
        theirs = by_partition.get(drop.partition, []) if drop.partition is not None else []
        late = sum(live.file.path not in drop.paths for live in theirs)
        if drop.partition is None or drop.branch != "main":
            sent_back[drop.object] = "Delta drops whole partitions of its one line only"
        elif late:
            sent_back[drop.object] = f"{late} files came into the partition since the plan"
        else:
            going += theirs
    if going:  # else it was done before, or a writer was first
        attempt.remove(going)
    return sent_back
