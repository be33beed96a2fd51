"""Filing requests against bare inserts of the same bytes; a lookup among a million against one among a thousand.

The baseline inserts every row that the filing wrote, with the very same values, into tables of the same columns without
an index, in the same batches and under the same settings of SQLite; the two take turns batch by batch. Filing is the
whole of it: lookups, keys in their file, sealing, commitments, tree, transaction, signature, copy outside.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.results import Result
from ebbtide.config.laws import load_laws
from ebbtide.erasure.filing import Person, file_requests, request_of
from ebbtide.ledger.batch import MAX_BATCH
from ebbtide.ledger.commitment import Identifier
from ebbtide.ledger.ledger import Clock, Home, Ledger
from ebbtide.run import RunContext
from ebbtide.state.database import Database
from ebbtide.state.keys import KeyFolder

REQUESTS = 100_000
MANY, FEW = 1_000_000, 1_000
LOOKUPS = 300
LEAST_RATE = 0.3
AT_MOST_PERCENT = 300
MINUTES = 10
TABLES = ("requests", "request_lookups", "ledger_requests")
RECEIVED = datetime(2026, 11, 1, tzinfo=UTC)


def main(folder: Path) -> Iterator[Result]:
    """The rate of filing, the time for a million, and the cost of a lookup."""
    random.seed(1)
    ledger, bare = _ledger(folder / "many"), _bare(folder / "bare.db")
    ledger.open()
    ours = theirs = 0.0
    for first in range(0, REQUESTS, MAX_BATCH):
        seconds = _file(ledger, range(first, min(first + MAX_BATCH, REQUESTS)))
        rows = _new_rows(folder / "many" / "state.db", bare)
        ours, theirs = ours + seconds, theirs + _insert(bare, rows)
    name = f"file {REQUESTS:,} requests of two identifiers"
    yield Result(name, ours, "the same rows into bare tables", theirs, LEAST_RATE)
    whole = ours + _file(ledger, range(REQUESTS, MANY))
    yield Result.limit(f"minutes to file {MANY:,} requests ({whole:.0f} s)", whole / 60, MINUTES)
    small = _ledger(folder / "few")
    _file(small, range(FEW))
    large_time, small_time = _lookup_seconds(ledger, MANY), _lookup_seconds(small, FEW)
    costs = f"{large_time * 1e6:.0f} and {small_time * 1e6:.0f} µs"
    yield Result.limit(
        f"looking one up among {MANY:,}, % of one among {FEW:,} ({costs})",
        100 * large_time / small_time,
        AT_MOST_PERCENT,
    )


def _ledger(folder: Path) -> Ledger:
    home = Home(keys=KeyFolder(folder / "keys"), folder=folder / "outside", project="bench")
    return Ledger(Database(f"sqlite:///{folder}/state.db"), home, Clock(lambda: datetime.now(UTC)))


def _person(number: int) -> Person:
    return Person((Identifier("user_id", str(10**9 + number)), Identifier("email", f"user.{number}@example.org")))


def _file(ledger: Ledger, numbers: range) -> float:
    people = [_person(number) for number in numbers]
    begin = time.perf_counter()
    filed = file_requests(ledger, people, law=load_laws()["gdpr"], received_at=RECEIVED, run=RunContext("bench"))
    seconds = time.perf_counter() - begin
    assert filed.new == len(people)
    return seconds


def _bare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _new_rows(state: Path, bare: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """What the last filing wrote, table by table; a table that is missing in the bare database is made there."""
    source, found = sqlite3.connect(f"file:{state}?mode=ro", uri=True), {}
    for table in TABLES:
        columns = [row[1] for row in source.execute(f"PRAGMA table_info({table})")]
        bare.execute(f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)})")
        known = bare.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        found[table] = source.execute(f"SELECT * FROM {table} WHERE rowid > ? ORDER BY rowid", [known]).fetchall()
    source.close()
    return found


def _insert(bare: sqlite3.Connection, rows: dict[str, list[tuple[object, ...]]]) -> float:
    begin = time.perf_counter()
    bare.execute("BEGIN IMMEDIATE")
    for table, some in rows.items():
        bare.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(some[0]))})", some)
    bare.execute("COMMIT")
    return time.perf_counter() - begin


def _lookup_seconds(ledger: Ledger, count: int) -> float:
    """The median of random people, each looked up in a transaction of its own."""
    times = []
    for number in random.sample(range(count), LOOKUPS):
        person = _person(number)
        begin = time.perf_counter()
        assert request_of(ledger, person) is not None
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        for result in main(Path(scratch)):
            print(result.line(), flush=True)
