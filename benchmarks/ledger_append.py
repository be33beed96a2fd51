"""A million entries: appending against a bare table, proofs against those of a small ledger, bytes on disk.

The baseline inserts the very same bytes into a table of a number and a blob, in the same batches, under the same
settings of SQLite. The two take turns batch by batch, so that whatever else the machine does falls on both alike.
Appending is the whole of it: hashes, tree, transaction, signature, copy outside. Turning values into canonical bytes
comes before, as it does in a program that appends; what it adds is the second line.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.results import Result
from ebbtide.ledger.codec import Entry
from ebbtide.ledger.entries import Marked, salted
from ebbtide.ledger.ledger import Clock, Home, Ledger
from ebbtide.ledger.log import LedgerLog
from ebbtide.ledger.tree import inclusion_proof
from ebbtide.state.database import Database
from ebbtide.state.keys import KeyFolder

ENTRIES = 1_000_000
BATCH = 10_000
SMALL = 1_000
PROOFS = 300
LEAST_RATE = 0.3
AT_MOST_PERCENT = 300
AT_MOST_BYTES = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded(Entry):
    """An entry whose bytes are known already."""

    KIND = "mark.made"

    data: bytes

    def encode(self) -> bytes:
        return self.data


def main(folder: Path) -> Iterator[Result]:
    """Rates, the cost of a proof, and bytes an entry."""
    ledger, bare = _ledger(folder / "ledger", "large"), _bare(folder / "bare.db")
    ledger.open()
    random.seed(1)
    bodies = 0
    spent = {"bare": 0.0, "append": 0.0, "encode": 0.0}
    for first in range(0, ENTRIES, BATCH):
        entries = [_entry(number) for number in range(first, first + BATCH)]
        with _timed(spent, "encode"):
            leaves = [entry.encode() for entry in entries]
        encoded = [Encoded(at=entry.at, data=leaf) for entry, leaf in zip(entries, leaves, strict=True)]
        bodies += sum(map(len, leaves))
        for turn in random.sample(["bare", "append"], 2):
            with _timed(spent, turn):
                _insert(bare, first, leaves) if turn == "bare" else _append(ledger, encoded)
    name = f"{ENTRIES:,} entries of {bodies // ENTRIES} bytes"
    yield Result(f"append {name}", spent["append"], "the same bytes into a bare table", spent["bare"], LEAST_RATE)
    whole = spent["append"] + spent["encode"]
    yield Result(f"the same, canonical JSON made from values included ({name})", whole, "bare table", spent["bare"], 0)
    small = _ledger(folder / "small", "small")
    _append(small, [_entry(number) for number in range(SMALL - 1)])
    large_proof, small_proof = _proof_seconds(ledger), _proof_seconds(small)
    costs = f"{large_proof * 1e6:.0f} and {small_proof * 1e6:.0f} µs"
    yield Result.limit(
        f"inclusion proof at {ENTRIES:,}, % of one at {SMALL:,} ({costs})",
        100 * large_proof / small_proof,
        AT_MOST_PERCENT,
    )
    ledger.database.scrub()
    size = (folder / "ledger" / "state.db").stat().st_size
    yield Result.limit(
        f"bytes an entry on disk beyond its body ({size / ENTRIES:.0f} with it)",
        (size - bodies) / ENTRIES,
        AT_MOST_BYTES,
    )


def _ledger(folder: Path, project: str) -> Ledger:
    home = Home(keys=KeyFolder(folder / "keys"), folder=folder / "outside", project=project)
    return Ledger(Database(f"sqlite:///{folder}/state.db"), home, Clock(lambda: datetime.now(UTC)))


def _bare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE entries (idx INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    return connection


def _insert(bare: sqlite3.Connection, first: int, leaves: list[bytes]) -> None:
    bare.execute("BEGIN IMMEDIATE")
    bare.executemany("INSERT INTO entries VALUES (?, ?)", list(enumerate(leaves, first)))
    bare.execute("COMMIT")


def _append(ledger: Ledger, entries: list[Encoded] | list[Marked]) -> None:
    with ledger.writing() as step:
        step.append(*entries)


def _entry(number: int) -> Marked:
    at = datetime(2026, 11, 15, tzinfo=UTC) + timedelta(microseconds=number)
    return Marked(
        at=at,
        mark=f"{random.getrandbits(128):032x}",
        run=f"{number // BATCH:032x}",
        dataset=f"lake.raw.events_{number % 500}",
        target="transactions",
        object=str(random.getrandbits(63)),
        policy="old-transactions",
        because=salted(b"0123456789abcdef", f"older than {number}"),
        fingerprint=f"sha256:{random.getrandbits(256):064x}",
        grace_until=at + timedelta(days=7),
    )


def _proof_seconds(ledger: Ledger) -> float:
    """The median of proofs of random entries, each from a log that has nothing in memory."""
    times = []
    with ledger.database.reader() as state:
        size = LedgerLog(state.connection).size
        for _ in range(PROOFS):
            index = random.randrange(size)
            begin = time.perf_counter()
            inclusion_proof(index, size, LedgerLog(state.connection).get)
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


@contextmanager
def _timed(spent: dict[str, float], what: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    spent[what] += time.perf_counter() - begin


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        for result in main(Path(scratch)):
            print(result.line(), flush=True)
