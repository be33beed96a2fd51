"""Contracts on Delta: table properties, set by a commit.

The window is the shorter story of two settings: removed files (7 d where nobody says) and the log with its statistics
(30 d). Delta names the columns that have statistics, not those that have none: all but the personal ones are listed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from ebbtide.formats.delta.support import interval_of
from ebbtide.formats.warehouse import place_of, refuse_existing
from ebbtide.model.contract import IS_PII, Contract, ContractDrift, is_pii_drift, statistics_drift, window_drift
from ebbtide.spark.session import quote, quote_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ebbtide.model.dataset import Catalog
    from ebbtide.model.ids import DatasetId

_FILES, _LOG = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
_COLUMNS, _FIRST = "delta.dataSkippingStatsColumns", "delta.dataSkippingNumIndexedCols"
_USUAL_FIRST = 32
# Delta refuses a list with a column of another type in it.
_SKIPPABLE = re.compile(r"tinyint|smallint|int|bigint|float|double|date|timestamp(_ntz)?|string|decimal\(.*\)")


def wanted_properties(contract: Contract) -> dict[str, str]:
    found = {IS_PII: str(contract.is_pii).lower()}
    if contract.is_pii or contract.window is not None:
        found |= _window(contract)
    return found | (_statistics(contract, contract.columns) if contract.pii_columns else {})


def _window(contract: Contract) -> dict[str, str]:
    return dict.fromkeys((_FILES, _LOG), f"interval {contract.wanted} days")


def _statistics(contract: Contract, types: Mapping[str, str]) -> dict[str, str]:
    """Statistics for the columns that may have some. Partition columns have none in any case."""
    hidden = {*contract.pii_columns, *contract.partitioned_by}
    open_ = [name for name, type_ in types.items() if name not in hidden and _SKIPPABLE.fullmatch(type_.lower())]
    return {_COLUMNS: ",".join(quote(name) for name in open_)} if open_ else {_FIRST: "0"}


def drift(contract: Contract, properties: Mapping[str, str], columns: Mapping[str, str]) -> list[ContractDrift]:
    """`columns` are those of the table with their types, in its order, fields of structs included."""
    days = [_days(properties.get(key)) for key in (_FILES, _LOG)]
    wrong = [one for one in days if not contract.allows(one)]
    shown = None if None in wrong else max(wrong, default=None)  # type: ignore[type-var]
    found = is_pii_drift(contract, properties)
    if wrong:
        found += window_drift(contract, shown, _window(contract))
    indexed = _indexed(properties, list(columns))
    fix = _statistics(contract, {name: type_ for name, type_ in columns.items() if "." not in name})
    if _FIRST in fix and _COLUMNS in properties:
        fix = {}  # the list wins over the number, and an empty list is none: a person unsets it
    return [*found, *statistics_drift(contract, {n: "full" for n in contract.pii_columns if n in indexed}, fix)]


def _indexed(properties: Mapping[str, str], columns: Sequence[str]) -> set[str]:
    """The columns that get statistics. A struct in the list stands for its fields."""
    if (listed := properties.get(_COLUMNS)) is not None:
        # Delta does not look at the case of names.
        names = [name.strip().replace("`", "").lower() for name in listed.split(",")]
        return {c for c in columns if any(f"{c.lower()}.".startswith(f"{name}.") for name in names)}
    text = properties.get(_FIRST, str(_USUAL_FIRST))
    leaves = [c for c in columns if not any(other.startswith(f"{c}.") for other in columns)]
    first = int(text) if re.fullmatch(r"-?\d+", text) else -1
    return set(leaves if first < 0 else leaves[:first])


def _days(text: str | None) -> float | None:
    length = interval_of(text or "")
    return None if length is None else length / timedelta(days=1)


def spark_type(native: str) -> str | None:
    """The adapter spells types as Spark does already."""
    return None if "<" in native else native.lower()


def create(contract: Contract, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> None:
    refuse_existing(place_of(id_, catalog), catalog)
    columns = ", ".join(f"{quote(name)} {type_}" for name, type_ in contract.columns.items())
    by = f"PARTITIONED BY ({', '.join(quote(name) for name in contract.partitioned_by)})"
    pairs = wanted_properties(contract).items()
    listed = ", ".join(f"{quote_text(key)} = {quote_text(value)}" for key, value in pairs)
    name = quote("delta", place_of(id_, catalog))
    spark.sql(
        f"CREATE TABLE {name} ({columns}) USING delta {by if contract.partitioned_by else ''} TBLPROPERTIES ({listed})"
    )


def set_properties(properties: Mapping[str, str], id_: DatasetId, catalog: Catalog, spark: SparkSession) -> None:
    name = quote("delta", place_of(id_, catalog))
    given = dict(properties)
    if _COLUMNS in given:
        # Delta refuses a list with a partition column in it, and only the table knows which those are.
        (detail,) = spark.sql(f"DESCRIBE DETAIL {name}").select("partitionColumns").collect()
        outside = {quote(column) for column in detail.partitionColumns}
        kept = [column for column in given.pop(_COLUMNS).split(",") if column not in outside]
        given |= {_COLUMNS: ",".join(kept)} if kept else {_FIRST: "0"}
    listed = ", ".join(f"{quote_text(key)} = {quote_text(value)}" for key, value in given.items())
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({listed})")
