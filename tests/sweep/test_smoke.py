from __future__ import annotations
from pathlib import Path
from pyspark.sql import SparkSession
from tests.tide import Tide

P = """
policies:
  - name: old
    select: {tables: ["**"]}
    transactions: {older_than: 30d}
    versions: {older_than: 7d}
    grace: 7d
"""


def test_smoke(spark: SparkSession, tmp_path: Path) -> None:
    import time

    t0 = time.time()
    tide = Tide(spark, tmp_path / "p", "iceberg", policies=P)
    d = tide.drivers["iceberg"]
    t = d.create("t")
    d.append(t, [(1, "a", "d")])
    d.append(t, [(2, "b", "d")])
    d.overwrite(t, [(3, "c", "d")])
    d.append(t, [(4, "e", "d")])
    print("made", time.time() - t0)
    before = tide.files()
    print({k: v["decision"] for k, v in tide.plan(40).items()}, time.time() - t0)
    print(tide.mark(40), time.time() - t0)
    print(tide.states(t))
    print({k: (v["decision"], v["waits_for"]) for k, v in tide.plan(41).items()})
    print(tide.sweep(41), time.time() - t0)
    r = tide.sweep(48)
    print(r, time.time() - t0)
    print(sorted(before - tide.files()))
    print(tide.states(t))
    print(sorted(spark.table(t.sql).collect()))
    print(tide.ledger_kinds())
    print(tide.sweep(48), tide.mark(48))
    assert 0
