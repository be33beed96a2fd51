"""Trying a commit again when a writer was faster: a few times, each time proved anew, never forced."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ebbtide.errors import ConflictError, EbbtideError

_logger = logging.getLogger(__name__)
ATTEMPTS = 5
_PAUSE = 0.1

T = TypeVar("T")


class WriterWasFasterError(Exception):
    """Raised by an attempt that saw a writer's commit come between, where no exception of the engine says so."""


def retry_on_conflict(subject: str, conflicts: Collection[str], attempt: Callable[[], T]) -> T:
    """The answer of the first attempt that no writer got in the way of.

    `conflicts` are simple names of Java exceptions. An attempt reads the dataset anew and proves that it may go on, so
    one whose outcome is unknown (a time-out) is simply made again: what is done is found done (hazard 26).
    """
    for n in range(ATTEMPTS):
        try:
            return attempt()
        except WriterWasFasterError:
            pass
        except (Py4JJavaError, PySparkException) as error:
            names = list(causes(error))
            if not set(conflicts).intersection(names):
                # Messages of the engine may quote values; its exceptions' names do not.
                raise EbbtideError(
                    f"{subject}: the engine failed with {' of '.join(names) or type(error).__name__}",
                    hint="see the engine's log; the next run goes on from what is there",
                ) from error
        _logger.debug("attempt %d of %d: a writer was faster, tried again", n + 1, ATTEMPTS)
        time.sleep(_PAUSE * 2**n)
    raise ConflictError(
        f"{subject}: writers were faster {ATTEMPTS} times; nothing was forced", hint="run again when it is quieter"
    )


def causes(error: BaseException) -> Iterator[str]:
    """The simple names of an engine's exception and of what caused it."""
    java: Any = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    while java is not None:
        yield str(java.getClass().getSimpleName())
        java = java.getCause()
