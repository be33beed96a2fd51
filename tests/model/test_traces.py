"""Whoever takes any exception and goes on keeps in the debug log where it came from, and tells its kind only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "ebbtide"
KEEPERS = {
    "keep_trace",
    "told",
    "fault_of",
    "failed",
    "_told",
    "_fail",
    "UnreadableError.of",
    "UnreadableError.unexpected",
}
"""`errors.keep_trace`, and who calls it; a method of another object by its own name."""
SILENT = {
    "app/complete.py": "a shell asks for names while somebody types: whatever is wrong is told when the verb runs",
    "formats/iceberg/traces.py": "a bound that does not fit its column may be a value: nothing of it is kept",
    "governance/run.py": "handed to the thread that asked, which raises it",
    "run.py": "who looks on at progress: its kind is logged",
    "verify/read/hfile.py": "a value that its schema does not fit is searched as bytes, so that nothing is left out",
}


def broad_handlers() -> Iterator[tuple[str, ast.ExceptHandler]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None or {"Exception", "BaseException"} & {ast.unparse(each) for each in _types(node.type)}
            ):
                yield str(path.relative_to(SOURCE)), node


def _types(caught: ast.expr) -> list[ast.expr]:
    return list(caught.elts) if isinstance(caught, ast.Tuple) else [caught]


def _keeps(handler: ast.ExceptHandler) -> bool:
    """Who raises loses nothing."""
    for node in ast.walk(handler):
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Call) and ast.unparse(node.func).removeprefix("self.") in KEEPERS:
            return True
    return False


def test_who_takes_any_exception_keeps_where_it_came_from() -> None:
    handlers = list(broad_handlers())
    assert len(handlers) > 40
    assert {place for place, handler in handlers if not _keeps(handler)} == {*SILENT}
