"""The retention of the original on real tables: every class at its boundary, over a leap day, by report and by plan."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from ebbtide import Ebbtide
from ebbtide.app.checks import run_checks, run_report
from ebbtide.app.init import init_project
from ebbtide.app.plan import make_plan
from ebbtide.model.times import parse_days
from tests.scenarios.sdf.tables import TABLES

HERE = Path(__file__).parent
DAY = date(2028, 3, 1)
PROJECT = """\
project: sdf
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
"""
SETTINGS = """\
tables:
  - {name: lake.raw.users, schedule: +1d, columns: {uid: [PII.tag], email: [PII.tag]}}
  - {name: lake.raw.daily_user_events, schedule: +1d, columns: {uid: [PII.tag]}}
  - {name: lake.raw.payments, schedule: +1d, labels: [LegalHold.is_true], columns: {uid: [PII.tag]}}
  - {name: lake.raw.refunds, labels: [TableContent.machine_data]}
  - {name: lake.raw.machine_logs, schedule: +1d, labels: [TableContent.machine_data]}
  - {name: lake.raw.country_codes, labels: [TableContent.static_data]}
  - {name: lake.raw.fx_rates, labels: [TableContent.static_data]}
  - {name: lake.raw.merchants, labels: [TableContent.static_data], columns: {owner_uid: [PII.tag]}}
  - {name: lake.app.daily_active_users, schedule: +1d}
  - {name: lake.app.l7_active_users, schedule: +1d, time_grain: +7d}
  - {name: lake.app.monthly_user_events, schedule: +1m}
  - {name: lake.app.payment_totals, schedule: +1y}
  - {name: lake.mart.loads, partition_date: {column: _date}}
"""


def before(*ages: int) -> list[date]:
    return [DAY - timedelta(days=age) for age in ages]


DATES: dict[str, list[date]] = {
    "lake.raw.daily_user_events": before(89, 90, 91),
    "lake.app.sessions": before(90, 91),  # ad hoc: as daily
    "lake.app.l7_active_users": before(82, 83, 84),
    "lake.app.monthly_user_events": [date(2027, 11, 1), date(2027, 12, 1), date(2028, 1, 1)],
    "lake.raw.machine_logs": before(6, 7, 8),
    "lake.raw.fx_rates": [date(1999, 12, 31)],
    "lake.raw.payments": [date(2020, 2, 29), date(2021, 2, 28), date(2021, 3, 1), date(2027, 1, 1)],
}
GOES = {
    date(2028, 2, 29): {
        "lake.app.monthly_user_events": [date(2027, 11, 1)],
        "lake.raw.payments": [date(2020, 2, 29), date(2021, 2, 28)],
    },
    DAY: {
        "lake.raw.daily_user_events": before(91),
        "lake.app.sessions": before(91),
        "lake.app.l7_active_users": before(84),
        "lake.app.monthly_user_events": [date(2027, 11, 1), date(2027, 12, 1)],
        "lake.raw.machine_logs": before(8),
        "lake.raw.payments": [date(2020, 2, 29), date(2021, 2, 28)],
    },
    date(2028, 3, 2): {
        "lake.raw.daily_user_events": before(91, 90),
        "lake.app.sessions": before(91, 90),
        "lake.app.l7_active_users": before(84, 83),
        "lake.app.monthly_user_events": [date(2027, 11, 1), date(2027, 12, 1)],
        "lake.raw.machine_logs": before(8, 7),
        "lake.raw.payments": [date(2020, 2, 29), date(2021, 2, 28), date(2021, 3, 1)],
    },
}
UNLABELLED = before(360, 361)  # of a table that nobody classified


@pytest.fixture(scope="module")
def tide(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ebbtide:
    root = tmp_path_factory.mktemp("sdf")
    init_project(root, pack="gdpr")
    (root / "ebbtide.yml").write_text(PROJECT)
    shutil.copytree(HERE / "models", root / "lineage")
    (root / "tables").mkdir()
    (root / "tables" / "sdf.yml").write_text(SETTINGS)
    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/lake")
    for namespace in ("raw", "app", "mart"):
        catalog.create_namespace(namespace)
    for table_id, names in TABLES.items():
        _create(catalog, table_id, [name for name in names.split() if "." not in name], DATES.get(table_id, []))
    _create(catalog, "lake.mart.adhoc", ["n", "_date"], UNLABELLED)
    _create(catalog, "lake.mart.loads", ["n", "_date", "loaded"], UNLABELLED)  # two dates: its settings say which
    made = Ebbtide(root)
    made.scan()
    assert not made.errors()
    return made


def _create(catalog: SqlCatalog, table_id: str, names: list[str], dates: list[date]) -> None:
    _, namespace, name = table_id.split(".")
    schema = pa.schema([(column, pa.string()) for column in names])
    table = catalog.create_table((namespace, name), schema)
    if "_date" not in names:
        return
    with table.update_spec() as spec:
        for column in sorted({"_date", "loaded"} & set(names)):
            spec.add_identity(column)  # the original's dates are text
    if dates:
        values = {column: [DAY.isoformat()] * len(dates) for column in names}
        values["_date"] = [day.isoformat() for day in dates]
        catalog.load_table((namespace, name)).append(pa.table(values, schema=schema))


def _by_table(rows: Any) -> Mapping[str, list[date]]:
    found: dict[str, list[date]] = {}
    for row in rows:
        found.setdefault(row["table_id"], []).append(row["_date"])
    return {table_id: sorted(days) for table_id, days in found.items()}


def test_seven_years_from_a_leap_day_end_with_february(tide: Ebbtide) -> None:
    """2020-02-29 and seven years is 2027-02-28: that day it stays, the day after it is strictly older."""
    days = parse_days("2027-02-28..2027-03-01")
    found = {
        day: _by_table(result.rows).get("lake.raw.payments", [])
        for day, result in run_report(tide.project, "partitions_to_delete", days, now=datetime.now(UTC), time_limit=600)
    }
    assert found == {date(2027, 2, 28): [], date(2027, 3, 1): [date(2020, 2, 29)]}


def test_each_class_goes_on_its_day_and_not_before(tide: Ebbtide) -> None:
    days = parse_days("2028-02-29..2028-03-02")
    for day, result in run_report(tide.project, "partitions_to_delete", days, now=datetime.now(UTC), time_limit=600):
        expected = {table_id: sorted(gone) for table_id, gone in GOES[day].items()}
        if day >= DAY:
            for table_id in ("lake.mart.adhoc", "lake.mart.loads"):
                expected[table_id] = sorted(UNLABELLED[1:] if day == DAY else UNLABELLED)
        assert _by_table(result.rows) == expected, day


def test_the_plan_marks_what_the_report_lists(tide: Ebbtide) -> None:
    with make_plan(tide.project, now=datetime(2028, 3, 1, tzinfo=UTC)) as plan:
        marked = {
            (row["dataset"], date.fromisoformat(row["object"].split("_date=")[1][:10]))
            for row in plan.rows()
            if row["target"] == "partitions" and row["decision"] == "mark"
        }
    expected = {(table_id, day) for table_id, days in GOES[DAY].items() for day in days}
    assert marked == expected | {("lake.mart.adhoc", UNLABELLED[1]), ("lake.mart.loads", UNLABELLED[1])}


def test_labels_come_out_as_the_original_means_them(tide: Ebbtide) -> None:
    labels = {row.table_id.removeprefix("lake."): row for row in tide.labels().tables}
    assert "TableContent.user_data" in labels["raw.merchants"].labels  # static, but with a PII column
    assert not any(x.startswith("TableContent.") for x in labels["app.users_by_country"].labels)  # an aggregate
    assert "TableContent.static_data" in labels["app.countries"].labels  # made of static data alone
    assert "LegalHold.is_true" not in labels["app.payment_totals"].labels  # a hold does not flow
    assert labels["app.l7_active_users"].time_grain == "+7d"


def test_the_checks_name_what_is_wrong_in_it(tide: Ebbtide) -> None:
    names = ["static_data_with_pii", "root_without_content", "schedule_above_retention", "grain_above_retention"]
    now = datetime(2028, 3, 1, tzinfo=UTC)
    found = {
        outcome.check.name: [row["table_id"] for row in outcome.result.rows]
        for outcome in run_checks(tide.project, [*names, "names_and_labels"], now=now, time_limit=600)
    }
    too_coarse = found.pop("grain_above_retention")
    assert "lake.app.payment_totals" in too_coarse
    assert not {"lake.raw.daily_user_events", "lake.app.l7_active_users"} & set(too_coarse)
    assert found == {
        "static_data_with_pii": ["lake.raw.merchants"],
        "root_without_content": [
            "lake.mart.adhoc", "lake.mart.loads", "lake.raw.devices", "lake.raw.payment_items",
            "lake.raw.support_tickets",
        ],
        "schedule_above_retention": ["lake.app.payment_totals"],
        "names_and_labels": [],
    }  # fmt: skip
