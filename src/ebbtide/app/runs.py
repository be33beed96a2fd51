"""Runs in the state: every verb that writes and every long reading has one, which says how it ended whatever ended it.

`recorded` is for whoever holds the lease, `watched` for the others. Another process sees how far a run is, and may ask
it to stop (`ebbtide runs`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ebbtide.config import Project
from ebbtide.errors import Cancelled, EbbtideError, told
from ebbtide.model.times import as_text
from ebbtide.run import Cancellation, RunContext, Together
from ebbtide.state.database import Database

if TYPE_CHECKING:
    from ebbtide.ledger.ledger import Ledger
    from ebbtide.state.lease import Lease
    from ebbtide.state.values import RunRecord

_EVERY = 1.0
"""Seconds between two looks at the state."""
_SILENT = timedelta(minutes=2)
"""A run that was not heard of for so long has most likely died with its process."""
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Running:
    """A run at work: the context to work with, and how it ended, once that is known."""

    context: RunContext
    exit_code: int = 0
    summary: str = ""

    def ended(self, exit_code: int, summary: str) -> None:
        self.exit_code, self.summary = exit_code, summary


@contextmanager
def recorded(context: RunContext, ledger: Ledger, verb: str, lease: Lease) -> Iterator[Running]:
    """A run under the lease. It is in the state before anything else is."""
    with ledger.database.sweeper(lease) as state:
        run = state.start_run(verb, at=ledger.clock.now(), actor=state.actor(context.actor)).id
    with _followed(context, ledger.database, run, ledger.clock.now) as running:
        yield running


@contextmanager
def watched(context: RunContext, project: Project, verb: str) -> Iterator[Running]:
    """A run that only reads. Without a state, or with one that cannot be written, it runs all the same, unseen."""
    database = Database(project.state)
    try:
        run = _begin(database, context, verb)
        if run is None:
            yield Running(context)
            return
        with _followed(context, database, run, context.now) as running:
            yield running
    finally:
        database.close()


def _begin(database: Database, context: RunContext, verb: str) -> str | None:
    try:
        if not database.exists():
            return None
        with database.writer() as state:
            return state.begin_run(verb, actor=state.actor(context.actor), at=context.now()).id
    except EbbtideError as error:
        _logger.info("this run is not in the state: %s", error.message)
        return None


@contextmanager
def _followed(context: RunContext, database: Database, run: str, now: Callable[[], datetime]) -> Iterator[Running]:
    follower = _Follower(database, run, context.cancellation)
    running = Running(replace(context, run=run, progress=Together((context.progress, follower))))
    _logger.info("run %s begins", run, extra={"run": run})
    try:
        with follower:
            yield running
    except Cancelled as cancelled:
        running.ended(cancelled.exit_code, cancelled.message)
        raise
    except EbbtideError as error:
        running.ended(error.exit_code, error.kept)
        raise
    except GeneratorExit:
        running.ended(130, "whoever asked for it left before its end")
        raise
    except BaseException as error:
        running.ended(4, told(error) if isinstance(error, Exception) else type(error).__name__)
        raise
    finally:
        _logger.info("run %s ends with %s: %s", run, running.exit_code, running.summary, extra={"run": run})
        _end(database, run, running, now())


def _end(database: Database, run: str, running: Running, now: datetime) -> None:
    try:
        with database.writer() as state:
            state.end_run(run, exit_code=running.exit_code, summary=running.summary, at=now)
    except EbbtideError as error:
        # What ended the run counts more; the next sweeper closes what it finds open.
        _logger.warning("run %s could not be closed in the state: %s", run, error.message)


@dataclass
class _Follower:
    """Brings progress into the state and requests out of it, from a thread of its own: work never waits for either."""

    database: Database
    run: str
    cancellation: Cancellation
    _now: tuple[str, int, int | None] = ("", 0, None)
    _shown: tuple[str, int, int | None] = ("", 0, None)
    _seen_at: datetime | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)

    def start(self, step: str, total: int | None = None, *, unit: str = "") -> None:
        with self._lock:
            self._now = (f"{step} ({unit})" if unit else step, 0, total)

    def advance(self, n: int = 1) -> None:
        with self._lock:
            step, done, total = self._now
            self._now = (step, done + n, total)

    def stop(self) -> None: ...

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=self._follow, name="ebbtide-run", daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._over.wait(_EVERY):
            try:
                self._look()
            except EbbtideError as error:
                _logger.debug("the state did not take the progress of run %s: %s", self.run, error.message)

    def _look(self) -> None:
        now, at = self._now, datetime.now(UTC)
        if now != self._shown or self._seen_at is None or at - self._seen_at > _SILENT / 4:
            step, done, total = now
            with self.database.writer() as state:
                state.show_run(self.run, step=step, done=done, total=total, seen_at=at)
            self._shown, self._seen_at = now, at
        with self.database.reader() as reader:
            asked = reader.get_run(self.run).cancel_requested
            who = None if asked is None else reader.actor_name(asked)
        if who is not None:
            self.cancellation.request(f"cancelled by {who}")


def list_runs(project: Project, *, now: datetime, limit: int | None = None) -> list[dict[str, Any]]:
    """Runs, the newest first: what they do, how far they are, or how they ended."""
    from ebbtide.app.state import open_state

    with open_state(project).reader() as state:
        newest = sorted(state.runs(), key=lambda run: (run.started_at, run.id), reverse=True)[:limit]
        return [_as_dict(run, None if run.actor is None else state.actor_name(run.actor), now) for run in newest]


def cancel_run(project: Project, run_id: str, context: RunContext) -> dict[str, Any]:
    """Ask a run to stop at its next boundary."""
    from ebbtide.app.state import open_state

    database = open_state(project)
    with database.reader() as reader:
        reader.get_run(run_id)  # where there is no state, none is made
    with database.writer() as state:
        run = state.cancel_run(run_id, actor=state.actor(context.actor))
        return _as_dict(run, None if run.actor is None else state.actor_name(run.actor), datetime.now(UTC))


def _as_dict(run: RunRecord, actor: str | None, now: datetime) -> dict[str, Any]:
    return {
        "id": run.id,
        "verb": run.verb,
        "actor": actor,
        "state": _state(run, now),
        "step": run.step,
        "done": run.done,
        "total": run.total,
        "started_at": as_text(run.started_at),
        "seen_at": run.seen_at and as_text(run.seen_at),
        "finished_at": run.finished_at and as_text(run.finished_at),
        "exit_code": run.exit_code,
        "summary": run.summary,
        "cancel_requested": run.cancel_requested is not None,
    }


def _state(run: RunRecord, now: datetime) -> str:
    if run.finished_at is not None:
        return "finished"
    if run.seen_at is not None and run.seen_at < now - _SILENT:
        return "silent"
    return "stopping" if run.cancel_requested is not None else "running"
