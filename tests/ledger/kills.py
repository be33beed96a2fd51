"""A story in a process of its own, which is killed at its n-th write: a statement, a commit, a file."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event


def kill_at(number: int, folder: Path) -> Callable[[], None]:
    """Let this process die at its n-th write: before a statement, a commit or a file of the project."""
    count, wrote = 0, False

    def point() -> None:
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    @event.listens_for(Engine, "before_cursor_execute")
    def statement(connection: Any, _: Any, text: str, *__: Any) -> None:
        nonlocal wrote
        if not text.lstrip().upper().startswith(("SELECT", "PRAGMA", "BEGIN")):
            wrote = True
            # What a transaction wrote before it died is PostgreSQL's to undo: there, its end is tried, not each part.
            if connection.dialect.name == "sqlite":
                point()

    @event.listens_for(Engine, "commit")
    def commit(_: Any) -> None:
        nonlocal wrote
        if wrote:
            wrote = False
            point()

    def file(name: str, args: tuple[Any, ...]) -> None:
        # What is written beside its place counts when it takes that place: until then it is nobody's.
        writes = name in ("os.rename", "os.link", "os.remove", "os.mkdir") or (
            name == "open"
            and isinstance(args[2], int)
            and args[2] & (os.O_WRONLY | os.O_RDWR)
            and not Path(str(args[0])).name.startswith(".")
        )
        if writes and isinstance(args[0], str | Path) and str(args[0]).startswith(str(folder)):
            point()

    sys.addaudithook(file)
    return point


def run_story(
    story: Callable[[Callable[[str], None]], None],
    folder: Path,
    kill: int | None,
    prepare: Callable[[Callable[[], None]], None] = lambda _: None,
) -> tuple[bool, list[str]]:
    """The story in a process of its own; whether it ended by itself, and what it said before.

    `prepare` gets what counts a write, for writes that nobody else sees.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            if kill is not None:
                prepare(kill_at(kill, folder))
            story(lambda word: print(word, file=os.fdopen(os.dup(writing), "w"), flush=True))
            os._exit(0)
        except BaseException as error:
            os.write(writing, f"error: {type(error).__name__}: {error}\n".encode())
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as stream:
        said = stream.read().split("\n")[:-1]
    _, status = os.waitpid(child, 0)
    assert not said or not said[-1].startswith("error"), said
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or os.waitstatus_to_exitcode(status) == 0
    return not killed, said
