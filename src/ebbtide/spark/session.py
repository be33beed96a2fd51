"""The one place that configures Spark: versions, jars, extensions and catalogs.

The order of extensions and the settings below were found by trial; `docs/decisions/0002-one-session.md` says which
conflict each one avoids.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
from pyspark import RDD, SparkContext
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from ebbtide.model.dataset import Catalog
from ebbtide.no_pandas import show_pandas
from ebbtide.spark import jars
from ebbtide.spark.active import activate as activate
from ebbtide.spark.class_archive import using_archive
from ebbtide.spark.foreign import EXTENSIONS, KRYO, REGISTRAR, forget_catalogs, forget_meaning, refuse_lacking
from ebbtide.spark.gateway import remember_classes
from ebbtide.spark.java import launch_environment
from ebbtide.spark.profiles import profile_of

_JAVA = "spark.driver.extraJavaOptions"
# Quiet: our log settings, and Hudi's object sizer does not try to attach to this process.
JAVA_OPTIONS = (
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()} "
    "-Djdk.attach.allowAttachSelf=true -Djol.skipHotspotSAAttach=true"
)

_BASE = {
    "spark.serializer": KRYO,  # Hudi cannot write without it
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",  # VACUUM of a tiny table: 2 s instead of 100
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The event log, the UI and `SET` show what they are told: a catalog's settings may hold secrets under any name.
    "spark.redaction.regex": r"(?i)secret|password|token|access[.]?key|^spark\.sql\.catalog\.[^.]+\.",
    "spark.io.encryption.enabled": "true",  # rows of people: nothing of them that is spilled lies there in the clear
}
_NAMES_ARE_NAMES = {"spark.sql.variable.substitute": "false"}
"""Spark puts variables into every statement before it reads it, in quoted names too: `users${x}` would be `users`
(hazard 31). No session in which we run a statement does that, whatever a project asks for.
"""
_OURS = "spark.ebbtide.ours"
_LOCAL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "3g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def profile() -> str:
    """The profile of the installed PySpark: `spark35` (all four formats) or `spark41` (Iceberg and Delta)."""
    return profile_of(pyspark.__version__).name


def formats_of_session() -> tuple[str, ...]:
    """The formats that a session of the installed PySpark can run."""
    return profile_of(pyspark.__version__).formats


def session(
    catalogs: Iterable[Catalog] = (),
    *,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    theirs: SparkSession | None = None,
) -> SparkSession:
    """Start (or get) the session with the given catalogs. `conf` wins over everything that stands here.

    Beside somebody else's, which is the running one unless `theirs` is given, it is a new one of the same context.
    """
    show_pandas()
    catalogs = tuple(catalogs)
    wanted, running = catalog_settings(catalogs), theirs or _running()
    if running is not None and (theirs is not None or not _is_ours(running) or _taken(running, catalogs, wanted)):
        return _beside(running, catalogs, conf or {})
    formats = formats_of_session()
    needed = launch_environment()
    if not master.startswith(("local", "spark://127.0.0.1")):
        del needed["SPARK_LOCAL_IP"]  # a cluster must be able to call the driver back
    os.environ.update(needed)
    # Workers would otherwise take whatever `python3` is on the path, and miss this environment.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = dict(_BASE)
    files = [str(path) for path in jars.paths(profile())]
    if master.startswith("local"):
        settings |= _LOCAL
    is_on_class_path = master.startswith("local") and _on_class_path(files)
    if not is_on_class_path:
        settings["spark.jars"] = ",".join(files)
    settings["spark.sql.extensions"] = ",".join(EXTENSIONS[f] for f in EXTENSIONS if f in formats)
    if "hudi" in formats:
        settings["spark.kryo.registrator"] = REGISTRAR
    settings |= wanted
    settings |= {**(conf or {}), **_NAMES_ARE_NAMES, _OURS: "true"}
    settings[_JAVA] = java_options((conf or {}).get(_JAVA), has_archive=is_on_class_path)
    builder = SparkSession.builder.appName("ebbtide").master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _class_path(files if is_on_class_path else []):
        spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    remember_classes(spark)
    # A session that was already there keeps its static settings, but may learn new catalogs.
    for key, value in wanted.items():
        spark.conf.set(key, value)
    activate(spark)
    return spark


def java_options(said: str | None, *, has_archive: bool) -> str:
    """Java's options of a session: the project's where it has some, with the archive of classes in either case, unless
    they are about one themselves.
    """
    options = JAVA_OPTIONS if said is None else said
    return options + using_archive() if has_archive and "Archive" not in options else options


def _on_class_path(files: list[str]) -> bool:
    """Whether Java has the jars on its own class path, or will have them when it is started.

    There classes come from an archive, and no task copies the jars first.
    """
    if SparkContext._gateway is None:
        return True
    known: str = SparkContext._gateway.jvm.java.lang.System.getProperty("java.class.path")
    return set(files) <= set(known.split(os.pathsep))


@contextmanager
def _class_path(files: list[str]) -> Iterator[None]:
    """Java that is started meanwhile has the jars on its class path, last: what Spark has is Spark's.

    Not for longer: a process that this one starts may run another Spark.
    """
    variable = "SPARK_DIST_CLASSPATH"
    before = os.environ.get(variable)
    os.environ[variable] = os.pathsep.join([*filter(None, [before]), *files])
    try:
        yield
    finally:
        os.environ.pop(variable)
        if before is not None:
            os.environ[variable] = before


def _running() -> SparkSession | None:
    """The first session of this process, where it was not stopped."""
    first: Any = SparkSession._instantiatedSession
    return None if first is None or first._sc._jsc is None else first


def _is_ours(running: SparkSession) -> bool:
    """Whether we started it. In somebody else's we change nothing, and run nothing."""
    return running.conf.get(_OURS, "false") == "true"


def _taken(running: SparkSession, catalogs: Iterable[Catalog], wanted: Mapping[str, str]) -> bool:
    """Whether the session knows another catalog by one of these names: any setting of it differs."""
    any_: Any = running
    known = dict(any_._jsparkSession.sessionState().conf().settings())

    def of(settings: Mapping[str, str], name: str) -> dict[str, str]:
        return {key: value for key, value in settings.items() if f"{key}.".startswith(f"{name}.")}

    names = [f"spark.sql.catalog.{catalog.name}" for catalog in catalogs]
    return any(of(known, name) and of(wanted, name) and of(known, name) != of(wanted, name) for name in names)


def _beside(running: SparkSession, catalogs: Iterable[Catalog], conf: Mapping[str, str]) -> SparkSession:
    """A session of its own beside somebody else's, or for catalogs whose names this process knows as others.

    A session opens a catalog once, whatever it is told later: in the running one another project's tables would be
    changed by the same name.
    """
    catalogs = tuple(catalogs)
    wanted = catalog_settings(catalogs)
    if not _is_ours(running):
        refuse_lacking(running, catalogs, profile())
    key = _key(running, *(f"{name}={value}" for name, value in sorted({**wanted, **conf}.items())))
    if key not in _BESIDE:
        _forget_ended(_BESIDE, running)
        _BESIDE[key] = _new(running, "spark_catalog", *(catalog.name for catalog in catalogs))
        for name, value in {**_BASE, **wanted, **conf, **_NAMES_ARE_NAMES}.items():
            # What belongs to the context is its starter's. All else is set, also what only a library knows: Spark calls
            # nothing modifiable that it does not know.
            with suppress(AnalysisException):
                _BESIDE[key].conf.set(name, value)
            if name.startswith(_HADOOP):  # a session hands its own settings on as they are
                _BESIDE[key].conf.set(name.removeprefix(_HADOOP), value)
    activate(_BESIDE[key])
    return _BESIDE[key]


_BESIDE: dict[tuple[str, ...], SparkSession] = {}
_HADOOP = "spark.hadoop."


def _key(spark: SparkSession, *more: str) -> tuple[str, ...]:
    return (str(spark.sparkContext.applicationId), *more)


def _forget_ended(sessions: dict[tuple[str, ...], SparkSession], running: SparkSession) -> None:
    for key in [key for key in sessions if key[0] != _key(running)[0]]:
        del sessions[key]


def sibling(spark: SparkSession) -> SparkSession:
    """A session with the same settings for statements that need one of their own.

    `newSession` has those of the context only: a catalog that was learned later, or is another project's by the same
    name there, would be missing or another one.
    """
    any_: Any = spark
    return _another(spark, any_._jsparkSession.cloneSession())


class _Another(SparkSession):
    """PySpark makes whichever session creates a frame the thread's own, and formats ask the thread for theirs."""

    def createDataFrame(self, *args: Any, **options: Any) -> DataFrame:  # noqa: N802 (its name there)
        active = SparkSession.getActiveSession()
        try:
            return super().createDataFrame(*args, **options)
        finally:
            if active is not None:
                activate(active)


def _new(spark: SparkSession, *catalogs: str) -> SparkSession:
    """A session with the context's settings, of which only those of speed are left where somebody else chose them."""
    any_: Any = spark
    made = _another(spark, any_._jsparkSession.newSession())
    forget_catalogs(made, catalogs)
    if not _is_ours(spark):
        forget_meaning(made)
        _take_names_as_they_are(made)
    return made


def _another(spark: SparkSession, java: Any) -> SparkSession:
    """PySpark binds `RDD.toDF` to whichever session was made last: the user's stays the user's."""
    bound = RDD.toDF
    made = _Another(spark.sparkContext, java)
    RDD.toDF = bound  # type: ignore[method-assign]
    _take_names_as_they_are(made)
    return made


def _take_names_as_they_are(made: SparkSession) -> None:
    for name, value in _NAMES_ARE_NAMES.items():
        made.conf.set(name, value)


FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.maxPlanStringLength": "0",
}
"""For queries over few rows: compiling them, planning them again between stages, writing them down for a page that
nobody looks at and spreading them over tasks costs more than running them.
"""

_PLAIN: dict[tuple[str, ...], SparkSession] = {}
"""The first session without extensions, by application."""
_ALWAYS = ("spark.sql.session.timeZone", "spark.sql.execution.arrow.pyspark.enabled")
"""What a context that somebody else started may have otherwise."""


def plan_session(spark: SparkSession, *, few_rows: bool) -> SparkSession:
    """A new session beside `spark`, on its context, for queries over the information schema.

    Its settings are its own: a plan over few rows is prepared for them while a format rewrites data in `spark`. It has
    no extensions, whose rules would look at every node of every query (a fifth of a plan's time, most of it Hudi's).
    """
    key = _key(spark)
    if key not in _PLAIN:
        _forget_ended(_PLAIN, spark)
        _PLAIN[key] = of_formats(spark)
    made = _new(_PLAIN[key])
    for name, value in {**{name: _BASE[name] for name in _ALWAYS}, **(FEW_ROWS if few_rows else {})}.items():
        made.conf.set(name, value)
    return made


def of_formats(spark: SparkSession, *formats: str) -> SparkSession:
    """A new session beside `spark`, on its context, with the extensions of these formats alone."""
    any_: Any = spark
    settings, name = any_._jsc.sc().conf(), "spark.sql.extensions"
    # Spark 4 has no Hudi, and makes sessions in another way. The settings of somebody else's context are left alone.
    if profile() != "spark35" or not _is_ours(spark) or not settings.contains(name):
        return _new(spark)
    extensions = settings.get(name)
    # A new session takes the extensions of its context, and there is no other way to leave some out.
    settings.set(name, ",".join(EXTENSIONS[f] for f in EXTENSIONS if f in formats))
    try:
        return _another(spark, any_._jvm.SparkSession(any_._jsc.sc(), any_._jvm.java.util.HashMap()))
    finally:
        settings.set(name, extensions)


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


def parts_of(spark: SparkSession, name: str) -> tuple[str, ...]:
    """What the session makes of a quoted name, as in a statement: the parts that it was quoted from, one hopes."""
    any_: Any = spark
    parts = any_._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(name)
    return tuple(str(parts.mkString("\0")).split("\0"))  # no name holds that


def quote_text(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
