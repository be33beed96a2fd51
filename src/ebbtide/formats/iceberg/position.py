"""How far a server's log is in a cold table: properties of the snapshot whose commit brought it there.

The newest ancestor of the head that has them counts: whoever compacts, or removes rows, leaves them behind. So that
snapshot, and those between it and the head, are a floor of retention: without one of them nobody would find it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

PREFIX = "ebbtide.hot."
POSITION = f"{PREFIX}position"


@dataclass(frozen=True, slots=True)
class Position:
    """How far a server's log is in the cold table."""

    system: str
    timeline: int
    at: int
    source: str

    def properties(self) -> dict[str, str]:
        return {
            f"{PREFIX}system": self.system, f"{PREFIX}timeline": str(self.timeline), POSITION: str(self.at),
            f"{PREFIX}source": self.source,
        }  # fmt: skip


def position_of(table: TableMetadata) -> Position | None:
    """Of the newest ancestor of the head that has one."""
    line = _line(table)
    said = _properties(line[-1]) if line else {}
    if POSITION not in said:
        return None
    return Position(
        said[f"{PREFIX}system"], int(said[f"{PREFIX}timeline"]), int(said[POSITION]), said[f"{PREFIX}source"]
    )  # fmt: skip


def needed_for_position(table: TableMetadata) -> tuple[int, ...]:
    """The snapshots that lead from the head to the position, without the head; none where the head has it itself."""
    line = _line(table)
    return tuple(each.snapshot_id for each in line[1:]) if line and POSITION in _properties(line[-1]) else ()


def _line(table: TableMetadata) -> list[Snapshot]:
    """The head and those before it, down to the first that has a position; or as far as they are kept."""
    found: list[Snapshot] = []
    at = table.current_snapshot_id
    while at is not None and (snapshot := table.snapshot_by_id(at)) is not None:
        found.append(snapshot)
        if POSITION in _properties(snapshot):
            break
        at = snapshot.parent_snapshot_id
    return found


def _properties(snapshot: Snapshot) -> dict[str, str]:
    return snapshot.summary.additional_properties if snapshot.summary else {}
