"""The table of hazards is whole: thirty by four, every test is there, every command shows what it says."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.hazards import cells
from tests.hazards.cells import FORMATS, Cannot
from tests.hazards.generate import PAGE, ROOT, page
from tests.hazards.table import GROUPS

HAZARDS = [hazard for group in GROUPS for hazard in group.hazards]
CELLS = [(f"{h.number}-{name}", cell) for h in HAZARDS for name, cell in h.cells.items()]
COMMANDS = {cell.command: cell.shows for _, cell in CELLS if isinstance(cell, Cannot)}


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_there_are_thirty_hazards_on_four_formats_and_no_cell_is_empty() -> None:
    assert [hazard.number for hazard in HAZARDS] == list(range(1, 31))
    assert all(tuple(hazard.cells) == FORMATS for hazard in HAZARDS)
    assert [name for name, cell in CELLS if not (cell.tests if isinstance(cell, cells.Tested) else cell.reason)] == []


def test_every_test_that_is_named_is_there() -> None:
    named = {test for _, cell in CELLS if isinstance(cell, cells.Tested) for test in cell.tests}
    parts = [test.partition("::") for test in sorted(named)]
    assert [f"{file}::{name}" for file, _, name in parts if name not in functions(file)] == []
    assert all(Path(file).name.startswith("test_") and name.startswith("test_") for file, _, name in parts)


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
