"""Progress where nobody has a terminal: a line now and then, so that a log of cron's says what a long run is at."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread

from ebbtide.cli import render

_FIRST_SECONDS = 10.0
_MOST_SECONDS = 300.0
_LOOKS_EVERY = 1.0


class ProgressLines:
    """Progress as lines. The first is due after ten seconds; each wait is twice as long, up to five minutes.

    Work only counts; what is due is written by `look`, so that a step that never says how far it is has lines, too.
    """

    def __init__(
        self, first: str, *, write: Callable[[str], None] = render.note, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._clock = write, clock
        self._lock = Lock()
        self._step, self._unit, self._done = first, "", 0
        self._total: int | None = None
        self._began = clock()
        self._wait = _FIRST_SECONDS
        self._due = self._began + self._wait

    def start(self, step: str, total: int | None = None, *, unit: str = "") -> None:
        with self._lock:
            self._step, self._total, self._unit, self._done = step, total, unit, 0

    def advance(self, n: int = 1) -> None:
        with self._lock:
            self._done += n

    def stop(self) -> None:
        """The verb's end says what came of it."""

    def look(self) -> None:
        """Write a line, if one is due."""
        with self._lock:
            now = self._clock()
            if now < self._due:
                return
            self._wait = min(2 * self._wait, _MOST_SECONDS)
            self._due = now + self._wait
            line = f"{self._step}{self._far()}, {now - self._began:.0f} s so far"
        self._write(line)

    def _far(self) -> str:
        if not self._done and self._total is None:
            return ""
        of = "" if self._total is None else f"/{self._total:,}"
        return f" {self._done:,}{of} {self._unit}".rstrip()


@contextmanager
def written(lines: ProgressLines, *, every: float = _LOOKS_EVERY) -> Iterator[ProgressLines]:
    """Inside, somebody looks, whatever the work is at; after it nothing is written any more."""
    over = Event()

    def watch() -> None:
        while not over.wait(every):
            lines.look()

    watching = Thread(target=watch, name="progress", daemon=True)
    watching.start()
    try:
        yield lines
    finally:
        over.set()
        watching.join()
