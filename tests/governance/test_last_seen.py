"""`last_seen` over many daily runs: nobody who left stays past the grain, nobody active is lost."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from ebbtide.errors import InputError
from ebbtide.governance.last_seen import accumulate, last_seen_sql
from ebbtide.lineage.statements import outline
from tests.tiers import deep_after_first

PERIODS = deep_after_first((date(2028, 1, 20), 50, 12), (date(2027, 3, 1), 366, 90))
"""First day, days and grain: some weeks, and a year in the deep tier. Both have a 29 February."""
TODAY, TABLE = "uid string, country string", "uid string, country string, last_seen date"


def active_days(seed: int, period: int, grain: int) -> dict[str, list[int]]:
    """When each person is seen: daily, now and then, until they leave, or with a long pause and a return."""
    chance = random.Random(seed)
    days: dict[str, list[int]] = {
        "daily": list(range(period)),
        "once": [0],
        "seldom": list(range(0, period, grain - 1)),
    }
    for n in range(12):
        left = chance.randrange(1, period)
        days[f"left-{n}"] = sorted(chance.sample(range(left), min(left, chance.randrange(1, 30))))
    days["returns"] = [*range(10), *range(10 + grain + 20, period)]
    return days


def small(spark: SparkSession, rows: list[Any], schema: str) -> DataFrame:
    """A frame that Spark keeps as a local relation: a year has many days."""
    names = [part.split()[0] for part in schema.split(", ")]
    return (
        spark.createDataFrame(pd.DataFrame(rows, columns=names), schema) if rows else spark.createDataFrame([], schema)
    )


@pytest.mark.parametrize(("first", "period", "grain"), PERIODS)
def test_daily_runs_lose_nobody_active_and_keep_nobody_who_left(
    spark: SparkSession, first: date, period: int, grain: int
) -> None:
    seen = active_days(7, period, grain)
    table: list[Any] = []
    sql = last_seen_sql(
        previous="accumulated", today="todays", columns=["uid", "country"], keys=["uid"], grain=f"+{grain}d",
        date="{date}",
    )  # fmt: skip
    for n in range(period):
        today = first + timedelta(days=n)
        present = [(uid, "DE" if n % 2 else "IN") for uid, days in seen.items() if n in set(days)]
        previous, now = small(spark, table, TABLE), small(spark, present, TODAY)
        if n % 30 in (0, 29):  # the macro on some of the days, against the function
            previous.createOrReplaceTempView("accumulated")
            now.createOrReplaceTempView("todays")
            by_sql = sorted(spark.sql(sql.format(date=f"DATE '{today}'")).collect())
        else:
            by_sql = None
        table = sorted(accumulate(previous, now, keys=["uid"], date=today, grain=f"+{grain}d").collect())
        assert by_sql in (None, table)
        expected = {
            uid: first + timedelta(days=last)
            for uid, days in seen.items()
            if (last := max((day for day in days if day <= n), default=None)) is not None and n - last < grain
        }
        assert {row.uid: row.last_seen for row in table} == expected
        assert len(table) == len(expected)
    assert {"daily", "seldom", "returns"} <= {row.uid for row in table}
    assert "once" not in {row.uid for row in table}


@pytest.mark.parametrize("grain", ["+7d", "2w", "1m", "1y"])
def test_macro_and_function_agree_at_the_border_and_on_months_ends(spark: SparkSession, grain: str) -> None:
    day = date(2028, 3, 31)
    old = [(None if n == 3 else f"u{n}", "DE", day - timedelta(days=n)) for n in (0, 3, 6, 7, 13, 14, 30, 31, 32, 366)]
    previous = spark.createDataFrame(old, TABLE).coalesce(1)
    now = spark.createDataFrame([(None, "IN"), ("u366", "IN"), ("new", "IN")], TODAY).coalesce(1)
    previous.createOrReplaceTempView("accumulated")
    now.createOrReplaceTempView("todays")
    sql = last_seen_sql(
        previous="accumulated", today="todays", columns=["uid", "country"], keys=["uid"], grain=grain,
        date=f"DATE '{day}'",
    )  # fmt: skip
    made = accumulate(previous, now, keys=["uid"], date=day, grain=grain).collect()
    assert sorted(map(str, made)) == sorted(map(str, spark.sql(sql).collect()))
    assert {row.uid: row.last_seen for row in made}["u366"] == day
    assert [row.country for row in made if row.uid is None] == ["IN"]
    if grain == "+7d":
        kept = {row.uid for row in made if row.last_seen < day}
        assert kept == {"u6"}  # seven days ago is not after @date − 7d


def test_the_macro_keeps_the_date_for_its_model_and_can_be_traced() -> None:
    sql = last_seen_sql(
        previous="lake.app.l7", today="lake.app.daily", columns=["uid", "odd`name"], keys=["uid"], grain="+7d"
    )
    assert "date_sub(@date, 7)" in sql
    assert "`odd``name`" in sql
    found = outline(sql, where="lake.app.l7.sql", dialect="spark")
    assert set(found.references) == {("lake", "app", "l7"), ("lake", "app", "daily")}


@pytest.mark.parametrize(
    ("columns", "keys", "grain", "message"),
    [
        (["uid"], [], "+7d", "no key"),
        (["uid"], ["user"], "+7d", "no column 'user'"),
        (["uid", "last_seen"], ["uid"], "+7d", "has a column last_seen"),
        (["uid"], ["uid"], "0d", "keeps nobody"),
        (["uid"], ["uid"], "7 days", "not a duration"),
    ],
)
def test_wrong_input_is_refused(columns: list[str], keys: list[str], grain: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        last_seen_sql(previous="a.b.c", today="a.b.d", columns=columns, keys=keys, grain=grain)
