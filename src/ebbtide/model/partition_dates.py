"""The days that a partition value stands for, and the column that they are read from (formats.md, "Partition dates").

A value that is no date gives None: such a partition is never due.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

Days = tuple[date, date]
"""First and last day, both covered."""

_EPOCH = date(1970, 1, 1)
_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})|(\d{4})(\d{2})(\d{2})", re.ASCII)
_MONTH = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
# The letters of Java's date patterns that a partition format may use, as Python spells them.
_JAVA = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def parse_day(text: str, fmt: str | None = None) -> Days | None:
    """First and last day of a partition value: `yyyy-MM-dd`, `yyyyMMdd`, `yyyy-MM`, or the given Java pattern."""
    if fmt is not None:
        return _parse_with(text, fmt)
    if match := _DAY.fullmatch(text):
        year, month, day = (int(part) for part in match.groups() if part is not None)
        return _span(year, month, day)
    if match := _MONTH.fullmatch(text):
        return _span(int(match.group(1)), int(match.group(2)), None)
    return None


def _parse_with(text: str, fmt: str) -> Days | None:
    plain = fmt.replace("'", "")
    # Python also takes digits of other scripts, and fewer of them than the pattern has letters.
    shape = re.sub("|".join(_JAVA), lambda m: f"[0-9]{{{len(m.group(0))}}}", re.escape(plain))
    if not re.fullmatch(shape, text):
        return None
    pattern = re.sub("|".join(_JAVA), lambda m: _JAVA[m.group(0)], plain)
    try:
        day = datetime.strptime(text, pattern).date()  # noqa: DTZ007 - a day has no zone
    except ValueError:
        return None
    if "dd" in fmt:
        return day, day
    return _span(day.year, day.month, None) if "MM" in fmt else (date(day.year, 1, 1), date(day.year, 12, 31))


def _span(year: int, month: int, day: int | None) -> Days | None:
    try:
        if day is not None:
            return date(year, month, day), date(year, month, day)
        return date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])
    except (ValueError, calendar.IllegalMonthError):
        return None


def days_of_transform(transform: str, value: int) -> Days | None:
    """First and last day of an Iceberg time transform's value: years, months, days or hours since 1970."""
    try:
        if transform == "year":
            return date(1970 + value, 1, 1), date(1970 + value, 12, 31)
        if transform == "month":
            return _span(1970 + value // 12, value % 12 + 1, None)
        if transform == "day":
            day = _EPOCH + timedelta(days=value)
            return day, day
        if transform == "hour":
            day = _EPOCH + timedelta(hours=value)
            return day, day
    except (ValueError, OverflowError):
        return None
    return None


def narrowest(candidates: list[Days]) -> Days | None:
    """The days of a partition with several transforms of one column: the narrowest span that lies inside all others.

    `years(ts), days(ts)` is the day; two that say different things are no date at all.
    """
    if not candidates:
        return None
    first, last = max(days[0] for days in candidates), min(days[1] for days in candidates)
    return (first, last) if (first, last) in candidates else None


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one partition says in one column that may hold its date: the days, None where it says none.

    `value` is the text of a value whose column has no type of a date: `tables/*.yml` may say how to read it. It is None
    for NULL, and for what a type or a transform makes a date.
    """

    column: str
    days: Days | None
    value: str | None = None

    @classmethod
    def written(cls, column: str, value: str | None) -> Candidate:
        """A column of texts or integers."""
        return cls(column, None if value is None else parse_day(value), value)


@dataclass(frozen=True, slots=True)
class DateSource:
    """The one column that the dates of a table's partitions are in; `by` says how it was found, its `type` or `text`.

    Where there is none, and a person could declare one, `doubt` says why.
    """

    column: str | None = None
    by: str | None = None
    doubt: str | None = None

    def days(self, candidates: Iterable[Candidate]) -> Days | None:
        """The days of a partition. NULL, or a spec that lacks the column: no date, whatever else stands there."""
        return next((each.days for each in candidates if each.column == self.column), None)


def date_source(typed: Iterable[str], partitions: Iterable[Sequence[Candidate]]) -> DateSource:
    """Decide once for a table, over all of its specs and every value that is known (formats.md, "Partition dates").

    The only column with the type or a transform of a date; else, where there is none, the only one of texts or integers
    in which every value that is not NULL can be read as a date.
    """
    names = sorted(set(typed))
    if names:
        return DateSource(names[0], "type") if len(names) == 1 else _rivals(names)
    read: dict[str, set[bool]] = {}
    for candidates in partitions:
        for each in candidates:
            if each.value is not None:
                read.setdefault(each.column, set()).add(each.days is not None)
    names = sorted(column for column, found in read.items() if found == {True})
    if names:
        return DateSource(names[0], "text") if len(names) == 1 else _rivals(names)
    some = sorted(column for column, found in read.items() if True in found)
    return DateSource(doubt=f"not every value of {', '.join(some)} is a date") if some else DateSource()


def _rivals(names: Sequence[str]) -> DateSource:
    return DateSource(doubt=f"more than one column may hold it ({', '.join(names)})")
