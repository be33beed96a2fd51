"""The information schema with labels: every table and column of the scan, with what spec §3 says of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ebbtide.app.ebbtide import Ebbtide
from ebbtide.config import load_project
from ebbtide.errors import InputError
from ebbtide.formats.base import Depth
from ebbtide.inventory.information_schema import Inventory
from ebbtide.lineage.labelled import Labelled, label_inventory
from ebbtide.lineage.values import ProblemKind
from tests.inventory.lakes import SmallLake
from tests.lineage.test_dbt import manifest, node, write
from tests.lineage.test_openlineage import event, field

PROJECT = """\
project: acme
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lake = SmallLake(tmp_path)
    lake.create("users")
    lake.create("daily")
    lake.create("plain")
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    for folder in ("classifiers", "tables", "lineage"):
        (tmp_path / folder).mkdir()
    (tmp_path / "classifiers" / "c.yml").write_text(
        "classifiers: [{name: PII, kind: column, propagate: true, labels: [tag]},\n"
        "  {name: Domain, kind: table, propagate: true, labels: [growth]}]\n"
    )
    (tmp_path / "tables" / "t.yml").write_text(
        "tables: [{name: lake.db.users, schedule: +1m, columns: {NAME: [PII.tag]}}]\n"
    )
    (tmp_path / "lineage" / "lake.db.daily.sql").write_text("SELECT id, name FROM lake.db.users")
    scan(tmp_path)
    return tmp_path


def scan(root: Path) -> None:
    from ebbtide.app.scan import run_scan

    run_scan(load_project(root), now=datetime.now(UTC), depth=Depth.HISTORY)


def labelled_in(root: Path) -> Labelled:
    project = load_project(root)
    return label_inventory(project, Inventory.open(project.inventory))


def column_labels(found: Labelled) -> dict[str, list[str]]:
    return {f"{row['table_id']}.{row['column_id']}": row["labels"] for row in found.columns().to_pylist()}


def set_properties(root: Path, table: str, properties: dict[str, str]) -> None:
    with SmallLake(root).tables.load_table(("db", table)).transaction() as change:
        change.set_properties(properties)
    scan(root)


def test_sections_are_filled_row_by_row(root: Path) -> None:
    project = load_project(root)
    inventory = Inventory.open(project.inventory)
    labelled = label_inventory(project, inventory)
    tables = {row["table_id"]: row for row in labelled.section(inventory, "tables").to_pylist()}
    assert set(tables) == {"lake.db.users", "lake.db.daily", "lake.db.plain"}
    daily = tables["lake.db.daily"]
    assert daily["classifiers"] == "TableContent.user_data,TimeGrain.+1m"
    assert daily["labels"] == ["TableContent.user_data", "TimeGrain.+1m"]
    assert (daily["depends"], daily["is_root"], daily["is_pii"]) == ("lake.db.users", False, True)
    assert (daily["schedule"], daily["time_grain"]) == (None, "+1m")
    plain = tables["lake.db.plain"]
    assert (plain["classifiers"], plain["labels"], plain["is_root"], plain["is_pii"]) == (None, [], True, False)
    assert plain["format"] == "iceberg"
    columns = {(r["table_id"], r["column_id"]): r["labels"] for r in labelled.section(inventory, "columns").to_pylist()}
    assert columns["lake.db.users", "name"] == columns["lake.db.daily", "name"] == ["PII.tag"]
    assert columns["lake.db.users", "id"] == columns["lake.db.plain", "name"] == []
    lineage = labelled.section(inventory, "lineage").to_pylist()
    assert {(row["source_column"], row["target_column"]) for row in lineage} == {
        ("lake.db.users.id", "lake.db.daily.id"), ("lake.db.users.name", "lake.db.daily.name"),
    }  # fmt: skip
    assert labelled.problems == []


def test_a_table_that_became_unreadable_keeps_its_labels(root: Path) -> None:
    tide = Ebbtide(root)
    SmallLake(root).metadata_file("daily").unlink()
    tide.scan(history_only=True, full=True)
    assert tide.errors()
    assert "TableContent.user_data" in tide.explain_labels("lake.db.daily").labels


@pytest.mark.parametrize("key", ["sql: nowhere/", "dbt: nowhere", "openlineage: nowhere/"])
def test_a_lineage_source_that_is_named_and_not_there_is_an_error_and_not_empty(root: Path, key: str) -> None:
    (root / "ebbtide.yml").write_text(f"{PROJECT}lineage: {{{key}}}\n")
    with pytest.raises(InputError, match="nowhere"):
        Ebbtide(root).labels()


def test_labels_in_table_properties_count_and_flow(root: Path) -> None:
    (root / "tables" / "t.yml").unlink()
    set_properties(root, "users", {"ebbtide.column.NAME.labels": " PII.tag ", "ebbtide.labels": "Domain.growth"})
    found = labelled_in(root)
    labels = column_labels(found)
    assert labels["lake.db.users.name"] == labels["lake.db.daily.name"] == ["PII.tag"]
    assert labels["lake.db.users.id"] == labels["lake.db.plain.name"] == []
    tables = {row["table_id"]: row for row in found.tables().to_pylist()}
    assert tables["lake.db.users"]["own_labels"] == ["Domain.growth"]
    assert tables["lake.db.daily"]["labels"] == ["Domain.growth", "TableContent.user_data"]
    assert found.problems == []
    (why,) = next(c for c in Ebbtide(root).explain_labels("lake.db.daily").columns if c.column == "name").why
    assert "lake.db.users: property ebbtide.column.NAME.labels" in json.dumps(why.to_dict())
    set_properties(root, "users", {"ebbtide.column.NAME.labels": "", "ebbtide.labels": ""})
    assert column_labels(labelled_in(root))["lake.db.daily.name"] == []


def test_a_wrong_label_or_column_in_a_property_is_a_row_with_the_nearest_name_and_stops_nothing_else(
    root: Path,
) -> None:
    wrong = {"ebbtide.column.name.labels": "PII.tga,PII.tag", "ebbtide.labels": "Domain.grwth"}
    set_properties(root, "plain", {**wrong, "ebbtide.column.nam.labels": "PII.tag"})
    found = labelled_in(root)
    assert {(p.kind, p.where, p.subject, p.message, p.hint) for p in found.problems} == {
        (ProblemKind.LABEL, f"lake.db.plain: property {key}", "lake.db.plain", message, f"did you mean {nearest!r}?")
        for key, message, nearest in (
            ("ebbtide.column.name.labels", "unknown label 'PII.tga'", "PII.tag"),
            ("ebbtide.labels", "unknown label 'Domain.grwth'", "Domain.growth"),
            ("ebbtide.column.nam.labels", "lake.db.plain has no column 'nam'", "name"),
        )
    }
    labels = column_labels(found)
    assert labels["lake.db.plain.name"] == labels["lake.db.daily.name"] == ["PII.tag"]


def test_dbt_reaches_the_graph_and_its_meta_the_labels(root: Path) -> None:
    (root / "tables" / "t.yml").unlink()
    (root / "lineage" / "lake.db.daily.sql").unlink()
    (root / "ebbtide.yml").write_text(f"{PROJECT}lineage: {{dbt: shop}}\n")
    tagged = {"name": {"config": {"meta": {"ebbtide": {"labels": ["PII.tag"]}}}}}
    growth = {"meta": {"ebbtide": {"labels": ["Domain.growth"]}}}
    users, stg, daily = (f'"lake"."db"."{name}"' for name in ("users", "stg", "daily"))
    made = manifest(
        users=node("source", "users", relation_name=users, columns=tagged),
        # No catalog of the lake has the view: dbt's catalog gives its columns.
        stg=node("source", "stg", relation_name=stg),
        daily=node("model", "daily", relation_name=daily, config=growth,
                   compiled_code=f"SELECT u.* FROM {users} u JOIN {stg} s ON u.id = s.key"),
    )  # fmt: skip
    (root / "shop").mkdir()
    write(root / "shop", made, {"source.shop.stg": ["key", "other"]})
    found = labelled_in(root)
    edges = found.lineage.graph.to_arrow().to_pylist()
    assert {edge["provenance"] for edge in edges} == {"dbt:model.shop.daily"}
    assert {(e["source_column"], e["target_column"]) for e in edges if e["kind"] == "direct"} == {
        ("lake.db.users.id", "lake.db.daily.id"), ("lake.db.users.name", "lake.db.daily.name"),
    }  # fmt: skip
    assert ("lake.db.stg.key", "lake.db.daily.id") in {(e["source_column"], e["target_column"]) for e in edges}
    labels = column_labels(found)
    assert labels["lake.db.users.name"] == labels["lake.db.daily.name"] == ["PII.tag"]
    told = Ebbtide(root).explain_labels("lake.db.daily")
    assert told.labels == ("Domain.growth", "TableContent.user_data")
    assert told.own_labels == ("Domain.growth",)
    assert told.depends == ("lake.db.stg", "lake.db.users")
    assert [(p.kind, p.subject) for p in found.problems] == [(ProblemKind.UNMATCHED, "lake.db.stg")]


def test_labels_of_dbt_on_what_no_catalog_has_are_told(root: Path) -> None:
    (root / "ebbtide.yml").write_text(f"{PROJECT}lineage: {{dbt: shop}}\n")
    labels = {"meta": {"ebbtide": {"labels": ["Domain.growth"]}}}
    view = {"compiled_code": 'SELECT id FROM "lake"."db"."users"', "config": {"materialized": "view", **labels}}
    made = manifest(
        usrs=node("source", "usrs", relation_name='"lake"."db"."usrs"', **labels),
        v=node("model", "v", relation_name='"lake"."db"."v"', **view),
    )
    (root / "shop").mkdir()
    write(root / "shop", made)
    (problem,) = labelled_in(root).problems
    assert (problem.kind, problem.subject) == (ProblemKind.LABEL, "lake.db.usrs")
    assert problem.where == "models/usrs.sql (source.shop.usrs)"
    assert (problem.message, problem.hint) == ("no catalog has lake.db.usrs", "did you mean lake.db.users?")


def test_a_label_crosses_an_event_from_before_the_column_was_renamed(root: Path) -> None:
    users, plain = ({"namespace": "hive://h", "name": f"lake.db.{name}"} for name in ("users", "plain"))
    folder = root / "lineage" / "openlineage"
    folder.mkdir()
    old = event({"name": {"inputFields": [field("full_name", dataset=users)]}}, inputs=[users], output=plain)
    (folder / "old.json").write_text(json.dumps(old))
    found = labelled_in(root)
    assert column_labels(found)["lake.db.plain.name"] == ["PII.tag"]
    (problem,) = found.problems
    assert (problem.kind, problem.where) == (ProblemKind.FALLBACK, "lineage/openlineage/old.json")
    assert (problem.subject, problem.hint) == ("lake.db.plain", "did you mean 'name'?")
    # The label may still stand on the old name: it flows from there.
    (root / "tables" / "t.yml").write_text("tables: [{name: lake.db.users, columns: {full_name: [PII.tag]}}]\n")
    assert column_labels(labelled_in(root))["lake.db.plain.name"] == ["PII.tag"]
