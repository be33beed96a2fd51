"""Every check that ships fails where it should, with the row that says why, and passes where all is well."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ebbtide.governance.checks import chosen_checks, find
from ebbtide.governance.run import run_statement
from ebbtide.governance.statement import Severity
from ebbtide.model.durations import parse_duration
from tests.governance.sql.schemas import Labelled, drifts, readable, registered, schema, with_pack
from tests.plan.worlds import day_partition

DAY = date(2026, 11, 15)
USER, MACHINE, STATIC = "TableContent.user_data", "TableContent.machine_data", "TableContent.static_data"
PII = {"uid": ["PII.tag"], "n": []}
OFF = {"write.metadata.metrics.default": "none"}
LONG = """\
policies:
  - {name: long, select: {tables: ["lake.app.long_*"]}, partitions: {older_than: 90d}, versions: {older_than: 60d}}
  - {name: short, select: {tables: ["lake.app.short_pii"]}, versions: {older_than: 1h}, grace: 1h}
"""


def monthly(*days: date) -> Any:
    return [day_partition(day) for day in days]


BAD = [
    Labelled("lake.app.nothing"),
    Labelled("lake.app.no_pii", [USER], [USER], {"n": []}),
    Labelled("lake.app.static_pii", [USER], [STATIC], PII, facts={"properties": OFF}),
    Labelled("lake.app.two", [MACHINE], [MACHINE, STATIC]),
    Labelled("lake.app.yearly", [USER], [], PII, schedule="+1y", facts={"properties": OFF}),
    Labelled("lake.app.long_pii", [USER], [], PII, facts={"properties": OFF}),
    Labelled("lake.app.short_pii", [USER], [], PII, facts={"properties": OFF}),
    Labelled("lake.app.long_derived", [MACHINE], is_root=False),
    Labelled("lake.app.readable", [USER], [], PII),
    Labelled("lake.app.undated", [MACHINE], partitions=[day_partition(DAY, days=(None, None))]),
    Labelled("lake.app.months", [MACHINE], schedule="+1m", partitions=monthly(date(2026, 9, 1), date(2026, 10, 2))),
    Labelled("lake.app.tagged", [USER], [], PII, facts={"properties": OFF}, tag="audit"),
]
GOOD = [
    Labelled("lake.app.users", [USER], [USER], PII, facts={"properties": OFF}, partitions=[day_partition(DAY)]),
    Labelled("lake.app.logs", [MACHINE], [MACHINE], {"host": []}, partitions=[day_partition(DAY)]),
    Labelled("lake.app.countries", [STATIC], [STATIC], {"code": []}, schedule=None),
    Labelled("lake.app.derived", [], [], {"n": []}, is_root=False),
    Labelled("lake.app.months", [MACHINE], schedule="+1m", partitions=monthly(date(2026, 9, 1), date(2026, 10, 1))),
]
EXPECTED: dict[str, list[dict[str, Any]]] = {
    "root_without_content": [{"table_id": "lake.app.nothing"}],
    "user_data_without_pii": [{"table_id": "lake.app.no_pii"}],
    "static_data_with_pii": [{"table_id": "lake.app.static_pii", "column_id": "uid"}],
    "two_labels_of_one_classifier": [
        {"table_id": "lake.app.two", "classifier": "TableContent", "labels": [MACHINE, STATIC]}
    ],
    "schedule_above_retention": [{"table_id": "lake.app.yearly", "schedule": "+1y", "older_than": "90d"}],
    "schedule_above_45d": [{"table_id": "lake.app.yearly", "schedule": "+1y"}],
    "grain_above_retention": [
        {"table_id": "lake.app.months", "time_grain": "+1m", "older_than": "7d"},
        {"table_id": "lake.app.yearly", "time_grain": "+1y", "older_than": "90d"},
    ],
    "pii_version_window": [
        {"table_id": "lake.app.long_pii", "policy": "long", "window_days": 68},
        {"table_id": "lake.app.short_pii", "policy": "short", "window_days": 1.08},
    ],
    "derived_version_window": [{"table_id": "lake.app.long_derived", "policy": "long", "window_days": 68}],
    "pii_statistics": [
        {"table_id": "lake.app.readable", "column_id": "uid", "format": "iceberg", "statistics": "truncate(16)"}
    ],
    "undated_partitions": [{"table_id": "lake.app.undated", "policy": "gdpr-machine-data"}],
    "dates_off_schedule": [{"table_id": "lake.app.months", "_date": date(2026, 10, 2), "schedule": "+1m"}],
    "names_and_labels": [{"kind": "unmatched", "place": "lineage/a.sql:1", "subject": "lake.app.gone"}],
    "lineage_doubts": [{"kind": "cycle", "subject": "lake.app.a, lake.app.b"}],
    "unread_datasets": [{"catalog": "lake", "table_id": "lake.app.broken", "error": "manifest lost"}],
    "contracts": [{"table_id": "lake.app.drifted", "aspect": "window", "found": "90d", "wanted": "30d"}],
    "promises": [
        {"table_id": "lake.app.long_pii", "bound_days": 162},
        {
            "table_id": "lake.app.tagged",
            "bound_days": None,
            "breaks": "tag:audit; retention: its data is not partitioned by a date",
        },
        {"table_id": "lake.app.yearly", "bound_days": None},
    ],
}
PROBLEMS = [
    ("unmatched", "lineage/a.sql:1", "lake.app.gone", "lake.app.gone matches nothing", None),
    ("cycle", "lineage", "lake.app.a, lake.app.b", "they feed each other", None),
]


@pytest.fixture(scope="module")
def bad(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    session = spark.newSession()
    root = with_pack(tmp_path_factory.mktemp("bad"), LONG)
    drifted = [("lake.app.drifted", "window", "90d", "30d")]
    broken = [("lake", "lake.app.broken", "manifest lost", None)]
    return registered(session, root, schema(*BAD, problems=PROBLEMS, scan_errors=broken, contract_drift=drifted))


@pytest.fixture(scope="module")
def good(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    session = spark.newSession()
    root = with_pack(tmp_path_factory.mktemp("good"))
    (root / "policies" / "a.yml").write_text(
        "policies:\n  - {name: months, select: {tables: [lake.app.months]}, partitions: {older_than: 2m}}\n"
    )
    return registered(session, root, schema(*GOOD))


SHIPPED = find(Path("nowhere"), "checks")


def test_there_is_an_expectation_for_every_check_that_ships() -> None:
    assert sorted(EXPECTED) == sorted(SHIPPED)
    severities = {name: check.severity for name, check in SHIPPED.items() if check.severity is not Severity.ERROR}
    assert severities == {
        "schedule_above_45d": Severity.OFF, "derived_version_window": Severity.WARN, "lineage_doubts": Severity.WARN,
    }  # fmt: skip
    assert all(check.description for check in SHIPPED.values())


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_a_shipped_check_names_exactly_what_is_wrong(bad: SparkSession, name: str) -> None:
    rows = run_statement(bad, SHIPPED[name], DAY).rows
    expected = EXPECTED[name]
    assert [{key: row[key] for key in want} for row, want in zip(rows, expected, strict=False)] == expected
    assert len(rows) == len(expected), rows


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_a_shipped_check_passes_where_all_is_well(good: SparkSession, name: str) -> None:
    assert run_statement(good, SHIPPED[name], DAY).rows == ()


def test_a_project_without_table_content_is_not_asked_for_it(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    registered(session, tmp_path, schema(Labelled("lake.app.nothing")))
    assert run_statement(session, SHIPPED["root_without_content"], DAY).rows == ()


@pytest.mark.parametrize(
    ("older_than", "tick", "said"),
    [
        ("166h", "1h", None),  # 7 d exactly
        ("143h", "1h", 6.04),
        ("29d", "1h", None),  # 29 d and 2 h
        ("718h", "1h", None),  # 30 d exactly
        ("719h", "1h", 30.04),
        ("29d", "1d", 30.04),
    ],
)
def test_the_terms_of_a_version_window_are_added_before_they_are_rounded(
    spark: SparkSession, tmp_path: Path, older_than: str, tick: str, said: float | None
) -> None:
    rules = f"versions: {{older_than: {older_than}}}, grace: 1h"
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yml").write_text(f'policies:\n  - {{name: a, select: {{tables: ["**"]}}, {rules}}}\n')
    session = spark.newSession()
    tables = [Labelled("lake.app.pii", columns=PII), Labelled("lake.app.derived", is_root=False)]
    registered(session, tmp_path, schema(*tables), tick=parse_duration(tick, hours=True))

    def found(name: str) -> list[tuple[str, float]]:
        return [(row["table_id"], row["window_days"]) for row in run_statement(session, SHIPPED[name], DAY).rows]

    assert found("pii_version_window") == ([] if said is None else [("lake.app.pii", said)])
    above = said is not None and said > 30
    assert found("derived_version_window") == ([("lake.app.derived", said)] if above else [])


TRAILING = {"covers": "trailing"}


@pytest.mark.parametrize(
    ("schedule", "grain", "facts", "dates", "off"),
    [
        ("+1m", None, {}, ["2026-01-01", "2026-02-01"], []),
        ("+1m", None, {}, ["2026-01-31", "2026-02-28"], ["2026-01-31", "2026-02-28"]),
        ("+1m", None, TRAILING, ["2026-01-31", "2026-02-28", "2026-03-31"], []),
        ("+1m", None, TRAILING, ["2026-02-28", "2026-04-30"], []),
        ("+1m", None, TRAILING, ["2026-01-15", "2026-02-15"], []),
        ("+1m", None, TRAILING, ["2026-01-31", "2026-02-27", "2026-03-31"], ["2026-02-27"]),
        ("+2m", None, TRAILING, ["2026-01-31", "2026-02-28", "2026-03-31"], ["2026-02-28"]),
        ("+1m", "+3m", {}, ["2026-01-31", "2026-02-28"], []),
        ("+1m", "+3m", {}, ["2026-01-01", "2026-02-01"], []),
        ("+1m", "+3m", {"covers": "leading"}, ["2026-01-31", "2026-02-01"], ["2026-01-31"]),
        ("+1y", None, {}, ["2025-01-01", "2026-01-01", "2026-12-31"], ["2026-12-31"]),
        ("+1y", None, TRAILING, ["2024-12-31", "2025-12-31"], []),
        ("+1y", None, TRAILING, ["2023-02-28", "2024-02-29"], []),
        ("+1y", None, TRAILING, ["2024-12-31", "2025-01-31"], ["2025-01-31"]),
    ],
)
def test_dates_fit_the_schedule_at_the_end_that_the_table_is_dated_on(
    spark: SparkSession, tmp_path: Path, schedule: str, grain: str | None, facts: dict[str, str], dates: list[str],
    off: list[str],
) -> None:  # fmt: skip
    session = spark.newSession()
    partitions = monthly(*map(date.fromisoformat, dates))
    table = Labelled("lake.app.dated", schedule=schedule, grain=grain, facts=facts, partitions=partitions)
    registered(session, tmp_path, schema(table))
    rows = run_statement(session, SHIPPED["dates_off_schedule"], DAY).rows
    assert [row["_date"].isoformat() for row in rows] == off


UID: dict[str, list[str]] = {"uid": ["PII.tag"], "n": []}
STRUCT: dict[str, list[str]] = {"address": ["PII.tag"], "address.city": [], "address.zip": [], "n": []}
FIELD: dict[str, list[str]] = {"address": [], "address.city": ["PII.tag"], "address.zip": [], "n": []}
LISTED, FIRST = "delta.dataSkippingStatsColumns", "delta.dataSkippingNumIndexedCols"
OFF_IN_HUDI = {f"hoodie.metadata.index.{kind}.stats.enable": "false" for kind in ("column", "partition")}


@pytest.mark.parametrize(
    ("format_", "columns", "properties", "flagged"),
    [
        ("iceberg", UID, {}, {"uid": "truncate(16)"}),
        ("iceberg", UID, {"write.metadata.metrics.column.uid": "counts"}, {}),
        ("iceberg", UID, {**OFF, "write.metadata.metrics.column.uid": "full"}, {"uid": "full"}),
        ("iceberg", STRUCT, {"write.metadata.metrics.column.address.city": "none"}, {"address.zip": "truncate(16)"}),
        ("iceberg", STRUCT, {"write.metadata.metrics.column.address": "none"},
         {"address.city": "truncate(16)", "address.zip": "truncate(16)"}),
        ("delta", UID, {}, {"uid": "full"}),
        ("delta", UID, {FIRST: "0"}, {}),
        ("delta", UID, {LISTED: "n, uid"}, {"uid": "full"}),
        ("delta", UID, {LISTED: "n"}, {}),
        ("delta", UID, {LISTED: "`uid`"}, {"uid": "full"}),
        ("delta", UID, {LISTED: "n,`UID`"}, {"uid": "full"}),
        ("delta", FIELD, {LISTED: "n,address"}, {"address.city": "full"}),
        ("delta", FIELD, {LISTED: "n,address.zip"}, {}),
        ("delta", STRUCT, {FIRST: "1"}, {"address.city": "full"}),
        ("paimon", UID, {}, {"uid": "truncate(16)"}),
        ("paimon", UID, {"fields.uid.stats-mode": "none"}, {}),
        ("hudi", UID, {}, {"uid": "full"}),
        ("hudi", UID, {**OFF_IN_HUDI, "hoodie.table.metadata.partitions": "files"}, {}),
        ("hudi", UID, {**OFF_IN_HUDI, "hoodie.table.metadata.partitions": "files,column_stats"}, {"uid": "full"}),
    ],
)  # fmt: skip
def test_statistics_are_read_off_each_formats_own_properties(
    format_: str, columns: dict[str, list[str]], properties: dict[str, str], flagged: dict[str, str]
) -> None:
    assert dict(readable(drifts(format_, properties, columns))) == flagged


@pytest.mark.parametrize("format_", ["iceberg", "delta", "hudi", "paimon"])
def test_the_check_of_statistics_fails_before_a_repair_and_passes_after_it(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    fix = {key: value for one in drifts(format_, {}, STRUCT) for key, value in one.fix.items()}
    session = spark.newSession()
    tables = [
        Labelled(f"lake.app.{name}", [USER], [], STRUCT, facts={"format": format_, "properties": properties})
        for name, properties in (("before", {}), ("repaired", fix))
    ]
    registered(session, with_pack(tmp_path), schema(*tables))
    rows = run_statement(session, SHIPPED["pii_statistics"], DAY).rows
    assert [(row["table_id"], row["column_id"], row["format"]) for row in rows] == [
        ("lake.app.before", "address.city", format_), ("lake.app.before", "address.zip", format_),
    ]  # fmt: skip


def test_a_projects_file_stands_in_place_of_a_shipped_check(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "pii_statistics.sql").write_text("-- severity: off\nSELECT 1")
    (tmp_path / "checks" / "ours.sql").write_text("-- severity: warn\n-- Our own.\nSELECT 1 WHERE FALSE")
    names = {check.name: check for check in chosen_checks(tmp_path, [])}
    assert "pii_statistics" not in names
    assert "schedule_above_45d" not in names
    assert (names["ours"].severity, names["ours"].description) == (Severity.WARN, "Our own.")
    (named,) = chosen_checks(tmp_path, ["schedule_above_45d"])
    assert named.severity is Severity.ERROR
