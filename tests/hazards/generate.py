"""Writes docs/hazards.md from the table: `make docs`."""

from __future__ import annotations

from pathlib import Path

from tests.hazards.cells import FORMATS, Cannot, Cell, Hazard
from tests.hazards.table import GROUPS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "hazards.md"
_HEAD = """\
# How cleaners have lost data, and what shows that this one does not

<!-- Written by `make docs` from tests/hazards/table.py: change that, not this. -->

Thirty ways in which public projects lost data, or told of an erasure that did not happen, and eight that were found
here. Every cell names the tests that would fail, or says why it cannot happen on that format, with a command that shows
it. Run a test with `.venv/bin/python -m pytest ID`, and a command from the root of the work tree.
`tests/model/test_hazards_table.py` fails where a cell is empty, a test does not run on that format, or a command shows
something else.
"""


def page() -> str:
    parts = [_HEAD]
    for group in GROUPS:
        parts.append(f"\n## {group.title}\n")
        parts += [_section(hazard) for hazard in group.hazards]
    return "".join(parts)


def _section(hazard: Hazard) -> str:
    rows = [f"| {format_.capitalize()} | {_cell(hazard.cells[format_])} |\n" for format_ in FORMATS]
    return f"\n### {hazard.number}. {hazard.what}\n\n| format | shown by |\n|---|---|\n{''.join(rows)}"


def _cell(cell: Cell) -> str:
    if isinstance(cell, Cannot):
        return f"Cannot happen: {cell.reason}. `{cell.command}` prints `{cell.shows}`."
    return "<br>".join(f"`{test}`" for test in cell.tests)


if __name__ == "__main__":
    PAGE.write_text(page())
