"""The functions that checks and reports have beside Spark's own (spec §3, "Durations").

They are `model.durations` itself, so that a duration means the same in SQL as in a plan. Text that is no duration gives
NULL, as Spark's own functions do.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta

from pyspark.sql import SparkSession
from pyspark.sql.types import DateType, DayTimeIntervalType, IntegerType, TimestampType

from ebbtide.errors import InputError
from ebbtide.model import durations
from ebbtide.model.durations import Duration, parse_duration

_GRAIN = "TimeGrain."


def register_functions(spark: SparkSession, *, now: datetime) -> None:
    """Give a session `as_interval`, `add_interval`, `duration_of_time_grain`, `instant_of`, and the intervals."""
    spark.udf.register("as_interval", as_interval, IntegerType())
    spark.udf.register("interval_of", interval_of, DayTimeIntervalType())
    spark.udf.register("add_interval", add_interval, DateType())
    spark.udf.register("duration_of_time_grain", duration_of_time_grain, IntegerType())
    spark.udf.register("interval_of_time_grain", interval_of_time_grain, DayTimeIntervalType())
    spark.udf.register("instant_of", lambda day: instant_of(day, now), TimestampType())


def as_interval(text: str | Iterable[str] | None) -> int | None:
    """The longest length in days, for comparing only: a month counts 31, a year 366. A list is as long as its parts."""
    parts = [_duration(one) for one in _listed(text)]
    known = [durations.as_interval(one) for one in parts if one is not None]
    return sum(known) if known and len(known) == len(parts) else None


def interval_of(text: str | Iterable[str] | None) -> timedelta | None:
    """`as_interval` as an interval."""
    days = as_interval(text)
    return None if days is None else timedelta(days=days)


def add_interval(day: date | None, text: str | None) -> date | None:
    """The day moved by the duration, true to the calendar."""
    duration = _duration(text)
    return None if duration is None or day is None else durations.add(day, duration)


def duration_of_time_grain(classifiers: str | Iterable[str] | None) -> int:
    """The longest `TimeGrain` among classifiers, a list or comma-separated text, in whole days; a table without one
    counts as daily.
    """
    grains = [one.removeprefix(_GRAIN) for one in _listed(classifiers) if one is not None and _GRAIN in one]
    return max((as_interval(grain) or 1 for grain in grains), default=1)


def interval_of_time_grain(classifiers: str | Iterable[str] | None) -> timedelta:
    """`duration_of_time_grain` as an interval."""
    return timedelta(days=duration_of_time_grain(classifiers))


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


def _listed(text: str | Iterable[str | None] | None) -> list[str | None]:
    """The parts of a list, or of text with commas; none of NULL."""
    if text is None:
        return []
    return [one.strip() for one in text.split(",")] if isinstance(text, str) else list(text)
