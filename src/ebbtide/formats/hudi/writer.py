"""Hudi's own write client, told to do one thing: it cleans, archives, compacts, rolls back and upgrades nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

from ebbtide.errors import EbbtideError
from ebbtide.formats.hudi.timeline import java_path, library
from ebbtide.model.dataset import Found

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
}


@dataclass(frozen=True, slots=True)
class Writer:
    """A table opened for one change, with the state of its timeline at that moment."""

    found: Found
    hudi: Any
    java: Any
    meta: Any
    context: Any

    @classmethod
    def open(cls, found: Found, spark: SparkSession) -> Writer:
        hudi = library(spark)
        jvm: Any = spark._jvm
        conf = hudi.storage.hadoop.HadoopStorageConfiguration(spark._jsc.hadoopConfiguration())
        builder = hudi.common.table.HoodieTableMetaClient.builder()
        meta = builder.setConf(conf).setBasePath(java_path(found.location)).build()
        return cls(found, hudi, jvm.java.util, meta, hudi.client.common.HoodieSparkEngineContext(spark._jsc))

    def settings(self) -> dict[str, str]:
        """What a write to this table needs. A metadata table is kept in step where there is one, and never made."""
        table = self.meta.getTableConfig()
        settings = QUIET | {
            "hoodie.table.name": table.getTableName(),
            "hoodie.metadata.enable": str(bool(table.isMetadataTableAvailable())).lower(),
            "hoodie.write.table.version": str(table.getTableVersion().versionCode()),
        }
        schema = self.hudi.common.table.TableSchemaResolver(self.meta).getTableSchemaIfPresent(False)
        return settings | ({"hoodie.avro.schema": schema.get().toString()} if schema.isPresent() else {})

    def config(self, more: Mapping[str, str] | None = None) -> Any:
        properties = self.java.Properties()
        for key, value in (self.settings() | dict(more or {})).items():
            properties.setProperty(key, value)
        builder = self.hudi.config.HoodieWriteConfig.newBuilder()
        return builder.withPath(java_path(self.found.location)).withProperties(properties).build()

    @property
    def none(self) -> Any:
        return self.hudi.common.util.Option.empty()


@contextmanager
def answered(found: Found, what: str) -> Iterator[None]:
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
