"""A person who is nowhere ends certified with grade A, and others check it; one who is there ends as found."""

from __future__ import annotations

import json
import os
from pathlib import Path
from subprocess import CompletedProcess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command import ebbtide
from tests.erasure.test_erase_request import PROJECT, SUBJECTS
from tests.inventory.lakes import SmallLake

NOWHERE, THERE = 8841302, 88413020
"""The first is a part of the second's digits, and in no row."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("story")
    lake = SmallLake(root)
    lake.create("users", 3)
    lake.tables.load_table("db.users").append(pa.table({"id": [THERE], "name": ["y"]}))
    (root / "ebbtide.yml").write_text(PROJECT)
    (root / "subjects.yml").write_text(SUBJECTS)
    assert ebbtide("scan", cwd=root).returncode == 0
    return root


def ask(root: Path, person: int) -> str:
    (root / "person.txt").write_text(f"user_id={person}\n")
    done = ebbtide("erase", "request", "--subject", "@person.txt", "--law", "gdpr", "--json", cwd=root)
    assert done.returncode == 0, done.stderr
    found: str = json.loads(done.stdout)["id"]
    return found


def state(root: Path, request: str) -> tuple[str, list[tuple[str, str, str]]]:
    found = json.loads(ebbtide("erase", "status", request, "--json", cwd=root).stdout)
    return found["state"], [(step["place"], step["kind"], step["state"]) for step in found["steps"]]


def test_who_is_nowhere_ends_certified_and_the_certificate_holds_for_others(root: Path) -> None:
    request = ask(root, NOWHERE)
    tried = ebbtide("erase", "verify", request, "--dry-run", cwd=root)
    assert (tried.returncode, state(root, request)) == (0, ("received", []))
    early = ebbtide("erase", "certificate", request, "-o", "early.json", cwd=root)
    assert early.returncode == 3
    assert not (root / "early.json").exists()
    assert not (root / "opening.json").exists()

    verified = ebbtide("erase", "verify", request, "--json", cwd=root)
    found = json.loads(verified.stdout)
    assert (verified.returncode, found["grade"], found["found"], found["cannot_tell"]) == (0, "A", [], [])
    assert found["files"] > 20
    assert state(root, request) == ("verified", [("everywhere", "search", "clean")])

    over = ebbtide("erase", "certificate", request, "-o", "person.txt", cwd=root)
    assert (over.returncode, (root / "person.txt").read_text()) == (2, f"user_id={NOWHERE}\n")
    done = ebbtide("erase", "certificate", request, "-o", "certificate.json", "--json", cwd=root)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "certified"
    opening = json.loads((root / "opening.json").read_text())
    assert opening["identifiers"] == [{"type": "user_id", "value": str(NOWHERE)}]
    assert opening["searches"][0]["inventory"] == found["inventory"]
    assert (root / "opening.json").stat().st_mode & 0o777 == 0o600
    assert str(NOWHERE) not in (root / "certificate.json").read_text()
    _check(root)
    # What was closed is forgotten, and its certificate is written again as often as it is asked for.
    again = ebbtide("erase", "certificate", request, "-o", "again/c.json", cwd=root)
    assert (again.returncode, "cannot be written" in again.stderr) == (2, True)
    (root / "again").mkdir()
    again = ebbtide("erase", "certificate", request, "-o", "again/c.json", "--json", cwd=root)
    assert json.loads(again.stdout)["opening"] is None
    assert ebbtide("erase", "find", request, cwd=root).returncode == 3
    assert ebbtide("ledger", "audit", cwd=root).returncode == 0


def _check(root: Path) -> None:
    key = ebbtide("ledger", "key", "--all", cwd=root)
    (root / "keys").write_text(key.stdout)
    away = root / "elsewhere"
    away.mkdir()
    os.link(root / "certificate.json", away / "certificate.json")
    checked: CompletedProcess[str] = ebbtide("ledger", "check", "certificate.json", "--key", "../keys", cwd=away)
    assert checked.returncode == 0, checked.stderr
    assert "certificate.json holds" in checked.stdout + checked.stderr


def test_who_is_there_is_found_and_not_certified(root: Path) -> None:
    request = ask(root, THERE)
    verified = ebbtide("erase", "verify", request, "--json", cwd=root)
    found = json.loads(verified.stdout)
    assert (verified.returncode, found["grade"]) == (1, "F")
    assert {each["how"] for each in found["found"]} == {"row", "bound"}
    assert state(root, request) == (
        "received",
        [("lake.db.users", "dataset", "found"), ("everywhere", "search", "found")],
    )
    done = ebbtide("erase", "certificate", request, "-o", "never.json", cwd=root)
    assert done.returncode == 3
    assert not (root / "never.json").exists()
    shown = ebbtide("erase", "verify", request, cwd=root)
    assert shown.returncode == 1
    assert str(THERE) not in verified.stdout + verified.stderr + shown.stdout + shown.stderr + done.stderr


def test_an_unknown_request_is_told(root: Path) -> None:
    for verb in (("verify", "0123"), ("status", "0123"), ("find", "0123"), ("certificate", "0123", "-o", "x.json")):
        done = ebbtide("erase", *verb, cwd=root)
        assert (done.returncode, "there is no request 0123" in done.stderr) == (2, True), done.stderr


def test_files_that_a_table_has_elsewhere_were_not_read_and_are_told(root: Path) -> None:
    lake = SmallLake(root)
    lake.create("borrower", 1)
    (root / "others").mkdir()
    pq.write_table(pa.table({"id": [NOWHERE], "name": ["z"]}), root / "others" / "f.parquet")
    lake.tables.load_table("db.borrower").add_files([f"file://{root}/others/f.parquet"])
    # Its numbers stand in bounds of the manifest as well: somebody else is asked for, whom no bound tells.
    done = ebbtide("erase", "verify", ask(root, NOWHERE * 100), "--dry-run", "--json", cwd=root)
    told = json.loads(done.stdout)
    assert (done.returncode, told["grade"]) == (0, "B"), done.stderr
    assert told["cannot_tell"] == [
        {
            "path": "lake.db.borrower",
            "because": "it references files outside of all that was read: a clone, or files of others",
        }
    ]
