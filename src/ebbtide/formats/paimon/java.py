"""Paimon's Java library, called in bulk: `Metadata.java` reads in the JVM, `Removal.java` and `Rewriting.java` change
there.

Each call answers with one JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.resources import files
from threading import Lock
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

from ebbtide.errors import EbbtideError, SetupError, UnreadableError
from ebbtide.model.dataset import Catalog, TableHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_compiled: dict[tuple[str, str], Any] = {}
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
            return _answer(getattr(self.java, question)(self.location, dict(self.options), self.hadoop, *about))
        except Py4JJavaError as error:
            raise UnreadableError(self.subject, _reason(error), hint=_HINT) from error
        except Py4JError as error:
            raise UnreadableError(self.subject, "the Spark session does not answer", hint="start it again") from error


@dataclass(frozen=True, slots=True)
class Changer:
    """What changes a table. Paths are relative to its folder."""

    subject: str
    location: str
    options: Mapping[str, str]
    java: Any
    hadoop: Any

    def drop(self, branch: str, base: int, wanted: Collection[tuple[int, str]]) -> dict[str, Any]:
        """Take the files of numbered drops out of a branch whose head is `base`: `Removal.java` says when not."""
        return self._tell("drop", branch, base, "\n".join(f"{number}\t{path}" for number, path in wanted))

    def expire(
        self, branch: str, begin: int, end: int, named: Collection[str], *, rehearsal: bool = False
    ) -> dict[str, Any]:
        """Expire the snapshots of a range; only files that are named can go."""
        return self._tell("expire", branch, begin, end, "\n".join(sorted(named)), rehearsal)

    def expire_changelogs(
        self, branch: str, begin: int, end: int, named: Collection[str], *, rehearsal: bool = False
    ) -> dict[str, Any]:
        """Expire the changelogs of a range, which outlived their snapshots; only files that are named can go."""
        return self._tell("expireChangelogs", branch, begin, end, "\n".join(sorted(named)), rehearsal)

    def _tell(self, order: str, *about: object) -> dict[str, Any]:
        try:
            return _answer(getattr(self.java, order)(self.location, dict(self.options), self.hadoop, *about))
        except Py4JJavaError as error:
            raise EbbtideError(f"{self.subject}: {order} failed: {_reason(error)}", hint=_AGAIN) from error
        except Py4JError as error:
            raise EbbtideError(f"{self.subject}: the Spark session does not answer", hint=_AGAIN) from error


@dataclass(frozen=True, slots=True)
class PaimonRewriter:
    """What puts other files in the place of a table's files. A state is Java's own: a head or a tag that was opened."""

    subject: str
    location: str
    options: Mapping[str, str]
    java: Any
    hadoop: Any

    def refusal(self, branch: str) -> str | None:
        """Why rows of a branch cannot be written anew."""
        answer: str | None = self._at("refusal", branch)
        return answer

    def open(self, branch: str, tag: str = "") -> Any:
        return self._at("open", branch, tag)

    def begin(self, branch: str, number: int) -> None:
        """Tell readers of a branch which of its snapshots is the first."""
        self._at("begin", branch, number)

    def ask(self, question: str, *about: object) -> Any:
        """What `Rewriting.java` has by that name, of a state or of what was written."""
        try:
            return getattr(self.java, question)(*about)
        except Py4JJavaError as error:
            raise EbbtideError(f"{self.subject}: {question} failed: {_kind_of(error)}", hint=_AGAIN) from error
        except Py4JError as error:
            raise EbbtideError(f"{self.subject}: the Spark session does not answer", hint=_AGAIN) from error

    def told(self, question: str, *about: object) -> dict[str, Any]:
        return _answer(self.ask(question, *about))

    def _at(self, question: str, *about: object) -> Any:
        return self.ask(question, self.location, dict(self.options), self.hadoop, *about)


_AGAIN = "look at the table's newest snapshot, then run it again: what was done is not done twice"


def _answer(text: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(text)
    return answer


def _reason(error: Py4JJavaError) -> str:
    return str(error.java_exception.getMessage()).splitlines()[0]


def _kind_of(error: Py4JJavaError) -> str:
    """Our own sentence, or the name of what was thrown: words of Paimon's may quote values of people."""
    thrown = error.java_exception
    name = str(thrown.getClass().getSimpleName())
    return str(thrown.getMessage()) if name == "Failed" else name


_HINT = (
    "restore the file, or drop the tag or branch that needs it; a branch loses its files when the tag it was made"
    " from is deleted"
)


def open_library(found: TableHandle, catalog: Catalog, spark: SparkSession | None) -> Library:
    if spark is None:
        raise SetupError("Paimon tables are read through a Spark session", hint="run this where the session is")
    return Library(str(found.id), found.handle, catalog.options, *_java(spark, "Metadata"))


def open_changer(found: TableHandle, catalog: Catalog, spark: SparkSession) -> Changer:
    return Changer(str(found.id), found.handle, catalog.options, *_java(spark, "Removal"))


def open_rewriter(found: TableHandle, catalog: Catalog, spark: SparkSession) -> PaimonRewriter:
    return PaimonRewriter(str(found.id), found.handle, catalog.options, *_java(spark, "Rewriting"))


def _java(spark: SparkSession, name: str) -> tuple[Any, Any]:
    """A compiled class of this folder, once per Spark application, and the session's Hadoop settings."""
    application = spark.sparkContext.applicationId
    with _compiling:
        if (application, name) not in _compiled:
            source = files(__package__).joinpath(f"{name}.java").read_text(encoding="utf-8")
            try:
                jvm: Any = spark._jvm
                compiler = jvm.org.codehaus.janino.SimpleCompiler()
                compiler.setTargetVersion(8)
                compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
                compiler.cook(source)
                constructor = compiler.getClassLoader().loadClass(name).getDeclaredConstructors()[0]
                made = constructor.newInstance(None)
            except Py4JError as error:
                raise SetupError(
                    "this Spark session has no Paimon 0.9", hint="use the Spark 3.5 profile, with Paimon's jar"
                ) from error
            for old in [key for key in _compiled if key[0] != application]:
                del _compiled[old]
            _compiled[application, name] = made
        return _compiled[application, name], spark._jsc.hadoopConfiguration()
