"""A dbt project: compiled SQL is traced, the catalog gives columns, meta gives labels."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import InputError
from ebbtide.lineage.cache import FlowCache
from ebbtide.lineage.dbt import Dbt, read_dbt
from ebbtide.lineage.models import trace_models
from ebbtide.lineage.names import written
from ebbtide.lineage.values import Flow, ProblemKind
from tests.lineage.flows import direct

DBT = Path(__file__).parents[2] / ".venv-dbt" / "bin" / "dbt"
MODELS = {
    "stg_users": "SELECT uid, lower(email) AS email, country FROM {{ ref('users') }}",
    "stg_orders": "{{ config(materialized='ephemeral') }} SELECT id, uid, amount FROM {{ ref('orders') }} "
    "WHERE amount > 0",
    "totals": "{{ config(materialized='table') }} SELECT u.*, sum(o.amount) AS total FROM {{ ref('stg_users') }} u "
    "JOIN {{ ref('stg_orders') }} o USING (uid) GROUP BY ALL",
}
SCHEMA = """\
models:
  - name: totals
    config: {meta: {ebbtide: {labels: [TableContent.user_data]}}}
    columns:
      - {name: email, config: {meta: {ebbtide: {labels: [PII.tag]}}}}
"""


def node(kind: str, name: str, **more: Any) -> dict[str, Any]:
    relation = f'"shop"."main"."{name}"'
    return {"resource_type": kind, "relation_name": relation, "original_file_path": f"models/{name}.sql", **more}


def manifest(version: int = 12, **nodes: dict[str, Any]) -> dict[str, Any]:
    url = f"https://schemas.getdbt.com/dbt/manifest/v{version}.json"
    found = {f"{n['resource_type']}.shop.{name}": n for name, n in nodes.items()}
    sources = {key: n for key, n in found.items() if n["resource_type"] == "source"}
    rest = {key: n for key, n in found.items() if key not in sources}
    return {"metadata": {"dbt_schema_version": url, "adapter_type": "duckdb"}, "nodes": rest, "sources": sources}


def write(folder: Path, made: dict[str, Any], columns: dict[str, list[str]] | None = None) -> Path:
    (folder / "target").mkdir()
    (folder / "target" / "manifest.json").write_text(json.dumps(made))
    if columns is not None:
        nodes = {key: {"columns": {name: {"name": name} for name in names}} for key, names in columns.items()}
        (folder / "target" / "catalog.json").write_text(json.dumps({"nodes": nodes}))
    return folder


def flows(dbt: Dbt) -> dict[str, Flow]:
    columns = {written(relation): list(names) for relation, names in dbt.columns.items()}
    traced = trace_models(dbt.models, columns, {}, {}, FlowCache())
    return {flow.target: flow for flow in traced.flows}


def test_compiled_code_is_traced_with_the_columns_of_the_catalog(tmp_path: Path) -> None:
    code = 'SELECT * FROM "shop"."main"."raw_users"'
    made = manifest(
        raw_users=node("source", "raw_users"),
        users=node("model", "users", compiled_code=code, config={"materialized": "view"}),
        check=node("test", "check", compiled_code="SELECT 1"),
    )
    dbt = read_dbt(write(tmp_path, made, {"source.shop.raw_users": ["uid", "Email"]}))
    flow = flows(dbt)["shop.main.users"]
    assert direct(flow) == {
        "shop.main.raw_users.uid > shop.main.users.uid", "shop.main.raw_users.Email > shop.main.users.email",
    }  # fmt: skip
    assert flow.is_view
    assert flow.provenance == "dbt:model.shop.users"
    assert len(dbt.models) == 1


def test_a_view_has_the_columns_of_its_code_where_the_catalog_is_older(tmp_path: Path) -> None:
    view = node(
        "model", "v", compiled_code='SELECT uid, email FROM "shop"."main"."raw"', config={"materialized": "view"}
    )
    made = manifest(
        raw=node("source", "raw"), v=view, z=node("model", "z", compiled_code='SELECT email FROM "shop"."main"."v"')
    )
    stale = {"source.shop.raw": ["uid", "email"], "model.shop.v": ["uid"]}
    flow = flows(read_dbt(write(tmp_path, made, stale)))["shop.main.z"]
    assert direct(flow) == {"shop.main.v.email > shop.main.z.email"}
    assert flow.problems == ()


def test_a_manifest_is_found_by_its_file_its_folder_and_its_project(tmp_path: Path) -> None:
    project = write(tmp_path, manifest(a=node("seed", "a")))
    for path in (project, project / "target", project / "target" / "manifest.json"):
        assert read_dbt(path).problems == ()
    with pytest.raises(InputError, match=r"no manifest\.json"):
        read_dbt(tmp_path / "elsewhere")


@pytest.mark.parametrize("version", [4, 13, 99])
def test_a_manifest_of_an_unknown_version_is_refused(tmp_path: Path, version: int) -> None:
    with pytest.raises(InputError, match=f"version {version} is not known") as caught:
        read_dbt(write(tmp_path, manifest(version)))
    assert "7 to 12" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["[]", "{", "{}", '{"metadata": {"dbt_schema_version": "x"}}'])
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(InputError):
        read_dbt(tmp_path)


def test_a_model_that_is_not_compiled_is_a_problem_and_not_a_gap(tmp_path: Path) -> None:
    dbt = read_dbt(
        write(tmp_path, manifest(a=node("model", "a"), b=node("model", "b", language="python", compiled_code="x")))
    )
    assert [(p.kind, p.message) for p in dbt.problems] == [
        (ProblemKind.UNREADABLE, "model.shop.a is not compiled"), (ProblemKind.UNREADABLE, "model.shop.b is not SQL"),
    ]  # fmt: skip


def test_labels_come_from_meta_of_models_and_columns_old_and_new(tmp_path: Path) -> None:
    meta = {"meta": {"ebbtide": {"labels": ["TableContent.user_data"]}}}
    columns = {"email": {"config": {"meta": {"ebbtide": {"labels": ["PII.tag"]}}}}, "x": {"meta": {"other": 1}}}
    wrong = node("seed", "b", meta={"ebbtide": {"label": "PII.tag"}})
    dbt = read_dbt(write(tmp_path, manifest(a=node("source", "a", config=meta, columns=columns), b=wrong)))
    (said,) = dbt.labels
    assert (said.relation, said.labels) == (("shop", "main", "a"), ("TableContent.user_data",))
    assert said.columns == {"email": ("PII.tag",)}
    assert [p.message for p in dbt.problems] == ["meta.ebbtide is not understood"]


@pytest.fixture(scope="module")
def real_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small project that real dbt compiled and described. dbt lives in an environment of its own."""
    assert DBT.exists(), "run `make setup-dbt`"
    folder = tmp_path_factory.mktemp("dbt")
    (folder / "models").mkdir()
    (folder / "seeds").mkdir()
    (folder / "dbt_project.yml").write_text("name: shop\nversion: '1.0'\nprofile: shop\n")
    (folder / "profiles.yml").write_text("shop: {target: dev, outputs: {dev: {type: duckdb, path: shop.duckdb}}}\n")
    (folder / "seeds" / "users.csv").write_text("uid,email,country\n1,a@example.org,DE\n")
    (folder / "seeds" / "orders.csv").write_text("id,uid,amount\n1,1,5\n")
    (folder / "models" / "schema.yml").write_text(SCHEMA)
    for name, text in MODELS.items():
        (folder / "models" / f"{name}.sql").write_text(text)
    for verb in (["build"], ["docs", "generate"]):
        command = [str(DBT), "--no-send-anonymous-usage-stats", *verb, "--profiles-dir", "."]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_a_project_of_real_dbt_has_its_lineage_through_ephemeral_models(real_project: Path) -> None:
    dbt = read_dbt(real_project)
    found = flows(dbt)
    assert set(found) == {"shop.main.stg_users", "shop.main.totals"}
    assert direct(found["shop.main.totals"]) == {
        *(f"shop.main.stg_users.{name} > shop.main.totals.{name}" for name in ("uid", "email", "country")),
        "shop.main.orders.amount > shop.main.totals.total",
    }
    assert found["shop.main.totals"].inputs == ("shop.main.orders", "shop.main.stg_users")
    assert dbt.problems == ()
    (said,) = dbt.labels
    assert said.columns == {"email": ("PII.tag",)}
