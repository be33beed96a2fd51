"""Around a run that acts: who is told how it ended, and the numbers that are written after it (docs/operations.md).

1. Whoever is told, and the file of numbers, come after the work, when its lease is given back.
2. Nothing of it changes how a run ends: what goes wrong here is a warning in the log, on stderr by default.
3. Only counts leave the project: no object, no path, and nothing of a person (design, invariant 7).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ebbtide.app.deliver import deliver
from ebbtide.app.opened import database_of
from ebbtide.config import Project
from ebbtide.config.operations import EVENTS, Event, Notifier
from ebbtide.errors import EbbtideError, OverLimitError, told
from ebbtide.model.durations import add
from ebbtide.model.times import as_text
from ebbtide.run import RunContext
from ebbtide.state.counts import Deadlines, deadlines

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Observed:
    """A run that others hear of. `over` says that a limit left something out."""

    verb: str
    run: str | None = None
    exit_code: int = 0
    over: bool = False
    is_cancelled: bool = False
    counts: dict[str, int] = field(default_factory=dict)

    def ended(self, exit_code: int, *, run: str | None, over: bool, counts: Mapping[str, int]) -> None:
        self.exit_code, self.run, self.over, self.counts = exit_code, run, over, dict(counts)

    def stopped_by(self, error: EbbtideError) -> None:
        self.exit_code, self.over = error.exit_code, isinstance(error, OverLimitError)


@contextmanager
def observed(
    project: Project, verb: str, context: RunContext, *, dry_run: bool, pause: Callable[[float], None] = time.sleep
) -> Iterator[Observed]:
    """Whatever ends the run, tell of it and write its numbers; nothing of a dry run."""
    seen = Observed(verb)
    if dry_run or not (project.notify or project.metrics.file):
        yield seen
        return
    ready = _ready(project.notify)
    try:
        yield seen
    except EbbtideError as error:
        seen.stopped_by(error)
        raise
    except Exception:
        seen.exit_code = 4
        raise
    except BaseException:
        seen.is_cancelled = True
        raise
    finally:
        _after(project, seen, ready, context.now(), pause)


_Ready = list[tuple[Notifier, tuple[str, ...]]]


def _ready(notifiers: tuple[Notifier, ...]) -> _Ready:
    """Whom to tell, with what the environment says of them; who lacks something is named before the work begins."""
    found: _Ready = []
    for notifier in notifiers:
        try:
            found.append((notifier, notifier.resolved()))
        except EbbtideError as error:
            _logger.warning("nobody will be told by this %s: %s", notifier.kind, error.message)
    return found


def _after(project: Project, seen: Observed, ready: _Ready, now: datetime, pause: Callable[[float], None]) -> None:
    if not seen.is_cancelled:
        for notifier, values in ready:
            _guarded("a notification", lambda n=notifier, v=values: _tell(project, seen, n, v, now, pause))  # type: ignore[misc]
    if project.metrics.file is not None:
        from ebbtide.app.metrics import write_metrics

        _guarded("the file of metrics", lambda: write_metrics(project, now=now))


def _guarded(what: str, do: Callable[[], None]) -> None:
    try:
        do()
    except Exception as error:  # a run ends as it ended, whoever could not be told
        _logger.warning("%s failed: %s", what, told(error))


def _tell(
    project: Project,
    seen: Observed,
    notifier: Notifier,
    values: tuple[str, ...],
    now: datetime,
    pause: Callable[[float], None],
) -> None:
    try:
        with database_of(project).reader() as state:
            waiting = deadlines(state.connection, now=now, soon=add(now, notifier.due_within))
    except EbbtideError:  # the state does not answer, which most likely is what there is to tell
        waiting = Deadlines(None, 0, 0)
    broken = _broken(project, now) if "promise" in notifier.on else 0
    events = tuple(event for event in events_of(seen, waiting, broken) if event in notifier.on)
    if not events:
        return
    problem = deliver(notifier, values, message(project.name, seen, waiting, broken, events, now), pause=pause)
    if problem is not None:
        _logger.warning("the %s at %s was not told: %s", notifier.kind, notifier.where, problem)


def _broken(project: Project, now: datetime) -> int:
    """How many promises are broken. Where they cannot be judged, which is often why a run failed, the rest is told."""
    from ebbtide.app.overview import broken_promises

    try:
        return broken_promises(project, now=now)
    except Exception as error:
        _logger.warning("promises were not judged: %s", told(error))
        return 0


def events_of(seen: Observed, waiting: Deadlines, broken: int) -> tuple[Event, ...]:
    """What there is to tell of a run."""
    happened = {
        "failed": seen.exit_code not in (0, 3),
        "refused": seen.exit_code == 3 and not seen.over,
        "limit": seen.over,
        "overdue": waiting.overdue + waiting.soon > 0,
        "promise": broken > 0,
    }
    return tuple(event for event in EVENTS if happened[event])


def message(
    project: str, seen: Observed, waiting: Deadlines, broken: int, events: tuple[Event, ...], now: datetime
) -> dict[str, Any]:
    """What they are told. The text is of words and counts alone, as services show it."""
    said = {
        "failed": f"{seen.verb} failed with exit code {seen.exit_code}",
        "refused": f"{seen.verb} was refused for safety",
        "limit": f"{seen.verb} stopped at a limit, which left something out",
        "overdue": f"{waiting.overdue} requests are overdue, {waiting.soon} are due soon",
        "promise": f"{broken} promises are broken",
    }
    return {
        "project": project, "verb": seen.verb, "run": seen.run, "at": as_text(now), "events": list(events),
        "exit_code": seen.exit_code,
        "counts": {
            **seen.counts, "requests_overdue": waiting.overdue, "requests_due_soon": waiting.soon,
            "promises_broken": broken,
        },
        "text": f"{project}: {'; '.join(said[event] for event in events)}",
    }  # fmt: skip
