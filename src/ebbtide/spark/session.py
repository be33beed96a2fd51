"""The one place that configures Spark: versions, jars, extensions and catalogs.

The order of extensions and the settings below were found by trial; `docs/decisions/0002-one-session.md` says which
conflict each one avoids.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from ebbtide.errors import SetupError
from ebbtide.model.dataset import Catalog
from ebbtide.spark import jars
from ebbtide.spark.gateway import remember_classes
from ebbtide.spark.java import launch_environment

_EXTENSIONS = {  # Paimon first or it swallows Hudi's CALL; Delta before Iceberg or Delta's UPDATE fails.
    "paimon": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
    "hudi": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
_PROFILES = {"3.5": ("spark35", ("paimon", "hudi", "delta", "iceberg")), "4.1": ("spark41", ("delta", "iceberg"))}

# Quiet: our log settings, and Hudi's object sizer does not try to attach to this process.
_JAVA_OPTIONS = (
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()} "
    "-Djdk.attach.allowAttachSelf=true -Djol.skipHotspotSAAttach=true"
)

_BASE = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",  # Hudi cannot write without it
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",  # VACUUM of a tiny table: 2 s instead of 100
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
}
_LOCAL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "3g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def profile() -> str:
    """The profile of the installed PySpark: `spark35` (all four formats) or `spark41` (Iceberg and Delta)."""
    return _profile()[0]


def formats_of_session() -> tuple[str, ...]:
    """The formats that a session of the installed PySpark can run."""
    return _profile()[1]


def _profile() -> tuple[str, tuple[str, ...]]:
    version = ".".join(pyspark.__version__.split(".")[:2])
    if version not in _PROFILES:
        raise SetupError(f"PySpark {pyspark.__version__} has no profile", hint=f"install one of {', '.join(_PROFILES)}")
    return _PROFILES[version]


def session(
    catalogs: Iterable[Catalog] = (), *, master: str = "local[*]", conf: Mapping[str, str] | None = None
) -> SparkSession:
    """Start (or get) the session with the given catalogs. `conf` wins over everything that stands here."""
    wanted = catalog_settings(catalogs)
    if (beside := _beside(_running(), wanted)) is not None:
        return beside
    name, formats = _profile()
    needed = launch_environment()
    if not master.startswith(("local", "spark://127.0.0.1")):
        del needed["SPARK_LOCAL_IP"]  # a cluster must be able to call the driver back
    os.environ.update(needed)
    # Workers would otherwise take whatever `python3` is on the path, and miss this environment.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = dict(_BASE)
    if master.startswith("local"):
        settings |= _LOCAL
    settings["spark.jars"] = ",".join(str(path) for path in jars.paths(name))
    settings["spark.sql.extensions"] = ",".join(_EXTENSIONS[f] for f in _EXTENSIONS if f in formats)
    if "hudi" in formats:
        settings["spark.kryo.registrator"] = "org.apache.spark.HoodieSparkKryoRegistrar"
    settings |= wanted
    settings |= dict(conf or {})
    builder = SparkSession.builder.appName("ebbtide").master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    remember_classes(spark)
    # A session that was already there keeps its static settings, but may learn new catalogs.
    for key, value in wanted.items():
        spark.conf.set(key, value)
    return spark


def _running() -> SparkSession | None:
    """The first session of this process, where it was not stopped."""
    first: Any = SparkSession._instantiatedSession
    return None if first is None or first._sc._jsc is None else first


def _beside(running: SparkSession | None, wanted: Mapping[str, str]) -> SparkSession | None:
    """A session of its own for catalogs whose names this process knows as others; None where no name is taken.

    A session opens a catalog once, whatever it is told later: in the running one another project's tables would be
    changed by the same name.
    """
    known = {key: None if running is None else running.conf.get(key, None) for key in wanted}
    if running is None or all(known[key] in (None, value) for key, value in wanted.items()):
        return None
    key = f"{running.sparkContext.applicationId} {sorted(wanted.items())}"
    if key not in _BESIDE:
        _BESIDE[key] = running.newSession()
        for name, value in wanted.items():
            _BESIDE[key].conf.set(name, value)
    return _BESIDE[key]


_BESIDE: dict[str, SparkSession] = {}


FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.maxPlanStringLength": "0",
    "spark.sql.datetime.java8API.enabled": "true",
    "spark.ebbtide.fewRows": "true",
}
"""For queries over few rows: compiling them, planning them again between stages, writing them down for a page that
nobody looks at and spreading them over tasks costs more than running them. The last one is ours (`plan.world.settled`).
"""

_PLAIN: dict[str, SparkSession] = {}
"""The first session without extensions, by application."""


def plan_session(spark: SparkSession, *, few_rows: bool) -> SparkSession:
    """A new session beside `spark`, on its context, for queries over the information schema.

    Its settings are its own: a plan over few rows is prepared for them while a format rewrites data in `spark`. It has
    no extensions, whose rules would look at every node of every query (a fifth of a plan's time, most of it Hudi's).
    """
    application = str(spark.sparkContext.applicationId)
    if application not in _PLAIN:
        _PLAIN[application] = _without_extensions(spark)
    made = _PLAIN[application].newSession()
    for key, value in FEW_ROWS.items() if few_rows else ():
        made.conf.set(key, value)
    return made


def _without_extensions(spark: SparkSession) -> SparkSession:
    if profile() != "spark35":  # elsewhere there is no Hudi, and sessions are made in another way
        return spark.newSession()
    any_: Any = spark
    context, extensions = any_._jsc.sc(), "spark.sql.extensions"
    named = context.conf().get(extensions, "")
    # A new session takes the extensions of its context, and there is no other way to leave them out.
    context.conf().remove(extensions)
    try:
        made = any_._jvm.SparkSession(context, any_._jvm.java.util.HashMap())
    finally:
        context.conf().set(extensions, named)
    return SparkSession(spark.sparkContext, made)


def activate(spark: SparkSession) -> None:
    """Make it the session of this thread. Iceberg's catalogs and Delta's log ask the thread for it, not the caller."""
    any_: Any = spark
    # Spark 4 has two classes of that name, and tells which one it is.
    known = getattr(any_, "_get_j_spark_session_class", None)
    java = any_._jvm.SparkSession if known is None else known(any_._jvm)
    java.setActiveSession(any_._jsparkSession)
    SparkSession._activeSession = spark  # what PySpark answers, whatever the JVM has


def catalog_settings(catalogs: Iterable[Catalog]) -> dict[str, str]:
    """What Spark must know of the project's catalogs. Delta and Hudi tables are reached by path and need nothing."""
    settings: dict[str, str] = {}
    for catalog in catalogs:
        key = f"spark.sql.catalog.{catalog.name}"
        if catalog.format == "iceberg":
            settings[key] = "org.apache.iceberg.spark.SparkCatalog"
            settings[f"{key}.type"] = catalog.type or "hadoop"
            if catalog.type == "jdbc":
                settings[f"{key}.jdbc.schema-version"] = "V1"
        elif catalog.format == "paimon":
            settings[key] = "org.apache.paimon.spark.SparkCatalog"
        else:
            continue
        settings[f"{key}.warehouse"] = catalog.warehouse
        settings |= {f"{key}.{option}": value for option, value in catalog.options.items()}
    return settings


def quote(*parts: str) -> str:
    """A name as an SQL identifier, each part in backticks."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def quote_text(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
