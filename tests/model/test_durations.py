from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from ebbtide.errors import InputError
from ebbtide.model.durations import (
    Duration,
    add,
    as_interval,
    first_kept_day,
    first_kept_instant,
    is_older,
    parse_duration,
)

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "hours", "said"),
    [
        ("90", False, "not a duration: '90'"),
        (90, False, "not a duration: 90"),
        (date(2027, 1, 1), False, "not a duration: 2027-01-01"),
        ("1x", False, "not a duration: '1x'"),
        ("d", False, "not a duration: 'd'"),
        ("", False, "not a duration: ''"),
        ("1.5d", False, "not a duration"),
        (" 1d", False, "not a duration"),
        ("1d\n", False, "not a duration"),
        ("١d", False, "not a duration"),
        ("1D", False, "not a duration"),
        ("-3d", False, "lies in the future"),
        ("-0d", False, "lies in the future"),
        ("5h", False, "hours make no sense"),
        ("5m", True, "minutes or months"),
        ("1234567d", False, "too long"),
        (True, False, "not a duration: True"),
        (None, False, "not a duration: None"),
    ],
)
def test_what_is_no_duration_is_refused_with_a_hint(text: object, hours: bool, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        parse_duration(text, hours=hours)
    assert caught.value.hint


def test_a_sign_is_read_where_it_may_stand() -> None:
    assert parse_duration("+7d") == Duration(7, "d")
    assert parse_duration("-7d", signed=True) == Duration(-7, "d")
    assert parse_duration("36h", hours=True) == Duration(36, "h")


def test_months_and_years_follow_the_calendar_and_are_clamped() -> None:
    assert add(date(2026, 1, 31), Duration(1, "m")) == date(2026, 2, 28)
    assert add(date(2024, 1, 31), Duration(1, "m")) == date(2024, 2, 29)
    assert add(date(2026, 2, 28), Duration(1, "m")) == date(2026, 3, 28)
    assert add(date(2024, 2, 29), Duration(1, "y")) == date(2025, 2, 28)
    assert add(date(2026, 3, 31), Duration(-1, "m")) == date(2026, 2, 28)
    at = datetime(2026, 1, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert add(at, Duration(1, "m")) == datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC)


def test_every_month_end_of_eight_years_lands_on_a_month_end_or_the_same_day() -> None:
    for year in range(2020, 2028):
        for month in range(1, 13):
            for day in range(1, calendar.monthrange(year, month)[1] + 1):
                for count in (1, 2, 11, 12, 13, 25):
                    landed = add(date(year, month, day), Duration(count, "m"))
                    index = year * 12 + month - 1 + count
                    assert (landed.year, landed.month) == (index // 12, index % 12 + 1)
                    assert landed.day == min(day, calendar.monthrange(landed.year, landed.month)[1])


def test_beyond_the_calendar_nothing_is_ever_older() -> None:
    for unit in "dwmy":
        assert not is_older(date(1970, 1, 1), Duration(999_999, unit), NOON) or unit == "d"
        assert add(date(9990, 1, 31), Duration(999_999, unit)) == date.max
    assert not is_older(datetime(1970, 1, 1, tzinfo=UTC), Duration(999_999, "y"), NOON)
    assert add(date(5, 1, 1), Duration(-999_999, "y")) == date.min


def test_exactly_ninety_days_stays_and_ninety_one_goes() -> None:
    assert not is_older(NOON.date() - timedelta(days=90), Duration(90, "d"), NOON)
    assert is_older(NOON.date() - timedelta(days=91), Duration(90, "d"), NOON)
    assert not is_older(NOON - timedelta(days=90), Duration(90, "d"), NOON)
    assert is_older(NOON - timedelta(days=90, microseconds=1), Duration(90, "d"), NOON)


def test_days_compare_with_the_utc_day_of_now() -> None:
    ahead = datetime(2026, 11, 16, 3, tzinfo=timezone(timedelta(hours=12)))  # the 15th in UTC
    assert not is_older(date(2026, 11, 15), Duration(0, "d"), ahead)
    assert is_older(date(2026, 11, 14), Duration(0, "d"), ahead)


def test_the_interval_is_the_longest_length() -> None:
    lengths = {"3d": 3, "2w": 14, "1m": 31, "2y": 732}
    assert {text: as_interval(parse_duration(text)) for text in lengths} == lengths
    assert as_interval(Duration(25, "h")) == 2
    for year in (2023, 2024):
        for month in range(1, 13):
            start = date(year, month, 1)
            assert (add(start, Duration(1, "m")) - start).days <= as_interval(Duration(1, "m"))


def test_the_first_kept_day_is_the_border_of_is_older() -> None:
    for offset in range(1500):
        now = NOON + timedelta(days=offset)
        for retention in (Duration(0, "d"), Duration(90, "d"), Duration(1, "m"), Duration(13, "m"), Duration(1, "y")):
            day = first_kept_day(retention, now)
            assert not is_older(day, retention, now)
            assert is_older(day - timedelta(days=1), retention, now)


def test_nothing_from_the_first_kept_instant_of_its_day_on_is_older() -> None:
    for offset in range(800):
        now = datetime(2026, 1, 1, 11, 30, tzinfo=UTC) + timedelta(days=offset)
        for retention in (Duration(36, "h"), Duration(5, "d"), Duration(1, "m"), Duration(2, "y")):
            first = first_kept_instant(retention, now)
            assert not is_older(first, retention, now)
            assert is_older(first - timedelta(microseconds=1), retention, now)
