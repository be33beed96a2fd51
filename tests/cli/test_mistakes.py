"""What newcomers got wrong, each by name: one message that says what it is, where, what to do, and the right code."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ebbtide.formats.iceberg.discover import _BY_TYPE
from ebbtide.model.dataset import ICEBERG_CATALOGS
from tests.cli.command import cold, ebbtide
from tests.inventory.lakes import SmallLake

PROJECT = """\
project: acme
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
"""
POLICY = 'policies:\n  - {name: x, select: {tables: "**"}, versions: {older_than: 1d}, grace: 1d}\n'


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    made = SmallLake(tmp_path)
    for name in ("a", "b", "c"):
        made.create(name, 2)
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "p.yml").write_text(POLICY.replace('"**"', '["**"]'))
    assert ebbtide("scan", cwd=tmp_path).returncode == 0
    return made


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("- a\n- b\n", "ebbtide.yml:1: the file: it must be keys and values", "begins with `project:` and `catalogs:`"),
        (PROJECT + "tick: 1x\n", "ebbtide.yml:4: tick: not a time: '1x'", "such as 12h or 1d"),
        (PROJECT.replace("jdbc,", "jbdc,"), "ebbtide.yml:3: unknown type 'jbdc'", "did you mean 'jdbc'?"),
        (PROJECT + "  my-cat: {format: delta, warehouse: .}\n", "ebbtide.yml:4: catalog name 'my-cat'", "letters"),
        (PROJECT + "ignore:\n- {reason: r, dataset: lak.d.t}\n", "ebbtide.yml:5: ignore: no catalog 'lak'", "'lake'?"),
        (PROJECT + "state: postgresql://${NO_SUCH}/x\n", "ebbtide.yml:4: the environment variable NO_SUCH", "export"),
    ],
)
def test_a_wrong_project_is_wrong_input_on_its_line(tmp_path: Path, text: str, message: str, hint: str) -> None:
    (tmp_path / "ebbtide.yml").write_text(text)
    done = ebbtide("scan", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert hint in done.stderr
    assert "_Project" not in done.stderr


def test_a_pattern_that_is_no_list_is_shown_as_one(tmp_path: Path) -> None:
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "p.yml").write_text(POLICY)
    done = ebbtide("plan", cwd=tmp_path)
    assert done.returncode == 2
    assert 'p.yml:2: policies.0.select.tables: it must be a list\nhint: write ["**"]' in done.stderr


def test_the_types_that_a_project_may_name_are_those_that_can_be_listed() -> None:
    assert set(ICEBERG_CATALOGS) == set(_BY_TYPE)


def test_a_catalog_that_is_gone_is_told_once(lake: SmallLake) -> None:
    (lake.root / "catalog.db").rename(lake.root / "elsewhere.db")
    done = ebbtide("scan", cwd=lake.root)
    assert done.returncode == 4
    assert done.stderr.count("error: ") == done.stderr.count("no catalog database") == 1
    assert "its 3 datasets stay as they were read last" in done.stderr
    planned = ebbtide("plan", "--json", cwd=lake.root)
    assert planned.returncode == 4
    (told,) = json.loads(planned.stdout)["unread"]
    assert told.startswith("lake: no catalog database at ")


def test_a_dataset_that_cannot_be_read_is_not_counted_as_read(lake: SmallLake) -> None:
    lake.metadata_file("b").unlink()
    done = ebbtide("scan", "--full", "--json", cwd=lake.root)
    assert done.returncode == 4
    assert json.loads(done.stdout)["read"] == ["lake.db.a", "lake.db.c"]
    assert "3 datasets: 2 read, 0 not changed, 1 cannot be read, 1 errors" in done.stderr


def test_a_state_that_does_not_answer_or_is_no_database_has_a_hint_of_its_own(lake: SmallLake) -> None:
    project = lake.root / "ebbtide.yml"
    project.write_text(PROJECT + "state: postgresql://bob:hunter2@127.0.0.1:1/x\n")
    done = ebbtide("hold", "list", cwd=lake.root)
    assert done.returncode == 4
    assert "the state in PostgreSQL failed: the server refused the connection" in done.stderr
    assert "check `state:`" in done.stderr
    assert not [word for word in ("bob", "hunter2", "127.0.0.1") if word in done.stderr]
    project.write_text(PROJECT)
    (lake.root / ".ebbtide" / "state.db").write_bytes(b"no database" * 1000)
    done = ebbtide("hold", "list", cwd=lake.root)
    assert done.returncode == 4
    assert "bring back a backup and run `ebbtide ledger audit`" in done.stderr
    assert "runs list" not in done.stderr


def test_who_waits_for_a_locked_state_is_told_what_for_while_waiting(lake: SmallLake) -> None:
    arguments = ("hold", "add", "lake.db.a", "--owner", "counsel", "--reason", "suit")
    assert ebbtide(*arguments, cwd=lake.root).returncode == 0
    other = sqlite3.connect(lake.root / ".ebbtide" / "state.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    command = [sys.executable, "-m", "ebbtide.cli.main", *arguments]
    waiting = subprocess.Popen(command, cwd=lake.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert waiting.stderr is not None
    # It is let go by what it says, not after a time.
    said = waiting.stderr.readline()
    assert "another process writes to the state at " in said
    assert "`ebbtide runs list` shows which" in said
    assert "waiting up to 30 s" in said
    assert waiting.poll() is None
    other.close()
    _, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, err) == (0, "held until somebody releases it\n")


def test_a_place_that_cannot_be_written_is_named(lake: SmallLake) -> None:
    # A file where a folder should be is refused to everybody, root included.
    (lake.root / "full").write_text("")
    for arguments in (("plan", "-o", "full/p.json"), ("init", "--project", "full/new"), ("demo", "full/demo")):
        done = ebbtide(*arguments, cwd=lake.root)
        assert done.returncode == 2, done.stderr
        assert "cannot be written: " in done.stderr
    (lake.root / "ebbtide.yml").write_text(PROJECT + "inventory: full/inventory\n")
    done = ebbtide("scan", cwd=lake.root)
    assert done.returncode == 4
    assert "full/inventory cannot be written: " in done.stderr
    assert "set `inventory:`" in done.stderr


def test_a_plan_file_that_is_not_there_is_not_called_a_broken_one(lake: SmallLake) -> None:
    done = ebbtide("mark", "--plan", "none.json", cwd=lake.root)
    assert done.returncode == 2
    assert "the plan none.json cannot be read: No such file or directory" in done.stderr
    (lake.root / "other.json").write_text("{}")
    assert "other.json is not a plan" in ebbtide("mark", "--plan", "other.json", cwd=lake.root).stderr


def test_debugging_shows_where_an_internal_error_came_from_and_ends_with_its_code(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lake.root / ".ebbtide" / "inventory" / "CURRENT").write_text("[]")
    assert "Traceback" not in (said := ebbtide("tables", cwd=lake.root)).stderr
    monkeypatch.setenv("EBBTIDE_DEBUG", "1")
    shown = cold("tables", cwd=lake.root)
    assert said.returncode == shown.returncode == 4
    assert "Traceback" in shown.stderr


def test_a_row_of_the_ledger_that_somebody_changed_is_a_false_proof(lake: SmallLake) -> None:
    (lake.root / "ebbtide.yml").write_text(PROJECT + "ledger: {origin: example.org/a, checkpoint: ./checkpoint}\n")
    assert ebbtide("ledger", "init", cwd=lake.root).returncode == 0
    with sqlite3.connect(lake.root / ".ebbtide" / "state.db") as state:  # what a person types makes a text of the bytes
        state.execute("UPDATE ledger_entries SET body = replace(body, 'example.org', 'evil.org')")
    for verb in (("entry", "0"), ("prove", "0"), ("audit",)):
        done = ebbtide("ledger", *verb, cwd=lake.root)
        assert (done.returncode, done.stdout) == (1, ""), done.stderr
        assert "body of entry 0: expected leaf hash" in done.stderr


def test_metadata_that_was_changed_in_place_is_found_by_who_asks(lake: SmallLake) -> None:
    assert ebbtide("scan", "--verify", cwd=lake.root).returncode == 0
    file = lake.metadata_file("b")
    file.write_text(json.dumps({**json.loads(file.read_text()), "properties": {"owner": "somebody else"}}))
    assert json.loads(ebbtide("scan", "--json", cwd=lake.root).stdout)["read"] == []
    done = ebbtide("scan", "--verify", "--json", cwd=lake.root)
    assert done.returncode == 1
    assert json.loads(done.stdout)["changed_in_place"] == ["lake.db.b"]
    assert "lake.db.b: its metadata was changed in place" in done.stderr
    assert ebbtide("scan", "--verify", cwd=lake.root).returncode == 0
    lake.append("b", 9)
    assert ebbtide("scan", "--verify", cwd=lake.root).returncode == 0
