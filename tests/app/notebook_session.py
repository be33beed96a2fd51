"""A session that somebody else started and configured, and a look at everything that it says of itself.

Run as a program it is that somebody: `python -m tests.app.notebook_session FOLDER` does a few things of its own, works
with Ebbtide, does them again, and prints what it saw as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from ebbtide.spark import jars
from ebbtide.spark.foreign import EXTENSIONS, KRYO, REGISTRAR
from ebbtide.spark.java import launch_environment
from ebbtide.spark.session import JAVA_OPTIONS, formats_of_session, profile

OWN = {
    "spark.sql.extensions": ",".join(EXTENSIONS[name] for name in EXTENSIONS if name in formats_of_session()),
    "spark.serializer": KRYO,
    "spark.kryo.registrator": REGISTRAR,
    # What a session may well have, and what would make our statements mean something else.
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.catalog.lake.default-namespace": "theirs",
    "spark.sql.defaultCatalog": "lake",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.variable.substitute": "true",
}
LATE = (
    "spark.sql.caseSensitive", "spark.sql.catalog.lake.default-namespace", "spark.sql.parser.quotedRegexColumnNames"
)  # fmt: skip
"""Settings that the context was not started with: managed clusters have one before anybody builds a session."""
_PLAIN = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.sql.shuffle.partitions": "1",
}


def start(folder: Path, **settings: str) -> SparkSession:
    """A local session with these settings. Its own tables are kept beside `folder`, whose name Spark takes for a
    pattern.
    """
    os.environ.update(launch_environment())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = SparkConf().setMaster("local[1]").setAppName("theirs")
    conf.set("spark.sql.warehouse.dir", str(folder.parent / "own"))
    conf.setAll([(name, value) for name, value in {**_PLAIN, **settings}.items() if name not in LATE])
    SparkContext.getOrCreate(conf)
    builder = SparkSession.builder
    for name in LATE:
        if name in settings:
            builder = builder.config(name, settings[name])
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def start_configured(folder: Path) -> SparkSession:
    # On Java's own class path, where loading them is quicker than by `spark.jars`.
    os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(map(str, jars.paths(profile())))
    return start(folder, **OWN, **{"spark.sql.catalog.lake.warehouse": str(folder.parent / "theirs")})


def prepare(spark: SparkSession) -> None:
    """Tables, a current database and a view of their own."""
    spark.sql("CREATE NAMESPACE lake.store")
    spark.sql("CREATE TABLE lake.store.Users (id BIGINT, Name STRING) USING iceberg")
    spark.sql("INSERT INTO lake.store.Users VALUES (1, 'theirs'), (2, 'theirs too')")
    spark.sql("CREATE DATABASE spark_catalog.own")
    spark.sql("CREATE TABLE spark_catalog.own.plain (id BIGINT) USING parquet")
    spark.sql("INSERT INTO spark_catalog.own.plain VALUES (7)")
    spark.sql("USE lake.store")
    spark.range(3).createOrReplaceTempView("few")


def seen(spark: SparkSession) -> dict[str, Any]:
    """What the session says of itself, and what its own queries answer."""
    any_: Any = spark
    active: Any = SparkSession.getActiveSession()
    jvm = any_._jvm
    return {
        "settings": sorted(_settings(spark).items()),
        "context": sorted(spark.sparkContext.getConf().getAll()),
        "hadoop": sorted(dict(any_._jsc.hadoopConfiguration().getPropsWithPrefix("fs.")).items()),
        "active": [
            active._jsparkSession.equals(any_._jsparkSession),
            jvm.SparkSession.getActiveSession().get().equals(any_._jsparkSession),
        ],
        "default": jvm.SparkSession.getDefaultSession().get().equals(any_._jsparkSession),
        "current": [spark.catalog.currentCatalog(), spark.catalog.currentDatabase()],
        "catalogs": sorted(catalog.name for catalog in spark.catalog.listCatalogs()),
        "databases": sorted(row[0] for row in spark.sql("SHOW NAMESPACES IN spark_catalog").collect()),
        "views": sorted(table.name for table in spark.catalog.listTables() if table.isTemporary),
        "functions": sorted(row[0] for row in spark.sql("SHOW USER FUNCTIONS").collect()),
        "group": spark.sparkContext.getLocalProperty("spark.jobGroup.id"),
        "rows": [
            [list(row) for row in spark.sql(query).collect()]
            for query in (
                "SELECT id, Name FROM Users ORDER BY id",
                "SELECT id FROM spark_catalog.own.plain",
                "SELECT count(*) FROM few",
                "SELECT `(id|x)` FROM few LIMIT 1",
                "SELECT TIMESTAMP '2026-01-01 00:00:00' = TIMESTAMP '2025-12-31 15:00:00Z'",
            )
        ],
        "toDF": list(spark.sparkContext.parallelize([(1, "a")]).toDF(["n", "s"]).first() or ()),
        "environment": sorted(os.environ.items()),
    }


def _settings(spark: SparkSession) -> dict[str, str]:
    any_: Any = spark
    return dict(any_._jsparkSession.sessionState().conf().settings())


def main(folder: Path) -> dict[str, Any]:
    from ebbtide.app.ebbtide import Ebbtide
    from ebbtide.app.scan import start_session

    spark = start_configured(folder)
    prepare(spark)
    seen(spark)  # reading is not without effect: Spark remembers settings that somebody asked for
    before = seen(spark)
    tide = Ebbtide(folder / "ebbtide.yml", spark=spark)
    ours = start_session(tide.project)
    ours.sql("CREATE NAMESPACE lake.app")
    ours.sql("CREATE TABLE lake.app.users (id BIGINT, name STRING) USING iceberg")
    ours.sql("INSERT INTO lake.app.users VALUES (2, 'ours'), (3, 'ours too')")
    place = f"{tide.project.catalogs['events'].warehouse}/web/clicks"
    ours.sql(f"CREATE TABLE delta.`{place}` (ID BIGINT) USING delta")
    ours.sql(f"INSERT INTO delta.`{place}` VALUES (1)")
    from ebbtide.spark.session import activate

    activate(spark)
    report = tide.scan()
    gained = tide.incremental("lake.app.users")
    tables = tide.information_schema("tables")
    gained.createOrReplaceTempView("gained")
    joined = spark.sql("SELECT u.id, u.Name, g.name FROM Users u JOIN gained g ON u.id = g.id").collect()
    others = spark.table("few").join(gained, "id").collect()
    spark.catalog.dropTempView("gained")
    checks = {check.name: check.passed for check in tide.check()}
    return {
        "before": before,
        "after": seen(spark),
        "scanned": sorted(report.read),
        "errors": len(report.errors),
        "tables": sorted(row.table_id for row in tables.collect()),
        "is_theirs": [gained.sparkSession is spark, tables.sparkSession is spark],
        "joined": [list(row) for row in joined],
        "others": [list(row) for row in others],
        "checks": len(checks),
        "ours": [ours.conf.get(name, None) for name in LATE],
    }


if __name__ == "__main__":
    told = json.dumps(main(Path(sys.argv[1])))
    print(told)  # noqa: T201 - what it is for
