"""What every method of the library does around its work."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from ebbtide.model.times import in_utc

_P = ParamSpec("_P")
_T = TypeVar("_T")
_S = TypeVar("_S")


def verb(method: Callable[Concatenate[_S, _P], _T]) -> Callable[Concatenate[_S, _P], _T]:
    """A method after which the thread has the session that it had before."""

    @wraps(method)
    def run(self: _S, /, *args: _P.args, **options: _P.kwargs) -> _T:
        if "pyspark.sql" not in sys.modules:  # then nobody has a session, and a verb without Spark loads none
            return method(self, *args, **options)
        from ebbtide.spark.active import as_it_was

        with as_it_was():
            return method(self, *args, **options)

    return run


def time_asked(asked: datetime | None) -> datetime:
    """The time that a caller named, or now."""
    return datetime.now(UTC) if asked is None else in_utc(asked)
