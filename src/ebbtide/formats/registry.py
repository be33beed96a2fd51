"""Formats by name, loaded when asked for."""

from __future__ import annotations

from importlib import import_module

from ebbtide.errors import InputError
from ebbtide.formats.base import ContractTerms, Format, NewRows, supports
from ebbtide.formats.erasing import Erasing
from ebbtide.formats.versions import VersionReader
from ebbtide.model.capabilities import Capability

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


def load_new_rows(adapter: Format) -> NewRows:
    """How a format reads what is new; what does not declare that it can is refused."""
    if not (can := supports(adapter, Capability.NEW_ROWS)):
        raise InputError(f"what is new cannot be read from {adapter.name} tables: {can.reason}", hint="read them whole")
    new_rows: NewRows = import_module(f"{_MODULES[adapter.name]}.appended").NEW_ROWS
    return new_rows


def load_contract_terms(name: str) -> ContractTerms:
    """A format's side of table contracts."""
    load_format(name)
    terms: ContractTerms = import_module(f"{_MODULES[name]}.contract")
    return terms


def load_versions(name: str) -> VersionReader:
    """How a format reads the rows of every retained version."""
    load_format(name)
    versions: VersionReader = import_module(f"{_MODULES[name]}.versions").VERSIONS
    return versions


def load_erasing(name: str) -> Erasing:
    """How a format erases people from a dataset."""
    load_format(name)
    erasing: Erasing = import_module(f"{_MODULES[name]}.erase").ERASING
    return erasing
