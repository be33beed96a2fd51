"""Reading the datasets that changed, many at a time, into segments.

Formats that need no session are read by Spark tasks: parsing metadata is work for the processor, and threads of one
Python process would take turns. A handful is quicker here than as a job. Formats that live in the driver's JVM are
read by threads, which wait for it side by side. `docs/decisions/0003-reading-in-tasks.md` has the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING
from uuid import uuid4

from ebbtide.errors import UnreadableError
from ebbtide.formats.base import Depth
from ebbtide.formats.registry import load_format
from ebbtide.inventory.rows import rows_of
from ebbtide.inventory.segments import SegmentWriter
from ebbtide.model.dataset import Catalog, TableHandle
from ebbtide.run import RunContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORTH_A_JOB = 24
_WORTH_A_SESSION = 600  # starting one takes as long as reading these here
_THREADS = 4

Sessions = Callable[[], "SparkSession"]
"""Starts the session, or gets the one that runs; asked only when something needs it."""


@dataclass(frozen=True, slots=True)
class ReadOrder:
    """What every worker of one scan must know."""

    inventory: Path
    scan_id: str
    depth: Depth
    now: datetime


@dataclass(frozen=True, slots=True)
class ReadOutcome:
    """What became of one dataset: the segment that holds it, or the error.

    `doubt`, `borrowed`, `identity` and `was_at` are as in the inventory's entry.
    """

    table_id: str
    location: str
    segment: str
    error: str | None = None
    hint: str | None = None
    doubt: str | None = None
    borrowed: int = 0
    identity: str = ""
    was_at: tuple[str, ...] = ()


Work = tuple[Catalog, TableHandle]


def read_all(work: Sequence[Work], order: ReadOrder, sessions: Sessions, context: RunContext) -> Iterator[ReadOutcome]:
    """Read every dataset of `work`; one that fails is an outcome with an error and leaves the others alone."""
    in_tasks = [item for item in work if load_format(item[0].format).reads_in_tasks]
    on_driver = [item for item in work if not load_format(item[0].format).reads_in_tasks]
    spark = sessions() if on_driver or len(in_tasks) >= _WORTH_A_SESSION else _running_session()
    if spark is None or len(in_tasks) < _WORTH_A_JOB:
        on_driver, in_tasks = [*in_tasks, *on_driver], []
    else:
        yield from _in_tasks(in_tasks, order, spark, context)
    yield from _on_driver(on_driver, order, spark, context)


def _running_session() -> SparkSession | None:
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _on_driver(
    work: Sequence[Work], order: ReadOrder, spark: SparkSession | None, context: RunContext
) -> Iterator[ReadOutcome]:
    if not work:
        return
    writer = SegmentWriter(order.inventory, f"{order.scan_id}-driver")
    with ThreadPoolExecutor(min(_THREADS, len(work))) as pool:
        readings = [pool.submit(_read, item, order, spark) for item in work]
        try:
            for reading in as_completed(readings):
                yield _keep(reading.result(), writer)
                context.advance()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # the pool's end would wait for all that is left to read
            raise
    writer.close()


def _in_tasks(
    work: Sequence[Work], order: ReadOrder, spark: SparkSession, context: RunContext
) -> Iterator[ReadOutcome]:
    cluster = spark.sparkContext
    slices = min(len(work), cluster.defaultParallelism * 4)
    group = f"ebbtide-scan-{order.scan_id}"

    def run() -> list[ReadOutcome]:
        cluster.setJobGroup(group, "ebbtide scan")
        tasks = cluster.parallelize(work, slices).mapPartitions(lambda items: _read_slice(items, order))
        outcomes: list[ReadOutcome] = tasks.collect()
        return outcomes

    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(run)
        done = 0
        try:
            while not job.done():
                sleep(0.05)
                finished = _finished_tasks(spark, group) * len(work) // slices
                context.advance(finished - done)
                done = finished
        except BaseException:
            cluster.cancelJobGroup(group)  # the pool's end would wait for all of it
            raise
        context.advance(len(work) - done)
        yield from job.result()


def _finished_tasks(spark: SparkSession, group: str) -> int:
    tracker = spark.sparkContext.statusTracker()
    jobs = [info for id_ in tracker.getJobIdsForGroup(group) if (info := tracker.getJobInfo(id_))]
    stages = [stage for job in jobs for id_ in job.stageIds if (stage := tracker.getStageInfo(id_))]
    return sum(stage.numCompletedTasks for stage in stages)


def _read_slice(items: Iterable[Work], order: ReadOrder) -> Iterator[ReadOutcome]:
    # The name is new for each attempt: what a task leaves that is run twice is named by no outcome.
    writer = SegmentWriter(order.inventory, f"{order.scan_id}-{uuid4().hex[:12]}")
    outcomes = [_keep(_read(item, order, None), writer) for item in items]
    writer.close()
    return iter(outcomes)


_Result = tuple[ReadOutcome, list[tuple[str, list[tuple[object, ...]]]]]


def _read(item: Work, order: ReadOrder, spark: SparkSession | None) -> _Result:
    catalog, handle = item
    format_ = load_format(catalog.format)
    try:
        reading = format_.read(handle, catalog, order.depth, spark)
        capabilities = sorted(str(c) for c, support in format_.capabilities.items() if support)
        sections = list(rows_of(reading, capabilities, order.scan_id, order.now))
    except Exception as error:
        known = UnreadableError.of(str(handle.id), error)
        return ReadOutcome(str(handle.id), handle.location, "", known.message, known.hint), []
    outcome = ReadOutcome(
        str(handle.id), reading.location, "", doubt=reading.doubt, borrowed=reading.borrowed, identity=reading.identity,
        was_at=reading.was_at,
    )  # fmt: skip
    return outcome, sections


def _keep(result: _Result, writer: SegmentWriter) -> ReadOutcome:
    outcome, sections = result
    if outcome.error is not None:
        return outcome
    writer.add(sections)
    return replace(outcome, segment=writer.segment)
