"""Iceberg tables by SQL and Iceberg's own procedures."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, Row

from ebbtide.model.ids import DatasetId
from ebbtide.spark.session import quote
from tests.conformance.driver import Driver, Rows, Table

_COLUMNS = "id BIGINT, name STRING, day STRING"


class IcebergDriver(Driver):
    format = "iceberg"
    variants = ("v2", "v1", "v3")

    def create(
        self,
        name: str,
        *,
        variant: str = "",
        partitioned: bool = False,
        properties: Mapping[str, str] | None = None,
        columns: str | None = None,
    ) -> Table:
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote(self.catalog.name, 'db')}")
        table = Table(
            DatasetId(self.catalog.name, ("db",), name),
            f"{self.catalog.warehouse}/db/{name}",
            quote(self.catalog.name, "db", name),
        )
        version = (variant or self.variants[0]).removeprefix("v")
        settings = {"format-version": version}
        if version != "1":
            settings |= {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}
        settings |= properties or {}
        text = ", ".join(f"'{key}'='{value}'" for key, value in settings.items())
        self.spark.sql(
            f"CREATE TABLE {table.sql} ({columns or _COLUMNS}) USING iceberg "
            f"{'PARTITIONED BY (day)' if partitioned else ''} TBLPROPERTIES ({text})"
        )
        return table

    def _frame(self, table: Table, rows: Rows) -> DataFrame:
        schema = self.spark.table(table.sql).schema
        return self.spark.createDataFrame(list(rows), schema).coalesce(1)

    def _target(self, table: Table, branch: str | None) -> str:
        return f"{table.sql}.{quote('branch_' + branch)}" if branch else table.sql

    def append(self, table: Table, rows: Rows, *, branch: str | None = None) -> None:
        self._frame(table, rows).writeTo(self._target(table, branch)).append()

    def overwrite(self, table: Table, rows: Rows, *, branch: str | None = None) -> None:
        from pyspark.sql.functions import lit

        self._frame(table, rows).writeTo(self._target(table, branch)).overwrite(lit(True))

    def delete(self, table: Table, where: str) -> None:
        self.spark.sql(f"DELETE FROM {table.sql} WHERE {where}")

    def delete_all(self, table: Table) -> None:
        self.spark.sql(f"DELETE FROM {table.sql}")

    def _call(self, procedure: str, arguments: str) -> list[Row]:
        return self.spark.sql(f"CALL {quote(self.catalog.name)}.system.{procedure}({arguments})").collect()

    def compact(self, table: Table) -> None:
        name = quote("db", table.id.table)
        self._call("rewrite_data_files", f"table => '{name}', options => map('rewrite-all', 'true')")

    def set_property(self, table: Table, key: str, value: str) -> None:
        self.spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('{key}'='{value}')")

    def add_column(self, table: Table, name: str, type_: str) -> None:
        self.spark.sql(f"ALTER TABLE {table.sql} ADD COLUMN {quote(name)} {type_}")

    def expire(self, table: Table) -> None:
        name = quote("db", table.id.table)
        self._call(
            "expire_snapshots", f"table => '{name}', older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1"
        )

    def drop(self, table: Table) -> None:
        self.spark.sql(f"DROP TABLE {table.sql} PURGE")

    def create_branch(self, table: Table, branch: str, at: str | None = None) -> None:
        self.spark.sql(f"ALTER TABLE {table.sql} CREATE BRANCH {quote(branch)}{f' AS OF VERSION {at}' if at else ''}")

    def drop_branch(self, table: Table, branch: str) -> None:
        self.spark.sql(f"ALTER TABLE {table.sql} DROP BRANCH {quote(branch)}")

    def create_tag(self, table: Table, tag: str, at: str | None = None) -> None:
        self.spark.sql(f"ALTER TABLE {table.sql} CREATE TAG {quote(tag)}{f' AS OF VERSION {at}' if at else ''}")

    def drop_tag(self, table: Table, tag: str) -> None:
        self.spark.sql(f"ALTER TABLE {table.sql} DROP TAG {quote(tag)}")

    def rollback(self, table: Table, to: str) -> None:
        self._call("rollback_to_snapshot", f"'{quote('db', table.id.table)}', {to}")

    def replace(self, table: Table, rows: Rows) -> None:
        self._frame(table, rows).writeTo(table.sql).using("iceberg").createOrReplace()

    def stage(self, table: Table, rows: Rows) -> str:
        self.set_property(table, "write.wap.enabled", "true")
        before = set(self.native_ids(table))
        self.spark.conf.set("spark.wap.id", f"wap-{len(before)}")
        try:
            self.append(table, rows)
        finally:
            self.spark.conf.unset("spark.wap.id")
        (staged,) = set(self.native_ids(table)) - before
        return staged

    def cherry_pick(self, table: Table, staged: str) -> None:
        self._call("cherrypick_snapshot", f"'{quote('db', table.id.table)}', {staged}")

    def add_partition_field(self, table: Table) -> None:
        self.spark.sql(f"ALTER TABLE {table.sql} ADD PARTITION FIELD bucket(4, id)")

    def rows(self, table: Table, *, version: str | None = None, branch: str | None = None) -> list[Row]:
        reader = self.spark.read.format("iceberg")
        if branch:
            reader = reader.option("branch", branch)
        # By name: the option `snapshot-id` is gone in Spark 4.1.
        found = self.spark.table(f"{table.sql}.`snapshot_id_{version}`") if version else reader.load(table.sql)
        return sorted(found.collect(), key=str)

    def native_ids(self, table: Table) -> list[str]:
        rows = self.spark.sql(f"SELECT snapshot_id FROM {table.sql}.snapshots ORDER BY committed_at").collect()
        return [str(row.snapshot_id) for row in rows]


DRIVER = IcebergDriver
