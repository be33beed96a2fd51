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
        (PROJECT + "state: mysql://x/y\n", "ebbtide.yml:4: the state cannot live in mysql", "postgresql://"),
        (PROJECT + "state: hunter2\n", "ebbtide.yml:4: state: not an address of a state", "postgresql://"),
        (PROJECT.replace(', uri: "jdbc:sqlite:catalog.db"', ""), "ebbtide.yml:3: 'uri' of an Iceberg", "jdbc:sqlite"),
        (PROJECT + "limits: {max_share: 30}\n", "ebbtide.yml:4: limits.max_share: it must be 1", "0.3 for 30 %"),
        (PROJECT + "limits: {max_share: 300}\n", "ebbtide.yml:4: limits.max_share: it must be 1", "write 1.0 or less"),
        (PROJECT + "limits: {max_share: many}\n", "limits.max_share: it must be a number", "write a number"),
        (PROJECT + "limits: {max_objects: 2.5}\n", "limits.max_objects: it must be a whole number", "a whole number"),
        (PROJECT + "limits: {max_objects: -1}\n", "limits.max_objects: it must be 0 or more", "write 0 or more"),
        (PROJECT + "clock: sundial\n", "clock: it must be 'real' or 'simulated'", "write 'real' or 'simulated'"),
        (PROJECT.replace("acme", "[acme]"), "ebbtide.yml:1: project: it must be a text", "write a text"),
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
    assert said.startswith("warning: another process"), "as a verb says it, not as a log does"
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
    # Python runs this before anything else: a fault that nobody foresaw.
    (lake.root / "faults").mkdir()
    broken = "import ebbtide.app.tables\nebbtide.app.tables.list_tables = lambda project: 1 // 0\n"
    (lake.root / "faults" / "sitecustomize.py").write_text(broken)
    monkeypatch.setenv("PYTHONPATH", str(lake.root / "faults"))
    said = cold("tables", cwd=lake.root)
    assert "internal error: ZeroDivisionError" in said.stderr
    assert "Traceback" not in said.stderr
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


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A project that nobody scanned yet."""
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    return tmp_path


def test_an_inventory_that_is_broken_is_named_with_what_is_lost_and_never_removed(lake: SmallLake) -> None:
    pointer = lake.root / ".ebbtide" / "inventory" / "CURRENT"
    for text in ("[]", "{", "{}", '{"layout": 4, "entries": 7}', '{"layout": 4, "entries": "gone"}'):
        pointer.write_text(text)
        for verb in ("tables", "scan", "plan"):
            done = ebbtide(verb, cwd=lake.root)
            assert (done.returncode, done.stdout) == (4, ""), (text, verb)
            assert f"error: {pointer}: " in done.stderr
            assert "move it away and run `ebbtide scan`" in done.stderr
            assert "internal error" not in done.stderr
        assert pointer.read_text() == text


def test_a_label_of_a_table_or_column_that_is_none_is_a_warning_of_every_verb_that_goes_by_labels(
    lake: SmallLake,
) -> None:
    for folder, text in (
        ("classifiers", "classifiers:\n  - {name: PII, kind: column, propagate: true, labels: [tag]}\n"),
        ("tables", "tables:\n  - {name: lake.db.aa, columns: {id: [PII.tag]}}\n"
                   "  - {name: lake.db.b, columns: {mail: [PII.tag]}}\n"),
    ):  # fmt: skip
        (lake.root / folder).mkdir()
        (lake.root / folder / "pii.yml").write_text(text)
    verbs = (("scan",), ("plan",), ("mark",), ("mark", "--dry-run"), ("labels",))
    for verb in verbs:
        done = ebbtide(*verb, cwd=lake.root)
        assert done.returncode == 0, done.stderr
        assert "tables/pii.yml:2: no catalog has lake.db.aa" in done.stderr
        assert "tables/pii.yml:3: lake.db.b has no column 'mail'" in done.stderr
        assert "warning: " in done.stderr
        assert "error: " not in done.stderr
    assert len(json.loads(ebbtide("scan", "--json", cwd=lake.root).stdout)["warnings"]) == 2


def test_what_a_broken_dataset_had_before_is_shown_with_a_warning(lake: SmallLake) -> None:
    lake.metadata_file("b").unlink()
    assert ebbtide("scan", "--full", cwd=lake.root).returncode == 4
    done = ebbtide("history", "lake.db.b", cwd=lake.root)
    assert done.returncode == 0
    assert "warning: " in done.stderr
    assert "error: " not in done.stderr


@pytest.mark.parametrize(
    ("verb", "listed_by"),
    [
        (("erase", "status", "1"), "`ebbtide erase list`"),
        (("runs", "cancel", "3"), "`ebbtide runs list`"),
        (("hold", "release", "x"), "`ebbtide hold list`"),
    ],
    ids=str,
)
def test_an_id_that_is_none_is_told_with_the_verb_that_lists_such_ids(
    bare: Path, verb: tuple[str, ...], listed_by: str
) -> None:
    done = ebbtide(*verb, cwd=bare)
    assert done.returncode == 2
    assert listed_by in done.stderr


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        (("run", "--every", "1x"), "not a duration: '1x'"),
        (("run", "--every", "1m"), "m could be minutes or months here"),
        (("run", "--every", "0h"), "is no time"),
        (("run", "--every", "1h", "--as-of", "2100-01-01"), "by the real clock"),
        (("run", "--as-of", "yesterday"), "not a time: 'yesterday'"),
        (("sweep", "--as-of", "yesterday"), "not a time: 'yesterday'"),
        (("erase", "run", "--as-of", "yesterday"), "not a time: 'yesterday'"),
        (("tier", "run", "--as-of", "yesterday"), "not a time: 'yesterday'"),
        (("tier", "drop", "public.t", "--as-of", "yesterday"), "not a time: 'yesterday'"),
    ],
    ids=str,
)
def test_what_is_wrong_is_told_before_anybody_is_asked(bare: Path, verb: tuple[str, ...], message: str) -> None:
    done = ebbtide(*verb, cwd=bare)
    assert done.returncode == 2
    assert message in done.stderr
    assert "nobody is there to ask" not in done.stderr


def test_a_client_that_is_not_installed_is_named_with_what_installs_it(tmp_path: Path) -> None:
    settings = "{format: iceberg, type: hive, uri: 'thrift://127.0.0.1:1', warehouse: ./lake}"
    (tmp_path / "ebbtide.yml").write_text(f"project: acme\ncatalogs:\n  lake: {settings}\n")
    done = ebbtide("scan", cwd=tmp_path)
    assert done.returncode == 4
    assert "lake: the client of `type: hive` is not installed" in done.stderr
    assert "pip install 'pyiceberg[hive]'" in done.stderr


def test_orphans_of_a_catalog_that_is_gone_name_it_once(lake: SmallLake) -> None:
    (lake.root / "catalog.db").rename(lake.root / "elsewhere.db")
    done = ebbtide("orphans", "list", cwd=lake.root)
    assert done.returncode == 4
    assert "error: lake: no catalog database" in done.stderr
    assert "lake: lake:" not in done.stderr


def test_a_new_project_is_told_what_comes_next_with_a_pack_or_without(tmp_path: Path) -> None:
    for arguments in ((), ("--pack", "gdpr")):
        done = ebbtide("init", *arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stderr.splitlines()[-1].startswith("next: ")
    assert "`ebbtide classify --suggest`" in done.stderr


LISTS = (
    ("runs", "list"), ("hold", "list"), ("marks",), ("unmarks",), ("erase", "list"), ("tier", "status"),
    ("tier", "sync"), ("tier", "run", "--dry-run"), ("contract", "check"), ("contract", "repair"),
    ("contract", "create"), ("orphans", "list"),
)  # fmt: skip


def test_a_list_of_nothing_says_that_there_is_nothing(lake: SmallLake) -> None:
    for verb in LISTS:
        done = ebbtide(*verb, cwd=lake.root)
        assert (done.returncode, done.stdout) == (0, ""), (verb, done.stderr)
        assert [word for word in ("none", "0 marked", "0 unmarked", "no table of") if word in done.stderr], verb
        data = ebbtide(*verb, "--json", cwd=lake.root)
        assert json.loads(data.stdout) is not None, verb
