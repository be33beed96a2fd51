"""Which policy owns what: selection by name, format, label, property; first policy wins (spec §2).

A policy that selects a dataset and has a target owns every object of that target there, due or not: later policies
ignore it. Numbers are places in the ordered list of policies.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from ebbtide.config.policies import Exclude, Select
from ebbtide.config.yaml import nearest
from ebbtide.errors import InputError

Condition = tuple[str, list[Any]]
"""A condition on a row of `in_tables` in the engine's SQL, never NULL, and the values that it binds."""
_LABELS = "coalesce(labels, []::VARCHAR[])"


def pattern(names: Sequence[str]) -> str:
    """A regular expression for name patterns: `*` stops at dots, `**` does not."""
    parts = [
        "".join(".*" if piece == "**" else "[^.]*" if piece == "*" else re.escape(piece) for piece in pieces)
        for pieces in (re.split(r"(\*\*|\*)", name) for name in names)
    ]
    return rf"(?s)\A(?:{'|'.join(parts)})\z"


def table_pattern(names: Sequence[str]) -> re.Pattern[str]:
    """The engine's pattern as Python spells it: they differ in the word for the end of a text."""
    return re.compile(pattern(names).removesuffix(r"\z") + r"\Z")


def some_table(name: str, tables: Collection[str]) -> None:
    """Refuse a pattern that matches none of the tables: who mistypes one would be told that there is nothing to do."""
    if any(map(table_pattern([name]).match, tables)):
        return
    wider = name.replace("**", "*").replace("*", "**")
    is_meant = any(map(table_pattern([wider]).match, tables))
    hint = f"one star stops at dots: write {wider!r}" if is_meant else nearest(name, list(tables))
    raise InputError(f"no table {name!r}", hint=hint)


def conditions(select: Select | Exclude) -> dict[str, Condition]:
    """What each key of a selection asks of a dataset. Branches are asked of transactions, not of datasets."""
    asked: dict[str, Condition] = {}
    if select.tables is not None:
        asked["tables"] = ("regexp_matches(table_id, ?)", [pattern(select.tables)])
    if select.formats is not None:
        asked["formats"] = ("list_contains(?::VARCHAR[], format)", [list(select.formats)])
    if select.any_labels is not None:
        asked["any_labels"] = (f"list_has_any({_LABELS}, ?::VARCHAR[])", [list(select.any_labels)])
    if select.all_labels is not None:
        asked["all_labels"] = (f"list_has_all({_LABELS}, ?::VARCHAR[])", [list(select.all_labels)])
    if select.properties is not None:
        pairs = list(select.properties.items())
        every = " AND ".join("coalesce(properties[?] = ?, false)" for _ in pairs) or "true"
        asked["properties"] = (f"({every})", [text for pair in pairs for text in pair])
    found = {key: (f"coalesce({sql}, false)", values) for key, (sql, values) in asked.items()}
    if isinstance(select, Select) and select.exclude is not None:
        excluded = conditions(select.exclude)
        found |= {f"exclude.{key}": (f"NOT {sql}", values) for key, (sql, values) in excluded.items()}
    return found


def selects(select: Select) -> Condition:
    """Whether a selection takes a dataset."""
    asked = conditions(select).values()
    return " AND ".join(sql for sql, _ in asked) or "true", [value for _, values in asked for value in values]


def takes_branch(select: Select) -> Condition:
    """Whether a selection takes a branch, by its `name`."""
    excluded = select.exclude.branches if select.exclude is not None else None
    asked = [(how, pattern(names)) for how, names in (("", select.branches), ("NOT ", excluded)) if names is not None]
    return " AND ".join(f"{how}regexp_matches(name, ?)" for how, _ in asked) or "true", [value for _, value in asked]


def looks_at_branches(select: Select) -> bool:
    return select.branches is not None or (select.exclude is not None and select.exclude.branches is not None)
