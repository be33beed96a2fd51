"""Why a table's references may not be fully known, and which of its settings limit cleanup.

Unknown means no (design.md, invariant 2): a feature that is not listed here may keep files in a way that nobody has
looked at (hazard 19).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from ebbtide.formats.delta.actions import Metadata, Protocol
from ebbtide.formats.delta.log import DeltaLog

_READER_VERSION, _WRITER_VERSION = 3, 7
# Features whose files and actions this adapter reads. Those that move commits into a catalog are left out on purpose.
_READER = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
_WRITER = _READER | {
    "allowColumnDefaults",
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "checkpointProtection",
    "clustering",
    "domainMetadata",
    "generatedColumns",
    "icebergCompatV1",
    "icebergCompatV2",
    "icebergCompatV3",
    "icebergWriterCompatV1",
    "identityColumns",
    "inCommitTimestamp",
    "inCommitTimestamp-preview",
    "invariants",
    "materializePartitionColumns",
    "rowTracking",
}
_EPOCH, _FOR_EVER = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
_COORDINATOR = ("delta.coordinatedCommits.commitCoordinator-preview", "delta.coordinatedCommits.commitCoordinator")
_COORDINATED = "a commit coordinator may hold commits that are not in the log yet"
_DEFAULT_FLOORS = {
    "delta.deletedFileRetentionDuration": "interval 7 days",
    "delta.logRetentionDuration": "interval 30 days",
}
_FLOORS = (*_DEFAULT_FLOORS, "delta.appendOnly", "delta.enableExpiredLogCleanup")


_AMOUNT = re.compile(r"(\d{1,9})\s+(week|day|hour|minute|second|millisecond|microsecond)s?\s*")


def interval_of(text: str) -> timedelta | None:
    """The length of `interval 1 week 2 days`; None where it is not understood."""
    rest = text.strip().lower().removeprefix("interval").strip()
    amounts = _AMOUNT.findall(rest)
    if not amounts or _AMOUNT.sub("", rest):
        return None
    parts = (timedelta(**{f"{unit}s": int(number)}) for number, unit in amounts)
    try:
        return sum(parts, timedelta())
    except OverflowError:
        return None


def kept_until(removed_at: int | None, configuration: Mapping[str, str]) -> datetime:
    """Until when the table's own retention keeps a file that was removed then; for ever where nobody can tell."""
    name = "delta.deletedFileRetentionDuration"
    length = interval_of(floors_of(configuration)[name])
    if removed_at is None or length is None:
        return _FOR_EVER
    try:
        return _EPOCH + timedelta(milliseconds=removed_at) + length
    except OverflowError:
        return _FOR_EVER


def floors_of(configuration: Mapping[str, str]) -> dict[str, str]:
    """The settings that limit cleanup: what is set, and Delta's defaults for the two retention times."""
    return _DEFAULT_FLOORS | {name: configuration[name] for name in _FLOORS if name in configuration}


def doubt_of(log: DeltaLog, runs: list[range], protocol: Protocol, metadata: Metadata) -> str | None:
    """Why references may be missing that lie anywhere: what was not read may be a clone's, with paths of others."""
    if _is_coordinated(log, metadata):
        return _COORDINATED
    if protocol.reader_version > _READER_VERSION or protocol.reader_features - _READER:
        return "it needs a newer reader than this adapter"
    return "gap in the log" if len(runs) > 1 or not runs[0] else None


def unknown_of(log: DeltaLog, runs: list[range], protocol: Protocol, metadata: Metadata) -> Iterator[str]:
    """Every reason for doubt that the log itself gives."""
    if protocol.reader_version > _READER_VERSION or protocol.writer_version > _WRITER_VERSION:
        yield f"protocol ({protocol.reader_version}, {protocol.writer_version}) is newer than this adapter"
    yield from _features("reader", protocol.reader_features - _READER)
    yield from _features("writer", protocol.writer_features - _WRITER - (protocol.reader_features - _READER))
    for before, after in pairwise(runs):
        yield f"gap in the log: versions {before.stop} to {max(after.start - 1, before.stop)} have no commit file"
    if len(runs) == 1 and not runs[0]:
        yield f"gap in the log: version {runs[0].start - 1} has a checkpoint and no commit file"
    if _is_coordinated(log, metadata):
        yield _COORDINATED
    if metadata.configuration.get("delta.universalFormat.enabledFormats"):
        yield "the table also keeps metadata of another format (UniForm), which its log does not list"


def _is_coordinated(log: DeltaLog, metadata: Metadata) -> bool:
    return bool(log.unpublished) or any(metadata.configuration.get(name) for name in _COORDINATOR)


def _features(kind: str, names: Iterable[str]) -> Iterator[str]:
    for name in sorted(names):
        yield f"unknown {kind} feature {name!r}"
