"""Telling somebody of a run: JSON to a webhook, or to a command.

What goes wrong is told by its kind alone: an address and a command may hold a secret, and an answer may quote one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError

from ebbtide.config.operations import Notifier
from ebbtide.errors import kind_of

TRIES = 3
_PATIENCE = 5.0
"""Seconds that a server may take to answer."""
_COMMAND = 30.0
"""Seconds that a command may take."""


def deliver(
    notifier: Notifier,
    values: Sequence[str],
    message: Mapping[str, Any],
    *,
    pause: Callable[[float], None] = time.sleep,
) -> str | None:
    """Tell them, three times at most. Gives what went wrong the last time, None where they took it."""
    body = json.dumps(message).encode()
    problem: str | None = None
    for tried in range(TRIES):
        if tried:
            pause(4.0 ** (tried - 1))
        problem = _post(values[0], body) if notifier.webhook is not None else _run(values, body, notifier)
        if problem is None:
            return None
    return problem


class _Stays(urllib.request.HTTPRedirectHandler):
    """What was meant for one address goes to no other."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def _post(address: str, body: bytes) -> str | None:
    headers = {"Content-Type": "application/json", "User-Agent": "ebbtide"}
    asked = urllib.request.Request(address, body, headers, method="POST")  # noqa: S310 - `resolved` lets HTTP through
    try:
        with urllib.request.build_opener(_Stays).open(asked, timeout=_PATIENCE):
            return None
    except HTTPError as error:
        error.close()
        return f"HTTP {error.code}"
    except URLError as error:
        return kind_of(error.reason) if isinstance(error.reason, OSError) else type(error).__name__
    except (OSError, HTTPException, ValueError) as error:
        return kind_of(error) if isinstance(error, OSError) else type(error).__name__


def _run(command: Sequence[str], body: bytes, notifier: Notifier) -> str | None:
    quiet = subprocess.DEVNULL
    try:
        started = subprocess.Popen(
            command, cwd=notifier.folder, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
        )
    except (OSError, ValueError) as error:
        return kind_of(error) if isinstance(error, OSError) else type(error).__name__
    try:
        started.communicate(body, timeout=_COMMAND)
    except subprocess.TimeoutExpired:
        return f"it took more than {_COMMAND:.0f} seconds"
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)  # and what it started
            started.wait()
    return None if started.returncode == 0 else f"it ended with {started.returncode}"
