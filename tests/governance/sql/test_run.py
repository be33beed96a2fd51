"""Running one query in Spark: functions, values, errors with their place, read-only, and the limit of time."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ebbtide.errors import EbbtideError, InputError
from ebbtide.governance.functions import register_functions
from ebbtide.governance.run import run_statement
from ebbtide.governance.statement import Statement, read_statement

DAY = date(2026, 1, 31)


def query(text: str, folder: Path = Path()) -> Statement:
    """A statement that passed sqlglot unseen: what Spark itself makes of it."""
    dates = tuple(n for n in range(len(text)) if text.startswith("@date", n))
    return Statement("a", folder / "a.sql", text, dates=dates)


def test_the_functions_mean_what_the_model_means(spark: SparkSession) -> None:
    register_functions(spark, now=datetime(2026, 1, 30, 15, 30, tzinfo=UTC))
    text = """
        SELECT as_interval('+1m') AS month, as_interval('2w') AS weeks, as_interval('1y') AS year,
          as_interval('soon') AS none, add_interval(@date, '+1m') AS clamped, add_interval(@date, '-1y') AS back,
          add_interval(NULL, '1d') AS no_day, duration_of_time_grain('A.b,TimeGrain.+7d') AS grain,
          duration_of_time_grain('TimeGrain.+1d,TimeGrain.+1m') AS longest, duration_of_time_grain(NULL) AS daily,
          instant_of(date_sub(@date, 1)) AS today, instant_of(@date) AS another, instant_of(NULL) AS no_instant
    """
    assert run_statement(spark, query(text), DAY).rows == (
        {
            "month": 31, "weeks": 14, "year": 366, "none": None, "clamped": date(2026, 2, 28),
            "back": date(2025, 1, 31), "no_day": None, "grain": 7, "longest": 31, "daily": 1,
            "today": datetime(2026, 1, 30, 15, 30, tzinfo=UTC), "another": datetime(2026, 1, 31, tzinfo=UTC),
            "no_instant": None,
        },
    )  # fmt: skip


def test_both_spellings_of_durations_work_beside_numbers_and_beside_intervals(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As the original writes them (`as_interval(t.schedule) > interval 90 DAY`), and in days."""
    register_functions(spark, now=datetime(2026, 1, 30, tzinfo=UTC))
    path = tmp_path / "a.sql"
    path.write_text("""\
        WITH t AS (SELECT '+1y' AS schedule, 'A.b,TimeGrain.+7d' AS classifiers, array('TimeGrain.+7d') AS labels)
        SELECT as_interval(t.schedule) > interval 90 DAY AS a, as_interval(t.schedule) > 90 AS b,
          INTERVAL '1' DAY < (As_Interval(array('+1m', '+2d'))) AS c, as_interval(array('+1m', '+2d')) AS d,
          as_interval('+1m, +2d') AS e, as_interval(array('+1m', 'soon')) AS f, as_interval(array()) AS g,
          datediff(@date, DATE'2026-01-01') > (90 - duration_of_time_grain(t.classifiers)) AS h,
          duration_of_time_grain(t.labels) AS i,
          interval 90 DAY - duration_of_time_grain(t.labels) > interval 82 DAYS AS j,
          as_interval('1d') + as_interval('1w') BETWEEN interval 8 DAY AND interval 8 DAY AS k,
          @date - as_interval('1d') < @date - interval 12 HOURS AS l,
          coalesce(as_interval('soon'), interval 1 DAY) AS m,
          cast(interval_of('2w') AS string) AS n, as_interval(array('+1m', NULL)) AS o
        FROM t
""")
    statement = read_statement(path)
    assert len(statement.intervals) == 6
    assert len(statement.at(DAY)) == len(path.read_text()) + 3 * len("DATE'2026-01-31'"[5:])
    assert run_statement(spark, statement, DAY).rows == (
        {
            "a": True, "b": True, "c": True, "d": 33, "e": 33, "f": None, "g": None, "h": False, "i": 7, "j": True,
            "k": True, "l": True, "m": "1 day, 0:00:00", "n": "INTERVAL '14 00:00:00' DAY TO SECOND", "o": None,
        },
    )  # fmt: skip


def test_values_are_plain_and_instants_are_utc(spark: SparkSession) -> None:
    text = """
        SELECT TIMESTAMP'2026-01-31T12:00:00Z' AS at, 1.50BD AS exact, 2.0BD AS whole, X'0aff' AS raw,
          double('NaN') AS nothing, map('a', 1) AS pairs, named_struct('x', array(@date)) AS nested
    """
    found = run_statement(spark, query(text), DAY)
    assert found.columns == ("at", "exact", "whole", "raw", "nothing", "pairs", "nested")
    assert found.rows == (
        {
            "at": datetime(2026, 1, 31, 12, tzinfo=UTC), "exact": "1.50", "whole": 2, "raw": "0aff", "nothing": None,
            "pairs": {"a": 1}, "nested": {"x": [DAY]},
        },
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE IF NOT EXISTS written AS SELECT 1 AS a",
        "WITH c AS (SELECT 1 AS a) INSERT INTO written SELECT * FROM c",
        "FROM (SELECT 1 AS a) INSERT INTO written SELECT a",
        "INSERT OVERWRITE DIRECTORY 'FOLDER/written' USING parquet SELECT 1 AS a",
        "SET spark.sql.shuffle.partitions = 7",
        "DROP TABLE IF EXISTS written",
        "CREATE TEMPORARY VIEW written AS SELECT 1",
        "SELECT TRANSFORM(a) USING 'touch FOLDER/written' AS (b) FROM (SELECT 1 AS a)",
    ],
)
def test_spark_itself_is_asked_before_anything_that_writes_runs(spark: SparkSession, tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="checks and reports only read"):
        run_statement(spark, query(text.replace("FOLDER", str(tmp_path)), tmp_path), DAY)
    assert list(tmp_path.iterdir()) == []
    assert not spark.catalog.tableExists("written")
    assert spark.conf.get("spark.sql.shuffle.partitions") != "7"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT @date,\n  wrong FROM (SELECT 1 AS a)", r"a\.sql:2:3: cannot be run: .*wrong"),
        ("SELECT @date, wrong FROM (SELECT 1 AS a)", r"a\.sql:1:15: cannot be run: .*wrong"),
        ("SELECT 1\nFROM no_such_view", r"a\.sql:2:6: cannot be run: .*no_such_view"),
        ("SELECT 1 +", r"a\.sql:1:\d+: not SQL"),
    ],
)
def test_what_spark_finds_wrong_is_told_with_its_place(spark: SparkSession, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        run_statement(spark, query(text), DAY)
    assert caught.value.hint


def test_a_query_that_fails_while_it_runs_is_no_silent_success(spark: SparkSession) -> None:
    with pytest.raises(EbbtideError, match=r"a failed: .*no such thing") as caught:
        run_statement(spark, query("SELECT raise_error('no such thing') FROM range(2)"), DAY)
    assert caught.value.exit_code == 4
    assert caught.value.kept == "a failed", "what the engine quotes is not kept"


def test_a_report_that_never_ends_is_stopped_and_the_session_goes_on(spark: SparkSession) -> None:
    endless = "SELECT count(*) AS n FROM range(100000000000) a CROSS JOIN range(100000000000) b WHERE a.id % 7 = b.id"
    started = time.monotonic()
    with pytest.raises(EbbtideError, match="did not end within 3 seconds") as caught:
        run_statement(spark, query(endless), DAY, time_limit=3)
    assert time.monotonic() - started < 60
    assert caught.value.exit_code == 4
    assert "--time-limit" in str(caught.value.hint)
    assert run_statement(spark, query("SELECT count(*) AS n FROM range(3)"), DAY).rows == ({"n": 3},)
