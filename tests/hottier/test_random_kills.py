"""Ebbtide and its server die at random, round after round, and every row is in the lake once (invariant 4).

The deep tier sweeps 8 rounds on one server and one table; `EBBTIDE_KILLS` says how many instead (`make nightly`: 200),
`EBBTIDE_SEED` another sequence. A round writes, dies somewhere, runs again, and compares every row.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg.errors import UniqueViolation

from tests.hottier.kills import EBBTIDE, SERVER, KilledError, Mortal, dying, end_of_process
from tests.hottier.tier import Hot

_ROUNDS = int(os.environ.get("EBBTIDE_KILLS", "8"))
_SEED = int(os.environ.get("EBBTIDE_SEED", "1"))
_POLICY = (
    "  - {name: public.m, time: at, chunk: 1d, tier_after: 1d, drop_after: 2d, cold: lake.hot.m, ahead: 1,"
    " delete_share: 1}\n"
)
_FIRST = datetime(2024, 1, 1, tzinfo=UTC)
_MOST_SECONDS = 1.5

Row = tuple[Any, ...]


@pytest.mark.deep
def test_random_kills_neither_lose_nor_double_a_row(mortal: Mortal) -> None:
    choose = random.Random(_SEED)
    hot = mortal.hot
    hot.write(_POLICY)
    hot.fill(1, 2, 3, 4).added()
    dropped: list[Row] = []
    for round_ in range(_ROUNDS):
        now = _FIRST + timedelta(days=3 + round_, hours=12)
        first_kept = _FIRST + timedelta(days=round_ + 1)
        _write(hot, choose, first_kept - timedelta(days=1))
        before = hot.here()
        where, killed = _kill(mortal, choose)
        with killed, suppress(KilledError):
            hot.run(now)
        if mortal.is_dead:
            mortal.revive()
        why = f"seed {_SEED}, round {round_}, {where}"
        result = hot.run(now)
        assert (result.errors, result.mirror) == ((), "STREAMING"), why
        assert hot.in_lake() == sorted([*dropped, *before], key=lambda row: row[:2]), why
        assert hot.here() == [row for row in before if row[1] >= first_kept], why
        dropped += [row for row in before if row[1] < first_kept]


def _kill(mortal: Mortal, choose: random.Random) -> tuple[str, Any]:
    kind, call = choose.choice(("ebbtide", "server", "moment")), choose.randint(1, 3)
    if kind == "moment":
        seconds = choose.uniform(0, _MOST_SECONDS)
        return f"the server after {seconds:.3f} s", _after(seconds, mortal.kill)
    places, die = (EBBTIDE, end_of_process) if kind == "ebbtide" else (SERVER, mortal.kill)
    name = choose.choice(sorted(places))
    return f"{kind} {name}, call {call}", dying(places[name], die, call=call)


@contextmanager
def _after(seconds: float, die: Callable[[], None]) -> Iterator[None]:
    timer = threading.Timer(seconds, die)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _write(hot: Hot, choose: random.Random, first: datetime) -> None:
    """Changes of every kind in the four chunks that are here."""

    def moment() -> datetime:
        return first + timedelta(days=choose.randint(0, 3), minutes=choose.randint(0, 1439))

    for _ in range(30):
        key, at = choose.randint(1, 60), moment()
        hot.sql.execute("INSERT INTO m VALUES (%s, %s, %s, 1) ON CONFLICT DO NOTHING", [key, at, str(choose.random())])
        there = hot.sql.execute("SELECT id, at FROM m ORDER BY md5(id::text || %s) LIMIT 1", [str(key)]).fetchone()
        assert there is not None
        statement, values = choose.choice(
            (
                ("UPDATE m SET v = %s WHERE id = %s AND at = %s", [str(choose.random()), *there]),
                ("UPDATE m SET at = %s WHERE id = %s AND at = %s", [moment(), *there]),
                ("DELETE FROM m WHERE id = %s AND at = %s", list(there)),
                ("INSERT INTO m VALUES (%s, %s, 'x', 2) ON CONFLICT (id, at) DO UPDATE SET v = 'upsert'", list(there)),
            )
        )
        with suppress(UniqueViolation):  # a row that moves to where one is
            hot.sql.execute(statement, values)
