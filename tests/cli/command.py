"""The command line in processes of their own, which begin as forks of one that has imported Ebbtide already.

A process costs a second of imports otherwise, in a hundred and fifty tests. That the command starts by itself, and what
it loads, are tests of their own: they ask for `cold`.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path

import ebbtide as package

_FORKS = multiprocessing.get_context("forkserver")
# Verbs import late what they need: all of it is there before the first one runs.
_FORKS.set_forkserver_preload([module.name for module in pkgutil.walk_packages(package.__path__, "ebbtide.")])


def ebbtide(*arguments: str, cwd: Path, columns: int = 200) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        environment = {**os.environ, "COLUMNS": str(columns)}
        process = _FORKS.Process(target=_run, args=(arguments, str(cwd), environment, str(out), str(err)))
        process.start()
        process.join()
        code = process.exitcode
        assert code is not None
        return subprocess.CompletedProcess(["ebbtide", *arguments], code, out.read_text(), err.read_text())


def cold(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """In a new process, as a shell starts it."""
    command = [sys.executable, "-m", "ebbtide.cli.main", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"})


def _run(arguments: tuple[str, ...], cwd: str, environment: dict[str, str], out: str, err: str) -> None:
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["ebbtide", *arguments]
    from ebbtide.cli.main import run

    try:
        run()
    finally:
        atexit._run_exitfuncs()  # a forked child of Python's own ends without them
