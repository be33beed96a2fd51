"""What becomes of the versions of a Delta table when people are erased from it.

A version cannot be rewritten, and ends only with all before it: the log is cut off at one version, which a checkpoint
stands for. Where a version is kept, the cut is there, and versions after it stay with whom they hold.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ebbtide.formats.delta.actions import DeltaDataFile
from ebbtide.formats.delta.read import Replayed
from ebbtide.formats.delta.replay import parts_of, runs_of, undo
from ebbtide.formats.delta.support import unknown_of
from ebbtide.formats.erasing import Erasure, VersionFate
from ebbtide.model.paths import is_inside
from ebbtide.spark.session import profile

_PROFILE = "spark35"
# Features of tables that were erased from and read again. Of any other nobody has looked what a rewritten file does.
_PROVED = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "inCommitTimestamp",
        "inCommitTimestamp-preview",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
_FILES, _FEED = "delta.deletedFileRetentionDuration", "delta.enableChangeDataFeed"


def cannot(table: Replayed) -> str | None:
    """Why nobody is erased from this table; None where it can be done."""
    metadata, protocol = table.outcome.metadata[-1], table.outcome.protocol[-1]

    def is_set(name: str) -> bool:
        return metadata.configuration.get(name, "").lower() == "true"

    if profile() != _PROFILE:
        return "erasing from Delta tables was proved with Spark 3.5 alone"
    if is_set("delta.appendOnly"):
        return "floor:delta.appendOnly=true"
    if is_set("delta.enableRowTracking"):
        return "the table tracks rows (delta.enableRowTracking), and a rewritten file would give them new ids"
    if metadata.generated:
        return "erasing was not proved for tables with generated columns or identities"
    if unproved := sorted((protocol.reader_features | protocol.writer_features) - _PROVED):
        return f"erasing was not proved for tables with the feature {unproved[0]!r}"
    unknown = next(unknown_of(table.log, runs_of(table.log), protocol, metadata), None)
    if unknown is None and table.outcome.missing:
        return f"{len(table.outcome.missing)} files of the current version are missing"
    return unknown


@dataclass(frozen=True, slots=True)
class Course:
    """Where the log is cut off: at `first`, the oldest version that stays, or where that is None at a new head.

    `ending` are versions that end, `why` is what keeps all others beside the head.
    """

    first: int | None
    ending: tuple[str, ...]
    why: str = ""
    kept: Mapping[int, str] = field(default_factory=dict)

    def stays(self, version: int) -> str | None:
        """Why a version that is not the head stays; None where it ends."""
        if self.first is None or version < self.first:
            return None
        return self.kept.get(version, self.why)


def course_of(table: Replayed, erasure: Erasure) -> Course:
    versions, configuration = sorted(table.commits), table.outcome.metadata[-1].configuration
    if erasure.history is VersionFate.REFUSE:
        return Course(versions[0], (), "the table's versions are left to its retention (history: refuse)")
    if configuration.get("delta.enableExpiredLogCleanup", "").lower() == "false":
        return Course(versions[0], (), "floor:delta.enableExpiredLogCleanup=false")
    last = max((version for version in versions if table.commits[version].removes), default=-1)
    kept = {
        version: why.text
        for version, why in ((int(id_), why) for id_, why in erasure.kept.items() if id_.isdecimal())
        if version in table.commits and not (why.setting == _FILES and _is_as_the_head(table, version, last))
    }
    if not kept:
        return Course(None, tuple(str(version) for version in versions[:-1]))
    first = min(kept)
    why = f"{kept[first]} (of version {first}; Delta's log ends only as a whole before a version)"
    return Course(first, tuple(str(version) for version in versions if version < first), why, kept)


def has_feed(table: Replayed) -> bool:
    """Whether rows that a version took away may be read by the feed of its changes."""
    return any(each.configuration.get(_FEED, "").lower() == "true" for each in table.outcome.metadata)


def _is_as_the_head(table: Replayed, version: int, last_removal: int) -> bool:
    """Whether a version needs no file that the head does not need. The head itself is such a one, and counts as kept by
    the floor: it was not superseded yet. What that floor keeps is files, and none of a version like this goes.
    """
    feed = table.commits[version].changes or (has_feed(table) and table.commits[version].removes)
    return not feed and version >= last_removal


def live_at(table: Replayed, version: int) -> dict[str, DeltaDataFile]:
    """The data files of a version of the run that ends at the head."""
    state = dict(table.outcome.live)
    for later in reversed(range(version + 1, max(table.commits) + 1)):
        undo(state, table.commits[later])
    return state


def versions_with(table: Replayed, files: Collection[str]) -> set[int]:
    """The versions that hold one of these files."""
    state, found = dict(table.outcome.live), set[int]()
    for version in reversed(runs_of(table.log)[-1]):
        if any(path in state for path in files):
            found.add(version)
        undo(state, table.commits[version])
    return found


def needed_from(table: Replayed, first: int | None) -> set[str]:
    """What the head needs; and every version from `first` on, where there is one, and the feeds of their changes."""
    if first is None:
        return {path for file in table.outcome.live.values() for path in parts_of(file)}
    needed, feed = {path for file in live_at(table, first).values() for path in parts_of(file)}, has_feed(table)
    for version in range(first, max(table.commits) + 1):
        commit = table.commits[version]
        named = (*commit.adds.values(), *(commit.removes.values() if feed else ()))
        needed |= {path for file in named for path in parts_of(file)}
        needed |= {change.path for change in commit.changes}
    return needed


def changes_before(table: Replayed, version: int) -> dict[str, int]:
    """The table's own files of change data of versions before one, with their sizes.

    Nobody but the feeds of these versions reads them, and nothing tells them from strays when their commits are gone.
    """
    changes = [change for at, commit in table.commits.items() if at < version for change in commit.changes]
    return {change.path: change.bytes or 0 for change in changes if is_inside(change.path, table.location)}
