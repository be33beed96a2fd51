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
    if duration.months:
        return F.add_months(day, duration.months)
    hours = abs(int(duration.exact.total_seconds())) // 3600
    days = -(-hours // 24)
    return F.date_add(day, days if duration.count >= 0 else -days)


def add_to_instant(instant: Column, duration: Duration) -> Column:
    """`add` for a column of timestamps and one duration."""
    micros = F.unix_micros(instant)
    if not duration.months:
        return F.timestamp_micros(micros + F.lit(int(duration.exact.total_seconds()) * 1_000_000))
    rest = F.pmod(micros, F.lit(_DAY))
    day = F.date_from_unix_date(F.round((micros - rest) / F.lit(_DAY)).cast("int"))
    moved = F.unix_date(F.add_months(day, duration.months)).cast("long")
    return F.timestamp_micros(moved * F.lit(_DAY) + rest)


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
