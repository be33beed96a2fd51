"""The table of hazards is whole: thirty-eight by four, every test is there, every command shows what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache

import pytest

from tests.hazards import cells
from tests.hazards.cells import FORMATS, Cannot
from tests.hazards.generate import PAGE, ROOT, page
from tests.hazards.places import STANDS_FOR
from tests.hazards.table import GROUPS

HAZARDS = [hazard for group in GROUPS for hazard in group.hazards]
CELLS = [(f"{h.number}-{name}", cell) for h in HAZARDS for name, cell in h.cells.items()]
NAMED = sorted({test for _, cell in CELLS if isinstance(cell, cells.Tested) for test in cell.tests})
COMMANDS = {cell.command: cell.shows for _, cell in CELLS if isinstance(cell, Cannot)}


@cache
def collected() -> dict[str, list[str]]:
    """The tests of all files that cells name, as pytest finds them: ids without parameters, and the parameters."""
    files = sorted({test.partition("::")[0] for test in NAMED})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    run = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True, check=False)
    found: dict[str, list[str]] = {}
    for id_ in run.stdout.splitlines():
        test, _, parameters = id_.partition("[")
        if "::" in test:
            found.setdefault(test, []).append(parameters.removesuffix("]"))
    return found


def formats_of(test: str) -> set[str]:
    """The formats that a test runs on."""
    words = {word for parameters in collected().get(test, ()) for word in parameters.split("-")}
    own = re.match(r"tests/formats/test_([a-z]+)_", test)
    return (words & set(FORMATS)) or ({own[1]} if own else set(STANDS_FOR.get(test, ())))


def test_there_are_thirty_eight_hazards_on_four_formats_and_no_cell_is_empty() -> None:
    assert [hazard.number for hazard in HAZARDS] == list(range(1, 39))
    assert all(tuple(hazard.cells) == FORMATS for hazard in HAZARDS)
    assert [name for name, cell in CELLS if not (cell.tests if isinstance(cell, cells.Tested) else cell.reason)] == []


def test_every_test_that_is_named_is_there_and_runs_on_its_format() -> None:
    assert [test for test in NAMED if test not in collected()] == []
    wrong = [
        f"{name}: {test}"
        for name, cell in CELLS
        if isinstance(cell, cells.Tested)
        for test in cell.tests
        if name.partition("-")[2] not in formats_of(test)
    ]
    assert wrong == []


def test_no_test_stands_for_formats_that_no_cell_names() -> None:
    assert [test for test in STANDS_FOR if test not in NAMED] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_what_it_says(command: str) -> None:
    here = command.replace(".venv/bin/python", sys.executable).replace(
        ".venv/bin/ebbtide", f"{sys.executable} -c 'from ebbtide.cli.main import run; run()'"
    )
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    # A bare PATH has neither a shell nor grep: they lie where POSIX has them.
    tools = os.pathsep.join([os.environ.get("PATH", ""), "/usr/bin", "/bin"])
    run = subprocess.run(
        ["/bin/sh", "-c", here],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path, "PATH": tools},
    )
    assert COMMANDS[command] in (run.stdout + run.stderr).splitlines()


def test_the_page_is_what_the_table_says() -> None:
    assert PAGE.read_text() == page(), "run `make docs`"
