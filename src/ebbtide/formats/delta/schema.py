"""Columns of a Delta schema, and the physical names that column mapping gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ebbtide.model.dataset import Column

_PHYSICAL = "delta.columnMapping.physicalName"
# The log spells types as Spark's JSON does; people know them by their SQL names.
_SQL_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


def columns_of(schema: Mapping[str, Any]) -> tuple[Column, ...]:
    """Every column in order, each field of a struct after its parent as `parent.child`."""
    return tuple(Column(name, type_, position) for position, (name, type_) in enumerate(_walk(schema, "")))


def _walk(struct: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for field in struct["fields"]:
        name, type_ = prefix + field["name"], field["type"]
        yield name, type_text(type_)
        if isinstance(type_, Mapping) and type_["type"] == "struct":
            yield from _walk(type_, f"{name}.")


def type_text(type_: Any) -> str:
    """A type as Spark SQL spells it: `struct<a:int,b:array<string>>`."""
    if not isinstance(type_, Mapping):
        return _SQL_NAMES.get(type_, str(type_))
    if type_["type"] == "struct":
        return "struct<" + ",".join(f"{f['name']}:{type_text(f['type'])}" for f in type_["fields"]) + ">"
    if type_["type"] == "array":
        return f"array<{type_text(type_['elementType'])}>"
    if type_["type"] == "map":
        return f"map<{type_text(type_['keyType'])},{type_text(type_['valueType'])}>"
    return str(type_["type"])


def logical_names(schema: Mapping[str, Any]) -> dict[str, str]:
    """The names of the top columns by their physical names: partition values in the log go by the latter."""
    return {field.get("metadata", {}).get(_PHYSICAL, field["name"]): field["name"] for field in schema["fields"]}
