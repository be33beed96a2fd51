"""Writes Delta tables by SQL on their paths: `<warehouse>/db/<table>`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row

from ebbtide.model.ids import DatasetId
from ebbtide.spark.session import quote, quote_text
from tests.conformance.driver import Driver, Rows, Table

_COLUMNS = "id BIGINT, name STRING, day STRING"
_FEATURE = "delta.enableDeletionVectors"
_LONG_AGO = 90 * 86_400


class DeltaDriver(Driver):
    format = "delta"
    variants = ("plain", "vectors")

    def create(
        self,
        name: str,
        *,
        variant: str = "",
        partitioned: bool = False,
        properties: Mapping[str, str] | None = None,
        columns: str | None = None,
    ) -> Table:
        location = f"{self.catalog.warehouse}/db/{name}"
        table = Table(DatasetId(self.catalog.name, ("db",), name), location, quote("delta", location))
        settings = {_FEATURE: "true" if variant == "vectors" else "false"} | dict(properties or {})
        listed = ", ".join(f"{quote_text(key)} = {quote_text(value)}" for key, value in settings.items())
        by_day = "PARTITIONED BY (day)" if partitioned else ""
        self.spark.sql(
            f"CREATE TABLE {table.sql} ({columns or _COLUMNS}) USING delta {by_day} TBLPROPERTIES ({listed})"
        )
        return table

    def _frame(self, table: Table, rows: Rows) -> DataFrame:
        schema = self.spark.read.format("delta").load(table.location).schema
        return self.spark.createDataFrame(list(rows), schema).coalesce(1)

    def append(self, table: Table, rows: Rows, *, branch: str | None = None) -> None:
        self._write(table, rows, "append", branch)

    def overwrite(self, table: Table, rows: Rows, *, branch: str | None = None) -> None:
        self._write(table, rows, "overwrite", branch)

    def _write(self, table: Table, rows: Rows, mode: str, branch: str | None) -> None:
        if branch not in (None, "main"):
            raise NotImplementedError
        self._frame(table, rows).write.format("delta").mode(mode).save(table.location)

    def delete(self, table: Table, where: str) -> None:
        self.spark.sql(f"DELETE FROM {table.sql} WHERE {where}")

    def delete_all(self, table: Table) -> None:
        # Without a condition, Hudi's parser takes the statement in some sessions and fails on it.
        self.spark.sql(f"DELETE FROM {table.sql} WHERE true")

    def compact(self, table: Table) -> None:
        self.spark.sql(f"OPTIMIZE {table.sql}")

    def set_property(self, table: Table, key: str, value: str) -> None:
        self.spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({quote_text(key)} = {quote_text(value)})")

    def add_column(self, table: Table, name: str, type_: str) -> None:
        self.spark.sql(f"ALTER TABLE {table.sql} ADD COLUMN {quote(name)} {type_}")

    def expire(self, table: Table) -> None:
        """VACUUM takes the files, a checkpoint and Delta's log cleanup the versions before the newest."""
        self.vacuum(table)
        self.checkpoint(table)
        self.clean_log(table)

    def vacuum(self, table: Table) -> None:
        with self._setting("spark.databricks.delta.retentionDurationCheck.enabled", "false"):
            self.spark.sql(f"VACUUM {table.sql} RETAIN 0 HOURS")

    def checkpoint(self, table: Table) -> None:
        self._log(table).checkpoint()

    def clean_log(self, table: Table, *, before: int | None = None) -> None:
        """Delta's own log cleanup, after the log's files (those of versions below `before`) were made old."""
        for path in Path(table.location, "_delta_log").iterdir():
            version = path.name.lstrip(".")[:20]
            if path.is_file() and (before is None or (version.isdigit() and int(version) < before)):
                # Every version keeps its own time, in order: cleanup goes by it.
                old = path.stat().st_mtime - _LONG_AGO
                os.utime(path, (old, old))
        log = self._log(table)
        cleanup = next(method for method in log.getClass().getMethods() if method.getName() == "doLogCleanup")
        # Delta 4 also wants the catalog's entry of the table, which a table by path has not.
        extra = [self._jvm.scala.Option.empty()] * (cleanup.getParameterCount() - 1)
        log.doLogCleanup(log.unsafeVolatileSnapshot(), *extra)

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm

    def _log(self, table: Table) -> Any:
        delta_log = self._jvm.org.apache.spark.sql.delta.DeltaLog
        delta_log.clearCache()
        return delta_log.forTable(self.spark._jsparkSession, table.location)

    @contextmanager
    def _setting(self, key: str, value: str) -> Iterator[None]:
        self.spark.conf.set(key, value)
        try:
            yield
        finally:
            self.spark.conf.unset(key)

    def drop(self, table: Table) -> None:
        # DROP TABLE on a path forgets nothing and removes nothing: the folder is the table.
        shutil.rmtree(table.location)
        self._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def rollback(self, table: Table, to: str) -> None:
        self.spark.sql(f"RESTORE TABLE {table.sql} TO VERSION AS OF {int(to)}")

    def replace(self, table: Table, rows: Rows) -> None:
        view = f"replacing_{os.getpid()}"
        self._frame(table, rows).createOrReplaceTempView(view)
        self.spark.sql(f"CREATE OR REPLACE TABLE {table.sql} USING delta AS SELECT * FROM {view}")

    def rows(self, table: Table, *, version: str | None = None, branch: str | None = None) -> list[Row]:
        if branch not in (None, "main"):
            raise NotImplementedError
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", int(version))
        return sorted(reader.load(table.location).collect(), key=str)

    def native_ids(self, table: Table) -> list[str]:
        history = self.spark.sql(f"DESCRIBE HISTORY {table.sql}").collect()
        return [str(version) for version in sorted(row["version"] for row in history)]


DRIVER = DeltaDriver
