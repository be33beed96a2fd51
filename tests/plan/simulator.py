"""Runs one partition through mark, grace, delete and expiry, run by run. It knows `datetime` and nothing of Ebbtide.

What it is told in words is spec §3: a partition is due when its day plus the retention lies before today; a mark waits
for its grace; the delete commit supersedes a version, which goes when it is older than its retention.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

NextRun = Callable[[datetime, datetime], datetime]
"""The next run, from the last one and the moment that the data waits for."""


@dataclass(frozen=True)
class Life:
    """One partition: the days it covers, when it was written, and what the policy says. Periods are (count, unit)."""

    first_day: date
    last_day: date
    written_at: datetime
    by_oldest: bool
    retention: tuple[int, str]
    grace: timedelta
    versions: timedelta


def later(day: date, count: int, unit: str) -> date:
    """A day so many days, weeks, months or years later; earlier for a negative count."""
    if unit in "dw":
        return day + timedelta(days=count * (7 if unit == "w" else 1))
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "y" else 1)
    year, month = months // 12, months % 12 + 1
    return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))


def gone_at(life: Life, start: datetime, next_run: NextRun) -> datetime:
    """When the bytes are gone, without the time for reading that they are."""
    day = life.first_day if life.by_oldest else life.last_day
    kept_until = later(day, *life.retention)
    due = datetime.combine(kept_until + timedelta(days=1), time(), start.tzinfo)
    now = start
    while now < life.written_at or now.date() <= kept_until:
        # A run that comes a moment too early is the unlucky one.
        now = next_run(now, max(due, life.written_at) - timedelta(seconds=1))
    for wait in (life.grace, life.versions):
        until = now + wait
        while now <= until:
            now = next_run(now, until)
    return now
