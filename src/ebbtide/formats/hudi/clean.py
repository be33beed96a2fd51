"""Removing old versions by Hudi's cleaner, and by nothing else (formats.md).

The cleaner is asked for its plan first, which writes nothing. Only when every file of the plan was named is that very
plan put on the timeline and carried out. What it keeps, it keeps: savepoints, and what pending compactions need.

Retaining n commits also keeps the files of the version before them, for queries that still run, though Hudi lets nobody
travel there any more. So the newest version that goes leaves its files until a later clean.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ebbtide.formats.hudi.writer import Writer, answered
from ebbtide.model.dataset import TableHandle
from ebbtide.model.history import Transaction
from ebbtide.model.paths import normalise
from ebbtide.model.removal import FileDeletion

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTHING = "Hudi's cleaner has nothing to do: it waits for a commit after its last clean, or keeps what was asked for"
LATER = "Hudi's cleaner keeps the files of the newest version that goes until a later clean, for queries that still run"


@dataclass(frozen=True, slots=True)
class Prefix:
    """The oldest versions that may go, how many stay after them, and why the other wanted ones may not."""

    versions: tuple[str, ...]
    kept: int
    sent_back: dict[str, str]


def prefix_of(transactions: Sequence[Transaction], wanted: Collection[str], savepoints: Collection[str]) -> Prefix:
    """How far the cleaner can go: up to the first version that stays. A savepoint does not stop it: Hudi keeps its
    files, and does not let anybody travel to them after a clean.
    """
    present = [t for t in transactions if not t.expired]
    taken: list[str] = []
    sent_back: dict[str, str] = {id_: "a savepoint keeps it" for id_ in wanted if id_ in savepoints}
    end, reason = 0, ""
    for position, transaction in enumerate(present):
        if position == len(present) - 1:
            reason = "it is the head"
        elif transaction.id not in wanted and transaction.id not in savepoints:
            reason = f"{transaction.id} is older and stays: Hudi cleans the oldest first"
        else:
            if transaction.id in wanted and transaction.id not in savepoints:
                taken.append(transaction.id)
            end = position + 1 if taken else 0
            continue
        break
    left = [t.id for t in present[end:] if t.id in wanted and t.id not in savepoints]
    sent_back |= dict.fromkeys(left, reason)
    return Prefix(tuple(taken), len(present) - end, sent_back)


def clean(
    found: TableHandle, kept: int, paths: Collection[str], spark: SparkSession, before: Callable[[], None]
) -> FileDeletion:
    """Clean so that the newest `kept` versions stay readable."""
    with answered(found, "cleaning"):
        writer = Writer.open(found, spark)
        pending = writer.meta.getActiveTimeline().getCleanerTimeline().filterInflightsAndRequested()
        if not pending.empty():
            return FileDeletion(because="a clean that somebody else began is not finished")
        config = writer.config(policy(kept))
        table = writer.hudi.table.HoodieSparkTable.create(config, writer.context)
        planned, taken = _narrowed(writer, table.createCleanerPlan(writer.context, writer.none))
        if planned.isPresent() and kept <= 1:
            _begin_at_head(writer, table, planned.get())
        if not taken:
            return FileDeletion(because=NOTHING)
        if more := sorted(taken - {normalise(path) for path in paths}):
            return FileDeletion(
                because=f"the cleaner would also take {more[0]} ({len(more)} in all), which nobody named"
            )
        before()
        failed = carry_out(found, writer, config, planned)
        return FileDeletion(failed=failed, because=LATER if {normalise(path) for path in paths} - taken else None)


def policy(kept: int) -> dict[str, str]:
    """Retaining n commits keeps n versions readable; to keep none but the head, versions of files are counted."""
    shared = {
        "hoodie.clean.incremental.enabled": "false",
        "hoodie.clean.trigger.strategy": "NUM_COMMITS",
        "hoodie.clean.trigger.max.commits": "1",
        # Hudi insists that archiving, which does not run here, keeps more than the cleaner.
        "hoodie.keep.min.commits": str(kept + 10),
        "hoodie.keep.max.commits": str(kept + 20),
    }
    if kept <= 1:
        return shared | {
            "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
            "hoodie.clean.fileversions.retained": "1",
        }
    return shared | {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": str(kept)}


def _narrowed(writer: Writer, planned: Any) -> tuple[Any, set[str]]:
    """The plan without the folders that it would remove whole, and the files that it takes.

    Where all file groups of a partition were replaced, Hudi removes the folder with everything in it: files of a
    savepoint too, and those of a writer that has not committed yet. An empty folder with its marker does no harm.
    """
    if not planned.isPresent():
        return planned, set()
    plan = planned.get()
    plan.setPartitionsToBeDeleted(writer.java.ArrayList())
    return planned, {normalise(info.getFilePath()) for infos in _values(plan) for info in infos}


def _begin_at_head(writer: Writer, table: Any, plan: Any) -> None:
    """Say that nobody travels to before the head any more: a plan by versions of files says nothing of it, and a reader
    would be answered with the rows of those files that are left.
    """
    last = table.getCompletedCommitsTimeline().lastInstant()
    if last.isPresent():
        head = last.get()
        made = writer.hudi.avro.model.HoodieActionInstant
        plan.setEarliestInstantToRetain(made(head.requestedTime(), head.getAction(), head.getState().toString()))


def _values(plan: Any) -> list[Any]:
    by_partition = plan.getFilePathsToBeDeletedPerPartition()
    return [] if by_partition is None else list(by_partition.values())


def carry_out(found: TableHandle, writer: Writer, config: Any, planned: Any) -> dict[str, str]:
    """Put the plan that was looked at on the timeline, and let Hudi execute it: the files that it could not remove."""
    time = writer.meta.createNewInstantTime(False)
    requested = writer.meta.getInstantGenerator().getCleanRequestedInstant(time)
    writer.meta.getActiveTimeline().saveToCleanRequested(requested, planned)
    done = writer.hudi.table.HoodieSparkTable.create(config, writer.context).clean(writer.context, time)
    failed: dict[str, str] = {}
    for partition in done.getPartitionMetadata().values() if done is not None else ():
        for name in partition.getFailedDeleteFiles():
            place = f"{found.location}/{partition.getPartitionPath()}"
            failed[normalise(f"{place}/{str(name).rpartition('/')[2]}")] = "Hudi could not remove it"
    return failed
