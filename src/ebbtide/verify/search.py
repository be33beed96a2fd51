"""`search`: what of these people still lies in storage, by reading every object under the places (spec §4.5).

1. Everything under the places is listed: objects, all their versions, delete markers, names of empty folders.
2. Each object is read and searched, in groups of about the same size: in Spark tasks, or in threads of the process
   where little is to be read. The answer is the same.
3. Bounds that were cut are looked at again beside the files that they describe (`bounds.py`).
4. Only then datasets are asked what they reference, for what was found.
"""

from __future__ import annotations

import logging
import os
import pickle
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ebbtide.errors import InputError
from ebbtide.run import RunContext
from ebbtide.verify.answers import report_of
from ebbtide.verify.described import Asked, look_at_bounds
from ebbtide.verify.listing import groups, list_all
from ebbtide.verify.look import LookOrder, ObjectLook, explain, look_at
from ebbtide.verify.matcher import Matcher
from ebbtide.verify.needles import Needle as Needle
from ebbtide.verify.report import FoundValue as FoundValue
from ebbtide.verify.report import Grade as Grade
from ebbtide.verify.report import SearchPlace as SearchPlace
from ebbtide.verify.report import SearchReport as SearchReport
from ebbtide.verify.tasks import Work, run_in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_logger = logging.getLogger(__name__)

IN_PROCESS = 512 << 20
"""Up to so many bytes are read in the process: a session's start would cost more."""
_Part = TypeVar("_Part")
_Result = TypeVar("_Result")


def search(
    needles: Sequence[Needle],
    places: Sequence[SearchPlace],
    *,
    spark: Callable[[], SparkSession] | None,
    run: RunContext,
    path_key: bytes,
    in_process: int = IN_PROCESS,
) -> SearchReport:
    """Read every object under the places and say where these values stand. Nothing is changed and nothing removed.

    Without `spark` all is read in the process, whatever it is.
    """
    if not all(each.value.strip() for each in needles):
        raise InputError("an empty value stands everywhere: nobody can be looked for by it")
    run.step("listing storage")
    listed, untold = list_all(places, run)
    size = sum(each.stored.bytes for each in listed)
    matcher = Matcher(needles)
    runner = _Runner(matcher, spark if size > in_process else None, run)
    run.step(f"reading {len(listed)} objects", size, unit="bytes")
    looked = [each for group in runner.run(_look, groups(listed, size)) for each in group]
    looked.sort(key=lambda each: each.number)

    def read(asked: list[tuple[Asked, int]]) -> list[list[bool | None]]:
        run.step("looking at cut bounds", sum(size for _, size in asked), unit="bytes")
        return runner.run(_explain, asked)

    bounds = look_at_bounds(listed, looked, places, read)
    report = report_of(listed, looked, bounds, untold, places, spark, matcher, path_key)
    told = "%d values looked for in %d objects with %d bytes: %d finds, %d not to be told"
    _logger.info(told, len(needles), report.files, report.bytes, len(report.found), len(report.untold))
    return report


@dataclass(frozen=True, slots=True)
class _Runner:
    """Where groups are worked on: in tasks of a session, or here."""

    matcher: Matcher
    spark: Callable[[], SparkSession] | None
    context: RunContext

    def run(self, work: Work[_Part, _Result], parts: Sequence[tuple[_Part, int]]) -> list[_Result]:
        if not parts:
            return []
        if self.spark is not None:
            return run_in_tasks(work, parts, self.matcher, self.spark(), self.context)
        own, packed = threading.local(), pickle.dumps(self.matcher.compiled())

        def one(part: _Part) -> _Result:
            if not hasattr(own, "matcher"):
                own.matcher = pickle.loads(packed)  # noqa: S301 what was packed just now
            return work(part, own.matcher)

        pool = ThreadPoolExecutor(min(len(parts), os.cpu_count() or 1))
        try:
            sizes = {pool.submit(one, part): size for part, size in parts}
            for future in as_completed(sizes):
                future.result()
                self.context.advance(sizes[future])
            return [future.result() for future in sizes]
        finally:
            pool.shutdown(cancel_futures=True)


def _look(group: list[LookOrder], matcher: Matcher) -> list[ObjectLook]:
    return [look_at(order, matcher) for order in group]


def _explain(asked: Asked, matcher: Matcher) -> list[bool | None]:
    return explain(asked[0], matcher, asked[1])
