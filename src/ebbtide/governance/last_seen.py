"""Accumulating tables that people fall out of: the rule of `last_seen` (spec §3, "Promises").

A table such as "active in the last 7 days" is built from itself and today's data. Who is in today's data has
`last_seen = @date`; who is not is kept while `last_seen > @date − grain`; the others are dropped. So whoever left is
out of the table after the grain, without an erasure.

`accumulate` says it in PySpark, `last_seen_sql` as a text for SQL models; a test holds the two against each other over
a year. Give `previous` as it was before the day: the partition of the day before, or an empty frame on the first day.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date as Day
from functools import reduce
from typing import TYPE_CHECKING

from ebbtide.errors import InputError
from ebbtide.model.durations import Duration, add, parse_duration
from ebbtide.spark.session import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LAST_SEEN = "last_seen"

_MACRO = """\
SELECT {columns}, {date} AS {last_seen}
FROM {today}
UNION ALL
SELECT {old_columns}, old.{last_seen}
FROM {previous} AS old
WHERE old.{last_seen} > {first_dropped}
  AND NOT EXISTS (SELECT 1 FROM {today} AS new WHERE {same})
"""


def accumulate(previous: DataFrame, today: DataFrame, *, keys: Sequence[str], date: Day, grain: str) -> DataFrame:
    """The table of `date`: the columns of `today`, and `last_seen`. `previous` has the same.

    `keys` say who a row is about; a NULL key equals itself.
    """
    from pyspark.sql import functions as F

    _check(keys, today.columns)
    back = _grain(grain)
    dropped = F.lit(add(date, Duration(-back.count, back.unit)))
    new = today.withColumn(LAST_SEEN, F.lit(date))
    seen = today.select(*(F.col(quote(key)).alias(f"_seen_{n}") for n, key in enumerate(keys)))
    same = [F.col(quote(key)).eqNullSafe(F.col(f"_seen_{n}")) for n, key in enumerate(keys)]
    kept = previous.where(F.col(LAST_SEEN) > dropped).join(seen, reduce(lambda a, b: a & b, same), "left_anti")
    return new.unionByName(kept)


def last_seen_sql(
    *, previous: str, today: str, columns: Sequence[str], keys: Sequence[str], grain: str, date: str = "@date"
) -> str:
    """The same as one SELECT in Spark's SQL. `previous` and `today` are names of tables; `date` stays as it is given.

    Where nothing replaces `@date`, give an expression of type DATE.
    """
    _check(keys, columns)
    back = _grain(grain)
    by_calendar, by_days = f"add_months({date}, {-back.months})", f"date_sub({date}, {back.exact.days})"
    return _MACRO.format(
        columns=", ".join(quote(name) for name in columns),
        old_columns=", ".join(f"old.{quote(name)}" for name in columns),
        same=" AND ".join(f"new.{quote(key)} <=> old.{quote(key)}" for key in keys),
        date=date, last_seen=LAST_SEEN, today=today, previous=previous,
        first_dropped=by_calendar if back.months else by_days,
    )  # fmt: skip


def _check(keys: Sequence[str], columns: Sequence[str]) -> None:
    missing = [key for key in keys if key not in columns]
    if not keys or missing:
        what = f"no column {missing[0]!r} to tell people by" if missing else "no key to tell people by"
        raise InputError(what, hint=f"name some of {', '.join(columns)}")
    if LAST_SEEN in columns:
        raise InputError(f"today's data has a column {LAST_SEEN} already", hint="leave it out: it is worked out here")


def _grain(text: str) -> Duration:
    grain = parse_duration(text)
    if grain.count < 1:
        raise InputError(f"a grain of {text!r} keeps nobody", hint="write a length such as +7d")
    return grain
