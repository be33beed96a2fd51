"""PySpark asks the JVM for the same classes and methods again with every column; here their answers are remembered.

A plan makes some ten thousand small calls. A third of them look up `functions` and its like by name, and every lookup
searches all jars of all formats.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaPackage
from pyspark.sql import SparkSession


class _Remembered:
    """A class or a package of the JVM whose members are looked up once."""

    def __init__(self, found: Any) -> None:
        self._found = found

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._found, name)
        if isinstance(member, JavaPackage):
            member = _Remembered(member)
        setattr(self, name, member)
        return member

    def __call__(self, *args: Any) -> Any:
        return self._found(*args)


def remember_classes(spark: SparkSession) -> None:
    """From now on these names are looked up once in the life of the session's context.

    They are those of PySpark 3.5; later ones ask by longer names, and are served as before.
    """
    view: Any = spark.sparkContext._jvm
    for name in ("functions", "PythonUtils", "Column", "org"):
        if not isinstance(found := getattr(view, name), _Remembered):
            setattr(view, name, _Remembered(found))
