"""Iceberg tables in which people are planted: format 1, 2 (copy-on-write, merge-on-read) and 3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from ebbtide.model.dataset import Catalog
from ebbtide.spark.session import quote, quote_text
from tests.erasure.cells import Cannot, Cell, Variant, planted
from tests.erasure.people import TYPES, WHO
from tests.erasure.variants.rows import PARTITIONS, Made, Read, Row, Rows, reading

_FOLDER = 5  # ids of rows in a folder of their own, where others of that place lie in a lane
_DATA = r"^data/.*\.parquet$"
_COMMON: dict[str, Cell] = {
    "data": planted("a row of the head", _DATA, "parquet", "data row", by="branch:main"),
    "old version": planted("a row of a version that was overwritten", _DATA, "parquet", "data row", by="version:"),
    "branch": planted("a row that was appended to a branch only", _DATA, "parquet", "data row", by="branch:side"),
    "tag": planted("a row of a version that a tag keeps", _DATA, "parquet", "data row", by="tag:kept"),
    "manifest bound": planted(
        "the entry of a file that is gone: deleted, expired, but not out of the manifest",
        r"^metadata/[^/]*-m\d+\.avro$",
        "avro",
        "manifest bound",
        cut=16,
        gone=True,
    ),
    "partition summary": planted(
        "the bounds of a manifest's partitions", r"^metadata/snap-[^/]*\.avro$", "avro", "manifest list bound"
    ),
    "statistics": planted(
        "statistics of partitions", r"^metadata/partition-stats-[^/]*\.parquet$", "parquet", "statistics row"
    ),
    "partition path": planted("the folder of a partition", _DATA, "name", "data path"),
    "log": Cannot("Iceberg has no log: what a commit says stands in metadata.json, which `metadata property` covers"),
    "checkpoint": Cannot("Iceberg has no checkpoints: each metadata.json is whole"),
    "change data": Cannot("Iceberg writes no change data: changes are read from the versions"),
    "archive": Cannot("Iceberg moves nothing into an archive: what expired is removed"),
    "orphan": planted("a file that no version names", r"^data/00000-9-orphan\.parquet$", "parquet", "unreferenced row"),
    "staged": planted(
        "a row of a version that was staged (`wap.id`) and never published", _DATA, "parquet", "data row", by="version:"
    ),
    "metadata property": planted("a property of the table", r"^metadata/[^/]*\.metadata\.json$", "raw", "metadata row"),
}
_EQUALITY = planted(
    "the key of an equality delete, and the path in a position delete",
    r"^data/.*(deletes|/eq-[^/]*)\.parquet$",
    "parquet",
    "delete file row",
)
_COPIES = Cannot("copy-on-write leaves no delete file")
_NO_VECTORS = Cannot("vectors came with format 3")


def _variant(name: str, title: str, delete_file: Cell, vector: Cell, *, binary_uuid: bool = False) -> Variant:
    cells = _COMMON | {"delete file": delete_file, "vector": vector}
    return Variant("iceberg", name, title, cells, {}, binary_uuid)


VARIANTS = (
    _variant("v2_mor", "format 2, merge-on-read: position and equality deletes", _EQUALITY, _NO_VECTORS),
    _variant("v1", "format 1", Cannot("format 1 has no delete files"), _NO_VECTORS),
    _variant("v2_cow", "format 2, copy-on-write", _COPIES, _NO_VECTORS, binary_uuid=True),
    _variant(
        "v3",
        "format 3: vectors",
        planted("the key of an equality delete", r"^data/.*eq-[^/]*\.parquet$", "parquet", "delete file row"),
        planted("the path of the file whose rows a vector hides", r"^data/.*\.puffin$", "raw", "deletion vector row"),
        binary_uuid=True,
    ),
)


def build(spark: SparkSession, catalog: Catalog, variant: Variant) -> Made:
    return _Builder(spark, catalog, variant).build()


class _Builder:
    def __init__(self, spark: SparkSession, catalog: Catalog, variant: Variant) -> None:
        self._spark, self._variant, self._rows = spark, variant, Rows(variant)
        self._catalog = catalog
        self._name = f"planted_{variant.name}"
        self._sql = quote(catalog.name, "db", self._name)
        self._location = Path(catalog.warehouse, "db", self._name)

    def build(self) -> Made:
        rows = self._rows
        self._create()
        self._append(rows.both("tag"))
        self._run("CREATE TAG kept")
        self._run("CREATE BRANCH side")
        self._append(rows.both("branch"), branch="side")
        self._overwrite(rows.both("old version"))
        self._overwrite(
            [
                *rows.both("data"),
                *rows.both("delete file"),
                *rows.filler(),
                rows.one("manifest bound", "neighbour", lane=1),
                rows.one("manifest bound", lane=2),
                *rows.folders("partition path"),
                *rows.folders("statistics"),
                *(rows.folders("vector") if rows.variant.planted("vector") else []),
                *(rows.folders("delete file", shift=_FOLDER) if rows.variant.planted("delete file") else []),
            ]
        )
        self._leave_a_bound()
        self._append(rows.folders("partition summary"))
        if self._variant.planted("delete file"):
            self._delete_by_position("delete file", 0, _FOLDER)
            self._delete_by_key("delete file")
        if self._variant.planted("vector"):
            self._delete_by_position("vector", 0)
        self._call("compute_partition_stats", "")
        self._stage(rows.both("staged"))
        self._rows.write_orphan(self._location / "data" / "00000-9-orphan.parquet")
        return Made(self._variant, self._catalog, self._location, self._sql, self._refs())

    def _create(self) -> None:
        merge = "merge-on-read" if self._variant.name in ("v2_mor", "v3") else "copy-on-write"
        notes = {f"note.{who}": self._rows.note("metadata property", who) for who in ("person", "neighbour")}
        settings = {"format-version": self._variant.name[1], "write.delete.mode": merge, **notes}
        listed = ", ".join(f"{quote_text(key)} = {quote_text(value)}" for key, value in settings.items())
        self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote(self._catalog.name, 'db')}")
        self._spark.sql(
            f"CREATE TABLE {self._sql} ({self._rows.columns}) USING iceberg PARTITIONED BY ({PARTITIONS}) "
            f"TBLPROPERTIES ({listed})"
        )

    def _run(self, change: str) -> None:
        self._spark.sql(f"ALTER TABLE {self._sql} {change}")

    def _call(self, procedure: str, more: str) -> None:
        name = quote_text(quote("db", self._name))
        self._spark.sql(f"CALL {quote(self._catalog.name)}.system.{procedure}(table => {name}{more})").collect()

    def _frame(self, rows: list[Row]) -> DataFrame:
        return (
            self._spark.createDataFrame(rows, self._rows.columns)
            .coalesce(1)
            .sortWithinPartitions(*PARTITIONS.split(", "))
        )

    def _append(self, rows: list[Row], *, branch: str | None = None) -> None:
        self._frame(rows).writeTo(f"{self._sql}.branch_{branch}" if branch else self._sql).append()

    def _overwrite(self, rows: list[Row]) -> None:
        self._frame(rows).writeTo(self._sql).overwrite(lit(True))

    def _leave_a_bound(self) -> None:
        """Delete a whole file and expire the version that had it: the file goes, and its entry stays, as deleted."""
        before = self._head()
        self._spark.sql(f"DELETE FROM {self._sql} WHERE p_bigint = 2")
        self._call("expire_snapshots", f", snapshot_ids => array({before})")

    def _head(self) -> int:
        row = self._spark.sql(f"SELECT snapshot_id FROM {self._sql}.refs WHERE name = 'main'").first()
        assert row is not None
        return int(row[0])

    def _delete_by_position(self, place: str, *shifts: int) -> None:
        ids = [self._rows.id_of(place, who) + shift for who in WHO[:2] for shift in shifts]
        self._spark.sql(f"DELETE FROM {self._sql} WHERE id IN ({', '.join(map(str, ids))})")

    def _delete_by_key(self, place: str) -> None:
        """As Flink writes it: the key of the row stands in a new file."""
        java: Any = self._spark._jvm
        iceberg, table = java.org.apache.iceberg, self._java()
        gateway: Any = self._spark.sparkContext._gateway
        ids = gateway.new_array(java.int, len(TYPES))
        wanted = java.java.util.HashSet()
        for n, type_ in enumerate(TYPES):
            ids[n] = table.schema().findField(f"c_{type_}").fieldId()
            wanted.add(ids[n])
        key = iceberg.types.TypeUtil.select(table.schema(), wanted)
        make = getattr(iceberg.data, "GenericFileWriterFactory$Builder")(table)
        make = make.deleteFileFormat(iceberg.FileFormat.PARQUET).equalityFieldIds(ids).equalityDeleteRowSchema(key)
        path = f"file:{self._location}/data/eq-{self._variant.name}.parquet"
        output = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(table.io().newOutputFile(path))
        lane = next(file.partition() for file in self._files(table) if "p_text=-/p_bigint=0/" in file.location())
        writer = make.build().newEqualityDeleteWriter(output, table.spec(), lane)
        for who in ("person", "neighbour"):
            record = iceberg.data.GenericRecord.create(key)
            for type_, value in zip(TYPES, self._rows.values(place, who), strict=True):
                record.setField(f"c_{type_}", self._in_java(java, value))
            writer.write(record)
        writer.close()
        table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
        self._spark.catalog.refreshTable(self._sql)

    def _files(self, table: Any) -> Iterator[Any]:
        tasks = table.newScan().planFiles()
        found = tasks.iterator()
        while found.hasNext():
            yield found.next().file()
        tasks.close()

    def _in_java(self, java: Any, value: object) -> Any:
        if isinstance(value, UUID):
            return java.java.nio.ByteBuffer.wrap(value.bytes) if self._variant.binary_uuid else str(value)
        return value

    def _java(self) -> Any:
        java: Any = self._spark._jvm
        return java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self._spark._jsparkSession, self._sql)

    def _stage(self, rows: list[Row]) -> None:
        self._run("SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
        self._spark.conf.set("spark.wap.id", f"staged-{self._variant.name}")
        try:
            self._append(rows)
        finally:
            self._spark.conf.unset("spark.wap.id")

    def _refs(self) -> dict[str, Read]:
        found = self._spark.sql(f"SELECT snapshot_id FROM {self._sql}.snapshots").collect()
        names = {f"version {row[0]}": f"{self._sql}.snapshot_id_{row[0]}" for row in found}
        names |= {"main": self._sql, "side": f"{self._sql}.branch_side", "kept": f"{self._sql}.tag_kept"}
        return {name: reading(self._spark, text) for name, text in names.items()}
