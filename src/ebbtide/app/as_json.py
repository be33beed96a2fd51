"""The one place that makes JSON of results: the command line prints nothing else, and neither will an API.

A key is the name of a field, in the order of the fields. What JSON has no word for becomes text: an instant in UTC, a
day, a path.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from typing import Any

from ebbtide.model.times import as_text


def as_json(value: Any) -> Any:
    """Plain values: dicts, lists, texts, numbers, booleans and None."""
    if hasattr(value, "whole"):  # one that keeps its rows elsewhere
        return as_json(value.whole())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, AbstractSet):
        return sorted(as_json(item) for item in value)
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return as_text(value)
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value
