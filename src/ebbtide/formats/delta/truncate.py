"""Delta's log is cut off behind a checkpoint, as its protocol has it under "Metadata Cleanup".

Delta's own cleanup goes up to the last checkpoint, whoever wrote it meanwhile, and could so end a version that is kept.
Here files go by their names, the oldest versions first: what dies in between leaves a log without a gap.

A commit is refused where its file is there already, and by nothing else: a writer that began before version 7 may write
7 as long as it is at work, and nobody would ever read it behind a checkpoint of 9. So a commit stays until writers that
began before it have finished, and the log is cut off before the first one that is younger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ebbtide.errors import EbbtideError, UnreadableError
from ebbtide.formats.conflicts import retry_on_conflict
from ebbtide.formats.delta.checkpoint import read_checkpoint, sidecars_of
from ebbtide.formats.delta.ending import live_at
from ebbtide.formats.delta.java import CONFLICTS, DeltaJavaTable
from ebbtide.formats.delta.log import is_checkpoint, version_of
from ebbtide.formats.delta.read import Replayed, replayed
from ebbtide.formats.erasing import WAS, Erasure, Intend
from ebbtide.model.dataset import Catalog
from ebbtide.model.removal import FileDeletion
from ebbtide.storage.files import StoredObject
from ebbtide.storage.remove import remove_files

_RETENTION = "delta.deletedFileRetentionDuration"
_WAS = f"{WAS}deletedFileRetentionDuration"
"""What the table's own setting was, for as long as it is another one: whoever dies then leaves it to be put back."""
_BATCH = 1000  # one call of the store: files of one go in order
_NEUTRAL = "Manual Update"
_IN_FLIGHT = "a writer may still be at work beside the newest commits: what they say goes with the next run"


@dataclass(frozen=True, slots=True)
class Truncation:
    """A table whose log is cut off."""

    erasure: Erasure
    catalog: Catalog
    java: DeltaJavaTable
    intend: Intend
    before_batch: Callable[[], None]

    def run(self, first: int | None) -> FileDeletion:
        """Let everything of the log go that lies before version `first`, or before a new head that says nothing; in any
        case only what no writer may be behind. Gives what could not be removed, and what is to be waited for.
        """
        table = self._read()
        young = in_flight(table, self.erasure)
        if first is None and young is None and self._is_done(table):
            return FileDeletion()
        until, forgets = first_of_both(first, young), first is None and is_partitioned_by_people(table, self.erasure)
        because = _IN_FLIGHT if young is not None and until == young and self._still_says(table, young) else None
        if until is not None and not forgets and not any(_is_before(entry, until) for entry in table.log.entries):
            return FileDeletion(because=because)
        if until is None or forgets:
            version = self._new_head(table)
        else:
            self.java.checkpoint(version := until)
        going = self._proved(version, version if until is None else until)
        self.intend({entry.path: entry.bytes for entry in going})
        failed: dict[str, str] = {}
        for start in range(0, len(going), _BATCH):
            if not failed:
                paths = [entry.path for entry in going[start : start + _BATCH]]
                failed = remove_files(paths, self.catalog.options, self.before_batch, self.erasure.places)
        self.java.forget()
        return FileDeletion(because=because, failed=failed)

    def _read(self) -> Replayed:
        return replayed(self.erasure.found, self.catalog)

    def _still_says(self, table: Replayed, young: int) -> bool:
        """Whether what stays from this version on says something of those who go."""
        if is_partitioned_by_people(table, self.erasure) and any(v >= young for v in table.log.checkpoints):
            return True
        later = (commit for version, commit in table.commits.items() if version >= young)
        return any(not self.erasure.files.isdisjoint({*commit.adds, *commit.removes}) for commit in later)

    def _is_done(self, table: Replayed) -> bool:
        """Whether all that is left of the log is a checkpoint, and a commit that names no file and nobody."""
        if len(table.commits) > 1 or (table.outcome.tombstones and is_partitioned_by_people(table, self.erasure)):
            return False
        ((version, commit),) = table.commits.items()
        empty = not (commit.adds or commit.removes or commit.changes or commit.metadata)
        older = any(_is_before(entry, version) for entry in table.log.entries)
        return empty and commit.operation == _NEUTRAL and not older

    def _new_head(self, table: Replayed) -> int:
        """A new version without a trace of anybody, and its checkpoint."""
        if not is_partitioned_by_people(table, self.erasure):
            version = say_nothing(table.subject, self.java)
            self.java.checkpoint(version)
            return version
        # The checkpoint would remember for a while which files were removed, with their partitions.
        with _no_tombstones(table, self.java):
            version = max(self._read().commits)
            self.java.checkpoint(version)
        return version

    def _proved(self, version: int, until: int) -> list[StoredObject]:
        """What goes, oldest first, once the checkpoint of a version is proved to stand for all of it. A writer may have
        committed since: what is behind him stays, too.
        """
        table = self._read()
        until = min(until, until if (young := in_flight(table, self.erasure)) is None else young)
        parts, live = table.log.checkpoints.get(version, ()), live_at(table, version)
        found = read_checkpoint(table.store, table.location, parts, table.subject) if parts else None
        same = found is not None and {path: file.vector for path, file in found.adds.items()} == {
            path: file.vector for path, file in live.items()
        }
        if found is None or not same or found.metadata is None or found.protocol is None:
            raise EbbtideError(
                f"{table.subject}: the checkpoint of version {version} does not hold what the log says",
                hint="nothing of the log was removed; the next run tries again",
            )
        going = [entry for entry in table.log.entries if _is_before(entry, until)]
        sidecars = self._sidecars(table, going)
        return [*(each for each in table.log.entries if each.path in sidecars), *sorted(going, key=_by_version)]

    def _sidecars(self, table: Replayed, going: list[StoredObject]) -> frozenset[str]:
        """Parts of checkpoints that go, and of none that stays. One that no checkpoint names may be in the making."""
        if not any("/_sidecars/" in entry.path for entry in table.log.entries):
            return frozenset()

        def of(entry: StoredObject) -> frozenset[str]:
            return sidecars_of(table.store, table.location, (entry,), table.subject)

        leaving = {entry.path for entry in going}
        staying = [each for each in table.log.entries if is_checkpoint(each) and each.path not in leaving]
        kept = frozenset[str]().union(*(of(entry) for entry in staying))
        found = frozenset[str]()
        for entry in filter(is_checkpoint, going):
            try:
                found |= of(entry)
            except UnreadableError:
                continue  # it goes, and what cannot be read names nothing
        return found - kept


def say_nothing(subject: str, java: DeltaJavaTable) -> int:
    """A new version, the same as the one before it."""
    return retry_on_conflict(subject, CONFLICTS, lambda: java.begin().commit_nothing())


def in_flight(table: Replayed, erasure: Erasure) -> int | None:
    """The oldest commit that a writer who began before it may still be about to make; None where there is none."""
    if (since := erasure.in_flight_since) is None:
        return None
    commits = table.log.commits.items()
    return min((v for v, entry in commits if entry.modified is None or entry.modified > since), default=None)


def first_of_both(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)


def _is_before(entry: StoredObject, version: int) -> bool:
    of = version_of(entry)
    return of is not None and of < version


def _by_version(entry: StoredObject) -> tuple[int, str]:
    return version_of(entry) or 0, entry.path


def is_partitioned_by_people(table: Replayed, erasure: Erasure) -> bool:
    """Whether a column that may hold somebody is, or was, one of those that the table is partitioned by."""
    columns = {name.lower() for metadata in table.outcome.metadata for name in metadata.partition_columns}
    paths = [path.lower() for path in erasure.people.columns]
    return any(path == name or path.startswith(f"{name}.") for path in paths for name in columns)


@contextmanager
def _no_tombstones(table: Replayed, java: DeltaJavaTable) -> Iterator[None]:
    """The table remembers no removed file for as long as this is open."""
    was = table.outcome.metadata[-1].configuration.get(_RETENTION, "")
    given: dict[str, str | None] = {_RETENTION: "interval 0 seconds", _WAS: was}
    retry_on_conflict(table.subject, CONFLICTS, lambda: java.set_properties(given))
    try:
        yield
    finally:
        _put_back(table.subject, java, was)


def mend(table: Replayed, java: DeltaJavaTable) -> bool:
    """Put back what an erasure changed for a moment that died in it. Gives whether there was anything."""
    was = table.outcome.metadata[-1].configuration.get(_WAS)
    if was is not None:
        _put_back(table.subject, java, was)
    return was is not None


def _put_back(subject: str, java: DeltaJavaTable, was: str) -> None:
    # The note goes last, and only where the setting is as it was.
    retry_on_conflict(subject, CONFLICTS, lambda: java.set_properties({_RETENTION: was or None}))
    retry_on_conflict(subject, CONFLICTS, lambda: java.set_properties({_WAS: None}))
