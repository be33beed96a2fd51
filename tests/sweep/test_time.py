from __future__ import annotations
import time
from pathlib import Path
from pyspark.sql import SparkSession
from tests.tide import Tide
from tests.sweep.test_smoke import P


def test_time(spark: SparkSession, tmp_path: Path) -> None:
    tide = Tide(spark, tmp_path / "p", "iceberg", policies=P)
    d = tide.drivers["iceberg"]
    t = d.create("t")
    d.append(t, [(1, "a", "d")])
    d.overwrite(t, [(3, "c", "d")])
    tide.mark(40)

    def run(label):
        c0 = time.process_time()
        t0 = time.time()
        j0 = spark.sparkContext.statusTracker()
        tide.plan(41)
        print(label, round(time.time() - t0, 1), flush=True)

    run("default")
    run("default")
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    run("nocodegen")
    run("nocodegen")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    run("nofactory")
    run("nofactory")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    run("noaqe")
    run("noaqe")
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    run("noaqe+codegen")
    import cProfile, pstats

    pr = cProfile.Profile()
    pr.enable()
    tide.plan(41)
    pr.disable()
    pstats.Stats(pr).sort_stats("cumtime").print_stats(45)
    assert 0
