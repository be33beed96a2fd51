"""What a command loads before it answers. Each library that it does not need costs its user a wait, every time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.inventory.lakes import SmallLake

PROJECT = """\
project: acme
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
"""
POLICIES = """\
policies:
  - {name: p, select: {tables: ["**"]}, versions: {older_than: 1d}, orphans: {older_than: 3d}}
"""
SHOWN = """\
import atexit, json, os, sys
atexit.register(lambda: open(os.environ["LOADED"], "w").write(json.dumps(sorted(sys.modules))))
from ebbtide.cli.main import run
run()
"""
NEVER = {"pandas", "pyspark", "py4j", "deltalake", "pyiceberg", "fastavro", "boto3", "s3fs", "psycopg", "fastapi"}
JVM = {"pandas", "pyspark", "py4j"}
DATA = {"pyarrow", "numpy"}
SQL = {"sqlglot"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scanned project with a model, whose lineage was traced, and with a ledger."""
    root = tmp_path_factory.mktemp("project")
    SmallLake(root).create("payments", 3)
    (root / "ebbtide.yml").write_text(PROJECT)
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(POLICIES)
    (root / "lineage").mkdir()
    (root / "lineage" / "lake.db.payments.sql").write_text("SELECT id FROM lake.db.raw")
    for arguments in (["scan"], ["labels"], ["ledger", "init", "--origin", "example.org/acme"]):
        _run(root, *arguments)
    return root


def _run(project: Path, *arguments: str) -> tuple[str, set[str]]:
    """What a command printed, and the packages that it had loaded in the end."""
    file = project / "loaded.json"
    env = {**os.environ, "LOADED": str(file), "HOME": str(project)}
    done = subprocess.run(
        [sys.executable, "-c", SHOWN, *arguments], cwd=project, capture_output=True, text=True, env=env
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, {name.partition(".")[0] for name in json.loads(file.read_text())}


@pytest.mark.parametrize(
    ("command", "not_loaded"),
    [
        ("--help", NEVER | DATA | SQL | {"sqlalchemy", "cryptography"}),
        ("tables", NEVER | SQL | {"sqlalchemy", "cryptography"}),
        ("history lake.db.payments", NEVER | SQL),
        ("labels", NEVER | SQL | {"sqlalchemy", "cryptography"}),
        ("labels lake.db.payments", NEVER | SQL | {"sqlalchemy", "cryptography"}),
        ("hold list", NEVER | DATA | SQL),
        ("hold add lake.db.payments --owner legal --reason suit", NEVER | SQL),
        ("ledger key", NEVER | DATA | SQL),
        ("ledger checkpoint", NEVER | DATA | SQL),
        ("ledger entry 0", NEVER | DATA | SQL),
        ("ledger audit", NEVER | DATA | SQL),
        ("ledger export tiles", NEVER | DATA | SQL),
        ("ledger prune --before 2020-01-01", NEVER | DATA | SQL),
        ("state upgrade", NEVER | DATA | SQL),
    ],
)
def test_a_command_loads_only_what_it_needs(project: Path, command: str, not_loaded: set[str]) -> None:
    assert _run(project, *command.split())[1] & not_loaded == set()


def test_rescuing_an_object_loads_no_planner(project: Path) -> None:
    """Named as `history` shows it; pinned, and released again."""
    told = json.loads(_run(project, "history", "lake.db.payments", "--json")[0])
    transaction = told["branches"][0]["transactions"][0]["id"]
    for more in (["--reason", "suit"], ["--release"]):
        loaded = _run(project, "unmark", f"lake.db.payments#transactions:{transaction}", *more)[1]
        assert loaded & (NEVER | SQL) == set()


@pytest.mark.parametrize(
    ("command", "not_loaded"),
    [
        ("plan", JVM),
        ("orphans list", {"pandas"}),
        ("mark", {"pandas"}),
        ("sweep --dry-run", {"pandas"}),
        ("run --yes", {"pandas"}),
    ],
)
def test_a_small_lake_is_planned_and_marked_without_java(project: Path, command: str, not_loaded: set[str]) -> None:
    """No test starts a JVM that it does not announce. What reads tables anew loads the formats, and so PySpark."""
    assert _run(project, *command.split())[1] & not_loaded == set()


def test_one_object_is_explained_without_java(project: Path) -> None:
    planned = json.loads(_run(project, "plan", "--json")[0])["objects"][0]
    object_ = f"{planned['dataset']}#{planned['target']}:{planned['object']}"
    told, loaded = _run(project, "explain", object_, "--json")
    assert loaded & (JVM | SQL) == set()
    assert json.loads(told)["planned"]["decision"] == planned["decision"]
