"""A backlog of inserts, drained into the lake by the mirror, against `COPY … csv` → pyarrow → Parquet in the same run.

`python -m benchmarks.hottier_drain [ROWS]` prints two lines: many transactions, and one big one.
"""

from __future__ import annotations

import io
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv
from tests.state.postgres import start_server

from ebbtide import Ebbtide

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


def main(rows: int) -> None:
    server = start_server("wal_level=logical", "max_wal_size=8GB", "autovacuum=off")
    try:
        with tempfile.TemporaryDirectory(prefix="ebbtide-bench-hottier-") as folder:
            _run(Path(folder), f"host={server.folder} user=postgres dbname=postgres", rows)
    finally:
        server.stop()


def _run(root: Path, dsn: str, rows: int) -> None:
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
        for transactions in (_TRANSACTIONS, 1):
            _write(sql, rows, transactions)
            began = time.perf_counter()
            assert tide.tier.sync("public.m")[0].mirror == "STREAMING"
            mirrored = time.perf_counter() - began
            baseline = _copied(sql, rows, root)
            print(
                f"{rows:,} inserts in {transactions} transactions: {rows / mirrored:,.0f} rows/s, "
                f"COPY csv {rows / baseline:,.0f} rows/s, ratio {baseline / mirrored:.2f}, "
                f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB"
            )


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
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)
