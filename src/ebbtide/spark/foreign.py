"""A context that somebody else started: what it lacks, what of its settings is not ours, and leaving it as it was.

Jars and extensions belong to a context and cannot be had later: what is missing is said before anything is done.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from ebbtide.errors import SetupError
from ebbtide.model.dataset import Catalog
from ebbtide.spark.jars import COORDINATES

EXTENSIONS = {  # Paimon first or it swallows Hudi's CALL; Delta before Iceberg or Delta's UPDATE fails.
    "paimon": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
    "hudi": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
KRYO = "org.apache.spark.serializer.KryoSerializer"
REGISTRAR = "org.apache.spark.HoodieSparkKryoRegistrar"

_CLASSES = {
    "iceberg": ("org.apache.iceberg.spark.SparkCatalog", "iceberg-spark-runtime"),
    "delta": ("org.apache.spark.sql.delta.catalog.DeltaCatalog", "delta-spark"),
    "hudi": ("org.apache.hudi.common.table.HoodieTableMetaClient", "hudi-spark"),
    "paimon": ("org.apache.paimon.spark.SparkCatalog", "paimon-spark"),
    "jdbc:sqlite:": ("org.sqlite.JDBC", "sqlite-jdbc"),
    "jdbc:postgresql:": ("org.postgresql.Driver", "postgresql"),
}
"""A class of each jar, and how the jar's name begins."""

_SPEED = (
    "spark.sql.adaptive.", "spark.sql.autoBroadcastJoinThreshold", "spark.sql.broadcastTimeout", "spark.sql.codegen.",
    "spark.sql.files.", "spark.sql.hive.", "spark.sql.shuffle.", "spark.sql.sources.parallelPartitionDiscovery.",
)  # fmt: skip
"""How fast a query runs is the context's, and so is how it reaches its metastore; what a query means is not."""


def refuse_lacking(theirs: SparkSession, catalogs: Iterable[Catalog], profile: str) -> None:
    """A `SetupError` with the settings to add, where the session's context cannot run these catalogs."""
    any_: Any = theirs
    if not hasattr(any_, "_jsparkSession"):
        raise SetupError("a session of Spark Connect has no context here", hint="run where the driver of Spark runs")
    if any_._sc._jsc is None:
        raise SetupError("the given Spark session was stopped", hint="start it again, then open the project again")
    catalogs = tuple(catalogs)
    missing = _missing(theirs, catalogs, profile)
    if missing:
        names = ", ".join(sorted({catalog.format for catalog in catalogs}))
        lines = "; ".join(f"{name}={value}" for name, value in missing.items())
        raise SetupError(
            f"this Spark context cannot run the project's formats ({names})",
            hint=f"stop it, and start it with what it lacks: {lines}",
        )


def _missing(theirs: SparkSession, catalogs: tuple[Catalog, ...], profile: str) -> dict[str, str]:
    """Settings that the context should have been started with, beyond what it has."""
    settings = theirs.sparkContext.getConf()
    formats = {catalog.format for catalog in catalogs}
    uris = [catalog.options.get("uri", "") for catalog in catalogs if catalog.format == "iceberg"]
    needed = formats | {scheme for scheme in _CLASSES if any(uri.startswith(scheme) for uri in uris)}
    jars = [_coordinate(_CLASSES[name][1], profile) for name in _CLASSES if name in needed and not _has(theirs, name)]
    has = [name.strip() for name in (settings.get("spark.sql.extensions") or "").split(",") if name.strip()]
    wanted = [extension for format_, extension in EXTENSIONS.items() if format_ in formats]
    missing: dict[str, str] = {}
    if jars:
        before = [name for name in (settings.get("spark.jars.packages") or "").split(",") if name]
        missing["spark.jars.packages"] = ",".join([*before, *jars])
    if not set(wanted) <= set(has):
        # All of them, in the order that works, before those that only the context's starter knows.
        others = [name for name in has if name not in EXTENSIONS.values()]
        known = [name for name in EXTENSIONS.values() if name in {*wanted, *has}]
        missing["spark.sql.extensions"] = ",".join([*known, *others])
    if "hudi" in formats:
        hudi = {"spark.serializer": KRYO, "spark.kryo.registrator": REGISTRAR}
        missing |= {name: value for name, value in hudi.items() if value not in (settings.get(name) or "").split(",")}
    return missing


def _has(theirs: SparkSession, name: str) -> bool:
    any_: Any = theirs
    try:
        any_._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_CLASSES[name][0])
    except Py4JJavaError:
        return False
    return True


def _coordinate(name: str, profile: str) -> str:
    return next(one for one in COORDINATES[profile] if one.split(":")[1].startswith(name))


def forget_catalogs(made: SparkSession, catalogs: Iterable[str]) -> None:
    """Let these names be free: a new session begins with what its context was started with, which may be half of a
    catalog that happens to have the name of one of ours.
    """
    names = tuple(f"spark.sql.catalog.{name}." for name in catalogs)
    for key in _begun_with(made):
        if f"{key}.".startswith(names):
            made.conf.unset(key)


def _begun_with(made: SparkSession) -> set[str]:
    """What a new session has: settings of its context, and those of a builder that met a context that was there."""
    any_: Any = made
    ours = dict(any_._jsparkSession.sessionState().conf().settings())
    return {key for key, _ in made.sparkContext.getConf().getAll()} | set(ours)


def forget_meaning(made: SparkSession) -> None:
    """Let a new session of somebody else's context mean by SQL what Spark means: by default another catalog, names by
    case, or regular expressions in backticks would be the context's, and our statements would be about other tables.
    """
    for key in _begun_with(made):
        if key.startswith("spark.sql.") and not key.startswith(("spark.sql.catalog.", *_SPEED)):
            with suppress(AnalysisException):  # what belongs to the context stays as its starter wanted it
                made.conf.unset(key)


def handed_over(frame: DataFrame, theirs: SparkSession) -> DataFrame:
    """The same rows as a frame of their session: its views, joins and settings of speed are theirs."""
    any_, any_frame = theirs, frame  # type: Any, Any
    java = any_._jvm.org.apache.spark.sql
    dataset = java.Dataset if pyspark.__version__.startswith("3.") else java.classic.Dataset
    # What is analysed stays as it was analysed: names are not looked up again among theirs.
    return DataFrame(dataset.ofRows(any_._jsparkSession, any_frame._jdf.queryExecution().analyzed()), theirs)
