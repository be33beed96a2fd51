"""Telling somebody: three tries, bounded, and never a word of where it went."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ebbtide.app import deliver as delivery
from ebbtide.app.deliver import deliver
from ebbtide.config.operations import EVENTS, Notifier
from ebbtide.errors import InputError
from ebbtide.model.durations import Duration
from tests.operations.listening import webhook

MESSAGE = {"project": "acme", "text": "acme: run failed"}


def notifier(*, webhook: str | None = None, command: tuple[str, ...] = (), folder: Path = Path()) -> Notifier:
    return Notifier("ebbtide.yml:4", EVENTS, Duration(7, "d"), folder, webhook, command)


def test_a_webhook_that_fails_is_asked_again() -> None:
    waits: list[float] = []
    with webhook(500) as hook:
        assert deliver(notifier(webhook=hook.url), [hook.url], MESSAGE, pause=waits.append) is None
    assert hook.got == [MESSAGE, MESSAGE]
    assert waits == [1.0]


def test_a_webhook_that_goes_on_failing_is_given_up_and_its_address_is_not_told() -> None:
    waits: list[float] = []
    with webhook(500, 502, 503) as hook:
        assert deliver(notifier(webhook=hook.url), [hook.url], MESSAGE, pause=waits.append) == "HTTP 503"
    assert len(hook.got) == 3
    assert waits == [1.0, 4.0]
    # Nobody listens there any more.
    problem = deliver(notifier(webhook=hook.url), [hook.url], MESSAGE, pause=waits.append)
    assert problem is not None
    assert "refused" in problem
    assert "s3cret" not in problem


def test_a_message_follows_no_redirection() -> None:
    with webhook(302, 302, 302) as hook:
        assert deliver(notifier(webhook=hook.url), [hook.url], MESSAGE, pause=lambda _: None) == "HTTP 302"
    assert set(hook.paths) == {"/hook/s3cret"}


def test_a_command_gets_the_message_on_stdin_in_the_folder_of_the_project(tmp_path: Path) -> None:
    code = "import sys, pathlib; pathlib.Path('got').write_bytes(sys.stdin.buffer.read())"
    command = (sys.executable, "-c", code)
    assert deliver(notifier(command=command, folder=tmp_path), command, MESSAGE, pause=lambda _: None) is None
    assert json.loads((tmp_path / "got").read_text()) == MESSAGE


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ((sys.executable, "-c", "import sys; print('s3cret'); sys.exit(7)"), "it ended with 7"),
        (("/no/such/s3cret",), "FileNotFoundError: No such file or directory"),
    ],
)
def test_a_command_that_fails_is_told_by_its_kind(tmp_path: Path, command: tuple[str, ...], said: str) -> None:
    assert deliver(notifier(command=command, folder=tmp_path), command, MESSAGE, pause=lambda _: None) == said


def test_a_command_that_hangs_is_ended_with_what_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_COMMAND", 0.2)
    monkeypatch.setattr(delivery, "TRIES", 1)
    command = ("sh", "-c", "sleep 600 & wait")
    said = deliver(notifier(command=command, folder=tmp_path), command, MESSAGE)
    assert said == "it took more than 0 seconds"


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://x/y", "nothing", "http:///x", "http://h:99999/"])
def test_a_webhook_is_an_address_of_http(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", address)
    with pytest.raises(InputError, match="no address") as caught:
        notifier(webhook="${HOOK}").resolved()
    assert address not in f"{caught.value.message} {caught.value.hint}"
