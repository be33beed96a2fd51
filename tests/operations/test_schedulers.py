"""Airflow and Dagster, each in an environment of its own, run the examples as their schedulers would."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake

pytestmark = pytest.mark.schedulers

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
JOBS = ("ebbtide_run", "ebbtide_erase")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "a project"
    SmallLake(root).create("payments", 2)
    (root / "ebbtide.yml").write_text(PROJECT)
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(
        'policies:\n  - {name: old, select: {tables: ["**"]}, versions: {older_than: 30d}}\n'
    )
    return root


def example(name: str, project: Path, folder: Path) -> Path:
    """The example with the two paths of this machine, as its first line says."""
    program = folder / "bin" / "ebbtide"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ebbtide.cli.main "$@"\n')
    program.chmod(0o755)
    text = (EXAMPLES / name).read_text()
    for before, after in (("/opt/ebbtide/bin/ebbtide", program), ("/srv/acme", project)):
        assert text.count(before) == 1
        text = text.replace(before, str(after))
    placed = folder / "placed" / Path(name).name
    placed.parent.mkdir()
    placed.write_text(text)
    return placed


def runs(project: Path) -> list[tuple[str, str]]:
    command = [sys.executable, "-m", "ebbtide.cli.main", "runs", "list", "--json"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
    return sorted((run["verb"], run["state"]) for run in json.loads(done.stdout))


def environment(profile: str, home: Path, **more: str) -> dict[str, str]:
    assert (ROOT / f".venv-{profile}").is_dir(), f"run `make setup-{profile}`"
    return {**os.environ, "PATH": f"{ROOT / f'.venv-{profile}' / 'bin'}:/usr/bin:/bin", "HOME": str(home), **more}


def test_airflow_runs_both_dags_and_fails_where_ebbtide_does(tmp_path: Path, project: Path) -> None:
    placed = example("airflow/ebbtide_nightly.py", project, tmp_path)
    known = environment(
        "airflow",
        tmp_path,
        AIRFLOW_HOME=str(tmp_path / "airflow"),
        AIRFLOW__CORE__DAGS_FOLDER=str(placed.parent),
        AIRFLOW__CORE__LOAD_EXAMPLES="false",
    )

    def airflow(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["airflow", *words], env=known, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    made = airflow("db", "migrate")
    assert made.returncode == 0, made.stderr[-2000:]
    for name in JOBS:
        done = airflow("dags", "test", name, "2026-11-19")
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert runs(project) == [("run", "finished")], "nobody is to be erased, which is no run"
    (project / "ebbtide.yml").write_text("no project: [")
    failed = airflow("dags", "test", "ebbtide_run", "2026-11-20")
    assert "state=failed" in failed.stdout + failed.stderr


def test_dagster_runs_both_jobs_and_fails_where_ebbtide_does(tmp_path: Path, project: Path) -> None:
    placed = example("dagster/definitions.py", project, tmp_path)
    (tmp_path / "dagster").mkdir()
    known = environment("dagster", tmp_path, DAGSTER_HOME=str(tmp_path / "dagster"))

    def dagster(job: str) -> subprocess.CompletedProcess[str]:
        command = ["dagster", "job", "execute", "-f", str(placed), "-j", job]
        return subprocess.run(command, env=known, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    for name in JOBS:
        done = dagster(name)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert runs(project) == [("run", "finished")], "nobody is to be erased, which is no run"
    (project / "ebbtide.yml").write_text("no project: [")
    failed = dagster("ebbtide_run")
    assert failed.returncode != 0
    assert "run ended with 2" in failed.stdout + failed.stderr
