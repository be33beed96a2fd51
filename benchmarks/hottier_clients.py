"""Inserts of a client at the rate that keeps it at half a core, with the mirror at work beside it and without.

Half a core is half of the rate that it has at full speed: what a client has to wait for beyond that, it waits for the
mirror. `python -m benchmarks.hottier_clients [SECONDS]` prints the same for another time.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.hottier_drain import in_front_of_a_lake
from benchmarks.results import Result
from ebbtide import Ebbtide

_ROWS = 100
"""Of a transaction."""
_PAUSE = 1.0
"""Between two runs of the mirror."""
SECONDS = 20.0


def main(root: Path) -> Iterator[Result]:
    return measure(root, SECONDS)


def measure(root: Path, seconds: float) -> Iterator[Result]:
    with in_front_of_a_lake(root) as sql:
        full = seconds / 4
        transactions = int(_insert(sql, seconds=full) / full / 2 * seconds)
        every = seconds / transactions
        without = _insert(sql, transactions=transactions, every=every)
        stop = multiprocessing.get_context("spawn").Event()
        mirror = multiprocessing.get_context("spawn").Process(target=_mirror, args=(root, stop))
        mirror.start()
        time.sleep(_PAUSE)
        beside = _insert(sql, transactions=transactions, every=every)
        stop.set()
        mirror.join()
        assert mirror.exitcode == 0
        name = f"{transactions * _ROWS:,} inserts of a client at half a core, the mirror on"
        yield Result(name, beside, "the mirror off", without, 0.95)


def _mirror(root: Path, stop: Event) -> None:
    with Ebbtide(root) as tide:
        while not stop.wait(_PAUSE):
            (result,) = tide.tier.sync("public.m")
            assert result.mirror == "STREAMING", result.errors


def _insert(
    sql: psycopg.Connection[Any], *, seconds: float = 0, transactions: int | None = None, every: float = 0
) -> float:
    """Insert for some seconds: how many transactions that were. Or so many at a rate: how long it took."""
    last = sql.execute("SELECT coalesce(max(id), 0) FROM m").fetchone()
    assert last is not None
    began, done = time.perf_counter(), 0
    while done < transactions if transactions is not None else time.perf_counter() - began < seconds:
        first = last[0] + done * _ROWS + 1
        sql.execute(
            "INSERT INTO m SELECT g, '2024-01-01 00:00+00'::timestamptz + g * interval '0.5 second',"
            " 'device-' || mod(g, 1000), 'metric-' || mod(g, 17), g * 0.37, mod(g, 1000000) / 100.0, g * 7,"
            " 'note ' || g FROM generate_series(%s::bigint, %s::bigint) g",
            [first, first + _ROWS - 1],
        )
        done += 1
        time.sleep(max(0.0, began + done * every - time.perf_counter()) if every else 0)
    return done if transactions is None else time.perf_counter() - began


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="ebbtide-bench-clients-") as scratch:
        for result in measure(Path(scratch), float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS):
            print(result.line(), flush=True)
