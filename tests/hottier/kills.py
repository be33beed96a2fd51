"""Places where a run of the hot tier dies: Ebbtide itself, or the server under it by an immediate shutdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from ebbtide.acts import intents
from ebbtide.app import tier_table
from ebbtide.formats.iceberg.cold import ColdTable
from ebbtide.hottier import fence as fence_of
from ebbtide.hottier import gate, log, owner
from tests.hottier.tier import Hot
from tests.state.postgres import Server, start_again


class KilledError(BaseException):
    """The process ends here: nothing below is cleaned up by it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Right before a function is called, or right after it has returned."""

    where: Any
    name: str
    after: bool = False


EBBTIDE = {
    "before the seal": Place(tier_table, "seal"),
    "before the mirror's commit": Place(ColdTable, "commit"),
    "after the mirror's commit": Place(ColdTable, "commit", after=True),
    "before the slot moves": Place(log, "advance"),
    "after the slot moved": Place(log, "advance", after=True),
    "before the digests": Place(gate, "compare"),
    "before the intent": Place(intents, "begin"),
    "after the intent": Place(intents, "begin", after=True),
    "before the fence": Place(owner, "fence"),
    "behind the fence": Place(owner, "fence", after=True),
    "before the drop": Place(owner, "drop"),
    "after the drop": Place(owner, "drop", after=True),
    "before the outcome": Place(intents, "finish"),
    "after the outcome": Place(intents, "finish", after=True),
}
SERVER = {
    "before the log is read": Place(log, "peek"),
    "between the log and the lake": Place(log, "joined", after=True),
    "between the lake and the slot": Place(log, "advance"),
    "after the seal": Place(tier_table, "seal", after=True),
    "before the digests": Place(gate, "compare"),
    "behind the fence": Place(owner, "fence", after=True),
    "in the transaction of the drop": Place(fence_of, "with_tombstone"),
    "after the drop": Place(owner, "drop", after=True),
}


@contextmanager
def dying(at: Place, die: Callable[[], None], *, call: int = 1) -> Iterator[None]:
    """At the `call`-th call of the place `die` is called; whatever is called later goes on as it can."""
    calls = 0
    real = getattr(at.where, at.name)

    def run(*args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls != call:
            return real(*args, **more)
        if not at.after:
            die()
            return real(*args, **more)
        result = real(*args, **more)
        die()
        return result

    with pytest.MonkeyPatch.context() as patch:
        # What the dying process would still do for its server is not done: a fence stays where it is.
        patch.setattr(owner, "unfence", lambda *_: None)
        patch.setattr(at.where, at.name, run)
        yield


def end_of_process() -> None:
    raise KilledError


@dataclass
class Mortal:
    """A project, and the server in front of it, that can be killed and comes up again."""

    hot: Hot
    server: Server
    settings: tuple[str, ...]

    def kill(self) -> None:
        self.server.kill()

    @property
    def is_dead(self) -> bool:
        return self.server.process.poll() is not None

    def revive(self) -> None:
        self.hot.close()
        self.server = start_again(self.server, *self.settings)
        self.hot.sql = psycopg.connect(self.hot.dsn, autocommit=True)
