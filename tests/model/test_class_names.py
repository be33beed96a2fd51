from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_public_class_has_its_name_to_itself() -> None:
    """Who reads `Column` in a message or an import knows which one it is."""
    standing = defaultdict(list)
    for path in sorted((ROOT / "src" / "ebbtide").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                standing[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert len(standing) > 300
    assert {name: places for name, places in standing.items() if len(places) > 1} == {}
