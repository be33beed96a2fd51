"""Runs a folder of SQL files, one a step, in the order of their names. Knows nothing of what they decide."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def run_steps(engine: DuckDBPyConnection, package: str, *folders: str) -> None:
    """Carry out every step of a package's folders on this connection."""
    for folder in folders:
        for statements in _steps(package, folder):
            engine.execute(statements)


@cache
def _steps(package: str, folder: str) -> tuple[str, ...]:
    found = (entry for entry in (files(package) / folder).iterdir() if entry.name.endswith(".sql"))
    return tuple(entry.read_text(encoding="utf-8") for entry in sorted(found, key=lambda entry: entry.name))
