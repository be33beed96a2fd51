"""One Delta table as a `Reading`: its history, and every file that a retained version references.

Everything comes from `_delta_log`, without Spark: one listing, the commit files, and a checkpoint where log cleanup
took the commits before it. deltalake gives the current state only (no removes, no change data, no place of a deletion
vector), so the commits are read directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ebbtide.errors import UnreadableError
from ebbtide.formats.base import Depth
from ebbtide.formats.delta.actions import Actions, Metadata
from ebbtide.formats.delta.checkpoint import read_checkpoint
from ebbtide.formats.delta.log import DeltaLog, list_log, read_commits, role_of
from ebbtide.formats.delta.partitions import DeltaPartitionNames, dates_of, partitions_of
from ebbtide.formats.delta.replay import DeltaReplay, Life, ReplayedVersion, replay, runs_of
from ebbtide.formats.delta.support import doubt_of, floors_of, kept_until, unknown_of
from ebbtide.model.dataset import Catalog, FileRef, Partition, Reading, Role, TableHandle
from ebbtide.model.history import Ref, RefKind, Transaction, kind_of, starts_view
from ebbtide.model.partition_dates import DateSource
from ebbtide.model.paths import is_inside, normalise
from ebbtide.storage.files import Store, open_store

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_VACUUMED = "VACUUM END"


def read_table(found: TableHandle, catalog: Catalog, depth: Depth) -> Reading:
    """Read one table; what cannot be read whole raises `UnreadableError`."""
    table = replayed(found, catalog)
    subject, location, store, log, commits = table.subject, table.location, table.store, table.log, table.commits
    outcome, is_missing = table.outcome, table.is_missing
    metadata = outcome.metadata[-1]
    times = commit_times(log, commits, metadata, subject)
    runs = runs_of(log)
    unknown = list(unknown_of(log, runs, outcome.protocol[-1], metadata))
    if outcome.missing:
        unknown.append(f"{len(outcome.missing)} files of the current version are missing")
    partitions: tuple[Partition, ...] = ()
    files: tuple[FileRef, ...] = ()
    dates = DateSource()
    if depth is Depth.HISTORY:
        unknown.append("partitions and files were not read")
    else:
        names = DeltaPartitionNames(outcome.metadata)
        found_files = [f for f in _files(outcome, log, commits, names) if f.live or not is_missing(f.path)]
        found_files += _removed_before(outcome, metadata, store, location)
        files = tuple(sorted(found_files, key=lambda file: file.path))
        # After the files: every value that any of them has counts.
        dates = dates_of(metadata, names)
        partitions = partitions_of(outcome, metadata, names, dates, times)
        if runs[0].start > 0:
            unknown.extend(_lost_change_data(store, location, files))
    return Reading(
        id=found.id,
        format="delta",
        location=location,
        properties=metadata.configuration,
        columns=metadata.columns,
        refs=(Ref("main", RefKind.BRANCH, str(log.head), main=True),),
        transactions=tuple(
            _transaction(
                step, commits[step.version], times[step.version], expired=not step.whole and not outcome.missing
            )
            for step in outcome.steps
        ),
        partitions=partitions,
        files=files,
        floors=floors_of(metadata.configuration),
        unknown=tuple(unknown),
        date_source=dates,
        partitioned=any(version.partition_columns for version in outcome.metadata),
        doubt=doubt_of(log, runs, outcome.protocol[-1], metadata),
        identity=metadata.id,
    )


@dataclass(frozen=True, slots=True)
class Replayed:
    """A table's log as it was read, and what the walk through it has found."""

    subject: str
    location: str
    store: Store
    log: DeltaLog
    commits: Mapping[int, Actions]
    outcome: DeltaReplay
    is_missing: Callable[[str], bool]


def replayed(found: TableHandle, catalog: Catalog) -> Replayed:
    """Read the log of a table; what cannot be read whole raises `UnreadableError`."""
    subject, location = str(found.id), normalise(found.location)
    try:
        store = open_store(location, catalog.options)
        log = list_log(store, location)
    except UnreadableError as error:
        raise UnreadableError(subject, error.message, hint=error.hint or "check that the store answers") from error
    if log.head is None:
        raise UnreadableError(subject, f"{location} has no Delta log", hint="scan again; the table may be dropped")
    commits = read_commits(store, location, log, subject)
    is_missing = _missing(store, location, commits)
    outcome = replay(
        log,
        commits,
        lambda version: read_checkpoint(store, location, log.checkpoints[version], subject),
        subject,
        is_missing,
    )
    if not outcome.metadata or not outcome.protocol:
        raise UnreadableError(
            subject, f"{log.folder} holds no metadata or no protocol", hint="restore the log from a backup"
        )
    return Replayed(subject, location, store, log, commits, outcome, is_missing)


def commit_times(
    log: DeltaLog, commits: Mapping[int, Actions], metadata: Metadata, subject: str
) -> dict[int, datetime]:
    """When each commit happened, as `DESCRIBE HISTORY` tells it.

    That is the in-commit timestamp from the version on where it was enabled, before that the commit file's
    modification time in whole milliseconds, made to grow: a file that is not younger than the one before it counts
    as one millisecond younger.
    """
    stamped_from: float = float("inf")
    if metadata.configuration.get("delta.enableInCommitTimestamps", "").lower() == "true":
        enabled_at = metadata.configuration.get("delta.inCommitTimestampEnablementVersion", "")
        stamped_from = int(enabled_at) if enabled_at.isdecimal() else 0
    times: dict[int, datetime] = {}
    last: datetime | None = None
    for version, entry in sorted(log.commits.items()):
        stamp = commits[version].in_commit_time
        if version >= stamped_from and stamp is not None:
            times[version] = _EPOCH + stamp * _MILLISECOND
            continue
        if entry.modified is None:
            raise UnreadableError(subject, f"the store gives no modification time for {entry.path}")
        time = entry.modified.replace(microsecond=entry.modified.microsecond // 1000 * 1000)
        last = time if last is None or time > last else last + _MILLISECOND
        times[version] = last
    return times


def _missing(store: Store, location: str, commits: Mapping[int, Actions]) -> Callable[[str], bool]:
    """Which files of the table are gone, though old versions still name them: what a VACUUM leaves behind.

    Listed after the commits were read, so that the files of a commit that comes between are there. What lies outside
    the table (a shallow clone's source) is another table's.
    """
    if not any(commit.operation == _VACUUMED for commit in commits.values()):
        return lambda _: False
    there = {entry.path for entry in store.list(location, recursive=True) if not entry.is_folder}
    return lambda path: path not in there and is_inside(path, location)


def _transaction(step: ReplayedVersion, commit: Actions, time: datetime, *, expired: bool) -> Transaction:
    return Transaction(
        id=str(step.version),
        parent_id=None if step.parent is None else str(step.parent),
        kind=kind_of(step.change),
        committed_at=time,
        starts_view=step.parent is None or starts_view(step.change),
        operation=commit.operation,
        rows_added=step.rows_added,
        rows_removed=step.rows_removed,
        files_added=step.change.added,
        files_removed=step.change.removed,
        bytes_added=step.bytes_added,
        bytes_removed=step.bytes_removed,
        expired=expired,
    )


def _files(
    outcome: DeltaReplay, log: DeltaLog, commits: Mapping[int, Actions], names: DeltaPartitionNames
) -> Iterator[FileRef]:
    for path, life in outcome.data.items():
        if life.referenced:
            yield _file(path, Role.DATA, life, live=path in outcome.live, partition=names.id(life.values))
    for path, life in outcome.vectors.items():
        if life.referenced:
            yield _file(path, Role.DELETION_VECTOR, life, live=bool(outcome.live_vectors.get(path)))
    # No action takes change data away again: it is read by the feed of its own version, and by nothing else.
    for number, step in enumerate(outcome.steps):
        for change in commits[step.version].changes:
            yield FileRef(
                change.path, Role.CHANGE_DATA, change.bytes, str(step.version), live=False,
                partition=names.id(change.values), versions=1 << number,
            )  # fmt: skip
    # Whatever lies in the log is the table's own and never an orphan (formats.md). No data transaction owns it: it
    # goes by Delta's own log cleanup only.
    for entry in log.entries:
        yield FileRef(entry.path, role_of(entry), entry.bytes, None, live=True)


def _removed_before(outcome: DeltaReplay, metadata: Metadata, store: Store, location: str) -> Iterator[FileRef]:
    """Files whose removal only a checkpoint still knows: they count as those that the log removed (spec §2, floors)."""
    if not outcome.tombstones:
        return
    known = {path for lives in (outcome.data, outcome.vectors) for path, life in lives.items() if life.referenced}
    there = {entry.path: entry.bytes for entry in store.list(location, recursive=True) if not entry.is_folder}
    for tombstone in outcome.tombstones:
        vector, until = tombstone.file.vector, kept_until(tombstone.at, metadata.configuration)
        for path in (tombstone.file.path, vector.path if vector else None):
            if path in there and path not in known:
                known.add(path)
                yield FileRef(path, Role.REMOVED, there[path], None, live=False, versions=0, kept_until=until)


def _file(path: str, role: Role, life: Life, *, live: bool, partition: str | None = None) -> FileRef:
    first = None if life.first is None else str(life.first)
    removed_by = tuple(str(version) for version in life.removed_by)
    return FileRef(path, role, life.bytes, first, live, removed_by, partition, life.rows)


def _lost_change_data(store: Store, location: str, files: tuple[FileRef, ...]) -> Iterator[str]:
    """Change data is in no checkpoint: what log cleanup left of it can no longer be told from a stray file."""
    known = {file.path for file in files if file.role is Role.CHANGE_DATA}
    entries = store.list(f"{location}/_change_data", recursive=True)
    if any(not e.is_folder and not e.name.startswith(".") and e.path not in known for e in entries):
        yield "change data past log cleanup: nothing says which of it is still referenced"
