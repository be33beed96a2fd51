"""benchmarks/RESULTS.md is honest: each verdict follows from its line, and each bar is the one of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
_RATIO = re.compile(r"\| ([\d.]+)× \| ≥ ([\d.]+)× \| (met|\*\*missed\*\*) \|$", re.MULTILINE)
_LIMIT = re.compile(r"\| ([\d,]+) \| at most ([\d,]+) \| \| \| (met|\*\*missed\*\*) \|$", re.MULTILINE)
_BAR = 4
"""Which argument of `Result` it is."""


def _sections() -> Iterator[tuple[str, str]]:
    parts = re.split(r"^## (.+)$", (BENCHMARKS / "RESULTS.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    yield from zip(parts[1::2], parts[2::2], strict=True)


def _bars(module: Path) -> set[float]:
    """The ratios that a benchmark asks for, written out or by the name of a constant."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    constants = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    asked = [
        node.args[_BAR]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Result" and len(node.args) > _BAR
    ]
    found = [constants[bar.id] if isinstance(bar, ast.Name) else ast.literal_eval(bar) for bar in asked]
    return {float(str(bar)) for bar in found}


def test_each_verdict_follows_from_its_line() -> None:
    lines = 0
    for _, text in _sections():
        for ratio, bar, verdict in _RATIO.findall(text):
            lines += 1
            # A ratio is written with one digit.
            assert (float(ratio) + 0.05 >= float(bar)) == (verdict == "met"), (ratio, bar)
        for value, most, verdict in _LIMIT.findall(text):
            lines += 1
            assert (int(value.replace(",", "")) <= int(most.replace(",", ""))) == (verdict == "met"), (value, most)
    assert lines > 25


def test_each_bar_is_the_one_that_the_code_asks_for() -> None:
    compared = 0
    for name, text in _sections():
        module = BENCHMARKS / f"{name.replace('-', '_')}.py"
        if module.exists():  # the others are of code that is gone, and say so
            recorded = {float(bar) for _, bar, _ in _RATIO.findall(text)}
            assert recorded <= _bars(module), name
            compared += len(recorded)
    assert compared >= 10
