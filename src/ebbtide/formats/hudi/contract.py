"""Contracts on Hudi: settings in `hoodie.properties`, which the table carries with it.

The cleaner keeps versions by hours. Statistics of columns live in the metadata table and are on or off for a table as a
whole (Hudi can list the columns that have some, but its partition statistics follow the same list).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ebbtide.formats.warehouse import place_of, refuse_existing
from ebbtide.model.contract import IS_PII, Contract, ContractDrift, is_pii_drift, statistics_drift, window_drift

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ebbtide.model.dataset import Catalog
    from ebbtide.model.ids import DatasetId

_POLICY, _HOURS = "hoodie.clean.policy", "hoodie.clean.hours.retained"
_BY_HOURS = "KEEP_LATEST_BY_HOURS"
_STATISTICS = ("hoodie.metadata.index.column.stats.enable", "hoodie.metadata.index.partition.stats.enable")
_INDEXES = "hoodie.table.metadata.partitions"
_WITH_VALUES = {"column_stats", "partition_stats"}


def wanted_properties(contract: Contract) -> dict[str, str]:
    found = {IS_PII: str(contract.is_pii).lower()}
    if contract.is_pii or contract.window is not None:
        found |= _window(contract)
    return found | (dict.fromkeys(_STATISTICS, "false") if contract.pii_columns else {})


def _window(contract: Contract) -> dict[str, str]:
    return {_POLICY: _BY_HOURS, _HOURS: str(contract.wanted * 24)}


def drift(contract: Contract, properties: Mapping[str, str], columns: Mapping[str, str]) -> list[ContractDrift]:  # noqa: ARG001
    hours = properties.get(_HOURS, "")
    days = int(hours) / 24 if properties.get(_POLICY) == _BY_HOURS and hours.isdigit() else None
    on = [key for key in _STATISTICS if properties.get(key, "true").lower() != "false"]
    # An index that is there keeps its values when the settings are off, until a writer or a person drops it.
    kept = _WITH_VALUES & {name.strip() for name in properties.get(_INDEXES, "").split(",")}
    readable = dict.fromkeys(contract.pii_columns, "full") if on or kept else {}
    return [
        *is_pii_drift(contract, properties),
        *window_drift(contract, days, _window(contract)),
        *statistics_drift(contract, readable, dict.fromkeys(on, "false")),
    ]


def spark_type(native: str) -> str | None:
    """The adapter spells types as Spark does already."""
    return None if "<" in native else native.lower()


def create(contract: Contract, id_: DatasetId, catalog: Catalog, spark: SparkSession) -> None:
    refuse_existing(place_of(id_, catalog), catalog)
    # By Hudi's own builder: LOCATION in SQL spells some folders otherwise than they are.
    hudi = _library(spark)
    builder = hudi.common.table.HoodieTableMetaClient.newTableBuilder().setTableType("COPY_ON_WRITE")
    builder = builder.setTableName(id_.table).setHiveStylePartitioningEnable(True).setUrlEncodePartitioning(True)
    columns = ", ".join(f"`{name.replace('`', '``')}` {type_}" for name, type_ in contract.columns.items())
    struct = spark._jvm.org.apache.spark.sql.types.DataType.fromDDL(columns)  # type: ignore[union-attr]
    schema = hudi.HoodieSchemaConversionUtils.convertStructTypeToHoodieSchema(struct, "table_record", "hoodie.table")
    builder = builder.setTableCreateSchema(str(schema.toString()))
    if contract.key:
        builder = builder.setRecordKeyFields(",".join(contract.key))
    is_simple = len(contract.key) <= 1 and len(contract.partitioned_by) == 1
    generator = "SimpleKeyGenerator" if is_simple else "ComplexKeyGenerator"
    if contract.partitioned_by:
        builder = builder.setPartitionFields(",".join(contract.partitioned_by))
    else:
        generator = "NonpartitionedKeyGenerator"
    builder = builder.setKeyGeneratorClassProp(f"org.apache.hudi.keygen.{generator}")
    builder.initTable(_conf(spark), place_of(id_, catalog))
    set_properties(wanted_properties(contract), id_, catalog, spark)


def set_properties(properties: Mapping[str, str], id_: DatasetId, catalog: Catalog, spark: SparkSession) -> None:
    """What Hudi's own shell does: ALTER TABLE … SET TBLPROPERTIES only reaches Spark's catalog."""
    hudi, place = _library(spark), place_of(id_, catalog)
    client = hudi.common.table.HoodieTableMetaClient.builder().setConf(_conf(spark)).setBasePath(place).build()
    given = spark._jvm.java.util.Properties()  # type: ignore[union-attr]
    for key, value in properties.items():
        given.setProperty(key, value)
    hudi.common.table.HoodieTableConfig.update(client.getStorage(), client.getMetaPath(), given)


def _library(spark: SparkSession) -> Any:
    return spark._jvm.org.apache.hudi  # type: ignore[union-attr]


def _conf(spark: SparkSession) -> Any:
    return _library(spark).storage.hadoop.HadoopStorageConfiguration(spark._jsc.hadoopConfiguration())
