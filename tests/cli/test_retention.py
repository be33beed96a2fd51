"""mark, sweep, run, unmark and hold as a person mistypes them: one clear line each, and nothing done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ebbtide.cli import main
from ebbtide.cli.options import sure
from ebbtide.errors import RefusedError
from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake

POLICY = """
policies:
  - {name: old, select: {tables: ["**"]}, versions: {older_than: 30d}}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # The copy of the checkpoint lies beside the project, in a folder that no second project of this worker shares.
    root = tmp_path_factory.mktemp("retention") / "project"
    root.mkdir()
    SmallLake(root).create("payments", 2)
    (root / "ebbtide.yml").write_text(PROJECT + "ledger: {origin: example.org/acme, checkpoint: ../seen.txt}\n")
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(POLICY)
    assert ebbtide("scan", cwd=root).returncode == 0
    return root


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (["unmark", "lake.db.payments"], 2, "dataset#target:id"),
        (["unmark", "lake.db.payments#things:1", "--reason", "r"], 2, "unknown target"),
        (["unmark", "lake.db.payment#versions:1", "--reason", "r"], 2, "did you mean lake.db.payments"),
        (["unmark", "lake.db.payments#versions:1", "--reason", "r", "--until", "2001-01-01"], 2, "expired already"),
        (["unmark", "lake.db.payments#versions:1"], 2, "lake.db.payments has no versions 1"),
        (["unmark", "lake.db.payments#branches:mian", "--reason", "r"], 2, "did you mean main"),
        (["unmark", "lake.db.payments#versions:1", "--release"], 2, "not unmarked"),
        (["unmark", "lake.db.payments#versions:1", "--reason", "r", "--as-of", "2030-01-01"], 3, "clock: simulated"),
        (["hold", "add", "lake.db.paymens", "--owner", "o", "--reason", "r"], 2, "did you mean lake.db.payments"),
        (["hold", "add", "lake.db.payments", "--owner", " ", "--reason", "r"], 2, "owner and a reason"),
        (["hold", "add", "lake.db.payments", "--owner", "o", "--reason", "r", "--from", "soon"], 2, "2026-11-15"),
        (["hold", "add", "--subject", "@", "--owner", "o", "--reason", "r"], 2, "names no file"),
        (["erase", "find", "--subject", "@"], 2, "names no file"),
        (["hold", "release", "nobody"], 2, "there is no hold nobody"),
        (["sweep"], 3, "--yes"),
        (["run"], 3, "--yes"),
        (["mark", "--as-of", "2030-01-01"], 3, "clock: simulated"),
        (["run", "--every", "1h", "--dry-run", "--as-of", "2030-01-01"], 2, "--every"),
        (["run", "--every", "90", "--yes"], 2, "90"),
        (["mark", "--plan", "absent.json"], 2, "the plan absent.json cannot be read"),
        (["mark", "--max-share", "3"], 2, "max-share"),
    ],
)
def test_wrong_input_is_one_clear_line(project: Path, arguments: list[str], exit_code: int, said: str) -> None:
    done = ebbtide(*arguments, cwd=project)
    assert done.returncode == exit_code, done.stderr
    assert said in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("verb", ["plan", "mark", "sweep", "run"])
def test_a_guard_age_below_a_day_is_refused_unless_it_is_called_unsafe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    for name in ("classifiers", "policies"):
        (tmp_path / name).mkdir()
    (tmp_path / "classifiers" / "c.yml").write_text(
        "classifiers:\n  - {name: Team, kind: table, propagate: false, labels: [tag]}\n"
    )
    # The second mistake is the next that is found, and shows that the first one was let through.
    (tmp_path / "policies" / "p.yml").write_text(
        "policies:\n  - name: a\n    select: {any_labels: [Team.nobody]}\n    orphans: {older_than: 0d}\n"
    )

    def said(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["ebbtide", verb, "--project", str(tmp_path), *arguments])
        with pytest.raises(SystemExit) as ended:
            main.run()
        assert ended.value.code == 2
        out, err = capsys.readouterr()
        assert out == ""
        return err

    dry_run = [] if verb == "plan" else ["--dry-run"]
    refused, passed = said(*dry_run), said(*dry_run, "--unsafe")
    assert "p.yml:4: a guard age below a day" in refused
    assert "--unsafe" in refused
    assert "Team.nobody" in passed
    assert "guard age" not in passed


def test_a_hold_is_placed_listed_and_released(project: Path) -> None:
    dry = ebbtide(
        "hold", "add", "lake.db.payments", "--owner", "counsel", "--reason", "case 7", "--dry-run", cwd=project
    )
    assert (dry.returncode, dry.stdout) == (0, "")
    assert json.loads(ebbtide("hold", "list", "--json", cwd=project).stdout) == []
    args = (
        "hold",
        "add",
        "lake.db.payments",
        "--owner",
        "counsel",
        "--reason",
        "case 7",
        "--to",
        "2026-01-31",
        "--json",
    )
    placed = json.loads(ebbtide(*args, cwd=project).stdout)
    (listed,) = json.loads(ebbtide("hold", "list", "--json", cwd=project).stdout)
    assert (listed["id"], listed["owner"], listed["last_day"]) == (placed["id"], "counsel", "2026-01-31")
    assert ebbtide("hold", "release", placed["id"], cwd=project).returncode == 0
    assert json.loads(ebbtide("hold", "list", "--json", cwd=project).stdout) == []
    again = ebbtide("hold", "release", placed["id"], cwd=project)
    assert (again.returncode, "released already" in again.stderr) == (3, True)


def test_an_unmark_shows_in_history_and_its_reason_only_in_the_state(project: Path) -> None:
    told = json.loads(ebbtide("history", "lake.db.payments", "--json", cwd=project).stdout)
    first = told["branches"][0]["transactions"][0]["id"]
    name = f"lake.db.payments#versions:{first}"
    assert ebbtide("unmark", name, "--reason", "Ada Lovelace asked", cwd=project).returncode == 0
    told = json.loads(ebbtide("history", "lake.db.payments", "--json", cwd=project).stdout)
    assert told["branches"][0]["transactions"][0]["state"] == "unmarked"
    size = int(ebbtide("ledger", "checkpoint", cwd=project).stdout.splitlines()[1])
    entries = [ebbtide("ledger", "entry", str(index), cwd=project).stdout for index in range(size)]
    assert any("unmark.made" in entry for entry in entries)
    assert not any("Ada" in entry for entry in entries)
    assert ebbtide("unmark", name, "--release", cwd=project).returncode == 0
    # Rescuing takes one command, and nobody has to explain it.
    assert ebbtide("unmark", name, cwd=project).returncode == 0
    assert ebbtide("unmark", name, "--release", cwd=project).returncode == 0


def test_who_says_no_when_asked_removes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    with pytest.raises(RefusedError, match="nothing was removed"):
        sure(yes=False, dry_run=False)


@pytest.mark.parametrize(
    ("verb", "question"),
    [
        (["tier", "run"], "Drop chunks that are proven and past drop_after?"),
        (["tier", "drop", "public.m"], "Drop chunks that are proven and past drop_after?"),
        (["tier", "drop", "public.m", "--force"], "Drop chunks without any proof: rows may be lost?"),
        (["sweep"], "Remove what is marked and past its grace?"),
    ],
)
def test_what_is_asked_is_what_is_done(
    project: Path, monkeypatch: pytest.MonkeyPatch, verb: list[str], question: str
) -> None:
    asked: list[str] = []

    def no(text: str, **_: object) -> bool:
        asked.append(text)
        return False

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", no)
    monkeypatch.setattr("sys.argv", ["ebbtide", "--project", str(project / "ebbtide.yml"), *verb])
    with pytest.raises(SystemExit) as ended:
        main.run()
    assert (asked, ended.value.code) == ([question], 3)
