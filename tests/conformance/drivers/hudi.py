"""Real Hudi tables for the conformance suite: rows by the DataFrame writer, changes by SQL, services by procedures.

Folders with spaces, `%` or `#` work for the DataFrame writer, but not for `LOCATION` in SQL, which encodes them: there
the lake is reached by a link. Tables with such names stay unregistered, so they know no `UPDATE`, `ALTER`, and no
procedure that asks for a table's name.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, Row
from pyspark.sql.types import _parse_datatype_string

from ebbtide.model.ids import DatasetId
from ebbtide.spark.session import quote, quote_text
from tests.conformance.driver import Driver, Rows, Table

# Quick, and nothing is cleaned, archived, compacted or packed into small files behind a test's back.
_WRITER = {
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
}
_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_SQL_SAFE = re.compile(r"^[\w.:'-]+$")
_COLUMNS = "id BIGINT, name STRING, day STRING"


class HudiDriver(Driver):
    format = "hudi"
    variants = ("cow", "mor")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._columns: dict[str, str] = {}
        self._properties: dict[str, dict[str, str]] = {}
        self._tags: dict[tuple[str, str], str] = {}
        self._links = TemporaryDirectory()

    def create(
        self,
        name: str,
        *,
        variant: str = "",
        partitioned: bool = False,
        properties: Mapping[str, str] | None = None,
        columns: str | None = None,
        table_version: int | None = None,
    ) -> Table:
        location = f"{self.catalog.warehouse}/db/{name}"
        columns, given = columns or _COLUMNS, dict(properties or {})
        sql = quote("default", f"hudi_{uuid4().hex}")
        table = Table(DatasetId(self.catalog.name, ("db",), name), location, sql)
        self._columns[location], self._properties[location] = columns, given
        builder = self._hudi.common.table.HoodieTableMetaClient.newTableBuilder()
        builder = builder.setTableType(_TYPES[variant or "cow"]).setTableName("t").setRecordKeyFields("id")
        builder = builder.setHiveStylePartitioningEnable(True).setTableCreateSchema(self._avro(columns))
        generator = "SimpleKeyGenerator" if partitioned else "NonpartitionedKeyGenerator"
        builder = builder.setKeyGeneratorClassProp(f"org.apache.hudi.keygen.{generator}")
        if partitioned:
            # Without this a colon in a value is refused by Hudi, and a slash makes a folder.
            builder = builder.setPartitionFields("day").setUrlEncodePartitioning(True)
        if table_version is not None:
            builder = builder.setTableVersion(table_version)
            given["hoodie.write.table.version"] = str(table_version)
        for key, value in given.items():
            builder = builder.set(self.spark._jvm.java.util.Map.of(key, value))  # type: ignore[union-attr]
        builder.initTable(self._conf, location)
        for key, value in given.items():
            self.set_property(table, key, value)
        if _SQL_SAFE.match(name):
            writer = ", ".join(f"{quote_text(k)} = {quote_text(v)}" for k, v in (_WRITER | given).items())
            place = quote_text(self.linked(location))
            self.spark.sql(f"CREATE TABLE {sql} USING hudi LOCATION {place} TBLPROPERTIES ({writer})")
        return table

    def linked(self, location: str) -> str:
        """A way to the table that SQL can be told of, whatever the lake's folder is called."""
        link = Path(self._links.name, uuid4().hex)
        link.symlink_to(location)
        return str(link)

    @property
    def _hudi(self) -> Any:
        return self.spark._jvm.org.apache.hudi  # type: ignore[union-attr]

    @property
    def _conf(self) -> Any:
        return self._hudi.storage.hadoop.HadoopStorageConfiguration(self.spark._jsc.hadoopConfiguration())

    def _avro(self, columns: str) -> str:
        struct = self.spark._jvm.org.apache.spark.sql.types.DataType.fromDDL(columns)  # type: ignore[union-attr]
        convert = self._hudi.HoodieSchemaConversionUtils.convertStructTypeToHoodieSchema
        return str(convert(struct, "t_record", "hoodie.t").toString())

    def _write(self, table: Table, rows: Rows, operation: str) -> None:
        self._save(table, self.spark.createDataFrame(list(rows), self._columns[table.location]), operation)

    def _save(self, table: Table, frame: DataFrame, operation: str) -> None:
        frame = frame.select(*[quote(name) for name in frame.columns if not name.startswith("_hoodie_")]).coalesce(1)
        settings = _WRITER | self._properties[table.location]
        settings |= {"hoodie.table.name": "t", "hoodie.datasource.write.operation": operation}
        frame.write.format("hudi").options(**settings).mode("append").save(table.location)

    def append(self, table: Table, rows: Rows, *, branch: str | None = None) -> None:  # noqa: ARG002
        self._write(table, rows, "insert")

    def overwrite(self, table: Table, rows: Rows, *, branch: str | None = None) -> None:  # noqa: ARG002
        self._write(table, rows, "insert_overwrite_table")

    def delete(self, table: Table, where: str) -> None:
        if not _SQL_SAFE.match(table.id.table):
            self._save(table, self.spark.read.format("hudi").load(table.location).where(where), "delete")
            return
        self.spark.sql(f"DELETE FROM {table.sql} WHERE {where}")

    def update(self, table: Table, assignment: str, where: str) -> None:
        self.spark.sql(f"UPDATE {table.sql} SET {assignment} WHERE {where}")

    def delete_all(self, table: Table) -> None:
        # DELETE would leave an empty file behind for each one that it empties.
        self._write(table, [], "insert_overwrite_table")

    def compact(self, table: Table) -> None:
        # Clustering rewrites on both table types; compaction only folds log files into their own base file.
        self._call("run_clustering", table, op="scheduleandexecute")

    def fold_logs(self, table: Table, op: str = "scheduleandexecute") -> None:
        """Merge-on-read compaction."""
        self._call("run_compaction", table, op=op, options="hoodie.compact.inline.max.delta.commits=1")

    def _call(self, procedure: str, table: Table, **arguments: str | int) -> list[Row]:
        given = {"table": table.sql.replace("`", ""), **arguments}
        texts = (f"{k} => {quote_text(v) if isinstance(v, str) else v}" for k, v in given.items())
        return self.spark.sql(f"CALL {procedure}({', '.join(texts)})").collect()

    def set_property(self, table: Table, key: str, value: str) -> None:
        # ALTER TABLE … SET TBLPROPERTIES only reaches Spark's catalog; this is what Hudi's own shell does.
        storage_path = self._hudi.storage.StoragePath(f"{table.location}/.hoodie".replace("//", "/"))
        properties = self.spark._jvm.java.util.Properties()  # type: ignore[union-attr]
        properties.setProperty(key, value)
        client = self._client(table)
        self._hudi.common.table.HoodieTableConfig.update(client.getStorage(), storage_path, properties)

    def _client(self, table: Table) -> Any:
        builder = self._hudi.common.table.HoodieTableMetaClient.builder()
        return builder.setConf(self._conf).setBasePath(table.location).build()

    def add_column(self, table: Table, name: str, type_: str) -> None:
        self.spark.sql(f"ALTER TABLE {table.sql} ADD COLUMNS ({quote(name)} {type_})")
        self._columns[table.location] += f", {quote(name)} {type_}"

    def expire(self, table: Table) -> None:
        self._call("run_clean", table, clean_policy="KEEP_LATEST_FILE_VERSIONS", file_versions_retained=1)

    def archive(self, table: Table) -> None:
        """Move all but the newest commits into the archived timeline."""
        self._call("archive_commits", table, min_commits=1, max_commits=2, retain_commits=1)

    def drop(self, table: Table) -> None:
        self.spark.sql(f"DROP TABLE IF EXISTS {table.sql}")
        shutil.rmtree(table.location)

    def create_tag(self, table: Table, tag: str, at: str | None = None) -> None:
        """A savepoint has no name of its own: its name is the instant that it pins."""
        instant = at or self.native_ids(table)[-1]
        self._call("create_savepoint", table, commit_time=instant, comments=tag)
        self._tags[table.location, tag] = instant

    def drop_tag(self, table: Table, tag: str) -> None:
        self._call("delete_savepoint", table, instant_time=self._tags.get((table.location, tag), tag))

    def rollback(self, table: Table, to: str) -> None:
        self._call("create_savepoint", table, commit_time=to)
        self._call("rollback_to_savepoint", table, instant_time=to)
        self._call("delete_savepoint", table, instant_time=to)

    def rows(self, table: Table, *, version: str | None = None, branch: str | None = None) -> list[Row]:  # noqa: ARG002
        reader = self.spark.read.format("hudi")
        frame = (reader.option("as.of.instant", version) if version else reader).load(table.location)
        # Readers put partition columns last; the rows of a test have them where they were declared.
        names = _parse_datatype_string(self._columns[table.location]).names  # type: ignore[attr-defined]
        rows = frame.select(*[quote(name) for name in names if name in frame.columns]).collect()
        return sorted(rows, key=lambda row: [(value is not None, value) for value in row])

    def native_ids(self, table: Table) -> list[str]:
        if not _SQL_SAFE.match(table.id.table):
            names = (path.name for path in Path(table.location, ".hoodie", "timeline").iterdir())
            done = [m.groups() for name in names if (m := re.match(r"(\d+)_(\d+)\.\w*commit$", name))]
            return [requested for requested, _ in sorted(done, key=lambda times: times[1])]
        shown = self._call("show_commits", table, limit=100_000)
        # Without bounds it leaves out the last day.
        archived = self._call("show_archived_commits", table, limit=100_000, start_ts="0", end_ts="9" * 17)
        return [row["commit_time"] for row in sorted([*shown, *archived], key=lambda r: r["state_transition_time"])]


DRIVER = HudiDriver
