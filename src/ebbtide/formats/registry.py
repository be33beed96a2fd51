"""Formats by name, loaded when asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from ebbtide.errors import InputError
from ebbtide.formats.base import ContractTerms, Format
from ebbtide.model.dataset import Catalog, Column, Found
from ebbtide.model.history import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


Appended = Callable[
    [Found, Catalog, "SparkSession", Sequence[Column], Sequence[Transaction]],
    "DataFrame",
]
"""The rows that these transactions of main appended; each is an APPEND that is still there. The columns are main's."""


def load_appended(name: str) -> Appended:
    """How a format reads what transactions appended."""
    if name not in ("iceberg", "delta"):
        raise InputError(f"what is new cannot be read from {name} tables", hint="iceberg and delta tables can")
    appended: Appended = import_module(f"{_MODULES[name]}.appended").appended
    return appended


def load_contract_terms(name: str) -> ContractTerms:
    """A format's side of table contracts."""
    load_format(name)
    terms: ContractTerms = import_module(f"{_MODULES[name]}.contract")
    return terms
