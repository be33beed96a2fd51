"""What the command line is to a run: who looks on at its terminal, and who stops it with Ctrl-C or SIGTERM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from ebbtide.cli import render
from ebbtide.cli.lines import ProgressLines, written
from ebbtide.run import Cancellation, Progress, RunContext, Silent, quiet

_cancellation = Cancellation()
_is_shown = True


@contextmanager
def stoppable() -> Iterator[None]:
    """Around the one verb of this process: a signal ends it at once, unless it says that it waits for a boundary."""
    global _cancellation
    _cancellation = Cancellation()
    with _cancellation.by_signals(), _cancellation.at_once():
        yield


def show_progress(shown: bool) -> None:
    """Whether this process shows how far it is."""
    global _is_shown
    _is_shown = shown


def context(*, as_of: datetime | None = None, progress: Progress | None = None) -> RunContext:
    """For a verb that is done in a moment."""
    found = quiet(as_of=as_of)
    return RunContext(found.actor, found.clock, progress or Silent(), _cancellation)


@contextmanager
def shown(first: str, *, as_of: datetime | None = None) -> Iterator[RunContext]:
    """For a verb that takes a while: stderr says how far it is, by a bar on a terminal and now and then by a line on a
    pipe."""
    if not _is_shown:
        yield context(as_of=as_of)
    elif render.err().is_terminal:
        with render.Bar(first) as bar:
            yield context(as_of=as_of, progress=bar)
    else:
        with written(ProgressLines(first)) as lines:
            yield context(as_of=as_of, progress=lines)
