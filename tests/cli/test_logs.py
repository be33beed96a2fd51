"""The log: where errors came from that became rows, as text or JSON, and never what anybody else's error quotes."""

from __future__ import annotations

import json
import logging
import socket
import ssl
from pathlib import Path

import pytest

from ebbtide.errors import EbbtideError, UnreadableError, kind_of, told, trace_of
from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake

JANE = "jane.doe@example.org"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    SmallLake(tmp_path).create("payments", 1)
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    return tmp_path


def _caught() -> Exception:
    try:
        try:
            raise ValueError(f"cannot cast {JANE}")
        except ValueError as error:
            raise EbbtideError("the table cannot be read") from error
    except EbbtideError as error:
        return error


def test_a_trace_has_places_and_kinds_and_our_own_words_only() -> None:
    trace = trace_of(_caught())
    assert "EbbtideError: the table cannot be read" in trace
    assert "in _caught" in trace
    assert "caused by:" in trace
    assert trace.endswith("ValueError")
    assert JANE not in trace


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError(f"cannot cast {JANE}"), "ValueError"),
        (OSError(28, "No space left on device", f"/lake/email={JANE}"), "OSError: No space left on device"),
        # As pyarrow says it.
        (
            OSError(20, f"Failed to open '/lake/email={JANE}'. Detail: [errno 20]"),
            "NotADirectoryError: Not a directory",
        ),
        (socket.gaierror(-2, "Name or service not known"), "gaierror: Name or service not known"),
        (ssl.SSLError(1, f"certificate of {JANE}"), "SSLError"),
        (OSError(f"no file /lake/email={JANE}"), "OSError"),
    ],
)
def test_an_error_of_somebody_else_is_told_by_its_kind(
    error: Exception, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="ebbtide")
    assert kind_of(error) == told(error) == kind
    assert UnreadableError.unexpected("lake.db.t", error).message == f"lake.db.t: {kind}"
    assert [record.name for record in caplog.records] == ["ebbtide.errors"] * 2
    assert JANE not in caplog.text


def test_a_file_keeps_the_whole_log_as_json_with_where_errors_came_from(project: Path) -> None:
    lake = SmallLake(project)
    lake.create("broken", 1)
    lake.metadata_file("broken").write_text(f'{{"format-version": 2, "owner": "{JANE}"}}')
    done = ebbtide("--log-file", "log.json", "--log-format", "json", "scan", "--json", cwd=project)
    assert done.returncode == 4, done.stderr
    assert len(json.loads(done.stdout)["errors"]) == 1
    file = project / "log.json"
    assert file.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {"time", "level", "logger", "place", "message", "run"} == {*lines[0]}
    assert any("formats/iceberg" in line["message"] and line["logger"] == "ebbtide.errors" for line in lines)
    assert JANE not in file.read_text() + done.stdout + done.stderr


def test_verbose_says_each_step_and_quiet_says_nothing(project: Path) -> None:
    verbose = ebbtide("--verbose", "scan", cwd=project)
    assert "debug ebbtide: step: asking the catalogs" in verbose.stderr
    quiet = ebbtide("--quiet", "scan", "--json", cwd=project)
    assert (quiet.returncode, quiet.stderr) == (0, "")
    assert json.loads(quiet.stdout)["datasets"] == 1
    plain = ebbtide("scan", cwd=project)
    assert plain.stderr.count("\n") == 1, "the note, and nothing of the log"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--log-format", "xml"], "text or json"),
        (["--verbose", "--quiet"], "contradict"),
        (["--log-file", "absent/log"], "no log can be written"),
    ],
)
def test_wrong_options_are_one_clear_line(project: Path, arguments: list[str], said: str) -> None:
    done = ebbtide(*arguments, "tables", cwd=project)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
