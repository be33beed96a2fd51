"""Every verb that may take longer than two seconds says how far it is, and no row of data is written meanwhile."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Ebbtide
from ebbtide.run import Silent, quiet
from tests.cli.generate import commands
from tests.cli.test_commands import PROJECT
from tests.inventory.lakes import SmallLake

MOMENT = {
    "init": "writes a few files",
    "tables": "reads the inventory once",
    "history": "reads one dataset of the inventory",
    "show": "reads a file",
    "hold add": "one entry",
    "hold list": "reads the state",
    "hold release": "one entry",
    "marks": "reads the state",
    "unmark": "writes entries",
    "unmarks": "reads the state",
    "runs list": "reads the state",
    "runs cancel": "one row",
    "erase list": "reads the state",
    "erase status": "reads the state",
    "erase extend": "one entry",
    "tier status": "reads the state",
    "ledger init": "one entry",
    "ledger key": "reads a file",
    "ledger rotate": "one entry",
}
"""What is done in a moment whatever the size of the lake, and why."""
OTHERWISE = {
    "demo": "tells its story step by step",
    "lineage listen": "runs until it is interrupted, and says where",
    "ledger check": "has a parser of its own, and says each of its steps",
}


def _verbs() -> list[tuple[str, Any]]:
    return [
        (name, command)
        for name, command in commands()
        if name and (not hasattr(command, "commands") or command.invoke_without_command)
    ]


@pytest.mark.parametrize(("name", "command"), _verbs(), ids=lambda each: each if isinstance(each, str) else "")
def test_a_verb_shows_how_far_it_is_or_is_done_in_a_moment(name: str, command: Any) -> None:
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(command.callback))))
    shown = [node for node in ast.walk(tree) if isinstance(node, ast.With) and "running.shown(" in ast.unparse(node)]
    assert bool(shown) != (name in {*MOMENT, *OTHERWISE})
    for node in shown:
        # The terminal belongs to the bar as long as it is there: what is printed meanwhile ends up in its stream.
        inside = ast.unparse(ast.Module(node.body, []))
        assert not [word for word in ("render.out(", "write_json(", "_write(", "_show(") if word in inside]


def test_what_is_done_in_a_moment_is_a_verb() -> None:
    assert {*MOMENT, *OTHERWISE} <= {name for name, _ in _verbs()}


class _Steps(Silent):
    def __init__(self) -> None:
        self.begun: list[tuple[str, int | None, str]] = []

    def start(self, step: str, total: int | None = None, *, unit: str = "") -> None:
        self.begun.append((step, total, unit))


def test_how_many_datasets_are_read_is_said_once(tmp_path: Path) -> None:
    lake, steps = SmallLake(tmp_path), _Steps()
    for name in ("a", "b"):
        lake.create(name)
    (tmp_path / "ebbtide.yml").write_text(PROJECT)
    with Ebbtide(tmp_path) as tide:
        tide.scan(context=replace(quiet(None), progress=steps))
        lake.append("b", 7)
        tide.scan(context=replace(quiet(None), progress=steps))
    assert [step for step in steps.begun if step[2] == "datasets"] == [
        ("reading", 2, "datasets"), ("reading what changed", 1, "datasets"),
    ]  # fmt: skip
