"""Spark's durations and Python's are one meaning: every day of eight years, many durations, any session time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ebbtide.model.durations import Duration, add, as_interval, is_older, parse_duration
from ebbtide.plan import durations

NOW = datetime(2026, 11, 15, 12, 30, 15, 250_000, tzinfo=UTC)
TEXTS = ("0d", "1d", "7d", "30d", "90d", "360d", "1w", "13w", "1m", "2m", "6m", "11m", "13m", "1y", "4y", "7y")
SOME = [parse_duration(text) for text in TEXTS]
HOURS = [Duration(1, "h"), Duration(24, "h"), Duration(36, "h"), Duration(1000, "h")]


@pytest.fixture(params=["UTC", "America/New_York", "Pacific/Kiritimati"])
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> object:
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


def test_days_agree_on_every_day_of_eight_years(spark: SparkSession, zone: str) -> None:
    days = [date(2019, 6, 1) + timedelta(days=n) for n in range(8 * 366)]
    frame = spark.createDataFrame([(day,) for day in days], "day date")
    both = [*SOME, *HOURS, Duration(-1, "m"), Duration(-7, "d")]
    moved = [durations.add_to_day(F.col("day"), d).alias(f"m{n}") for n, d in enumerate(both)]
    older = [durations.day_is_older(F.col("day"), d, NOW).alias(f"o{n}") for n, d in enumerate(both)]
    for row in frame.select("day", *moved, *older).collect():
        for n, duration in enumerate(both):
            assert row[f"m{n}"] == add(row["day"], duration), (row["day"], duration)
            assert row[f"o{n}"] == is_older(row["day"], duration, NOW), (row["day"], duration)


def test_instants_agree_on_every_day_of_eight_years(spark: SparkSession, zone: str) -> None:
    start = datetime(2019, 6, 1, 0, 0, 0, 1, tzinfo=UTC)
    # Odd steps walk through all times of day; the border instant and its neighbours are among them.
    times = [start + timedelta(days=n, seconds=(n * 7919) % 86_400) for n in range(8 * 366)]
    for duration in (*SOME, *HOURS):
        edge = add(NOW, Duration(-duration.count, duration.unit))
        times += [edge, edge - timedelta(microseconds=1), edge + timedelta(microseconds=1)]
    micros = [(round((t - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1)),) for t in times]
    frame = spark.createDataFrame(micros, "micros long").withColumn("at", F.timestamp_micros("micros"))
    both = [*SOME, *HOURS]
    moved = [F.unix_micros(durations.add_to_instant(F.col("at"), d)).alias(f"m{n}") for n, d in enumerate(both)]
    older = [durations.instant_is_older(F.col("at"), d, NOW).alias(f"o{n}") for n, d in enumerate(both)]
    for row in frame.select("micros", *moved, *older).collect():
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=row["micros"])
        for n, duration in enumerate(both):
            landed = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=row[f"m{n}"])
            assert landed == add(at, duration), (at, duration)
            assert row[f"o{n}"] == is_older(at, duration, NOW), (at, duration)


def test_the_longest_durations_are_for_ever(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(date(1, 1, 1),), (date(2026, 1, 31),)], "day date")
    instant = F.timestamp_micros(F.unix_date("day").cast("long") * F.lit(86_400_000_000))
    for text in ("999999y", "300000y", "9999y", "999999m", "999999w"):
        duration = parse_duration(text)
        day = durations.day_is_older(F.col("day"), duration, NOW)
        older = frame.select(day, durations.instant_is_older(instant, duration, NOW)).collect()
        assert [tuple(row) for row in older] == [(False, False)] * 2, text
        assert not is_older(date(1, 1, 1), duration, NOW)


def test_texts_in_columns_agree_and_nonsense_is_null(spark: SparkSession) -> None:
    texts = [*TEXTS, "+7d", "-3m"]
    days = [date(2024, 1, 31), date(2024, 2, 29), date(2026, 12, 31)]
    frame = spark.createDataFrame([(day, text) for day in days for text in texts], "day date, text string")
    day, text = F.col("day"), F.col("text")
    shown = frame.select(
        "day",
        "text",
        durations.add_text(day, text).alias("there"),
        durations.add_text(day, text, backwards=True).alias("back"),
        durations.interval_of_text(text).alias("length"),
    )
    for row in shown.collect():
        duration = parse_duration(row["text"], signed=True)
        assert row["there"] == add(row["day"], duration)
        assert row["back"] == add(row["day"], Duration(-duration.count, duration.unit))
        assert row["length"] == as_interval(duration)
    odd = spark.createDataFrame([(t,) for t in ("90", "1x", "", "d", "1h", "12345678d")], "text string")
    assert all(row[0] is None for row in odd.select(durations.interval_of_text(F.col("text"))).collect())


def test_no_date_is_never_older(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(None, None)], "day date, at timestamp")
    day = durations.day_is_older(F.col("day"), SOME[0], NOW)
    assert frame.select(day, durations.instant_is_older(F.col("at"), SOME[0], NOW)).first() == (False, False)
