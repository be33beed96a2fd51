"""SQL in files, and names quoted: no statement is built from text that was not."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import LiteralString

from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

_FOLDER = Path(__file__).parent / "sql"


@cache
def statement(name: str) -> SQL:
    """The statement in `sql/NAME.sql`."""
    return SQL((_FOLDER / f"{name}.sql").read_text(encoding="utf-8"))  # type: ignore[arg-type, unused-ignore]


def build(text: LiteralString, **parts: Composable | str | tuple[str, ...]) -> Composed:
    """A statement with its names: a text is a literal, a tuple a qualified name, anything composed stays as it is."""
    made: dict[str, Composable] = {}
    for key, part in parts.items():
        if isinstance(part, Composable):
            made[key] = part
        else:
            made[key] = Identifier(*part) if isinstance(part, tuple) else Literal(part)
    return SQL(text).format(**made)
