"""Contracts on Iceberg: table properties, set by a metadata commit.

Statistics of a column are kept in manifests by `write.metadata.metrics`; `none` and `counts` keep no value. What older
manifests hold stays there until they are rewritten and expired.
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

_WINDOW = "history.expire.max-snapshot-age-ms"
_DAY = 86_400_000
_METRICS, _DEFAULT = "write.metadata.metrics.column.", "write.metadata.metrics.default"
_VALUELESS = ("none", "counts")
_TYPES = {
    "long": "bigint", "int": "int", "timestamptz": "timestamp", "timestamp": "timestamp_ntz", "uuid": "string",
}  # fmt: skip
_SIMPLE = re.compile(r"[a-z_]+|decimal\(\d+,\d+\)")


def wanted_properties(contract: Contract) -> dict[str, str]:
    found = {IS_PII: str(contract.is_pii).lower()}
    if contract.is_pii or contract.window is not None:
        found[_WINDOW] = str(contract.wanted * _DAY)
    return found | {f"{_METRICS}{name}": "none" for name in contract.pii_columns}


def drift(contract: Contract, properties: Mapping[str, str], columns: Mapping[str, str]) -> list[ContractDrift]:  # noqa: ARG001
    text = properties.get(_WINDOW, "")
    days = int(text) / _DAY if text.isdigit() else None
    modes = {name: _mode(name, properties) for name in contract.pii_columns}
    readable = {name: mode for name, mode in modes.items() if mode not in _VALUELESS}
    return [
        *is_pii_drift(contract, properties),
        *window_drift(contract, days, {_WINDOW: str(contract.wanted * _DAY)}),
        *statistics_drift(contract, readable, {f"{_METRICS}{name}": "none" for name in readable}),
    ]


def _mode(column: str, properties: Mapping[str, str]) -> str:
    return properties.get(f"{_METRICS}{column}", properties.get(_DEFAULT, "truncate(16)")).lower()


def spark_type(native: str) -> str | None:
    """A column's type as Spark spells it; None for what is nested."""
    plain = native.replace(" ", "").lower()
    return _TYPES.get(plain, plain) if _SIMPLE.fullmatch(plain) else None


def create(contract: Contract, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> None:
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote(catalog.name, *id_.namespace)}")
    columns = ", ".join(f"{quote(name)} {type_}" for name, type_ in contract.columns.items())
    by = f"PARTITIONED BY ({', '.join(contract.partitioned_by)})" if contract.partitioned_by else ""
    name = quote(catalog.name, *id_.namespace, id_.table)
    spark.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {by} TBLPROPERTIES ({_listed(contract)})")


def set_properties(properties: Mapping[str, str], id_: DatasetId, catalog: Catalog, spark: SparkSession) -> None:
    listed = ", ".join(f"{quote_text(key)} = {quote_text(value)}" for key, value in properties.items())
    spark.sql(f"ALTER TABLE {quote(catalog.name, *id_.namespace, id_.table)} SET TBLPROPERTIES ({listed})")


def _listed(contract: Contract) -> str:
    pairs = wanted_properties(contract).items()
    return ", ".join(f"{quote_text(key)} = {quote_text(value)}" for key, value in pairs)
