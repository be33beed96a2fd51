"""Ctrl-C, SIGTERM and `runs cancel`: one line, the exit code, a run that says how it ended, and a free lease."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ebbtide.state.database import Database
from ebbtide.state.values import RunRecord
from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT
from tests.cli.test_retention import POLICY
from tests.inventory.lakes import SmallLake
from tests.tiers import deep_after_first

CHILD = """\
import functools, importlib, os, sys, time
module, _, way = os.environ["AT"].partition(":")
*outer, name = way.split(".")
owner = functools.reduce(getattr, outer, importlib.import_module(module))
real = getattr(owner, name)

def signalled(*args, **kwargs):
    os.kill(os.getpid(), int(os.environ["SIGNAL"]))
    return real(*args, **kwargs)

def waiting(*args, **kwargs):
    from ebbtide.cli import running
    open(os.environ["HERE"], "w").close()
    while not running._cancellation.requested:
        time.sleep(0.05)
    return real(*args, **kwargs)

setattr(owner, name, signalled if "SIGNAL" in os.environ else waiting)
from ebbtide.cli.main import run
run()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    SmallLake(root).create("payments", 2)
    (root / "ebbtide.yml").write_text(PROJECT + "ledger: {origin: example.org/acme, checkpoint: ../seen.txt}\n")
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(POLICY)
    return root


def _child(project: Path, *arguments: str, at: str, **more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, *arguments]
    env = {**os.environ, "COLUMNS": "200", "AT": at, **more}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=project, env=env, stdout=pipe, stderr=pipe, text=True)


def _but_progress(err: str) -> list[str]:
    """What a person is told at the end: on a machine with other work a plan says that it still goes on."""
    return [line for line in err.splitlines() if not line.endswith("s so far")]


def _runs(project: Path) -> tuple[RunRecord, ...]:
    database = Database(f"sqlite:///{project}/.ebbtide/state.db")
    with database.reader() as state:
        lease = state.lease()
        assert lease is None or lease.released_at is not None, "the lease was not given back"
        found = state.runs()
    database.close()
    return found


@pytest.mark.parametrize(
    ("at", "number", "exit_code", "said"),
    deep_after_first(
        ("ebbtide.inventory.scan:read_all", signal.SIGTERM, 143, "terminated"),
        ("ebbtide.app.mark:mark_round", signal.SIGINT, 130, "interrupted"),
        ("ebbtide.app.round:read_inputs", signal.SIGINT, 130, "interrupted"),
        ("ebbtide.app.mark:plan_round", signal.SIGTERM, 143, "terminated"),
        first=2,
    ),
)
def test_a_signal_ends_a_mark_with_one_line_and_gives_back_the_lease(
    project: Path, at: str, number: signal.Signals, exit_code: int, said: str
) -> None:
    child = _child(project, "mark", at=at, SIGNAL=str(int(number)))
    out, err = child.communicate(timeout=60)
    assert child.returncode == exit_code, err
    assert _but_progress(err) == [f"error: {said}: nothing is half done; the next run goes on from here"]
    assert out == ""
    (run,) = _runs(project)
    assert (run.verb, run.exit_code, run.summary) == ("mark", exit_code, said)
    after = ebbtide("mark", cwd=project)
    assert after.returncode == 0, after.stderr
    assert [run.exit_code for run in _runs(project)] == [exit_code, 0]


WRITES = {
    "hold": ("hold", "add", "lake.db.payments", "--owner", "counsel", "--reason", "case 7"),
    "erase request": ("erase", "request", "--subject", "@person.txt", "--law", "gdpr"),
    "ledger rotate": ("ledger", "rotate"),
}
"""Verbs that write in one transaction, and need neither a lease nor a scan."""


@pytest.fixture
def marked(project: Path) -> Path:
    """Marked once, so that the state and the ledger are there."""
    (project / "subjects.yml").write_text("subjects:\n  user_id: {columns: [lake.db.payments.id]}\n")
    (project / "person.txt").write_text("user_id=8841302007\n")
    assert ebbtide("mark", cwd=project).returncode == 0
    return project


def _written(project: Path) -> int:
    """How many entries the ledger has; it is whole, and the state says the same."""
    done = ebbtide("ledger", "audit", "--json", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["unsigned"] == 0
    return int(told["entries"])


@pytest.mark.parametrize("verb", deep_after_first(*WRITES))
def test_a_signal_ends_a_verb_that_writes_before_it_wrote_anything_or_after_all_of_it(marked: Path, verb: str) -> None:
    before = _written(marked)
    child = _child(marked, *WRITES[verb], at="ebbtide.ledger.ledger:Ledger.writing", SIGNAL=str(int(signal.SIGTERM)))
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (143, ""), err
    assert err == "error: terminated: nothing is half done; the next run goes on from here\n"
    assert _written(marked) == before

    child = _child(marked, *WRITES[verb], at="ebbtide.ledger.log:LedgerLog.append", SIGNAL=str(int(signal.SIGINT)))
    _, err = child.communicate(timeout=60)
    assert "Traceback" not in err
    assert child.returncode == (130 if verb == "erase request" else 0), "one has a boundary after each batch"
    assert _written(marked) > before, "what was begun is written, signed and told"


def test_a_signal_between_two_rounds_ends_them(project: Path) -> None:
    child = _child(project, "run", "--every", "1h", "--yes", at="time:sleep", SIGNAL=str(int(signal.SIGTERM)))
    _, err = child.communicate(timeout=60)
    assert child.returncode == 143, err
    assert "error: terminated" in err
    assert [run.exit_code for run in _runs(project)] == [0], "the round before it was whole"


def test_a_run_can_be_watched_and_stopped_from_another_process(project: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    child = _child(project, "mark", at="ebbtide.app.round:read_inputs", HERE=str(here), EBBTIDE_ACTOR="ada")
    while not here.exists():
        assert child.poll() is None, child.communicate()
        time.sleep(0.05)
    listed = ebbtide("runs", "list", "--json", cwd=project)
    (run,) = json.loads(listed.stdout)
    assert (run["verb"], run["actor"], run["state"], run["exit_code"]) == ("mark", "ada", "running", None)
    done = ebbtide("runs", "cancel", run["id"], cwd=project)
    assert done.returncode == 0, done.stderr
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert "error: cancelled by " in err
    (ended,) = _runs(project)
    assert (ended.exit_code, ended.step) == (130, "planning")
    assert ebbtide("runs", "cancel", run["id"], cwd=project).returncode == 3
    shown = ebbtide("runs", "list", cwd=project)
    assert "exit 130" in shown.stdout


def test_a_run_that_is_refused_says_so_too(project: Path) -> None:
    assert ebbtide("mark", "--plan", "absent.json", cwd=project).returncode == 2
    (run,) = _runs(project)
    assert run.exit_code == 2
    assert "the plan absent.json cannot be read" in (run.summary or "")


def test_a_scan_is_a_run_where_there_is_a_state_and_makes_none(project: Path) -> None:
    assert ebbtide("scan", cwd=project).returncode == 0
    assert not (project / ".ebbtide" / "state.db").exists()
    assert ebbtide("mark", cwd=project).returncode == 0
    assert ebbtide("scan", cwd=project).returncode == 0
    assert [(run.verb, run.fence) for run in _runs(project)] == [("scan", 0), ("mark", 1)]


def test_there_is_no_run_that_nobody_began(project: Path) -> None:
    done = ebbtide("runs", "cancel", "nobody", cwd=project)
    assert (done.returncode, "there is no run nobody" in done.stderr) == (2, True)
    assert not (project / ".ebbtide" / "state.db").exists()
