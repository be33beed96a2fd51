"""The functions that checks and reports have beside Spark's own (spec §3, "Durations").

They are `model.durations` itself, so that a duration means the same in SQL as in a plan. Text that is no duration gives
NULL, as Spark's own functions do.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time

from pyspark.sql import SparkSession
from pyspark.sql.types import DateType, IntegerType, TimestampType

from ebbtide.errors import InputError
from ebbtide.model import durations
from ebbtide.model.durations import Duration, parse_duration

_GRAIN = "TimeGrain."


def register_functions(spark: SparkSession, *, now: datetime) -> None:
    """Give a session `as_interval`, `add_interval`, `duration_of_time_grain` and `instant_of`."""
    spark.udf.register("as_interval", as_interval, IntegerType())
    spark.udf.register("add_interval", add_interval, DateType())
    spark.udf.register("duration_of_time_grain", duration_of_time_grain, IntegerType())
    spark.udf.register("instant_of", lambda day: instant_of(day, now), TimestampType())


def as_interval(text: str | None) -> int | None:
    """The longest length in days, for comparing only: a month counts 31, a year 366."""
    duration = _duration(text)
    return None if duration is None else durations.as_interval(duration)


def add_interval(day: date | None, text: str | None) -> date | None:
    """The day moved by the duration, true to the calendar."""
    duration = _duration(text)
    return None if duration is None or day is None else durations.add(day, duration)


def duration_of_time_grain(classifiers: str | None) -> int:
    """The longest `TimeGrain` among comma-separated classifiers in whole days; a table without one counts as daily."""
    grains = [one.strip().removeprefix(_GRAIN) for one in (classifiers or "").split(",") if _GRAIN in one]
    return max((as_interval(grain) or 1 for grain in grains), default=1)


def instant_of(day: date | None, now: datetime) -> datetime | None:
    """The instant that a plan of this day is made at: `now` on its own day, the first one of any other."""
    if day is None:
        return None
    now = now.astimezone(UTC)
    return now if now.date() == day else datetime.combine(day, time.min, UTC)


def _duration(text: str | None) -> Duration | None:
    if text is None:
        return None
    try:
        return parse_duration(text, signed=True)
    except InputError:
        return None
