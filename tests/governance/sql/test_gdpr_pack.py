"""The gdpr pack: what it installs, and that its report says what its policies make the plan say."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ebbtide.config.classifiers import load_classifiers
from ebbtide.config.policies import load_policies
from ebbtide.errors import InputError, RefusedError
from ebbtide.governance.checks import chosen_checks, chosen_report, find
from ebbtide.governance.packs import install
from ebbtide.governance.run import run_statement
from ebbtide.governance.statement import read_statement
from ebbtide.model.dataset import Partition
from ebbtide.plan.build import build_plan
from tests.governance.sql.schemas import Labelled, registered, schema, with_pack
from tests.plan.worlds import day_partition

USER, MACHINE, STATIC = "TableContent.user_data", "TableContent.machine_data", "TableContent.static_data"
LEGAL = "LegalHold.is_true"
DAY = date(2026, 11, 15)


def ages(*days: int) -> list[Partition]:
    return [day_partition(DAY - timedelta(days=age)) for age in days]


TABLES = [
    Labelled("lake.app.user", [USER], partitions=ages(0, 89, 90, 91, 92, 400)),
    Labelled("lake.app.adhoc", [USER], schedule=None, partitions=ages(90, 91)),
    Labelled("lake.app.l7", [USER], grain="+7d", partitions=ages(82, 83, 84, 85)),
    Labelled("lake.app.monthly", [USER], schedule="+1m", partitions=[
        day_partition(date(2026, month, 1)) for month in (7, 8, 9, 10)]),
    Labelled("lake.app.machine", [MACHINE], partitions=ages(6, 7, 8, 30)),
    Labelled("lake.app.machine_l7", [MACHINE], grain="+7d", partitions=ages(8, 20)),
    Labelled("lake.app.static", [STATIC], partitions=ages(8, 91, 361, 9000)),
    Labelled("lake.app.none", [], partitions=ages(359, 360, 361)),
    Labelled("lake.app.no_label_at_all", [], schedule=None, partitions=ages(360, 361)),
    Labelled("lake.app.legal", [USER, LEGAL], partitions=[
        day_partition(day) for day in (date(2019, 11, 14), date(2019, 11, 15), date(2026, 1, 1))]),
    Labelled("lake.app.legal_static", [STATIC, LEGAL], partitions=[day_partition(date(2010, 1, 1))]),
    Labelled("lake.app.undated", [USER], partitions=[day_partition(DAY, days=(None, None))]),
    Labelled("lake.app.locked", [USER], partitions=ages(400), facts={"locked_by": ["lake.app.other"]}),
    Labelled("lake.app.unread", [USER], partitions=ages(400), facts={"scan_error": "manifest lost"}),
    Labelled("lake.app.kept", [USER], partitions=ages(400), facts={"floors": {"gc.enabled": "false"}}),
    Labelled("lake.app.held", [USER], partitions=ages(100, 200, 300)),
    Labelled("lake.app.held_whole", [MACHINE], partitions=ages(100)),
    Labelled("lake.app.state", [USER], partitions=ages(100, 101, 102, 103)),
    *(Labelled(f"lake.adhoc.user_{age}", [USER], [USER], schedule=None, written=age) for age in (89, 90, 90.01, 400)),
    Labelled("lake.adhoc.machine", [MACHINE], [MACHINE], schedule=None, written=7.01),
    Labelled("lake.adhoc.legal", [USER, LEGAL], [LEGAL], schedule=None, written=3000),
    Labelled("lake.adhoc.legal_young", [USER, LEGAL], [LEGAL, USER], schedule=None, written=2000),
    Labelled("lake.adhoc.static", [STATIC], [STATIC], schedule=None, written=3000),
    Labelled("lake.adhoc.derived", [USER], [], schedule=None, written=400),
    Labelled("lake.adhoc.derived_young", [USER], [], schedule=None, written=80),
    Labelled("lake.adhoc.nothing", [], [], schedule=None, written=400),
    Labelled("lake.adhoc.scheduled", [USER], [USER], written=400),
    Labelled("lake.adhoc.tagged", [USER], [USER], schedule=None, written=400, tag="audit"),
    Labelled("lake.adhoc.held", [USER], [USER], schedule=None, written=400),
    Labelled("lake.adhoc.marked", [USER], [USER], schedule=None, written=400),
    Labelled("lake.adhoc.rescued", [USER], [USER], schedule=None, written=400),
    # Somebody said machine or static data of a table, and a PII column makes it user data.
    Labelled("lake.adhoc.said_machine", [USER], [MACHINE], schedule=None, written=400),
    Labelled("lake.adhoc.said_static", [USER], [STATIC], schedule=None, written=400),
    Labelled("lake.adhoc.inherited", [MACHINE], [], schedule=None, written=400),
    Labelled("lake.adhoc.created", [USER], [USER], schedule=None, created=400),
    Labelled("lake.adhoc.was_partitioned", [USER], [USER], schedule=None, written=400, facts={"partitioned": True}),
    Labelled("lake.adhoc.hudi", [MACHINE], [MACHINE], schedule=None, written=400, facts={"format": "hudi"}),
    Labelled("lake.adhoc.append_only", [USER], [USER], schedule=None, written=400, facts={
        "format": "delta", "floors": {"delta.appendOnly": "true"}}),
    Labelled("lake.adhoc.consumed", [USER], [USER], schedule=None, written=400, facts={
        "format": "paimon", "floors": {"consumer:job": "main/1"}}),
    Labelled("lake.adhoc.gc", [USER], [USER], schedule=None, written=400, facts={"floors": {"gc.enabled": "false"}}),
    Labelled("lake.adhoc.locked", [USER], [USER], schedule=None, written=400, facts={"locked_by": ["lake.app.other"]}),
]  # fmt: skip


def object_of(age: int) -> str:
    return f"0/day={DAY - timedelta(days=age)}"


NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
STATE: dict[str, list[tuple[Any, ...]]] = {
    "holds": [
        ("lake.app.held", DAY - timedelta(days=250), DAY - timedelta(days=150), "ann", "case 4"),
        ("lake.app.held_whole", None, None, "ann", "case 5"),
        ("lake.adhoc.held", DAY, DAY, "ann", "case 6"),
    ],
    "marks": [
        ("lake.adhoc.marked", "tables", "lake.adhoc.marked", "gdpr-user-data", "x", NOON, NOON, None, None, None),
        ("lake.app.state", "partitions", object_of(100), "gdpr-user-data", "x", NOON, NOON, None, None, None),
    ],
    "unmarks": [
        ("lake.adhoc.rescued", "transactions", "1", None, "needed"),
        ("lake.app.state", "partitions", object_of(101), None, "needed"),
        ("lake.app.state", "versions", object_of(102), datetime(2027, 1, 1, tzinfo=UTC), "needed"),
        ("lake.app.state", "partitions", object_of(103), datetime(2026, 1, 1, tzinfo=UTC), "over"),
    ],
}


MORNING, EVENING = datetime(2026, 11, 15, 9, tzinfo=UTC), datetime(2026, 11, 15, 21, tzinfo=UTC)
MIDNIGHT, TOMORROW = datetime(2026, 11, 15, tzinfo=UTC), datetime(2026, 11, 16, tzinfo=UTC)


@pytest.mark.parametrize("now", [MIDNIGHT, MORNING, NOON, EVENING, TOMORROW])
def test_an_unmark_that_ends_during_the_day_ends_for_the_report_when_it_ends_for_the_plan(
    spark: SparkSession, tmp_path: Path, now: datetime
) -> None:
    root = with_pack(tmp_path)
    session = spark.newSession()
    table = Labelled("lake.app.state", [USER], partitions=ages(100, 101, 102))
    unmarks = [
        ("lake.app.state", "partitions", object_of(age), until, "needed")
        for age, until in ((100, MIDNIGHT), (101, NOON), (102, TOMORROW))
    ]
    made = schema(table, unmarks=unmarks)
    registered(session, root, made, now)
    report = chosen_report(root, "partitions_to_delete")
    listed = {row["partition"] for row in run_statement(session, report, now.date()).rows}
    with build_plan(load_policies(root), made.world, made.orders, now=now) as plan:
        planned = {row["object"] for row in plan.rows() if row["decision"] == "mark"}
    ended = [100] + [101] * (now >= NOON) + [102] * (now >= TOMORROW)
    assert listed == planned == {object_of(age) for age in ended}
    # Another day is taken at its beginning, as `plan --as-of DAY` takes it.
    before = {row["partition"] for row in run_statement(session, report, date(2026, 11, 14)).rows}
    assert before == set()


@pytest.mark.parametrize("day", [DAY, date(2026, 11, 30), date(2027, 3, 1)])
def test_the_report_lists_exactly_what_the_plan_would_mark(spark: SparkSession, tmp_path: Path, day: date) -> None:
    root = with_pack(tmp_path)
    session = spark.newSession()
    made = schema(*TABLES, **STATE)
    registered(session, root, made)
    rows = run_statement(session, chosen_report(root, "partitions_to_delete"), day).rows
    now = datetime.combine(day, datetime.min.time(), UTC) if day != DAY else NOON
    with build_plan(load_policies(root), made.world, made.orders, now=now) as plan:
        planned = {
            (row["dataset"], row["object"] if row["target"] == "partitions" else None)
            for row in plan.rows()
            if row["target"] in ("partitions", "tables") and row["decision"] == "mark"
        }
    assert {(row["table_id"], row["partition"]) for row in rows} == planned
    assert len(rows) == len(planned)
    if day == DAY:
        found: dict[str, list[int]] = {}
        for row in rows:
            found.setdefault(row["table_id"].removeprefix("lake.app."), []).append((DAY - row["_date"]).days)
        whole = {name for name in found if name.startswith("lake.adhoc.")}
        assert whole == {f"lake.adhoc.{name}" for name in (
            "user_90.01", "user_400", "machine", "legal", "hudi", "append_only",
        )}  # fmt: skip
        found = {name: ages for name, ages in found.items() if name not in whole}
        assert found == {
            "user": [400, 92, 91], "adhoc": [91], "l7": [85, 84], "monthly": [137, 106], "machine": [30, 8],
            "none": [361], "no_label_at_all": [361], "legal": [2558], "legal_static": [6162],
            "held": [300, 100], "state": [103],
        }  # fmt: skip


def test_ad_hoc_tables_that_nobody_labelled_are_listed_and_never_dropped(spark: SparkSession, tmp_path: Path) -> None:
    root = with_pack(tmp_path)
    session = spark.newSession()
    tables = [table for table in TABLES if table.name.startswith("lake.adhoc.")]
    made = schema(*tables)
    registered(session, root, made)
    rows = run_statement(session, chosen_checks(root, ["ad_hoc_without_label"])[0], DAY).rows
    assert [(row["table_id"].removeprefix("lake.adhoc."), row["class"], row["keep"]) for row in rows] == [
        ("derived", "user data", "90d"), ("inherited", "machine data", "7d"), ("nothing", "none", "360d"),
        ("said_machine", "user data", "90d"), ("said_static", "user data", "90d"),
        ("was_partitioned", "user data", "90d"),
    ]  # fmt: skip
    # Every table that was written to has a row with a date, also where it has no partitions.
    found = {row["table_id"]: row for row in session.table("partitions").collect()}
    assert found.keys() == {table.name for table in tables} - {"lake.adhoc.created"}
    row = found["lake.adhoc.user_400"]
    assert (row["partition"], row["_date"], row["rows"], row["bytes"]) == (None, DAY - timedelta(days=400), 10, 100)
    plan = build_plan(load_policies(root), made.world, made.orders, now=NOON)
    assert {row["target"] for row in plan.rows()} == {"tables", "versions"}, "partitions acts on none of them"
    kept = {row["dataset"]: row["because"] for row in plan.rows() if row["target"] == "tables"}
    assert kept["lake.adhoc.derived"] == "nobody gave the table itself such a label"
    assert kept["lake.adhoc.said_machine"] == kept["lake.adhoc.inherited"] == kept["lake.adhoc.derived"]
    assert kept["lake.adhoc.scheduled"] == "not ad hoc: its schedule is +1d"
    assert kept["lake.adhoc.created"] == "never written to: never due"
    assert kept["lake.adhoc.was_partitioned"] == "it is partitioned: its partitions go by their dates"


def test_the_pack_is_installed_whole_and_every_file_of_it_can_be_read(tmp_path: Path) -> None:
    done = install("gdpr", tmp_path)
    assert done.kept == ()
    assert {path.relative_to(tmp_path).parts[0] for path in done.written} == {
        "checks", "classifiers", "policies", "reports",
    }  # fmt: skip
    assert set(load_classifiers(tmp_path / "classifiers").by_name) == {"PII", "TableContent", "LegalHold"}
    found = load_policies(tmp_path)
    assert [policy.name for policy in found.policies] == [
        "gdpr-legal-hold", "gdpr-user-data", "gdpr-machine-data", "gdpr-unlabelled",
    ]  # fmt: skip
    assert [str(floor.keep_at_least) for floor in found.floors] == ["7y"]
    assert "partitions_to_delete" in find(tmp_path, "reports")
    assert all(read_statement(path) for path in done.written if path.suffix == ".sql")


def test_what_is_there_stays_as_it_is_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "gdpr.yml").write_text("policies: []\n")
    (tmp_path / "classifiers").mkdir()
    mine = "classifiers:\n  - {name: PII, kind: column, propagate: true, labels: [tag, email]}\n"
    (tmp_path / "classifiers" / "ours.yml").write_text(mine)
    done = install("gdpr", tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in done.kept] == [
        "classifiers/pii.yml", "policies/gdpr.yml",
    ]  # fmt: skip
    assert (tmp_path / "policies" / "gdpr.yml").read_text() == "policies: []\n"
    assert load_classifiers(tmp_path / "classifiers").by_name["PII"].labels == ("tag", "email")
    (tmp_path / "checks" / "promises.sql").write_text("SELECT 1 WHERE FALSE")
    again = install("gdpr", tmp_path)
    assert again.written == ()
    assert (tmp_path / "checks" / "promises.sql").read_text() == "SELECT 1 WHERE FALSE"


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert install("gdpr", tmp_path, dry_run=True).written
    assert list(tmp_path.iterdir()) == []


def test_init_takes_a_pack_into_a_new_and_into_an_existing_project(tmp_path: Path) -> None:
    from ebbtide.app.init import init_project

    new = init_project(tmp_path / "new", pack="gdpr")
    assert new.written[0] == tmp_path / "new" / "ebbtide.yml"
    old = tmp_path / "old"
    old.mkdir()
    (old / "ebbtide.yml").write_text("project: ours\n")
    done = init_project(old, pack="gdpr")
    assert old / "ebbtide.yml" not in done.written
    assert (old / "ebbtide.yml").read_text() == "project: ours\n"
    assert (old / "policies" / "gdpr.yml").exists()
    with pytest.raises(RefusedError):
        init_project(old)
    with pytest.raises(InputError, match="no pack 'gdrp'") as caught:
        init_project(tmp_path / "other", pack="gdrp")
    assert caught.value.hint == "did you mean 'gdpr'?"
    assert not (tmp_path / "other").exists()


def test_a_label_that_no_classifier_has_stops_policies_with_the_nearest_name(tmp_path: Path) -> None:
    install("gdpr", tmp_path)
    path = tmp_path / "policies" / "gdpr.yml"
    path.write_text(
        path.read_text().replace(
            "exclude: {any_labels: [LegalHold.is_true]}", "exclude: {any_labels: [LegalHold.is_tru]}"
        )
    )
    with pytest.raises(InputError, match=r"gdpr.yml:\d+: unknown label 'LegalHold.is_tru'") as caught:
        load_policies(tmp_path)
    assert caught.value.hint == "did you mean 'LegalHold.is_true'?"
