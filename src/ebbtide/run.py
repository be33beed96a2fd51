"""What work knows of the run that it belongs to: who runs it, at which time, how far it is, and whether to stop.

The doors make a `RunContext` and hand it down; nothing below them looks at the environment, the clock or a terminal.

1. A run stops at boundaries: between steps, between datasets, before a batch. `Cancellation.check` is such a boundary.
2. A signal raises at once only where somebody said that it may (`at_once`): reading and planning. Whoever holds the
   lease says that it waits for a boundary (`at_boundaries`): no commit, no removal and no giving back is interrupted.
3. Progress is for looking at. Nothing is decided by it, and one that fails must not end a run.
"""

from __future__ import annotations

import getpass
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import FrameType
from typing import Protocol

from ebbtide.errors import Cancelled
from ebbtide.model.times import in_utc

# A library says nothing unless whoever uses it asks for its log.
logging.getLogger("ebbtide").addHandler(logging.NullHandler())

_SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


@dataclass(frozen=True, slots=True)
class RunClock:
    """The time that counts: the real one, or the one that somebody named with `--as-of`."""

    as_of: datetime | None = None

    def now(self) -> datetime:
        return self.as_of or datetime.now(UTC)


class Progress(Protocol):
    """Who looks on. Steps follow each other; `advance` may come from any thread."""

    def start(self, step: str, total: int | None = None, *, unit: str = "") -> None:
        """A step begins, and with it the one before is over. `total` is None where nobody knows it yet."""

    def advance(self, n: int = 1) -> None: ...

    def stop(self) -> None:
        """The last step is over."""


class Silent:
    """Nobody looks on."""

    def start(self, step: str, total: int | None = None, *, unit: str = "") -> None: ...

    def advance(self, n: int = 1) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Together:
    """Several look on."""

    watching: tuple[Progress, ...]

    def start(self, step: str, total: int | None = None, *, unit: str = "") -> None:
        self._tell(lambda each: each.start(step, total, unit=unit))

    def advance(self, n: int = 1) -> None:
        self._tell(lambda each: each.advance(n))

    def stop(self) -> None:
        self._tell(lambda each: each.stop())

    def _tell(self, tell: Callable[[Progress], None]) -> None:
        for each in self.watching:
            try:
                tell(each)
            except Exception as error:  # who only looks on ends nothing
                logging.getLogger(__name__).debug("progress: %s", type(error).__name__)


_finishing: list[None] = []
"""Not empty while the main thread, which gets all signals, is at something that is done whole or not at all."""


@contextmanager
def finishing() -> Iterator[None]:
    """Inside, no signal raises: a change and what makes it known belong together."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _finishing.append(None)
    try:
        yield
    finally:
        _finishing.pop()


class Cancellation:
    """Whether a run should stop. Asked for once by a signal, another thread or another process, never taken back."""

    def __init__(self) -> None:
        self._asked: tuple[str, int] | None = None
        self._is_at_once = False
        self._raised = False

    @property
    def requested(self) -> bool:
        return self._asked is not None

    def request(self, message: str, *, exit_code: int = 130) -> None:
        """Ask the run to stop at its next boundary. The first who asks is named."""
        self._asked = self._asked or (message, exit_code)

    def check(self) -> None:
        """A boundary: raises where the run was asked to stop."""
        if self._asked is not None:
            self._raised = True
            raise Cancelled(self._asked[0], exit_code=self._asked[1])

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside, a signal does not wait for a boundary: nothing is changed here that others see half."""
        self.check()
        with self._mode(at_once=True):
            yield

    @contextmanager
    def at_boundaries(self) -> Iterator[None]:
        """Inside, a signal waits for a boundary."""
        with self._mode(at_once=False):
            self.check()
            yield

    @contextmanager
    def _mode(self, *, at_once: bool) -> Iterator[None]:
        before, self._is_at_once = self._is_at_once, at_once
        try:
            yield
        finally:
            self._is_at_once = before

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Inside, Ctrl-C and SIGTERM ask the run to stop, and a second one insists. For a process of our own only."""
        before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        insists = self.requested
        self.request(_SIGNALS[signal.Signals(number)], exit_code=128 + number)
        # Once it unwinds, nothing interrupts what gives back the lease; and what is committed is also signed.
        if not self._raised and not _finishing and (self._is_at_once or insists):
            self.check()


@dataclass(frozen=True, slots=True)
class RunContext:
    """Handed to everything that a run does. `run` is its id in the state, None where the state knows nothing of it."""

    actor: str
    clock: RunClock = field(default_factory=RunClock)
    progress: Progress = field(default_factory=Silent)
    cancellation: Cancellation = field(default_factory=Cancellation)
    logger: logging.Logger = field(default_factory=lambda: logging.getLogger("ebbtide"))
    run: str | None = None

    def now(self) -> datetime:
        return self.clock.now()

    def at(self, as_of: datetime | None) -> RunContext:
        """The same run by another clock; None leaves its own."""
        return self if as_of is None else replace(self, clock=RunClock(in_utc(as_of)))

    def step(self, name: str, total: int | None = None, *, unit: str = "") -> None:
        """The boundary between two steps: stop here if asked to, else say what comes."""
        self.cancellation.check()
        self.logger.debug("step: %s", name, extra={"run": self.run, "total": total})
        self.progress.start(name, total, unit=unit)

    def advance(self, n: int = 1) -> None:
        """A boundary inside a step: `n` more are done."""
        self.progress.advance(n)
        self.cancellation.check()


def this_actor() -> str:
    """Who runs this process, by name. For the doors: the ledger only ever knows an opaque id."""
    return os.environ.get("EBBTIDE_ACTOR") or getpass.getuser()


@contextmanager
def keep_handlers() -> Iterator[None]:
    """Spark takes SIGINT for itself when it starts. Who listened before, unless it is Python itself, listens after."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        theirs = signal.getsignal(signal.SIGINT) is not before
        if theirs and before not in (None, signal.default_int_handler):
            signal.signal(signal.SIGINT, before)


def quiet(context: RunContext | None = None, *, as_of: datetime | None = None) -> RunContext:
    """The context of a call: the one that was handed in, or one of its own that nobody looks at and nobody stops."""
    return (context or RunContext(this_actor())).at(as_of)
