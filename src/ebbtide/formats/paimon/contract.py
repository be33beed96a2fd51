"""Contracts on Paimon: table options, set by a schema change.

`snapshot.time-retained` is how long a writer keeps snapshots (an hour where nobody says), `fields.<name>.stats-mode`
whether manifests hold a column's least and greatest value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ebbtide.model.contract import IS_PII, Contract, ContractDrift, is_pii_drift, statistics_drift, window_drift
from ebbtide.spark.session import quote, quote_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ebbtide.model.dataset import Catalog
    from ebbtide.model.ids import DatasetId

_WINDOW = "snapshot.time-retained"
_DEFAULT = "metadata.stats-mode"
_VALUELESS = ("none", "counts")
_LENGTH = re.compile(r"(\d+)\s*(d|day|days|h|hour|hours|min|minute|minutes|m|s|sec|second|seconds|ms)?")
_IN_DAYS = {"d": 1.0, "h": 1 / 24, "m": 1 / 1440, "s": 1 / 86_400, "ms": 1 / 86_400_000}
_TYPES = {"timestamp_ltz(6)": "timestamp", "timestamp(6)": "timestamp_ntz"}
_SIMPLE = re.compile(r"[a-z]+|decimal\(\d+,\d+\)|timestamp(_ltz)?\(\d\)")


def wanted_properties(contract: Contract) -> dict[str, str]:
    found = {IS_PII: str(contract.is_pii).lower()}
    if contract.is_pii or contract.window is not None:
        found[_WINDOW] = f"{contract.wanted} d"
    return found | {_mode_key(name): "none" for name in contract.pii_columns}


def drift(contract: Contract, properties: Mapping[str, str], columns: Mapping[str, str]) -> list[ContractDrift]:  # noqa: ARG001
    modes = {name: _mode(name, properties) for name in contract.pii_columns}
    readable = {name: mode for name, mode in modes.items() if mode not in _VALUELESS}
    return [
        *is_pii_drift(contract, properties),
        *window_drift(contract, _days(properties.get(_WINDOW, "")), {_WINDOW: f"{contract.wanted} d"}),
        *statistics_drift(contract, readable, {_mode_key(name): "none" for name in readable}),
    ]


def _mode_key(column: str) -> str:
    return f"fields.{column}.stats-mode"


def _mode(column: str, properties: Mapping[str, str]) -> str:
    return properties.get(_mode_key(column), properties.get(_DEFAULT, "truncate(16)")).lower()


def _days(text: str) -> float | None:
    match = _LENGTH.fullmatch(text.strip().lower())
    if match is None:
        return None
    unit = match[2] or "ms"
    return int(match[1]) * _IN_DAYS["ms" if unit == "ms" else unit[0]]


def spark_type(native: str) -> str | None:
    """A column's type as Spark spells it; None for what is nested."""
    plain = native.lower().removesuffix(" not null").replace(" ", "")
    return _TYPES.get(plain, plain) if _SIMPLE.fullmatch(plain) else None


def create(contract: Contract, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> None:
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote(catalog.name, *id_.namespace)}")
    columns = ", ".join(f"{quote(name)} {type_}" for name, type_ in contract.columns.items())
    by = f"PARTITIONED BY ({', '.join(quote(name) for name in contract.partitioned_by)})"
    options = wanted_properties(contract)
    if contract.key:
        options["primary-key"] = ",".join(contract.key)
    listed = ", ".join(f"{quote_text(key)} = {quote_text(value)}" for key, value in options.items())
    name = quote(catalog.name, *id_.namespace, id_.table)
    spark.sql(f"CREATE TABLE {name} ({columns}) {by if contract.partitioned_by else ''} TBLPROPERTIES ({listed})")


def set_properties(properties: Mapping[str, str], id_: DatasetId, catalog: Catalog, spark: SparkSession) -> None:
    listed = ", ".join(f"{quote_text(key)} = {quote_text(value)}" for key, value in properties.items())
    spark.sql(f"ALTER TABLE {quote(catalog.name, *id_.namespace, id_.table)} SET TBLPROPERTIES ({listed})")
