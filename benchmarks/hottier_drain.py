"""A backlog of inserts, drained into the lake by the mirror, against `COPY … csv` → pyarrow → Parquet in the same run.

Changed rows and digests are measured on what the drains left. `python -m benchmarks.hottier_drain [ROWS]` prints the
same for another size.
"""

from __future__ import annotations

import io
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv
from tests.state.postgres import start_server

from benchmarks.results import Result
from ebbtide import Ebbtide
from ebbtide.app.tier_opened import cold_of, hot_tables
from ebbtide.config.hottier import HotTable
from ebbtide.formats.iceberg.cold import ColdRange
from ebbtide.hottier.digest import cold_digest, hot_digest
from ebbtide.hottier.server import connect
from ebbtide.hottier.table import find

_COLUMNS = {
    "id": pa.int64(), "at": pa.timestamp("us", "UTC"), "device": pa.string(), "metric": pa.string(),
    "value": pa.float64(), "amount": pa.decimal128(18, 2), "seq": pa.int64(), "note": pa.string(),
}  # fmt: skip
_PROJECT = """\
project: bench
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
"""
_TABLE = "server: ${EBBTIDE_HOT_URL}\ntables:\n  - {name: public.m, time: at, chunk: 1d, cold: lake.hot.m, ahead: 0}\n"
_TRANSACTIONS = 100
_AGAINST = "COPY csv, pyarrow, Parquet of as many"
_CHANGES = {
    "updates": "UPDATE m SET value = -value WHERE mod(id, 20) = 0",
    "deletes": "DELETE FROM m WHERE mod(id, 20) = 1",
}
T = TypeVar("T")


ROWS = 2_000_000


def main(root: Path) -> Iterator[Result]:
    return measure(root, ROWS)


def measure(root: Path, rows: int) -> Iterator[Result]:
    """Many transactions, one big one, changed rows, and the digests of what is there by then."""
    with in_front_of_a_lake(root) as sql:
        yield from _measured(root, sql, rows)


@contextmanager
def in_front_of_a_lake(root: Path) -> Iterator[psycopg.Connection[Any]]:
    """A session on a server of its own, whose hot table `public.m` is added: of one chunk, and empty."""
    server = start_server("wal_level=logical", "max_wal_size=8GB", "autovacuum=off")
    before = {name: os.environ.get(name) for name in ("EBBTIDE_HOT_URL", "XDG_STATE_HOME")}
    try:
        yield _added(root, f"host={server.folder} user=postgres dbname=postgres")
    finally:
        server.stop()
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def _added(root: Path, dsn: str) -> psycopg.Connection[Any]:
    (root / "hottier").mkdir()
    (root / "ebbtide.yml").write_text(_PROJECT, encoding="utf-8")
    (root / "hottier" / "m.yml").write_text(_TABLE, encoding="utf-8")
    os.environ |= {"EBBTIDE_HOT_URL": dsn, "XDG_STATE_HOME": str(root / "state")}
    sql: psycopg.Connection[Any] = psycopg.connect(dsn, autocommit=True)
    sql.execute(
        "CREATE TABLE m (id bigint, at timestamptz, device text, metric text, value float8, amount numeric(18,2),"
        " seq bigint, note text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)"
    )
    sql.execute("CREATE TABLE m_1 PARTITION OF m FOR VALUES FROM ('2024-01-01+00') TO ('2024-03-01+00')")
    with Ebbtide(root) as tide:
        tide.tier.init()
        tide.tier.add("public.m")
    return sql


def _measured(root: Path, sql: psycopg.Connection[Any], rows: int) -> Iterator[Result]:
    with Ebbtide(root) as tide:
        name, ours, copied = _drained(tide, sql, root, rows, _TRANSACTIONS)
        yield Result(name, ours, _AGAINST, copied, 0.8)
        name, ours, copied = _drained(tide, sql, root, rows, 1)
        yield Result(name, ours, _AGAINST, copied, 0.5)
        for each, statement in _CHANGES.items():
            changed = sql.execute(statement).rowcount
            yield Result(f"drain {each} of {changed:,} rows", _synced(tide), _AGAINST, _copied(sql, changed, root), 0)
        table = hot_tables(tide.project)["public.m"]
        with connect(table.server) as session:
            yield from _digests(tide, table, session)


def _drained(
    tide: Ebbtide, sql: psycopg.Connection[Any], root: Path, rows: int, transactions: int
) -> tuple[str, float, float]:
    _write(sql, rows, transactions)
    ours, peak = _synced(tide), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    name = f"drain {rows:,} inserts of {transactions} transactions (peak {peak:,} MiB)"
    return name, ours, _copied(sql, rows, root)


def _synced(tide: Ebbtide) -> float:
    began = time.perf_counter()
    (result,) = tide.tier.sync("public.m")
    assert result.mirror == "STREAMING", result.errors
    return time.perf_counter() - began


def _digests(tide: Ebbtide, table: HotTable, session: psycopg.Connection[Any]) -> Iterator[Result]:
    found, cold = find(session, table), cold_of(tide.project, table)
    leaf = next(leaf for leaf in found.chunks if leaf.name == "m_1")
    assert cold is not None
    hashed = "SELECT count(*), sum(hashtext(m_1::text)) FROM public.m_1"
    here, ours = _timed(lambda: hot_digest(session, leaf, found.columns))
    _, theirs = _timed(lambda: session.execute(hashed).fetchone())
    yield Result(f"hot digest of {here.rows:,} rows", ours, "count and hashtext", theirs, 0.5)
    span = ColdRange(table.time, leaf.first, leaf.last, found.time_kind)
    there, spent = _timed(lambda: cold_digest(cold.batches(span), found.columns))
    assert here == there
    yield Result(f"cold digest of {there.rows:,} rows", spent, "the hot one", ours, 0)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def _write(sql: psycopg.Connection[Any], rows: int, transactions: int) -> None:
    last = sql.execute("SELECT coalesce(max(id), 0) FROM m").fetchone()
    assert last is not None
    each = rows // transactions
    for n in range(transactions):
        sql.execute(
            "INSERT INTO m SELECT g, '2024-01-01 00:00+00'::timestamptz + g * interval '0.5 second',"
            " 'device-' || mod(g, 1000), 'metric-' || mod(g, 17), g * 0.37, mod(g, 1000000) / 100.0, g * 7,"
            " 'note ' || g FROM generate_series(%s::bigint, %s::bigint) g",
            [last[0] + n * each + 1, last[0] + (n + 1) * each],
        )


def _copied(sql: psycopg.Connection[Any], rows: int, root: Path) -> float:
    began = time.perf_counter()
    with sql.cursor().copy(f"COPY (SELECT * FROM m LIMIT {rows}) TO STDOUT (FORMAT csv)") as copy:
        raw = b"".join(bytes(part) for part in copy)
    names = csv.ReadOptions(column_names=list(_COLUMNS))
    table = csv.read_csv(io.BytesIO(raw), names, convert_options=csv.ConvertOptions(column_types=_COLUMNS))
    pq.write_table(table, root / "baseline.parquet", compression="zstd")
    return time.perf_counter() - began


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="ebbtide-bench-hottier-") as scratch:
        for result in measure(Path(scratch), int(sys.argv[1]) if len(sys.argv) > 1 else ROWS):
            print(result.line(), flush=True)
