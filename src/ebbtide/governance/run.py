"""Runs one read-only query in Spark, with a limit of time, and gives plain rows."""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import InheritableThread
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from ebbtide.errors import EbbtideError, InputError, QueryError
from ebbtide.governance.statement import Statement, read_only

TIME_LIMIT = 600.0
"""Seconds that one query may take where nobody says otherwise."""
_LOOK = 0.5
"""Seconds between two looks at whether anybody asked a query to stop."""

_WRITERS = (
    "org.apache.spark.sql.catalyst.plans.logical.Command",
    "org.apache.spark.sql.catalyst.plans.logical.ParsedStatement",
    "org.apache.spark.sql.catalyst.plans.logical.InsertIntoDir",
    "org.apache.spark.sql.catalyst.plans.logical.ScriptTransformation",
)
_PLACES = (re.compile(r"line (\d+),? pos (\d+)"), re.compile(r"== SQL \(line (\d+), position (\d+)\)"))


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The columns of a query, in order, and its rows as plain values."""

    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]


def run_statement(
    spark: SparkSession,
    statement: Statement,
    day: date,
    *,
    time_limit: float = TIME_LIMIT,
    check: Callable[[], None] = lambda: None,
) -> QueryResult:
    """The rows of a statement for one day. A query that does more than read never runs. `check` ends it by raising."""
    text = statement.at(day)
    try:
        _refuse_writers(spark, text, statement)
        frame = spark.sql(text)
        rows = _collect(frame, statement, time_limit, check)
    except (ParseException, AnalysisException) as error:
        raise _wrong(error, statement) from None
    except (PySparkException, Py4JJavaError) as error:
        reason = _first_line(error)
        raise QueryError(statement.name, reason, hint=f"look at {statement.path}") from None
    return QueryResult(tuple(frame.columns), tuple({key: plain(row[key]) for key in frame.columns} for row in rows))


def _refuse_writers(spark: SparkSession, text: str, statement: Statement) -> None:
    """Spark runs a command as soon as it is asked for, so its parser is asked first."""
    jvm: Any = spark.sparkContext._jvm
    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    writers = [jvm.java.lang.Class.forName(name, False, loader) for name in _WRITERS]
    for node in _nodes(parser.parsePlan(text)):
        if any(writer.isInstance(node) for writer in writers):
            raise read_only(f"{node.nodeName()} is no query", statement.path)


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for n in range(children.size()):
        yield from _nodes(children.apply(n))


def _collect(frame: DataFrame, statement: Statement, time_limit: float, check: Callable[[], None]) -> list[Row]:
    """All rows, in a thread of its own: what Spark cannot cancel is left behind rather than waited for."""
    context = frame.sparkSession.sparkContext
    group = f"ebbtide-{uuid.uuid4()}"
    done: list[list[Row]] = []
    failed: list[BaseException] = []

    def work() -> None:
        context.setJobGroup(group, f"ebbtide {statement.name}", interruptOnCancel=True)
        try:
            done.append(frame.collect())
        except BaseException as error:
            failed.append(error)

    thread: threading.Thread = InheritableThread(target=work)
    thread.daemon = True
    thread.start()
    until = time.monotonic() + time_limit
    try:
        while thread.is_alive() and (left := until - time.monotonic()) > 0:
            thread.join(min(left, _LOOK))
            check()
    except BaseException:
        context.cancelJobGroup(group)
        raise
    if thread.is_alive():
        context.cancelJobGroup(group)
        raise EbbtideError(
            f"{statement.name} did not end within {time_limit:g} seconds and was stopped",
            hint=f"look for a join without a condition in {statement.path}, or raise --time-limit",
        )
    if failed:
        raise failed[0]
    return done[0]


def _wrong(error: PySparkException, statement: Statement) -> InputError:
    message = str(error)
    for pattern in _PLACES:
        if found := pattern.search(message):
            where = statement.where(int(found[1]), int(found[2]) + 1)
            break
    else:
        where = str(statement.path)
    kind = "not SQL" if isinstance(error, ParseException) else "cannot be run"
    return InputError(
        f"{kind}: {_first_line(error)}", where=where, hint="`docs/governance.md` lists tables and columns"
    )


def _first_line(error: BaseException) -> str:
    java = getattr(error, "java_exception", None)
    lines = [line.strip() for line in str(java or error).splitlines() if line.strip()]
    return re.sub(r"; line \d+ pos \d+;?", "", lines[0]) if lines else type(error).__name__


def plain(value: Any) -> Any:
    """A value as JSON and CSV can carry it. Spark hands out instants in this machine's zone, without saying so."""
    if isinstance(value, Row):
        return {key: plain(item) for key, item in value.asDict().items()}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, float) and value != value:
        return None
    return value if isinstance(value, str | int | float | bool | date | None) else str(value)
