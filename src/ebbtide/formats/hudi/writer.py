"""Hudi's own write client, told to do one thing: it cleans, archives, compacts, rolls back and upgrades nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

from ebbtide.errors import EbbtideError
from ebbtide.formats.hudi.timeline import java_path, library
from ebbtide.model.dataset import TableHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET = {
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.clean.async.enabled": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clustering.inline": "false",
    # Anything else rolls back the instants that other writers have begun.
    "hoodie.clean.failed.writes.policy": "NEVER",
    # A writer that does not ask for an index would drop it.
    "hoodie.metadata.auto.delete.partitions": "false",
}
BESIDE_OTHERS = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    # Failed writes are a clean's to roll back, and ours clean nothing.
    "hoodie.clean.failed.writes.policy": "LAZY",
}
"""For a commit that is refused where another one, completed since it began, wrote to the same groups of files."""
_BESIDE_HISTORY = frozenset({"clean", "savepoint"})
_INDEX_SETTINGS = "hoodie.metadata.index."
_COLUMN_STATISTICS = f"{_INDEX_SETTINGS}column.stats.enable"


@dataclass(frozen=True, slots=True)
class Writer:
    """A table opened for one change, with the state of its timeline at that moment."""

    found: TableHandle
    hudi: Any
    java: Any
    meta: Any
    context: Any

    @classmethod
    def open(cls, found: TableHandle, spark: SparkSession) -> Writer:
        hudi = library(spark)
        jvm: Any = spark._jvm
        conf = hudi.storage.hadoop.HadoopStorageConfiguration(spark._jsc.hadoopConfiguration())
        builder = hudi.common.table.HoodieTableMetaClient.builder()
        meta = builder.setConf(conf).setBasePath(java_path(found.location)).build()
        return cls(found, hudi, jvm.java.util, meta, hudi.client.common.HoodieSparkEngineContext(spark._jsc))

    def settings(self) -> dict[str, str]:
        """What a write to this table needs. A metadata table is kept in step where there is one, and never made; so is
        each of its indexes.
        """
        table = self.meta.getTableConfig()
        settings = QUIET | {
            "hoodie.table.name": table.getTableName(),
            "hoodie.metadata.enable": str(bool(table.isMetadataTableAvailable())).lower(),
            "hoodie.write.table.version": str(table.getTableVersion().versionCode()),
        }
        schema = self.hudi.common.table.TableSchemaResolver(self.meta).getTableSchemaIfPresent(False)
        settings |= {"hoodie.avro.schema": schema.get().toString()} if schema.isPresent() else {}
        return settings | self._index_settings()

    def indexes(self) -> set[str]:
        """What the table's metadata table holds, by name: `files`, `column_stats`, `record_index`, …"""
        return {str(name) for name in self.meta.getTableConfig().getMetadataPartitions()}

    def _index_settings(self) -> dict[str, str]:
        """The indexes that the table has, as they are defined, and no other one.

        What a write does not name, Hudi drops or makes as its version sees fit: Spark's writer makes statistics of
        columns, whose values then lie in a table that was to have none.
        """
        have, definitions = self.indexes(), self.meta.getIndexMetadata()
        defined = dict(definitions.get().getIndexDefinitions()) if definitions.isPresent() else {}
        declared = {str(key): str(value) for key, value in dict(self.meta.getTableConfig().propsMap()).items()}
        settings = {key: value for key, value in declared.items() if key.startswith(_INDEX_SETTINGS)}
        options = defined["record_index"].getIndexOptions() if "record_index" in defined else {}
        is_by_partition = options.get("isPartitioned") == "true"
        # Statistics of partitions have no setting of their own: asking for those of columns would make them. What is
        # there and not asked for is kept in step all the same.
        without_partitions = self.meta.getTableConfig().isTablePartitioned() and "partition_stats" not in have
        asked = {
            _COLUMN_STATISTICS: "column_stats" in have and not without_partitions,
            f"{_INDEX_SETTINGS}bloom.filter.enable": "bloom_filters" in have,
            "hoodie.metadata.global.record.level.index.enable": "record_index" in have and not is_by_partition,
            "hoodie.metadata.record.level.index.enable": "record_index" in have and is_by_partition,
            f"{_INDEX_SETTINGS}expression.enable": any(name.startswith("expr_index_") for name in have),
            f"{_INDEX_SETTINGS}secondary.enable": any(name.startswith("secondary_index_") for name in have),
        }
        if "column_stats" in defined:
            fields = defined["column_stats"].getSourceFields()
            settings[f"{_INDEX_SETTINGS}column.stats.column.list"] = ",".join(str(name) for name in fields)
        return settings | {key: str(value).lower() for key, value in asked.items()}

    def config(self, more: Mapping[str, str] | None = None) -> Any:
        properties = self.java.Properties()
        for key, value in (self.settings() | dict(more or {})).items():
            properties.setProperty(key, value)
        builder = self.hudi.config.HoodieWriteConfig.newBuilder()
        return builder.withPath(java_path(self.found.location)).withProperties(properties).build()

    @property
    def none(self) -> Any:
        return self.hudi.common.util.Option.empty()


def completed(found: TableHandle, spark: SparkSession) -> frozenset[str]:
    """The instants that anybody completed and that change what there is to be read."""
    timeline = Writer.open(found, spark).meta.getActiveTimeline()
    instants = json.loads(library(spark).common.util.JsonUtils.toString(timeline.getInstants()))
    return frozenset(
        each["requestedTime"]
        for each in instants
        if each["state"] == "COMPLETED" and each["action"] not in _BESIDE_HISTORY
    )


@contextmanager
def answered(found: TableHandle, what: str) -> Iterator[None]:
    """Java's errors as one sentence."""
    try:
        yield
    except Py4JJavaError as error:
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        reason = str(cause.toString()).partition("\n")[0][:300]
        raise EbbtideError(f"{found.id}: {what} failed: {reason}", hint="look at the table's timeline") from error
    except Py4JError as error:
        raise EbbtideError(f"{found.id}: {what} failed: Spark does not answer", hint="start it again") from error
