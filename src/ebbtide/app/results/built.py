"""Results from the plain rows that a use-case answers with: field by field, by their types.

A row with a key that the result does not know is an error and no loss: who adds a key adds its field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from functools import cache
from types import MappingProxyType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ebbtide.app.results.shown import ResultRows

_Made = TypeVar("_Made")


def built(kind: type[_Made], row: Mapping[str, Any]) -> _Made:
    any_: Any = kind
    types = _types(any_)
    unknown = sorted(row.keys() - types.keys())
    assert not unknown, f"{kind.__name__} has no field for {', '.join(unknown)}"
    return kind(**{name: _value(types[name], value) for name, value in row.items()})


def built_rows(kind: type[_Made], rows: Iterable[Mapping[str, Any]]) -> ResultRows[_Made]:
    return ResultRows(built(kind, row) for row in rows)


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _value(type_: Any, value: Any) -> Any:
    if value is None:
        return None
    if get_origin(type_) in (Union, UnionType):
        type_ = next(each for each in get_args(type_) if each is not type(None))
    if get_origin(type_) is tuple:
        inner = get_args(type_)[0]
        return tuple(_value(inner, each) for each in value)
    if isinstance(type_, type) and is_dataclass(type_) and isinstance(value, Mapping):
        return built(type_, value)
    return MappingProxyType(dict(value)) if isinstance(value, Mapping) else value
