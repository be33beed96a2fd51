"""Names of datasets and of the objects in them, and how they are written as text (design.md, "JSON shapes")."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from ebbtide.errors import InputError

_RESERVED = {"%": "%25", "@": "%40", "#": "%23", ":": "%3A", ".": "%2E"}
_ESCAPES = str.maketrans(_RESERVED)


def encode_part(part: str) -> str:
    """One part of a name, percent-encoded where it holds `@ # : %` or a dot of its own."""
    return part.translate(_ESCAPES)


def written(name: str) -> str:
    """A name of parts with dots between them in the one way in which ids are compared."""
    return ".".join(encode_part(unquote(part)) for part in name.split("."))


def object_name(dataset: str, target: str, object_id: str) -> str:
    """An object as every command takes it, `dataset#target:id`. `dataset` is already written as its id is."""
    return f"{dataset}#{target}:{encode_part(object_id)}"


@dataclass(frozen=True, slots=True, order=True)
class DatasetId:
    """One table of one format. `str()` gives `catalog.namespace.table`."""

    catalog: str
    namespace: tuple[str, ...]
    table: str

    def __str__(self) -> str:
        return ".".join(encode_part(part) for part in (self.catalog, *self.namespace, self.table))

    @classmethod
    def parse(cls, text: str) -> DatasetId:
        parts = [unquote(part) for part in text.split(".")]
        if len(parts) < 3 or not all(parts):
            raise InputError(
                f"not a dataset: {text!r}",
                hint="write catalog.namespace.table; a dot inside a name is written %2E",
            )
        return cls(parts[0], tuple(parts[1:-1]), parts[-1])


def partition_id(spec: str, values: list[tuple[str, str | None]]) -> str:
    """A partition's id: `spec/col=value/…`, percent-encoded, NULL as `col=%00`."""
    parts = [f"{_encode_value(name)}={'%00' if value is None else _encode_value(value)}" for name, value in values]
    return "/".join([spec, *parts])


def _encode_value(value: str) -> str:
    return "".join(_VALUE_ESCAPES.get(c, c) if c.isprintable() else _percent(c) for c in value)


def _percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


_VALUE_ESCAPES = {**_RESERVED, "/": "%2F", "=": "%3D"}
# Dates and decimals read better with their dot, and a dot is no delimiter inside a partition's id.
del _VALUE_ESCAPES["."]
