"""Numbers for Prometheus: a file after each run, and a port while `run --every` lasts."""

from __future__ import annotations

import http.client
import re
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from ebbtide.app.metrics import metrics_text, write_metrics
from ebbtide.app.metrics_port import metrics_port
from ebbtide.app.run import RunReport, run_for_ever
from ebbtide.config import load_project
from ebbtide.errors import InputError
from ebbtide.model.durations import parse_duration
from ebbtide.state.database import Database
from ebbtide.state.tables import marks
from ebbtide.state.values import MarkState, RequestState
from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake
from tests.operations.exposition import parse
from tests.operations.requests import put_request

NOW = datetime(2026, 1, 31, tzinfo=UTC)
OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
SETTINGS = "ledger: {origin: example.org/a, checkpoint: ../checkpoint}\nmetrics: {file: numbers/acme.prom, port: 0}\n"


def make(root: Path, settings: str = SETTINGS, *, name: str = "acme") -> Path:
    SmallLake(root).create("payments", 3)
    (root / "ebbtide.yml").write_text(PROJECT.replace("project: acme", f"project: {name}") + settings)
    (root / "policies").mkdir()
    (root / "numbers").mkdir()
    (root / "policies" / "p.yml").write_text(
        'policies:\n  - {name: old, select: {tables: ["**"]}, versions: {older_than: 1d}, grace: 3d}\n'
    )
    return root


def of(**labels: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({"project": "acme", **labels}.items()))


def test_the_file_says_how_a_run_ended_and_holds_no_name(tmp_path: Path) -> None:
    root = make(tmp_path / "project", "clock: simulated\n" + SETTINGS)
    done = ebbtide("run", "--yes", "--as-of", "2100-01-01", cwd=root)
    assert done.returncode == 0, done.stderr
    file = root / "numbers" / "acme.prom"
    assert [*file.parent.iterdir()] == [file], "it is renamed into place, and nothing is left beside it"
    assert stat.S_IMODE(file.stat().st_mode) == 0o644, "the collector is another user"
    found = parse(file.read_text())
    assert found["ebbtide_last_run_exit_code"] == {of(verb="run"): 0}
    assert found["ebbtide_last_run_timestamp_seconds"][of(verb="run")] > 0
    assert found["ebbtide_marks"][of(state="marked")] == 2
    assert found["ebbtide_marks_due"] == {of(): 0}
    assert found["ebbtide_marked_bytes"][of()] > 0
    assert found["ebbtide_datasets"] == {of(): 1}
    assert found["ebbtide_scan_errors"] == {of(of="catalogs"): 0, of(of="datasets"): 0}
    assert "payments" not in file.read_text()
    # As a sweep leaves them.
    database = Database(load_project(root).state)
    with database.writer() as state:
        state.connection.execute(update(marks).values(state=MarkState.SWEPT, closed_at=NOW))
    database.close()
    after = parse(metrics_text(load_project(root), now=NOW))
    assert after["ebbtide_marks"][of(state="swept")] == 2
    assert after["ebbtide_swept_bytes"] == found["ebbtide_marked_bytes"]
    assert after["ebbtide_marked_bytes"] == {of(): 0}


def test_a_file_that_cannot_be_written_is_told_and_changes_nothing(tmp_path: Path) -> None:
    root = make(tmp_path / "project", SETTINGS.replace("numbers/acme", "absent/acme"))
    done = ebbtide("run", "--yes", cwd=root)
    assert done.returncode == 0, done.stderr
    assert "the file of metrics failed" in done.stderr


def test_a_rehearsal_writes_no_numbers(tmp_path: Path) -> None:
    root = make(tmp_path / "project")
    assert ebbtide("run", "--dry-run", cwd=root).returncode == 0
    assert not [*(root / "numbers").iterdir()]


def test_requests_are_counted_by_state_and_deadline(tmp_path: Path) -> None:
    project = load_project(make(tmp_path / "project"))
    database = Database(project.state)
    late, soon = NOW - timedelta(days=2), NOW + timedelta(days=2)
    put_request(database, "a", due_at=late)
    put_request(database, "b", due_at=soon)
    put_request(database, "c", due_at=late - timedelta(days=9), state=RequestState.CERTIFIED_WITH_EXCEPTIONS)
    database.close()
    found = parse(metrics_text(project, now=NOW))
    assert found["ebbtide_requests"][of(state="received")] == 2
    assert found["ebbtide_requests"][of(state="certified with exceptions")] == 1
    assert found["ebbtide_requests_overdue"] == {of(): 1}
    assert found["ebbtide_requests_next_deadline_timestamp_seconds"] == {of(): late.timestamp()}
    assert set(found["ebbtide_requests"]) == {of(state=str(state)) for state in RequestState}
    assert set(found["ebbtide_marks"]) == {of(state=str(state)) for state in MarkState}


def test_a_project_with_an_odd_name_is_one_label(tmp_path: Path) -> None:
    project = load_project(make(tmp_path / "project", name="'a\"b\\c'"))
    found = parse(metrics_text(project, now=NOW))
    assert found["ebbtide_requests_overdue"] == {(("project", 'a"b\\c'),): 0}


def test_nothing_of_a_state_is_made_by_looking(tmp_path: Path) -> None:
    root = make(tmp_path / "project")
    write_metrics(load_project(root), now=NOW)
    assert parse((root / "numbers" / "acme.prom").read_text())["ebbtide_marks"][of(state="marked")] == 0
    assert not (root / ".ebbtide").exists()


def test_the_port_answers_with_the_numbers_of_that_moment(tmp_path: Path) -> None:
    project = load_project(make(tmp_path / "project"))
    with metrics_port(project) as port:
        assert port
        assert asked(port, "/metrics") == (200, metrics_text(project, now=NOW))
        put_request(Database(project.state), "a", due_at=NOW)
        assert parse(asked(port, "/metrics")[1])["ebbtide_requests_overdue"] == {of(): 1}
        assert asked(port, "/")[0] == 404
    with pytest.raises(ConnectionRefusedError):
        asked(port, "/metrics")


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    root = make(tmp_path / "project")
    with metrics_port(load_project(root)) as port:
        text = (root / "ebbtide.yml").read_text().replace("port: 0", f"port: {port}")
        (root / "ebbtide.yml").write_text(text)
        with (
            pytest.raises(InputError, match=f"no port for metrics at 127.0.0.1:{port}"),
            metrics_port(load_project(root)),
        ):
            pass


def test_run_every_answers_while_it_lasts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    project = load_project(make(tmp_path / "project"))
    seen: list[tuple[int, str]] = []

    def after(_: RunReport) -> None:
        [said] = [message for message in caplog.messages if message.startswith("metrics are at port")]
        seen.append(asked(int(said.split()[-1]), "/metrics"))

    with caplog.at_level("INFO", logger="ebbtide"):
        run_for_ever(project, parse_duration("1h", hours=True), after=after, rounds=1)
    [(status, text)] = seen
    assert status == 200
    assert parse(text)["ebbtide_last_run_exit_code"] == {of(verb="run"): 0}


def test_every_number_is_documented(tmp_path: Path) -> None:
    project = load_project(make(tmp_path / "project"))
    assert ebbtide("scan", cwd=project.root).returncode == 0
    page = OPERATIONS.read_text(encoding="utf-8")
    assert set(re.findall(r"`(ebbtide_[a-z_]+)`", page)) == set(parse(metrics_text(project, now=NOW)))


def asked(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text
