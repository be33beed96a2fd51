"""`model.durations` in Spark's words, for columns of days and instants.

Nothing here looks at the session's time zone: an instant is moved by counting days and microseconds in UTC (hazard 24).
"""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import Column
from pyspark.sql import functions as F

from ebbtide.model.durations import Duration

_DAY = 86_400_000_000
_TEXT = r"^([+-]?[0-9]{1,6})([dwmy])\z"


def add_to_day(day: Column, duration: Duration) -> Column:
    """`add` for a column of dates and one duration."""
    return move_day(day, F.lit(duration.months), F.lit(days_of(duration)))


def add_to_instant(instant: Column, duration: Duration) -> Column:
    """`add` for a column of timestamps and one duration."""
    return move_instant(instant, F.lit(duration.months), F.lit(micros_of(duration)))


def move_instant(instant: Column, months: Column, micros: Column) -> Column:
    """`add` where the duration, too, differs from row to row: its calendar part and its part of fixed length."""
    at = F.unix_micros(instant)
    rest = F.pmod(at, F.lit(_DAY))
    day = F.date_from_unix_date(F.round((at - rest) / F.lit(_DAY)).cast("int"))
    by_calendar = F.unix_date(F.add_months(day, months)).cast("long") * F.lit(_DAY) + rest
    return F.timestamp_micros(F.when(months == 0, at).otherwise(by_calendar) + micros)


def move_day(day: Column, months: Column, days: Column) -> Column:
    """`add` for days, where the duration differs from row to row."""
    return F.when(months == 0, F.date_add(day, days)).otherwise(F.add_months(day, months))


def micros_of(duration: Duration) -> int:
    """The part of fixed length in microseconds."""
    return int(duration.exact.total_seconds()) * 1_000_000


def days_of(duration: Duration) -> int:
    """The part of fixed length in days; started days count, as for days in `model.durations.add`."""
    hours = abs(int(duration.exact.total_seconds())) // 3600
    days = -(-hours // 24)
    return days if duration.count >= 0 else -days


def day_is_older(day: Column, retention: Duration, now: datetime) -> Column:
    """`is_older` for a column of dates; NULL is not older."""
    today = F.lit(now.astimezone(UTC).date())
    return F.coalesce(add_to_day(day, retention) < today, F.lit(False))


def instant_is_older(instant: Column, retention: Duration, now: datetime) -> Column:
    """`is_older` for a column of timestamps; NULL is not older."""
    return F.coalesce(add_to_instant(instant, retention) < F.lit(now), F.lit(False))


def add_text(day: Column, text: Column, *, backwards: bool = False) -> Column:
    """`add` for dates and durations that are both columns; NULL where the text is no duration."""
    sign = -1 if backwards else 1
    count, unit = _count(text) * F.lit(sign), F.regexp_extract(text, _TEXT, 2)
    return (
        F.when(unit == "d", F.date_add(day, count))
        .when(unit == "w", F.date_add(day, count * F.lit(7)))
        .when(unit == "m", F.add_months(day, count))
        .when(unit == "y", F.add_months(day, count * F.lit(12)))
    )


def interval_of_text(text: Column) -> Column:
    """`as_interval` for a column of texts; NULL where the text is no duration."""
    count, unit = _count(text), F.regexp_extract(text, _TEXT, 2)
    return (
        F.when(unit == "d", count)
        .when(unit == "w", count * F.lit(7))
        .when(unit == "m", count * F.lit(31))
        .when(unit == "y", count * F.lit(366))
    )


def _count(text: Column) -> Column:
    digits = F.regexp_extract(text, _TEXT, 1)
    return F.when(digits != "", digits).cast("int")
