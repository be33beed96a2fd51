"""Groups of objects in Spark tasks, without a value of a person in anything that Spark writes.

What a task is handed and what it answers (values, paths, the stores' credentials) is encrypted under a key that is
drawn for one search. Spark writes both down: a list that is handed out goes through a file in the clear, and so does a
closure of more than a megabyte; an answer of more than a megabyte may be spilled. The key goes to the tasks as a local
property, which Spark sends and does not write, but for its event log: there a property that the context's settings
have, too, is redacted by its name, and this name is one that is (`spark.redaction.regex`). Where it would not be, no
task runs.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ebbtide.errors import EbbtideError, RefusedError, keep_trace, kind_of
from ebbtide.run import RunContext
from ebbtide.verify.matcher import Matcher

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext
    from pyspark.sql import SparkSession

_KEY = "spark.ebbtide.search.secret"
_NONCE = 12
_LOOK_AGAIN = 0.2
_Part = TypeVar("_Part")
_Result = TypeVar("_Result")
Work = Callable[[_Part, Matcher], _Result]
"""What is done with one group: a function of a module, which workers import."""


def run_in_tasks(
    work: Work[_Part, _Result],
    parts: Sequence[tuple[_Part, int]],
    matcher: Matcher,
    spark: SparkSession,
    run: RunContext,
) -> list[_Result]:
    """The result of each part, in order. A part comes with its bytes, by which the run hears how far it is."""
    context = spark.sparkContext
    _keep_out_of_the_event_log(context)
    key = secrets.token_bytes(32)
    group = f"ebbtide-search-{uuid4().hex}"
    done: Accumulator[int] = context.accumulator(0)
    task = partial(_task, work, _seal(key, matcher.compiled()), done)
    sealed = [_seal(key, (part, size)) for part, size in parts]
    answer: Future[list[bytes]] = Future()

    def job() -> None:
        try:
            context.setJobGroup(group, "reading storage", interruptOnCancel=False)
            context.setLocalProperty(_KEY, key.hex())
            answer.set_result(context.parallelize(sealed, len(sealed)).map(task).collect())
        except Exception as error:
            keep_trace(error)
            answer.set_exception(EbbtideError(f"reading storage in Spark tasks failed: {kind_of(error)}"))
        finally:
            _forget(context)

    _wait(job, done, context, group, run)
    return [_open(key, each) for each in answer.result()]


def _wait(
    job: Callable[[], None],
    done: Accumulator[int],
    context: SparkContext,
    group: str,
    run: RunContext,
) -> None:
    """Let the job run in a thread of its own, tell how far it is, and end it where the run is asked to stop."""
    from pyspark import InheritableThread

    thread = InheritableThread(target=job, daemon=True)
    thread.start()
    told = 0
    try:
        while thread.is_alive():
            thread.join(_LOOK_AGAIN)
            now = done.value
            run.advance(now - told)
            told = now
    except BaseException:
        context.cancelJobGroup(group)
        thread.join()
        raise


def _task(work: Work[Any, Any], matcher: bytes, done: Accumulator[int], sealed: bytes) -> bytes:
    from pyspark import TaskContext

    context = TaskContext.get()
    told = None if context is None else context.getLocalProperty(_KEY)
    if told is None:
        raise EbbtideError("a task was not told the key of its search")
    key = bytes.fromhex(told)
    part, size = _open(key, sealed)
    result = work(part, _matcher(key, matcher))
    done.add(size)
    return _seal(key, result)


_last: list[tuple[bytes, Matcher]] = []
"""A worker runs one task after the other, of one search as a rule."""


def _matcher(key: bytes, sealed: bytes) -> Matcher:
    digest = hashlib.sha256(sealed).digest()
    if not _last or _last[0][0] != digest:
        _last[:] = [(digest, _open(key, sealed))]
    return _last[0][1]


def _seal(key: bytes, value: object) -> bytes:
    nonce = os.urandom(_NONCE)
    return nonce + AESGCM(key).encrypt(nonce, pickle.dumps(value), None)


def _open(key: bytes, sealed: bytes) -> Any:
    # Only what this search sealed can be opened, so nobody else's pickle is loaded.
    return pickle.loads(AESGCM(key).decrypt(sealed[:_NONCE], sealed[_NONCE:], None))  # noqa: S301


def _keep_out_of_the_event_log(context: SparkContext) -> None:
    any_: Any = context
    settings = any_._jsc.sc().conf()
    pattern = settings.get("spark.redaction.regex", "(?i)secret|password|token|access[.]?key")
    if not any_._jvm.java.util.regex.Pattern.compile(pattern).matcher(_KEY).find():
        raise RefusedError(
            "this session would write the key of a search into its event log",
            hint="let `spark.redaction.regex` match names with `secret` in them, as it does by default",
        )
    if not settings.contains(_KEY):
        settings.set(_KEY, "")


def _forget(context: SparkContext) -> None:
    """The thread of the JVM may be used again."""
    any_: Any = context
    for name in (_KEY, "spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
        any_.setLocalProperty(name, None)
