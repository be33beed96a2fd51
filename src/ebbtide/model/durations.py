"""Durations as people write them, and the one meaning of "older than" (spec §3, "Durations").

Text is `[+-]?\\d+[dwmy]`. Where hours make sense (grace, versions, the time between runs) `h` is allowed too, and there
`m` is refused, because it could be read as minutes. `plan.durations` says the same in Spark's words; a test holds the
two against each other and against the calendar.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar, overload

from ebbtide.errors import InputError

_TEXT = re.compile(r"([+-]?)([0-9]+)([hdwmy])")
_LONGEST_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "m": 31 * 24, "y": 366 * 24}
_MOST_MONTHS = 10_000 * 12  # longer than the calendar: more would overflow Spark's instants, and turn the answer round
_MOST_DIGITS = 6  # 999999 of anything is for ever; more would only overflow

When = TypeVar("When", date, datetime)


@dataclass(frozen=True, slots=True)
class Duration:
    """A signed number of hours, days, weeks, months or years. Comparing two is for `as_interval` alone."""

    count: int
    unit: str

    def __str__(self) -> str:
        return f"{self.count}{self.unit}"

    @property
    def months(self) -> int:
        """The calendar part, at most the whole calendar; 0 for hours, days and weeks."""
        months = self.count * {"m": 1, "y": 12}.get(self.unit, 0)
        return max(-_MOST_MONTHS, min(months, _MOST_MONTHS))

    @property
    def exact(self) -> timedelta:
        """The part of fixed length; 0 for months and years."""
        return timedelta(hours=self.count * {"h": 1, "d": 24, "w": 168}.get(self.unit, 0))


def parse_duration(text: object, *, hours: bool = False, signed: bool = False) -> Duration:
    """Read a duration. `hours` allows `h` and refuses `m`; `signed` allows one that points backwards."""
    match = _TEXT.fullmatch(text) if isinstance(text, str) else None
    units = "h, d, w or y" if hours else "d, w, m or y"
    if match is None:
        shown = repr(text) if isinstance(text, str) else str(text)
        raise InputError(f"not a duration: {shown}", hint=f"write a number and {units}, as in 90d")
    sign, digits, unit = match.groups()
    if unit == ("m" if hours else "h"):
        meant = "m could be minutes or months here" if hours else "hours make no sense here"
        raise InputError(f"not a duration: {text!r} ({meant})", hint=f"write a number and {units}")
    if sign == "-" and not signed:
        raise InputError(f"{text!r} lies in the future", hint=f"a retention looks back: write {digits}{unit}")
    if len(digits) > _MOST_DIGITS:
        raise InputError(f"{text!r} is too long", hint="leave the target out where nothing may ever go")
    return Duration(-int(digits) if sign == "-" else int(digits), unit)


@overload
def add(when: datetime, duration: Duration) -> datetime: ...
@overload
def add(when: date, duration: Duration) -> date: ...
def add(when: date, duration: Duration) -> date:
    """`when` moved by the duration, true to the calendar and clamped to the month's last day.

    A day moved by hours stays a day: the hours are rounded up to whole days, away from the day itself. What would leave
    the calendar ends at its border, so that nothing is ever older than a retention of a million years.
    """
    if duration.months:
        return _add_months(when, duration.months)
    by = duration.exact
    if not isinstance(when, datetime):
        days = -(-abs(by) // timedelta(days=1))
        by = timedelta(days=days if duration.count >= 0 else -days)
    try:
        return when + by
    except OverflowError:
        return _border(when, forward=duration.count > 0)


def _add_months(when: When, months: int) -> When:
    index = when.year * 12 + when.month - 1 + months
    year, month = divmod(index, 12)
    if not date.min.year <= year <= date.max.year:
        return _border(when, forward=months > 0)
    return when.replace(year=year, month=month + 1, day=min(when.day, calendar.monthrange(year, month + 1)[1]))


def _border(when: When, *, forward: bool) -> When:
    edge = date.max if forward else date.min
    return when.replace(year=edge.year, month=edge.month, day=edge.day)


def is_older(when: date, retention: Duration, now: datetime) -> bool:
    """Whether something of this day or instant goes: strictly older than the retention (spec §3).

    A day is compared with the UTC day of `now`, an instant with the instant.
    """
    if isinstance(when, datetime):
        return add(when, retention) < now
    return add(when, retention) < now.astimezone(UTC).date()


def as_interval(duration: Duration) -> int:
    """The longest length in whole days (a month 31, a year 366, a started day counts): for comparing only."""
    return -(-as_hours(duration) // 24)


def as_hours(duration: Duration) -> int:
    """The same in hours, for sums: each term rounded up to days would make the sum too long."""
    return duration.count * _LONGEST_HOURS[duration.unit]


def micros_of(duration: Duration) -> int:
    """The part of fixed length in microseconds."""
    return int(duration.exact.total_seconds()) * 1_000_000


def days_of(duration: Duration) -> int:
    """The part of fixed length in days; started days count, as in `add`."""
    hours = abs(int(duration.exact.total_seconds())) // 3600
    days = -(-hours // 24)
    return days if duration.count >= 0 else -days


def first_kept_day(retention: Duration, now: datetime) -> date:
    """The oldest day that is not older than the retention: what lies before it goes."""
    today = now.astimezone(UTC).date()
    day = add(today, Duration(-retention.count, retention.unit))
    # Clamping can put the answer a few days off in months and years; the rule itself finds the border.
    while day > date.min and not is_older(day - timedelta(days=1), retention, now):
        day -= timedelta(days=1)
    while is_older(day, retention, now):
        day += timedelta(days=1)
    return day


def first_kept_instant(retention: Duration, now: datetime) -> datetime:
    """The oldest instant that is not older than the retention: what lies before it goes."""
    if not retention.months:
        return add(now, Duration(-retention.count, retention.unit))
    now = now.astimezone(UTC)
    day = first_kept_day(retention, now)
    # On the border's first day only the part before now's time of day is older, unless clamping pulled it ahead.
    at = datetime.combine(day, now.timetz())
    return at if add(day, retention) == now.date() else datetime.combine(day, datetime.min.time(), UTC)
