"""Budgets of the suite itself: what a run's durations are compared with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.budgets import SESSION, Run, compare, main, table

ROOT = Path(__file__).parents[2]
CONFTEST = """
import time

import pytest

from tests.conftest import pytest_addoption, pytest_configure


@pytest.fixture(scope="session")
def spark():
    time.sleep(0.4)
"""
SLEEPS = """
import time


def test_one():
    time.sleep(0.3)


def test_two():
    time.sleep(0.2)
"""
BUDGETS = {"pace": 0.5, "test-lake": {"sweep": 10}}


def run_pytest(folder: Path, *options: str) -> Run:
    """A real run of three files in two folders, and what it left in its cache."""
    files = {
        "conftest.py": CONFTEST,
        "quick/test_a.py": SLEEPS,
        "slow/test_b.py": SLEEPS,
        "slow/test_c.py": "def test_three(spark):\n    pass\n",
        "pytest.ini": "[pytest]\n",
    }
    for name, text in files.items():
        path = folder / "own" / name if name != "pytest.ini" else folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(folder), "--timed-as", "test-x", *options, "own"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout + done.stderr
    return Run.load(folder / ".pytest_cache/d/durations/test-x.json")


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_tells_the_seconds_of_each_folder_over_all_workers(tmp_path: Path, workers: str) -> None:
    run = run_pytest(tmp_path, "-n", workers)
    assert run.seconds.keys() == {"quick", "slow", SESSION}
    assert run.seconds["quick"] >= 0.5
    assert run.seconds["slow"] >= 0.5
    assert run.seconds[SESSION] >= 0.4
    assert run.pace > 0


def test_a_folder_may_take_twice_its_budget_and_no_more() -> None:
    for seconds, too_much in ((20.0, False), (20.1, True)):
        (line,) = compare(BUDGETS, {"test-lake": Run({"sweep": seconds}, pace=0.5)})
        assert line.too_much is too_much


def test_a_slow_machine_is_forgiven_and_a_quick_one_hides_nothing() -> None:
    (slow,) = compare(BUDGETS, {"test-lake": Run({"sweep": 39.0}, pace=1.0)})
    assert (slow.adjusted, slow.too_much) == (19.5, False)
    (quick,) = compare(BUDGETS, {"test-lake": Run({"sweep": 11.0}, pace=0.25)})
    assert (quick.adjusted, quick.too_much) == (22.0, True)


def test_a_folder_without_a_budget_is_too_much() -> None:
    (line,) = compare(BUDGETS, {"test-lake": Run({"erasure": 0.1}, pace=0.5)})
    assert line.too_much
    assert "none  too much" in table([line])


def test_several_runs_are_compared_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    budgets = tmp_path / "budgets.toml"
    budgets.write_text("pace = 0.5\n[test-fast]\nmodel = 1\n[test-lake]\nsweep = 10\n")
    for name, folder in (("test-fast", "model"), ("test-lake", "sweep")):
        (tmp_path / f"{name}.json").write_text(f'{{"seconds": {{"{folder}": 9}}, "pace": 0.5}}')
    assert main(["test-lake"], tmp_path, budgets) == 0
    assert main(["test-fast", "test-lake"], tmp_path, budgets) == 1
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["test-fast", "model", "9", "9", "1", "too", "much"] in shown
    assert ["test-lake", "all", "9", "9", "10"] in shown
    assert main(["test-lake", "test-deep"], tmp_path, budgets) == 1
    assert capsys.readouterr().out == "no durations of test-deep: run `make test-deep` first\n"
