"""The durations of the plan's SQL and Python's are one meaning: every day of eight years, month ends and leap days."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from ebbtide.kernel.engine import connection, hand_in
from ebbtide.kernel.steps import run_steps
from ebbtide.model.durations import Duration, add, as_interval, days_of, is_older, micros_of, parse_duration

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NOW = datetime(2026, 11, 15, 12, 30, 15, 250_000, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXTS = ("0d", "1d", "7d", "30d", "90d", "360d", "1w", "13w", "1m", "2m", "6m", "11m", "13m", "1y", "4y", "7y")
SOME = [parse_duration(text) for text in TEXTS]
HOURS = [Duration(1, "h"), Duration(24, "h"), Duration(36, "h"), Duration(1000, "h")]


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBPyConnection]:
    with connection() as made:
        run_steps(made, "ebbtide.plan", "sql/words")
        yield made


def _micros(instant: datetime) -> int:
    return round((instant - EPOCH) / timedelta(microseconds=1))


def test_days_agree_on_every_day_of_eight_years(engine: DuckDBPyConnection) -> None:
    days = [date(2019, 6, 1) + timedelta(days=n) for n in range(8 * 366)]
    hand_in(engine, "every_day", pa.table({"day": pa.array(days, pa.date32())}))
    for duration in (*SOME, *HOURS, Duration(-1, "m"), Duration(-7, "d")):
        bound = [duration.months, days_of(duration)]
        rows = engine.execute(
            "SELECT day, moved_day(day, ?::INTEGER, ?::INTEGER), day_is_older(day, ?::INTEGER, ?::INTEGER, ?::DATE) "
            "FROM every_day",
            [*bound, *bound, NOW.date()],
        ).fetchall()
        for day, moved, older in rows:
            assert moved == add(day, duration), (day, duration)
            assert older == is_older(day, duration, NOW), (day, duration)


def test_instants_agree_on_every_day_of_eight_years(engine: DuckDBPyConnection) -> None:
    start = datetime(2019, 6, 1, 0, 0, 0, 1, tzinfo=UTC)
    # Odd steps walk through all times of day; the border instant and its neighbours are among them.
    times = [start + timedelta(days=n, seconds=(n * 7919) % 86_400) for n in range(8 * 366)]
    for duration in (*SOME, *HOURS):
        edge = add(NOW, Duration(-duration.count, duration.unit))
        times += [edge, edge - timedelta(microseconds=1), edge + timedelta(microseconds=1)]
    times += [datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), datetime(1582, 10, 4, 1, tzinfo=UTC)]
    hand_in(engine, "every_instant", pa.table({"instant": pa.array([_micros(t) for t in times], pa.int64())}))
    for duration in (*SOME, *HOURS):
        bound = [duration.months, micros_of(duration)]
        rows = engine.execute(
            "SELECT instant, moved(instant, ?::INTEGER, ?::BIGINT), "
            "is_older(instant, ?::INTEGER, ?::BIGINT, ?::BIGINT) FROM every_instant",
            [*bound, *bound, _micros(NOW)],
        ).fetchall()
        for instant, moved, older in rows:
            at = EPOCH + timedelta(microseconds=instant)
            assert EPOCH + timedelta(microseconds=moved) == add(at, duration), (at, duration)
            assert older == is_older(at, duration, NOW), (at, duration)


def test_the_longest_durations_are_for_ever(engine: DuckDBPyConnection) -> None:
    for text in ("999999y", "300000y", "9999y", "999999m", "999999w"):
        duration = parse_duration(text)
        for day in (date(1, 1, 1), date(2026, 1, 31)):
            micros = (day - EPOCH.date()).days * 86_400_000_000
            row = engine.execute(
                "SELECT day_is_older(?::DATE, ?::INTEGER, ?::INTEGER, ?::DATE), "
                "is_older(?::BIGINT, ?::INTEGER, ?::BIGINT, ?::BIGINT)",
                [day, duration.months, days_of(duration), NOW.date(),
                 micros, duration.months, micros_of(duration), _micros(NOW)],
            ).fetchall()  # fmt: skip
            assert row == [(False, False)], text
        assert not is_older(date(1, 1, 1), duration, NOW)


def test_texts_of_tables_agree_and_nonsense_is_null(engine: DuckDBPyConnection) -> None:
    for text in (*TEXTS, "+7d", "-3m"):
        duration = parse_duration(text, signed=True)
        for day in (date(2024, 1, 31), date(2024, 2, 29), date(2026, 12, 31)):
            there, back, length = engine.execute(
                "SELECT add_duration(d, t, 1), add_duration(d, t, -1), longest_days(t) "
                "FROM (SELECT ?::DATE AS d, ?::VARCHAR AS t)",
                [day, text],
            ).fetchall()[0]
            assert there == add(day, duration)
            assert back == add(day, Duration(-duration.count, duration.unit))
            assert length == as_interval(duration)
    for odd in ("90", "1x", "", "d", "1h", "12345678d", "1d\n", "1d ", "１d"):
        assert engine.execute("SELECT longest_days(?::VARCHAR)", [odd]).fetchall() == [(None,)], odd


def test_no_date_is_never_older(engine: DuckDBPyConnection) -> None:
    row = engine.execute(
        "SELECT day_is_older(NULL::DATE, 0, 1, ?::DATE), is_older(NULL::BIGINT, 0, 1, ?)", [NOW.date(), _micros(NOW)]
    ).fetchall()
    assert row == [(False, False)]
