"""The gate of a table with many chunks: what a run asks of each, where all of them stay for the reason of before.

`python -m benchmarks.hottier_gate [CHUNKS]` prints the same for another number.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.results import Result
from ebbtide import Ebbtide
from ebbtide.app.ledger import open_for_writing
from ebbtide.app.round import sweeper
from ebbtide.app.tier_drop import drop_due
from ebbtide.app.tier_opened import hot_run, hot_tables
from ebbtide.app.tier_table import TierOutcome
from ebbtide.hottier import gate
from ebbtide.run import quiet
from ebbtide.state.hottier import ChunkRecord, ChunkState, HotRecord, HotWriter, MirrorState

_PROJECT = """\
project: bench
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
"""
_TABLE = """\
server: nobody asks it
tables:
  - {name: public.m, time: at, chunk: 1h, tier_after: 1d, drop_after: 2d, cold: lake.hot.m}
"""
_FIRST = datetime(2020, 1, 1, tzinfo=UTC)
_HOUR = timedelta(hours=1)
CHUNKS = 10_000


def main(root: Path) -> Iterator[Result]:
    return measure(root, CHUNKS)


def measure(root: Path, chunks: int) -> Iterator[Result]:
    (root / "hottier").mkdir()
    (root / "ebbtide.yml").write_text(_PROJECT, encoding="utf-8")
    (root / "hottier" / "m.yml").write_text(_TABLE, encoding="utf-8")
    os.environ["XDG_STATE_HOME"] = str(root / "state")
    context = quiet()
    with Ebbtide(root) as tide:
        table = hot_tables(tide.project)["public.m"]
        ledger, now = open_for_writing(tide.project, context)
        with sweeper(ledger, context) as lease, hot_run(tide.project, ledger, lease, context) as hot:
            with ledger.database.sweeper(lease) as state:
                writer = HotWriter(state.connection)
                writer.add(_record(now))
                writer.add_chunks(_chunk(n) for n in range(chunks))
            drop_due(hot, {table.id: TierOutcome(table)}, now)  # writes down why each of them stays
            began = time.perf_counter()
            record = hot.book(table).record()
            shut = [gate.shut(record, chunk) for chunk in hot.book(table).chunks()]
            drop_due(hot, {table.id: TierOutcome(table)}, now)
            spent = time.perf_counter() - began
    assert shut == ["it changed after it was sealed"] * chunks
    yield Result.limit(f"the gate for {chunks:,} chunks that stay (ms)", 1000 * spent, 1000)


def _record(now: datetime) -> HotRecord:
    return HotRecord(
        id="public.m", cold="lake.hot.m", system="1", timeline=1, slot="s", publication="s", because="",
        state=MirrorState.STREAMING, position=20, added_at=now,
    )  # fmt: skip


def _chunk(n: int) -> ChunkRecord:
    first = _FIRST + n * _HOUR
    return ChunkRecord(
        hot_table="public.m", name=f"m_{n}", oid=n, first=first, last=first + _HOUR, state=ChunkState.ACTIVE,
        sealed=10, changed=11,
    )  # fmt: skip


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="ebbtide-bench-gate-") as scratch:
        for result in measure(Path(scratch), int(sys.argv[1]) if len(sys.argv) > 1 else CHUNKS):
            print(result.line(), flush=True)
