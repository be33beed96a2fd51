"""The command line as its users meet it: exit codes, hints, and nothing but data on stdout."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ebbtide.cli import commands
from tests.cli.command import cold, ebbtide
from tests.inventory.lakes import SmallLake

PROJECT = """\
project: acme
catalogs:
  lake: {format: iceberg, type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: ./lake}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    lake = SmallLake(root)
    lake.create("payments", 3)
    lake.create("with.dot", 1)
    (root / "ebbtide.yml").write_text(PROJECT)
    done = cold("scan", cwd=root)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return root


def test_scan_json_tells_what_was_read(project: Path) -> None:
    done = ebbtide("scan", "--full", "--json", cwd=project)
    told = json.loads(done.stdout)
    assert told["read"] == ["lake.db.payments", "lake.db.with%2Edot"]
    assert told["datasets"] == 2
    assert told["errors"] == []
    assert json.loads(ebbtide("scan", "--json", cwd=project).stdout)["read"] == []


def test_tables_lists_every_dataset(project: Path) -> None:
    rows = json.loads(ebbtide("tables", "--json", cwd=project).stdout)
    first = rows[0]
    assert [row["table_id"] for row in rows] == ["lake.db.payments", "lake.db.with%2Edot"]
    assert (first["transactions"], first["data_files"], first["rows"], first["branches"]) == (3, 3, 3, 1)
    assert first["last_commit"].endswith("Z")
    people = ebbtide("tables", cwd=project)
    assert "lake.db.payments" in people.stdout
    assert "KiB" in people.stdout


def test_history_has_the_promised_shape(project: Path) -> None:
    told = json.loads(ebbtide("history", "lake.db.payments", "--json", cwd=project).stdout)
    assert told["dataset"] == "lake.db.payments"
    assert told["unreachable"] == []
    (main,) = told["branches"]
    assert main["name"] == "main"
    assert main["view_start"] == main["transactions"][0]["id"]
    for transaction in main["transactions"]:
        assert isinstance(transaction["id"], str)
        assert transaction["kind"] == "APPEND"
        assert transaction["state"] == "live"
        assert transaction["in_latest_view"] is True
        assert transaction["carried_into"] == []
        assert transaction["committed_at"].endswith("Z")
    assert "APPEND" in ebbtide("history", "lake.db.payments", cwd=project).stdout


def test_a_name_with_a_dot_is_written_encoded(project: Path) -> None:
    assert ebbtide("history", "lake.db.with%2Edot", "--json", cwd=project).returncode == 0


def test_the_project_can_be_named_before_or_after_the_verb(project: Path, tmp_path: Path) -> None:
    assert ebbtide("--project", str(project), "tables", cwd=tmp_path).returncode == 0
    assert ebbtide("tables", "--project", str(project / "ebbtide.yml"), cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["history", "lake.db.paymets"], "no dataset lake.db.paymets", "did you mean lake.db.payments?"),
        (["history", "payments"], "not a dataset", "catalog.namespace.table"),
        (["history"], "Missing argument", ""),
        (["tabels"], "No such command", "'tables'"),
        (["--project", "tables", "plan"], "no such file", "ebbtide init"),
        (["tables", "--project", "nowhere.yml"], "no such file", "ebbtide init"),
        (["scan", "--as-of", "2026-01-01"], "No such option", ""),
    ],
)
def test_wrong_input_exits_2_with_one_clear_message(
    project: Path, arguments: list[str], message: str, hint: str
) -> None:
    done = ebbtide(*arguments, cwd=project)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert hint in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_yaml_error_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "ebbtide.yml").write_text("project: x\ncatalogs: {lake: {format: icebreg, warehouse: w}}\n")
    done = ebbtide("scan", cwd=tmp_path)
    assert done.returncode == 2
    assert "ebbtide.yml:2: unknown format 'icebreg'" in done.stderr.replace("\n", "")
    assert "did you mean 'iceberg'?" in done.stderr


def test_every_text_of_others_is_escaped_by_one_function() -> None:
    """`rich` lets escape codes through, and its own `escape` is about markup only."""
    doors = Path(commands.__file__).parent
    assert [path.name for path in sorted(doors.glob("*.py")) if "rich.markup" in path.read_text()] == ["render.py"]


def test_verbs_before_the_first_scan_say_so(tmp_path: Path) -> None:
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    done = ebbtide("tables", cwd=tmp_path)
    assert done.returncode == 2
    assert "run `ebbtide scan`" in done.stderr


ODD, SEEN = "a\x1b[31m\n[b]\u202eb\x9bc\U000e0041", r"a\x1b[31m\n[b]\u202eb\x9bc\U000e0041"
"""A name with all that a terminal obeys, and how it is shown."""


def test_what_cannot_be_read_is_told_and_scan_exits_4_after_the_rest(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path)
    lake.create("good")
    lake.create("bad")
    lake.create(ODD, location=f"file://{tmp_path}/lake/odd")
    for broken in ("bad", ODD):
        lake.metadata_file(broken).unlink()
    text = PROJECT + "  gone: {format: iceberg, type: hadoop, warehouse: ./gone}\n  cat: {format: iceberg, type: jdbc, "
    (tmp_path / "ebbtide.yml").write_text(text + 'uri: "jdbc:sqlite:none.db", warehouse: ./none}\n')
    done = ebbtide("scan", "--json", cwd=tmp_path)
    assert done.returncode == 4
    told = json.loads(done.stdout)
    assert [(e["catalog"], e["table_id"]) for e in told["errors"]] == [
        ("gone", None), ("cat", None), ("lake", f"lake.db.{ODD}"), ("lake", "lake.db.bad"),
    ]  # fmt: skip
    assert all(e["hint"] for e in told["errors"])
    assert "Traceback" not in done.stderr
    rows = json.loads(ebbtide("tables", "--json", cwd=tmp_path).stdout)
    assert {row["table_id"]: bool(row["error"]) for row in rows} == {
        "lake.db.good": False, "lake.db.bad": True, f"lake.db.{ODD}": True,
    }  # fmt: skip
    seen = ebbtide("tables", cwd=tmp_path)
    assert f"lake.db.{SEEN} " in seen.stdout
    assert f"lake.db.{SEEN}: " in done.stderr
    for text in (done.stdout, done.stderr, seen.stdout, seen.stderr):
        assert not [letter for letter in text if not letter.isprintable() and letter != "\n"]
    done = ebbtide("history", "lake.db.bad", cwd=tmp_path)
    assert done.returncode == 4
    assert "is missing" in done.stderr


def test_init_writes_a_project_that_loads_and_never_overwrites(tmp_path: Path) -> None:
    assert ebbtide("init", "--dry-run", cwd=tmp_path).returncode == 0
    assert not (tmp_path / "ebbtide.yml").exists()
    assert ebbtide("init", "--name", "acme", cwd=tmp_path).returncode == 0
    assert ebbtide("scan", cwd=tmp_path).returncode == 4  # the catalog that it names is not there yet
    (tmp_path / "ebbtide.yml").write_text("mine")
    done = ebbtide("init", cwd=tmp_path)
    assert done.returncode == 3
    assert (tmp_path / "ebbtide.yml").read_text() == "mine"


def test_a_closed_pipe_is_met_in_silence(project: Path) -> None:
    command = [sys.executable, "-m", "ebbtide.cli.main", "tables", "--json"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_the_version_is_the_one_that_is_installed(tmp_path: Path) -> None:
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["version"]
    said = ebbtide("--version", cwd=tmp_path)
    assert (said.returncode, said.stdout) == (0, f"ebbtide {declared}\n")


def test_help_names_every_verb(tmp_path: Path) -> None:
    text = ebbtide("--help", cwd=tmp_path).stdout
    assert ebbtide("--help", "plan", cwd=tmp_path).stdout == ebbtide(cwd=tmp_path).stderr == text, "of what it is asked"
    assert all(verb in text for verb in ("init", "scan", "tables", "history", "demo"))


@pytest.mark.parametrize(("verb", "code"), [("tables", 0), ("tabels", 2)])
def test_what_is_to_be_done_at_the_end_is_done(project: Path, verb: str, code: int) -> None:
    """Though the process does not take apart what it loaded."""
    program = "import atexit, sys; from ebbtide.cli.main import main; atexit.register(print, 'at the end'); main()"
    done = subprocess.run([sys.executable, "-c", program, verb], cwd=project, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (code, "at the end"), done.stderr
