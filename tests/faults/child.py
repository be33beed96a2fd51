"""A piece of work in a process of its own, which can be killed for real at any point of it."""

from __future__ import annotations

import gc
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pyspark import SparkContext

_PARENTS: list[object] = []
"""What belongs to the parent's connections, kept so that no finaliser of this process closes them."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: killed, by an error, or by itself with what it said."""

    killed: bool
    said: list[str]
    error: str | None = None


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Child:
    """A fork of this process. It shares the session's JVM, over connections of its own, and nothing else."""

    def __init__(self, work: Callable[[Callable[[str], None]], None]) -> None:
        # Connections to SQLite must not cross a fork: those that nobody uses any more are closed here.
        gc.collect()
        self._reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(writing)
            return
        os.close(self._reading)
        try:
            _own_connections()
            work(lambda word: _write(writing, word))
        except BaseException as error:
            _write(writing, f"error: {type(error).__name__}: {error}")
            if not type(error).__module__.startswith("ebbtide"):
                traceback.print_exc()
            os._exit(1)
        os._exit(0)

    def stopped(self) -> bool:
        """Wait until it has stopped itself; False when it ended instead."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        return os.WIFSTOPPED(status)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def ended(self) -> Ended:
        """Wait for its end."""
        with os.fdopen(self._reading) as stream:
            said = stream.read().splitlines()
        _, status = os.waitpid(self.pid, 0)
        errors = [word.removeprefix("error: ") for word in said if word.startswith("error: ")]
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        assert killed or os.WIFEXITED(status), status
        return Ended(killed, [word for word in said if not word.startswith("error: ")], errors[0] if errors else None)


def in_child(work: Callable[[Callable[[str], None]], None]) -> Ended:
    return Child(work).ended()


def _write(to: int, word: str) -> None:
    os.write(to, f"{' '.join(word.split())}\n".encode())


def _own_connections() -> None:
    gateway = SparkContext._gateway
    if gateway is not None:
        client = gateway._gateway_client
        _PARENTS.extend((client.deque, client.thread_connection))
        client.deque, client.thread_connection = deque(), threading.local()
