"""Table contracts on real tables of all four formats: created right, drift flagged, repaired where it is asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ebbtide.app.state import open_state
from ebbtide.config.classifiers import load_classifiers
from ebbtide.config.tables import load_tables
from ebbtide.errors import InputError, RefusedError
from ebbtide.formats.registry import load_contract_terms
from ebbtide.governance.reading import rows_of
from ebbtide.model.contract import Aspect, Contract
from ebbtide.spark.session import session
from tests.governance.projects import CLASSIFIERS, SmallProject

FORMATS = {"cice": "iceberg", "cdelta": "delta", "chudi": "hudi", "cpaimon": "paimon"}
CATALOGS = """\
project: contracts
catalogs:
  cice: {format: iceberg, type: hadoop, warehouse: ./ice}
  cdelta: {format: delta, warehouse: ./delta}
  chudi: {format: hudi, warehouse: ./hudi}
  cpaimon: {format: paimon, warehouse: ./paimon}
"""
MADE_HERE = """\
  - name: {catalog}.app.made
    is_pii: true
    columns: {{uid: [PII.tag], email: [PII.email]}}
    contract: {{columns: {{uid: string, email: string, n: bigint, day: string}}, partitioned_by: [day], versions: 14d}}
  - name: {catalog}.app.elsewhere
    is_pii: true
    columns: {{uid: [PII.tag]}}
"""
SECRET = "secret-8841302"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> SmallProject:
    """Tables of contracts in each format, and one in each that somebody made without knowing of contracts."""
    made = SmallProject(tmp_path_factory.mktemp("contracts"), "contracts")
    tables = "tables:\n" + "".join(MADE_HERE.format(catalog=name) for name in FORMATS)
    made.write({"ebbtide.yml": CATALOGS, "classifiers/pii.yml": CLASSIFIERS, "tables/all.yml": tables})
    for folder in ("ice", "delta", "hudi", "paimon"):
        (made.root / folder).mkdir()
    session(made.tide.project.catalogs.values(), master="local[1]")
    for name in ("cice", "cpaimon"):
        spark.sql(f"CREATE NAMESPACE {name}.app")
        spark.sql(f"CREATE TABLE {name}.app.elsewhere (uid STRING, n BIGINT)")
    rows = spark.createDataFrame([("a", 1)], "uid string, n bigint").coalesce(1)
    rows.write.format("delta").partitionBy("n").save(f"{made.root}/delta/app/elsewhere")
    hudi = {
        "hoodie.table.name": "elsewhere",
        "hoodie.metadata.enable": "false",
        "hoodie.embed.timeline.server": "false",
    }
    rows.write.format("hudi").options(**hudi).save(f"{made.root}/hudi/app/elsewhere")
    made.tide.scan()
    dry = made.run("contract", "create", "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert not (made.root / "delta" / "app" / "made").exists()
    done = made.run("contract", "create", "--json")
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert json.loads(done.stdout) == {"created": sorted(f"{name}.app.made" for name in FORMATS)}
    made.tide.scan()
    return made


def drift_of(project: SmallProject, table: str) -> dict[str, dict[str, Any]]:
    return {row["aspect"]: row for row in project.tide.contract_drift().to_dicts() if row["table_id"] == table}


@pytest.mark.parametrize("catalog", sorted(FORMATS))
def test_a_table_made_by_its_contract_does_not_drift(project: SmallProject, catalog: str) -> None:
    assert drift_of(project, f"{catalog}.app.made") == {}
    (row,) = [
        row for row in project.tide.information_schema("tables").collect() if row.table_id == f"{catalog}.app.made"
    ]
    assert row.properties["ebbtide.is_pii"] == "true"


@pytest.mark.parametrize("catalog", sorted(FORMATS))
def test_rows_have_the_columns_that_people_know(project: SmallProject, spark: SparkSession, catalog: str) -> None:
    rows = rows_of(spark, project.tide.project.catalogs, f"{catalog}.app.elsewhere")
    assert sorted(rows.columns) == ["n", "uid"]
    if catalog in ("cdelta", "chudi"):
        assert [(row.uid, row.n) for row in rows.collect()] == [("a", 1)]


def test_statistics_of_personal_columns_are_off_and_of_others_are_on(
    project: SmallProject, spark: SparkSession
) -> None:
    rows = spark.createDataFrame([(SECRET, f"{SECRET}@example.org", 4711, "2026-11-15")], _columns()).coalesce(1)
    rows.writeTo("cice.app.made").append()
    (kept,) = spark.sql("SELECT readable_metrics FROM cice.app.made.files").collect()
    assert kept.readable_metrics.uid.lower_bound is None
    assert kept.readable_metrics.email.upper_bound is None
    assert kept.readable_metrics.n.lower_bound == 4711
    place = f"{project.root}/delta/app/made"
    rows.write.format("delta").mode("append").save(place)
    log = (Path(place) / "_delta_log" / f"{1:020}.json").read_text()
    assert SECRET not in log
    assert "4711" in log
    rows.writeTo("cpaimon.app.made").append()
    (kept,) = spark.sql("SELECT min_value_stats, max_value_stats FROM cpaimon.app.`made$files`").collect()
    assert SECRET not in str(kept)
    assert "4711" in str(kept)
    hudi = {"hoodie.table.name": "made", "hoodie.embed.timeline.server": "false"}
    rows.write.format("hudi").options(**hudi).mode("append").save(f"{project.root}/hudi/app/made")
    assert [row.uid for row in spark.read.format("hudi").load(f"{project.root}/hudi/app/made").collect()] == [SECRET]
    indexes = {path.name for path in (project.root / "hudi/app/made/.hoodie/metadata").iterdir()}
    assert "files" in indexes
    assert not indexes & {"column_stats", "partition_stats"}
    # Without a contract Hudi keeps them.
    other = f"{project.root}/hudi/app/without"
    rows.write.format("hudi").options(**hudi | {"hoodie.table.name": "without"}).save(other)
    assert "column_stats" in {path.name for path in (Path(other) / ".hoodie" / "metadata").iterdir()}


def _columns() -> str:
    return "uid string, email string, n bigint, day string"


@pytest.mark.parametrize("catalog", sorted(FORMATS))
def test_a_table_made_elsewhere_is_flagged_and_repaired_when_asked(project: SmallProject, catalog: str) -> None:
    table = f"{catalog}.app.elsewhere"
    found = drift_of(project, table)
    assert set(found) == {"is_pii", "window", "statistics"}
    assert found["statistics"]["found"] == "kept for uid"
    dry = project.run("contract", "repair", table, "--dry-run", "--json")
    assert (dry.exit_code, len(json.loads(dry.stdout))) == (0, 3)
    assert set(drift_of(project, table)) == set(found)
    done = project.run("contract", "repair", table)
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert drift_of(project, table) == {}


def test_the_check_of_statistics_says_of_a_struct_what_the_contract_says(
    project: SmallProject, spark: SparkSession
) -> None:
    spark.sql("CREATE TABLE cice.app.nested (n BIGINT, address STRUCT<city: STRING, zip: STRING>)")
    file = project.root / "tables" / "nested.yml"
    file.write_text("tables:\n  - {name: cice.app.nested, columns: {address: [PII.tag]}}\n")

    def flagged() -> list[str]:
        (check,) = project.tide.check("pii_statistics")
        return [row["column_id"] for row in check.rows if row["table_id"] == "cice.app.nested"]

    try:
        project.tide.scan()
        assert drift_of(project, "cice.app.nested")["statistics"]["found"] == "kept for address.city, address.zip"
        assert flagged() == ["address.city", "address.zip"]
        done = project.run("contract", "repair", "cice.app.nested")
        assert done.exit_code == 0, done.output + repr(done.exception)
        assert flagged() == []
    finally:
        file.unlink()


def test_the_verb_tells_drift_and_exits_1(project: SmallProject) -> None:
    file = project.root / "tables" / "more.yml"
    file.write_text(
        "tables:\n  - {name: cice.app.plain, contract: {columns: {id: bigint, at: timestamp}, partitioned_by: "
        "[days(at)]}}\n"
    )
    try:
        shown = project.run("contract", "check")
        assert shown.exit_code == 1
        assert "not there" in shown.stdout
    finally:
        file.unlink()


def test_with_enforce_a_scan_repairs_and_leaves_the_window_of_what_is_held_or_under_a_floor(
    project: SmallProject, spark: SparkSession
) -> None:
    spark.sql("CREATE TABLE cice.app.forced (uid STRING, extra BIGINT) TBLPROPERTIES ('ebbtide.is_pii'='false')")
    spark.sql("CREATE TABLE cice.app.held (uid STRING)")
    spark.sql("CREATE TABLE cice.app.lawful (uid STRING)")
    spark.sql("CREATE TABLE cice.app.taxed (uid STRING)")
    policies = project.root / "policies" / "floors.yml"
    policies.parent.mkdir(exist_ok=True)
    policies.write_text(
        "policies: [{name: old, select: {tables: [cice.app.forced]}, versions: {older_than: 400d, keep_min: 1}}]\n"
        "floors: [{tables: [cice.app.taxed], keep_at_least: 1y, basis: tax}]\n"
    )
    file = project.root / "tables" / "forced.yml"
    file.write_text(
        "tables:\n"
        "  - {name: cice.app.forced, enforce: true, columns: {uid: [PII.tag]}, contract: {columns: {uid: bigint}}}\n"
        "  - {name: cice.app.held, enforce: true, columns: {uid: [PII.tag]}}\n"
        "  - {name: cice.app.lawful, enforce: true, labels: [LegalHold.is_true], columns: {uid: [PII.tag]}}\n"
        "  - {name: cice.app.taxed, enforce: true, columns: {uid: [PII.tag]}}\n"
    )
    with open_state(project.tide.project).writer() as state:
        at = datetime.now(UTC)
        hold = state.hold_dataset("cice.app.held", owner=state.actor("counsel"), reason="a case", at=at)
    before = spark.sql("SHOW TBLPROPERTIES cice.app.forced").collect()
    for verb in (("mark",), ("sweep", "--yes")):
        done = project.run(*verb)
        assert done.exit_code == 0, done.output + repr(done.exception)
    assert spark.sql("SHOW TBLPROPERTIES cice.app.forced").collect() == before, "a round takes tables as they are"
    done = project.run("scan", "--json")
    told = json.loads(done.stdout)
    assert {(row["table_id"], row["aspect"]) for row in told["repaired"]} == {
        ("cice.app.forced", "is_pii"), ("cice.app.forced", "window"), ("cice.app.forced", "statistics"),
        ("cice.app.held", "is_pii"), ("cice.app.held", "statistics"),
        ("cice.app.lawful", "is_pii"), ("cice.app.lawful", "statistics"),
        ("cice.app.taxed", "is_pii"), ("cice.app.taxed", "statistics"),
    }  # fmt: skip
    left = {(row["table_id"], row["aspect"]): row for row in told["drift"] if "elsewhere" not in row["table_id"]}
    assert set(left) == {("cice.app.forced", "columns"), ("cice.app.held", "window"), ("cice.app.taxed", "window")}
    assert left["cice.app.forced", "columns"]["found"] == "uid is string, extra besides"
    tried = json.loads(project.run("contract", "repair", "cice.app.held", "--json").stdout)
    assert [(row["done"], row["because"]) for row in tried] == [(False, f"hold {hold.id} may need the versions")]
    for name in ("held", "taxed"):
        assert "history.expire" not in str(spark.sql(f"SHOW TBLPROPERTIES cice.app.{name}").collect())
    file.unlink()
    policies.unlink()


def test_a_table_that_is_there_is_never_created_over(project: SmallProject) -> None:
    again = project.run("contract", "create", "chudi.app.made")
    assert isinstance(again.exception, RefusedError)
    file = project.root / "tables" / "stray.yml"
    file.write_text("tables:\n  - {name: chudi.app.stray, contract: {columns: {id: bigint}, key: [id]}}\n")
    (project.root / "hudi" / "app" / "stray").mkdir()
    stray = project.run("contract", "create", "chudi.app.stray")
    file.unlink()
    assert isinstance(stray.exception, RefusedError)
    assert list((project.root / "hudi" / "app" / "stray").iterdir()) == []


DAY = 86_400_000


@pytest.mark.parametrize(
    ("format_", "properties", "days"),
    [
        ("iceberg", {"history.expire.max-snapshot-age-ms": str(7 * DAY)}, 7),
        ("iceberg", {"history.expire.max-snapshot-age-ms": str(30 * DAY)}, 30),
        ("iceberg", {"history.expire.max-snapshot-age-ms": str(7 * DAY - 1)}, None),
        ("iceberg", {"history.expire.max-snapshot-age-ms": str(31 * DAY)}, None),
        ("iceberg", {}, None),
        ("delta", {f"delta.{k}RetentionDuration": "interval 2 weeks" for k in ("deletedFile", "log")}, 14),
        ("delta", {"delta.deletedFileRetentionDuration": "interval 168 hours"}, None),
        ("delta", {f"delta.{k}RetentionDuration": "interval 60 days" for k in ("deletedFile", "log")}, None),
        ("hudi", {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "168"}, 7),
        ("hudi", {"hoodie.clean.hours.retained": "168"}, None),
        ("paimon", {"snapshot.time-retained": "720 h"}, 30),
        ("paimon", {"snapshot.time-retained": "1 h"}, None),
        ("paimon", {"snapshot.time-retained": "31d"}, None),
    ],
)  # fmt: skip
def test_the_window_of_personal_data_is_from_7_to_30_days(
    format_: str, properties: Mapping[str, str], days: int | None
) -> None:
    contract = Contract("a.b.c", is_pii=True)
    found = load_contract_terms(format_).drift(contract, {"ebbtide.is_pii": "true", **properties}, {})
    assert [one.aspect for one in found] == ([] if days else [Aspect.WINDOW])
    exact = Contract("a.b.c", is_pii=True, window=days or 14)
    again = load_contract_terms(format_).drift(exact, {"ebbtide.is_pii": "true", **properties}, {})
    assert [one.aspect for one in again] == ([] if days else [Aspect.WINDOW])
    assert load_contract_terms(format_).drift(Contract("a.b.c", is_pii=False), {}, {}) == []


def test_delta_counts_its_first_columns_and_lists_the_others() -> None:
    drift = load_contract_terms("delta").drift
    columns = {"a": "int", "p": "struct<x:string>", "p.x": "string", "flag": "boolean", "late": "string"}
    contract = Contract("a.b.c", is_pii=True, pii_columns=("p.x", "late"), keeps_versions=True)
    base = {"ebbtide.is_pii": "true"}
    (one,) = drift(contract, base, columns)
    assert one.found == "kept for p.x, late"
    assert dict(one.fix) == {"delta.dataSkippingStatsColumns": "`a`"}
    assert drift(contract, {**base, **one.fix}, columns) == []
    (few,) = drift(contract, {**base, "delta.dataSkippingNumIndexedCols": "2"}, columns)
    assert few.found == "kept for p.x"
    assert drift(contract, {**base, "delta.dataSkippingNumIndexedCols": "0"}, columns) == []
    (struct,) = drift(contract, {**base, "delta.dataSkippingStatsColumns": "a,p"}, columns)
    assert struct.found == "kept for p.x"


@pytest.mark.parametrize(
    ("contract", "message"),
    [
        ("{columns: {id: 'bigint) --'}}", "is no type"),
        ("{columns: {id: bigint}, key: [di]}", "the key 'di' is no column"),
        ("{versions: 40d}", "a version window of 40 d"),
        ("{versions: 1m}", "not a version window"),
        ("{versions: soon}", "not a duration"),
        ("{columns: {id: bigint}, partitioned_by: ['id); DROP']}", "cannot partition by"),
        ("{colums: {}}", "unknown key"),
    ],
)
def test_a_wrong_contract_is_refused_with_its_line(tmp_path: Path, contract: str, message: str) -> None:
    (tmp_path / "c.yml").write_text(CLASSIFIERS)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "t.yml").write_text(
        f"tables:\n  - name: lake.app.t\n    is_pii: true\n    contract: {contract}\n"
    )
    with pytest.raises(InputError, match=message) as caught:
        load_tables(tmp_path / "tables", load_classifiers(tmp_path / "none"))
    assert "t.yml:" in caught.value.message
