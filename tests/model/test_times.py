"""One parser of what people write for a time."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from ebbtide.errors import InputError
from ebbtide.model.times import in_utc, parse_day, parse_days, parse_time


def test_a_date_is_its_first_moment_and_an_instant_is_in_utc() -> None:
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert parse_time("2026-01-31") == datetime(2026, 1, 31, tzinfo=UTC)
    assert parse_time("2026-01-31T12:00:00") == noon
    assert parse_time("2026-01-31T13:00:00+01:00") == noon
    assert parse_time("2026-01-31T13:00:00+01:00").tzinfo is UTC


def test_what_is_removed_for_good_is_not_removed_up_to_a_time_of_an_unknown_zone() -> None:
    assert parse_time("2026-01-31", needs_zone=True) == datetime(2026, 1, 31, tzinfo=UTC)
    assert parse_time("2026-01-31T12:00:00Z", needs_zone=True) == datetime(2026, 1, 31, 12, tzinfo=UTC)
    with pytest.raises(InputError, match="without a time zone"):
        parse_time("2026-01-31T12:00:00", needs_zone=True)


def test_days() -> None:
    assert parse_day("2028-02-29") == date(2028, 2, 29)
    assert parse_days("2028-02-28..2028-03-01") == [date(2028, 2, 28), date(2028, 2, 29), date(2028, 3, 1)]
    for wrong in ("yesterday", "2027-02-29", "2027-02-01..", "2027-02-02..2027-02-01"):
        with pytest.raises(InputError):
            parse_days(wrong)


def test_a_program_s_time_without_a_zone_is_utc_as_on_the_command_line() -> None:
    """And not the host's zone, by which a plan would be of another day."""
    assert in_utc(datetime(2026, 1, 31, 12)) == datetime(2026, 1, 31, 12, tzinfo=UTC)  # noqa: DTZ001 - what is tested
    text: Any = "2026-01-31"
    with pytest.raises(InputError, match="not a time"):
        in_utc(text)
