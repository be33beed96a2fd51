"""`model.durations` in Spark's words, for columns of days and instants of users' tables.

Nothing here looks at the session's time zone: an instant is moved by counting days and microseconds in UTC (hazard 24).
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from ebbtide.model.durations import Duration, days_of, micros_of

_DAY = 86_400_000_000


def add_to_day(day: Column, duration: Duration) -> Column:
    """`add` for a column of dates and one duration."""
    return F.add_months(day, duration.months) if duration.months else F.date_add(day, days_of(duration))


def add_to_instant(instant: Column, duration: Duration) -> Column:
    """`add` for a column of timestamps and one duration."""
    at = F.unix_micros(instant)
    if duration.months:
        rest = F.pmod(at, F.lit(_DAY))
        day = F.date_from_unix_date(F.round((at - rest) / F.lit(_DAY)).cast("int"))
        at = F.unix_date(F.add_months(day, duration.months)).cast("long") * F.lit(_DAY) + rest
    return F.timestamp_micros(at + F.lit(micros_of(duration)))
