"""`init --pack`, `check` and `report` as their users meet them, on a real Iceberg lake."""

from __future__ import annotations

import csv
import io
import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT

DAYS = [date(2026, 8, 16), date(2026, 8, 17)]
FILES = {
    "ebbtide.yml": PROJECT + 'spark: {master: "local[1]", conf: {spark.driver.memory: 2g}}\n',
    "tables/app.yml": """\
tables:
  - {name: lake.app.events, schedule: +1d, columns: {uid: [PII.tag]}}
  - {name: lake.app.evnets, schedule: +1d}
""",
    "lineage/lake.app.counts.sql": "SELECT count(*) AS n FROM lake.app.events JOIN lake.app.nowhere USING (uid)",
    "checks/big.sql": "-- severity: warn\n-- do: `ebbtide tables`\n"
    "-- Partitions with rows.\nSELECT table_id FROM partitions WHERE rows > 0",
    "reports/days.sql": "SELECT @date AS day, table_id, _date FROM partitions WHERE _date <= @date ORDER BY _date",
    "reports/forever.sql": "SELECT count(*) AS n FROM range(100000000000) a CROSS JOIN range(100000000000) b "
    "WHERE a.id % 7 = b.id",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("checked")
    catalog = SqlCatalog("lake", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/lake")
    catalog.create_namespace("app")
    rows = pa.table({"uid": ["a", "b"], "_date": pa.array(DAYS, pa.date32())})
    events = catalog.create_table(("app", "events"), rows.schema)
    with events.update_spec() as spec:
        spec.add_identity("_date")
    catalog.load_table(("app", "events")).append(rows)
    catalog.create_table(("app", "counts"), pa.schema([("n", pa.int64())]))
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    done = ebbtide("init", "--pack", "gdpr", cwd=root)
    assert done.returncode == 0, done.stderr
    assert "wrote policies/gdpr.yml" in done.stderr
    assert (root / "ebbtide.yml").read_text() == FILES["ebbtide.yml"]
    done = ebbtide("scan", cwd=root)
    assert done.returncode == 0, done.stderr
    return root


def rows_of(done: Any) -> Any:
    return json.loads(done.stdout)


@pytest.mark.jvm
def test_checks_show_their_rows_and_a_failed_one_ends_with_1(project: Path) -> None:
    done = ebbtide("check", "--json", cwd=project)
    assert done.returncode == 1, done.stderr
    found = {check["name"]: check for check in rows_of(done)}
    failed = {name for name, check in found.items() if not check["passed"]}
    assert failed == {"names_and_labels", "pii_statistics", "big"}
    assert {row["subject"] for row in found["names_and_labels"]["rows"]} == {"lake.app.evnets", "lake.app.nowhere"}
    assert "lake.app.events" in next(
        row["hint"] for row in found["names_and_labels"]["rows"] if row["subject"] == "lake.app.evnets"
    )
    assert found["pii_statistics"]["rows"] == [
        {"table_id": "lake.app.events", "column_id": "uid", "format": "iceberg", "statistics": "truncate(16)"}
    ]
    assert "schedule_above_45d" not in found
    assert found["promises"] == {
        "name": "promises", "passed": True, "severity": "error", "rows": [],
        "description": found["promises"]["description"], "do": found["promises"]["do"],
    }  # fmt: skip


@pytest.mark.jvm
def test_a_check_of_severity_warn_is_shown_and_ends_with_0(project: Path) -> None:
    done = ebbtide("check", "big", "promises", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "warning  big, 2 rows: Partitions with rows." in done.stdout
    assert "passed   promises" in done.stdout
    assert "do: `ebbtide tables`\n" in done.stdout
    assert "`ebbtide report promises`" not in done.stdout, "of what passed there is nothing to do"
    for form, shown in (("markdown", "| big | warning | 2 |"), ("html", "<td>`ebbtide tables`</td>")):
        page = ebbtide("check", "big", "promises", "--format", form, cwd=project)
        assert page.returncode == 0, page.stderr
        assert shown in page.stdout
    assert "2 checks: 1 passed, 0 failed, 1 warn" in done.stderr


@pytest.mark.jvm
def test_a_report_takes_a_date_and_a_range_of_dates(project: Path) -> None:
    one = ebbtide("report", "partitions_to_delete", "--date", "2026-11-15", "--json", cwd=project)
    assert one.returncode == 0, one.stderr
    assert [(row["table_id"], row["_date"], row["class"]) for row in rows_of(one)] == [
        ("lake.app.events", "2026-08-16", "user data")
    ]
    page = ebbtide("report", "days", "--date", "2026-08-16", "--format", "html", cwd=project)
    assert page.returncode == 0, page.stderr
    assert "<td>2026-08-16</td><td>lake.app.events</td>" in page.stdout
    backfill = ebbtide("report", "days", "--date", "2026-08-15..2026-08-17", "--csv", cwd=project)
    assert backfill.returncode == 0, backfill.stderr
    assert list(csv.reader(io.StringIO(backfill.stdout))) == [
        ["@date", "day", "table_id", "_date"],
        ["2026-08-16", "2026-08-16", "lake.app.events", "2026-08-16"],
        ["2026-08-17", "2026-08-17", "lake.app.events", "2026-08-16"],
        ["2026-08-17", "2026-08-17", "lake.app.events", "2026-08-17"],
    ]


@pytest.mark.jvm
def test_a_report_that_never_ends_is_stopped(project: Path) -> None:
    done = ebbtide("report", "forever", "--time-limit", "5", cwd=project)
    assert done.returncode == 4
    assert "forever did not end within 5 seconds" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "promisses"], "no check 'promisses'"),
        (["report", "partitions"], "no report 'partitions'"),
        (["report", "days", "--date", "yesterday"], "not a date or a range: 'yesterday'"),
        (["report", "days", "--date", "2026-02-01..2026-01-01"], "ends before it begins"),
        (["report", "days", "--date", "2026-02-01", "--as-of", "2026-02-01"], "both set @date"),
        (["report", "days", "--json", "--csv"], "both write to stdout"),
        (["report", "days", "--format", "html", "--csv"], "both say how rows are written"),
        (["report", "days", "--format", "htm"], "no format 'htm'"),
        (["init", "--pack", "gdrp"], "no pack 'gdrp'"),
    ],
)
def test_bad_arguments_end_with_2(project: Path, arguments: list[str], message: str) -> None:
    done = ebbtide(*arguments, cwd=project)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("checks/writes.sql", "DELETE FROM lake.app.events", "checks and reports only read"),
        ("checks/wrong.sql", "SELECT a,\n  b FROM WHERE", "wrong.sql:2:10: not SQL"),
    ],
)
def test_one_bad_file_stops_all_before_anything_runs(project: Path, file: str, text: str, message: str) -> None:
    (project / file).write_text(text)
    try:
        done = ebbtide("check", cwd=project)
    finally:
        (project / file).unlink()
    assert done.returncode == 2
    assert message in done.stderr
    assert "hint:" in done.stderr
    assert done.stdout == ""


def test_a_project_without_an_inventory_is_told_to_scan(tmp_path: Path) -> None:
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    done = ebbtide("check", cwd=tmp_path)
    assert done.returncode == 2
    assert "run `ebbtide scan`" in done.stderr
