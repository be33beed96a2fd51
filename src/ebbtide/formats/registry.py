"""Formats by name, loaded when asked for."""

from __future__ import annotations

from importlib import import_module

from ebbtide.errors import InputError
from ebbtide.formats.base import Format

_MODULES = {
    "iceberg": "ebbtide.formats.iceberg",
    "delta": "ebbtide.formats.delta",
    "hudi": "ebbtide.formats.hudi",
    "paimon": "ebbtide.formats.paimon",
}
NAMES = tuple(_MODULES)


def load_format(name: str) -> Format:
    if name not in _MODULES:
        raise InputError(f"unknown format {name!r}", hint=f"one of {', '.join(NAMES)}")
    adapter: Format = import_module(_MODULES[name]).FORMAT
    return adapter
