"""The sample lake: a payments company's tables in all four formats.

Small, real and dated in the past, so that every later chapter finds something to do: raw events with a branch and a
tag, users, tables derived from both, a merge-on-read table, a primary-key table and an archive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

PROJECT = """\
# The sample lake of `ebbtide demo`. Paths are relative to this file.
project: payments-demo
catalogs:
  lake:   {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
  events: {format: delta,   warehouse: ./delta}
  cdc:    {format: hudi,    warehouse: ./hudi}
  stream: {format: paimon,  warehouse: ./paimon}
spark: {master: "local[2]"}
clock: simulated        # rehearsals may set their own "now"
"""

GOVERNED = {
    "tables/payments.yml": """\
# What people say of their tables; labels flow on along lineage.
tables:
  - {name: lake.raw.payment_events, schedule: +1d, columns: {user_id: [PII.tag]}}
  - {name: lake.app.users, columns: {user_id: [PII.tag], email: [PII.tag]}}
  - {name: lake.app.daily_user_events, schedule: +1d}
  - {name: lake.app.cards, columns: {user_id: [PII.tag], pan: [PII.tag]}}
  - {name: lake.archive.payments_2019, labels: [LegalHold.is_true], columns: {user_id: [PII.tag]}}
  - {name: events.web.clicks, schedule: +1d, columns: {user_id: [PII.tag]}}
  - {name: stream.risk.scores, labels: [TableContent.machine_data]}
""",
    "subjects.yml": """\
# What tells people apart, and where it stands; lineage carries it further.
subjects:
  user_id:
    columns:
      - lake.raw.payment_events.user_id
      - lake.app.users.user_id
      - lake.app.cards.user_id
      - lake.archive.payments_2019.user_id
      - events.web.clicks.user_id
      - cdc.core.accounts.id
      - stream.risk.alerts.user_id
      - stream.risk.scores.user_id
  email: {columns: [lake.app.users.email], match: casefold}
identities:
  - {table: lake.app.users, key: user_id, gives: {email: email}}
""",
    "lineage/lake.app.daily_user_events.sql": """\
SELECT user_id AS uid, count(*) AS payments, CAST(at AS DATE) AS _date
FROM lake.raw.payment_events
WHERE CAST(at AS DATE) = @date
GROUP BY ALL
""",
}
"""Files beside the project, by name."""

Step = Callable[[], None]


def steps(spark: SparkSession, root: Path, today: date) -> Iterator[tuple[str, Step]]:
    """Each table's name with the function that builds it."""
    days = [today - timedelta(days=age) for age in (400, 120, 60, 1)]
    yield "lake.raw.payment_events", lambda: _payment_events(spark, days)
    yield "lake.app.users", lambda: _users(spark)
    yield "lake.app.daily_user_events", lambda: _daily_user_events(spark, days)
    yield "lake.app.cards", lambda: _cards(spark)
    yield "lake.archive.payments_2019", lambda: _archive(spark)
    yield "events.web.clicks", lambda: _clicks(spark, root, days)
    yield "cdc.core.accounts", lambda: _accounts(spark, root)
    yield "stream.risk.alerts", lambda: _alerts(spark, days)
    yield "stream.risk.scores", lambda: _scores(spark)


def _payment_events(spark: SparkSession, days: list[date]) -> None:
    """Raw events by day: appends, one full reload, an audit branch from before it, and a tag."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.raw")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.app")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.archive")
    name = "lake.raw.payment_events"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, user_id BIGINT, amount DECIMAL(10, 2), at TIMESTAMP) "
              "USING iceberg PARTITIONED BY (days(at))")  # fmt: skip
    for n, day in enumerate(days[:2]):
        spark.sql(f"INSERT INTO {name} {_payments(n, day)}")
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH audit")
    spark.sql(f"INSERT INTO {name}.branch_audit VALUES (900, 3, 0.01, TIMESTAMP '{days[1]} 23:59:00')")
    spark.sql(f"ALTER TABLE {name} CREATE TAG `before-reload`")
    reload = " UNION ALL ".join(_payments(n, day) for n, day in enumerate(days[:3]))
    spark.sql(f"INSERT OVERWRITE {name} SELECT /*+ COALESCE(1) */ * FROM ({reload})")
    spark.sql(f"INSERT INTO {name} {_payments(3, days[3])}")


def _payments(n: int, day: date) -> str:
    return (
        f"SELECT /*+ COALESCE(1) */ id, id % 7 AS user_id, CAST(id * 1.5 AS DECIMAL(10, 2)) AS amount, "
        f"TIMESTAMP '{day} 10:00:00' + make_interval(0, 0, 0, 0, 0, CAST(id % 60 AS INT)) AS at "
        f"FROM range({n * 100}, {n * 100 + 40})"
    )


def _users(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE lake.app.users (user_id BIGINT, email STRING, left_at TIMESTAMP) USING iceberg")
    spark.sql("INSERT INTO lake.app.users SELECT /*+ COALESCE(1) */ id, concat('user', id, '@example.org'), NULL "
              "FROM range(7)")  # fmt: skip
    spark.sql("UPDATE lake.app.users SET left_at = TIMESTAMP '2026-01-15 00:00:00' WHERE user_id = 3")


def _daily_user_events(spark: SparkSession, days: list[date]) -> None:
    """Derived from the two above, one overwrite of a partition per run."""
    name = "lake.app.daily_user_events"
    spark.sql(f"CREATE TABLE {name} (uid BIGINT, payments BIGINT, _date DATE) USING iceberg PARTITIONED BY (_date)")
    for day in days:
        spark.sql(
            f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ user_id, count(*), DATE '{day}' "
            f"FROM lake.raw.payment_events WHERE CAST(at AS DATE) = DATE '{day}' GROUP BY user_id"
        )


def _cards(spark: SparkSession) -> None:
    """A merge-on-read table: the deleted row's bytes stay in the data file."""
    name = "lake.app.cards"
    spark.sql(f"CREATE TABLE {name} (user_id BIGINT, pan STRING) USING iceberg TBLPROPERTIES ("
              "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read')")  # fmt: skip
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, concat('TESTP', 1000 + id, 'X') FROM range(7)")
    spark.sql(f"DELETE FROM {name} WHERE user_id = 3")


def _archive(spark: SparkSession) -> None:
    name = "lake.archive.payments_2019"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, user_id BIGINT, amount DECIMAL(10, 2), month STRING) USING iceberg "
              "PARTITIONED BY (month) TBLPROPERTIES ('gc.enabled'='false')")  # fmt: skip
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, id % 7, 9.99, concat('2019-1', id % 3) FROM range(30)")


def _clicks(spark: SparkSession, root: Path, days: list[date]) -> None:
    name = f"delta.`{root}/delta/web/clicks`"
    spark.sql(f"CREATE TABLE {name} (user_id BIGINT, url STRING, day DATE) USING delta PARTITIONED BY (day) "
              "TBLPROPERTIES ('delta.enableDeletionVectors'='true')")  # fmt: skip
    for day in days:
        spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id % 7, concat('/page/', id), DATE '{day}' "
                  "FROM range(20)")  # fmt: skip
    spark.sql(f"DELETE FROM {name} WHERE user_id = 3")


def _accounts(spark: SparkSession, root: Path) -> None:
    spark.sql(
        "CREATE TABLE default.demo_accounts (id BIGINT, owner STRING, ts BIGINT) USING hudi "
        f"LOCATION '{root}/hudi/core/accounts' TBLPROPERTIES (type='mor', primaryKey='id', preCombineField='ts')"
    )
    spark.sql("INSERT INTO default.demo_accounts SELECT /*+ COALESCE(1) */ id, concat('owner', id), 1 FROM range(10)")
    spark.sql("UPDATE default.demo_accounts SET owner = 'merged', ts = 2 WHERE id = 3")
    spark.sql("DROP TABLE default.demo_accounts")


def _alerts(spark: SparkSession, days: list[date]) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS stream.risk")
    spark.sql("CREATE TABLE stream.risk.alerts (id BIGINT, user_id BIGINT, day STRING) PARTITIONED BY (day)")
    for day in days:
        spark.sql(f"INSERT INTO stream.risk.alerts SELECT /*+ COALESCE(1) */ id, id % 7, '{day}' FROM range(5)")
    spark.sql("CALL stream.sys.create_tag(table => 'risk.alerts', tag => 'q3', snapshot => 2)")


def _scores(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE stream.risk.scores (user_id BIGINT, score INT) "
              "TBLPROPERTIES ('primary-key'='user_id', 'bucket'='1')")  # fmt: skip
    for run in range(3):
        spark.sql(f"INSERT INTO stream.risk.scores SELECT /*+ COALESCE(1) */ id, CAST(id * 10 + {run} AS INT) "
                  "FROM range(7)")  # fmt: skip
