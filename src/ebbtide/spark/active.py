"""Which session is the thread's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession


def activate(spark: SparkSession) -> None:
    """Make it the session of this thread. Iceberg's catalogs and Delta's log ask the thread for it, not the caller."""
    any_: Any = spark
    _sessions(any_._jvm).setActiveSession(any_._jsparkSession)
    SparkSession._activeSession = spark  # what PySpark answers, whatever the JVM has


@contextmanager
def as_it_was() -> Iterator[None]:
    """The thread's session afterwards is the one from before, or none where it had none.

    Spark asks the thread for a session in many places, and answers by the settings of that one: with ours left there,
    `catalog.currentCatalog()` of the user's session would name a catalog of ours.
    """
    context: Any = SparkContext._active_spark_context
    # Not by `getActiveSession`, which makes a new session in Python and binds `RDD.toDF` to it.
    known = SparkSession._activeSession
    active = None if context is None else _sessions(context._jvm).getActiveSession()
    try:
        yield
    finally:
        if active is not None and context._jsc is not None:
            if active.isDefined():
                _sessions(context._jvm).setActiveSession(active.get())
            else:
                _sessions(context._jvm).clearActiveSession()
            SparkSession._activeSession = known


def _sessions(jvm: Any) -> Any:
    """The JVM's class of sessions. Spark 4 has two of that name, and tells which one it is."""
    known = getattr(SparkSession, "_get_j_spark_session_class", None)
    return jvm.SparkSession if known is None else known(jvm)
