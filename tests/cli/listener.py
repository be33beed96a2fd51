"""`ebbtide lineage listen` as a real process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def listening(root: Path, *options: str, seconds: int = 60, **environment: str) -> Iterator[str]:
    """A real server on a free port of loopback."""
    command = [sys.executable, "-m", "ebbtide.cli.main", "lineage", "listen", "--port", "0", *options]
    env = {**os.environ, "COLUMNS": "200", **environment}
    with subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True, env=env) as process:
        watchdog = threading.Timer(seconds, process.kill)
        watchdog.start()
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            address = re.search(r"http://\S+", line)
            assert address, line + process.stderr.read()
            yield address[0]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)
            watchdog.cancel()
