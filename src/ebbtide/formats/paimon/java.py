"""Paimon's Java library, called in bulk: `Metadata.java` walks its lists in the JVM and answers with one JSON text."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.resources import files
from threading import Lock
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

from ebbtide.errors import SetupError, UnreadableError
from ebbtide.model.dataset import Catalog, Found

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_compiled: dict[str, Any] = {}
_compiling = Lock()


@dataclass(frozen=True, slots=True)
class Library:
    """The library, opened on one table. Safe to use from several threads: nothing is kept between calls."""

    subject: str
    location: str
    options: Mapping[str, str]
    java: Any
    hadoop: Any

    def history(self) -> dict[str, Any]:
        """Schema, and per branch the texts of its snapshots, tags, changelogs and consumers, by name."""
        return self._ask("history")

    def manifests(
        self, lists: Collection[str], optional: Collection[str], opened: Collection[str], indexes: Collection[str]
    ) -> dict[str, Any]:
        """What manifest lists, the manifests of the `opened` ones and index manifests say, in one answer."""
        # One text each: a list is sent item by item.
        return self._ask("manifests", *("\n".join(sorted(names)) for names in (lists, optional, opened, indexes)))

    def _ask(self, question: str, *about: str) -> dict[str, Any]:
        try:
            text = getattr(self.java, question)(self.location, dict(self.options), self.hadoop, *about)
        except Py4JJavaError as error:
            reason = str(error.java_exception.getMessage()).splitlines()[0]
            raise UnreadableError(self.subject, reason, hint=_HINT) from error
        except Py4JError as error:
            raise UnreadableError(self.subject, "the Spark session does not answer", hint="start it again") from error
        answer: dict[str, Any] = json.loads(text)
        return answer


_HINT = (
    "restore the file, or drop the tag or branch that needs it; a branch loses its files when the tag it was made"
    " from is deleted"
)


def open_library(found: Found, catalog: Catalog, spark: SparkSession | None) -> Library:
    if spark is None:
        raise SetupError("Paimon tables are read through a Spark session", hint="run this where the session is")
    java = _metadata(spark)
    return Library(str(found.id), found.handle, catalog.options, java, spark._jsc.hadoopConfiguration())


def _metadata(spark: SparkSession) -> Any:
    """The compiled `Metadata`, once per Spark application."""
    application = spark.sparkContext.applicationId
    with _compiling:
        if application not in _compiled:
            source = files(__package__).joinpath("Metadata.java").read_text(encoding="utf-8")
            try:
                jvm: Any = spark._jvm
                compiler = jvm.org.codehaus.janino.SimpleCompiler()
                compiler.setTargetVersion(8)
                compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
                compiler.cook(source)
                constructor = compiler.getClassLoader().loadClass("Metadata").getDeclaredConstructors()[0]
                made = constructor.newInstance(None)
            except Py4JError as error:
                raise SetupError(
                    "this Spark session has no Paimon 0.9", hint="use the Spark 3.5 profile, with Paimon's jar"
                ) from error
            _compiled.clear()
            _compiled[application] = made
        return _compiled[application]
