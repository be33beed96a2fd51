"""Who is told of a run, of what, and that nothing of it changes how the run ends."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ebbtide.app.observed import Observed, events_of, observed
from ebbtide.config import load_project
from ebbtide.errors import Cancelled, EbbtideError, OverLimitError, RefusedError
from ebbtide.run import RunContext
from ebbtide.state.counts import Deadlines
from ebbtide.state.database import Database
from tests.cli.command import ebbtide
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake
from tests.operations.listening import webhook
from tests.operations.requests import put_request

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOTIFY = "ledger: {origin: example.org/a, checkpoint: ../checkpoint}\nnotify:\n  - webhook: ${HOOK}\n"


def make(root: Path, settings: str = NOTIFY, *, tables: int = 1) -> Path:
    lake = SmallLake(root)
    for number in range(tables):
        lake.create(f"people_{number}", 3)
    (root / "ebbtide.yml").write_text(PROJECT + settings)
    (root / "policies").mkdir()
    (root / "policies" / "p.yml").write_text(
        'policies:\n  - {name: old, select: {tables: ["**"]}, versions: {older_than: 30d}}\n'
    )
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "project")


def test_nobody_is_told_of_a_run_that_ends_well(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with webhook() as hook:
        monkeypatch.setenv("HOOK", hook.url)
        done = ebbtide("run", "--yes", cwd=project)
    assert done.returncode == 0, done.stderr
    assert hook.got == []


def test_a_run_that_fails_is_told_in_counts_and_nothing_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (project / "lake" / "db").rglob("*.metadata.json"):
        path.write_text("{")
    with webhook() as hook:
        monkeypatch.setenv("HOOK", hook.url)
        done = ebbtide("run", "--yes", cwd=project)
    assert done.returncode == 4, done.stderr
    [told] = hook.got
    assert (told["project"], told["verb"], told["exit_code"], told["events"]) == ("acme", "run", 4, ["failed"])
    assert told["run"]
    assert told["counts"]["unread"] == 1
    said = json.dumps(told)
    assert "people_0" not in said
    assert str(project) not in said
    assert "s3cret" not in done.stderr + done.stdout


def test_whoever_cannot_be_told_changes_nothing_and_is_not_named(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with webhook() as hook:
        monkeypatch.setenv("HOOK", hook.url)
    waits: list[float] = []
    with observed(load_project(project), "run", RunContext("me"), dry_run=False, pause=waits.append) as seen:
        seen.exit_code = 4
    assert waits == [1.0, 4.0]
    [warned] = caplog.messages
    assert "the webhook at" in warned
    assert "ConnectionRefusedError" in warned
    assert "s3cret" not in warned
    monkeypatch.delenv("HOOK")
    done = ebbtide("run", "--yes", cwd=project)
    assert done.returncode == 0, "there is nobody to tell, and nothing to tell"
    assert "nobody will be told by this webhook" in done.stderr
    assert "HOOK is not set" in done.stderr


def test_a_dry_run_tells_nobody(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (project / "lake" / "db").rglob("*.metadata.json"):
        path.write_text("{")
    with webhook() as hook:
        monkeypatch.setenv("HOOK", hook.url)
        assert ebbtide("run", "--dry-run", cwd=project).returncode == 4
    assert hook.got == []


def test_requests_of_people_are_told_before_and_after_their_deadline(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    database = Database(load_project(project).state)
    for number, days in enumerate((-1, 3, 30)):
        put_request(database, f"r{number}", due_at=now + timedelta(days=days))
    database.close()
    with webhook() as hook:
        monkeypatch.setenv("HOOK", hook.url)
        done = ebbtide("run", "--yes", cwd=project)
    assert done.returncode == 0, done.stderr
    [told] = hook.got
    assert told["events"] == ["overdue"]
    assert told["counts"]["requests_overdue"] == 1
    assert told["counts"]["requests_due_soon"] == 1
    assert told["text"] == "acme: 1 requests are overdue, 1 are due soon"


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (RefusedError("no lease"), ["refused"]),
        (OverLimitError("too much"), ["limit"]),
        (EbbtideError("broken"), ["failed"]),
        (ValueError("somebody's name"), ["failed"]),
    ],
)
def test_what_stops_a_verb_is_told_and_goes_on(
    project: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, event: list[str]
) -> None:
    with webhook(500) as hook:
        monkeypatch.setenv("HOOK", hook.url)
        waits: list[float] = []

        def work() -> None:
            with observed(load_project(project), "sweep", RunContext("me"), dry_run=False, pause=waits.append):
                raise error

        with pytest.raises(type(error)):
            work()
    assert [told["events"] for told in hook.got] == [event, event]
    assert waits == [1.0]
    assert "somebody" not in json.dumps(hook.got)


def test_who_stops_a_run_needs_not_be_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with webhook() as hook:
        monkeypatch.setenv("HOOK", hook.url)

        def work() -> None:
            with observed(load_project(project), "run", RunContext("me"), dry_run=False):
                raise Cancelled("interrupted")

        with pytest.raises(Cancelled):
            work()
    assert hook.got == []


@pytest.mark.parametrize(
    ("seen", "waiting", "broken", "events"),
    [
        (Observed("run"), Deadlines(None, 0, 0), 0, ()),
        (Observed("run", exit_code=1), Deadlines(None, 0, 0), 0, ("failed",)),
        (Observed("run", exit_code=3), Deadlines(None, 0, 0), 0, ("refused",)),
        (Observed("run", exit_code=3, over=True), Deadlines(None, 0, 0), 0, ("limit",)),
        (Observed("run", exit_code=4, over=True), Deadlines(NOW, 2, 0), 1, ("failed", "overdue", "limit", "promise")),
        (Observed("run"), Deadlines(NOW, 0, 1), 0, ("overdue",)),
        (Observed("run"), Deadlines(None, 0, 0), 2, ("promise",)),
    ],
)
def test_what_there_is_to_tell(seen: Observed, waiting: Deadlines, broken: int, events: tuple[Any, ...]) -> None:
    assert events_of(seen, waiting, broken) == events


def test_a_broken_promise_is_told_and_who_asked_for_other_things_hears_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (project / "policies" / "p.yml").open("a") as policies:
        policies.write('promises:\n  - {tables: ["**"], gone_within: 5d}\n')
    with (project / "ebbtide.yml").open("a") as settings:
        settings.write("  - {webhook: '${HOOK}', on: [failed, limit]}\n")
    with webhook() as hook:
        monkeypatch.setenv("HOOK", hook.url)
        done = ebbtide("run", "--yes", cwd=project)
    assert done.returncode == 0, done.stderr
    [told] = hook.got
    assert told["events"] == ["promise"]
    assert told["counts"]["promises_broken"] == 1
    assert told["text"] == "acme: 1 promises are broken"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("notify: [{on: [failed]}]", "a notification goes to a webhook or to a command"),
        ("notify: [{webhook: a, command: [b]}]", "a notification goes to a webhook or to a command"),
        ("notify: [{webhook: http://s3cret, on: [faild]}]", "notify.0.on.0"),
        ("notify: [{webhook: a, due_within: soon}]", "not a duration: 'soon'"),
        ("metrics: {file: numbers.txt}", "metrics.file"),
        ("metrics: {port: 70000}", "metrics.port"),
    ],
)
def test_a_wrong_setting_is_named_with_its_line(tmp_path: Path, said: str, message: str) -> None:
    (tmp_path / "ebbtide.yml").write_text(PROJECT + said + "\n")
    done = ebbtide("tables", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "ebbtide.yml:" in done.stderr
    assert "s3cret" not in done.stderr
