"""Delta tables in which people are planted: plain, with vectors, with column mapping and change data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ebbtide.model.dataset import Catalog
from ebbtide.spark.session import quote, quote_text
from tests.erasure.cells import Cannot, Cell, Variant, planted
from tests.erasure.people import WHO
from tests.erasure.variants.rows import PARTITIONS, Made, Read, Row, Rows, reading

_DATA = r"^(?!_delta_log/|_change_data/)(.*/)?part-[^/]*\.parquet$"
_COMMIT = r"^_delta_log/\d{20}\.json$"
_NO_MANIFESTS = Cannot("Delta has no manifests: bounds stand in the log and in checkpoints, which `statistics` covers")
_NO_REFS = Cannot("Delta has no branches and no tags")
_NO_CHANGES = Cannot("change data is off: it is read from the versions")
_NO_VECTORS = Cannot("vectors are off: a delete rewrites the file")
_HIDDEN = planted(
    "a row that a vector hides; the vector itself holds positions and names no file", _DATA, "parquet", "data row"
)
_COMMON: dict[str, Cell] = {
    "data": planted("a row of the head", _DATA, "parquet", "data row", by="branch:main"),
    "delete file": Cannot("Delta has no delete files"),
    "vector": _NO_VECTORS,
    "old version": planted("a row of a version that was overwritten", _DATA, "parquet", "data row", by="version:"),
    "branch": _NO_REFS,
    "tag": _NO_REFS,
    "manifest bound": _NO_MANIFESTS,
    "partition summary": Cannot("Delta sums up no partitions: each file names its own, which `partition path` covers"),
    "statistics": planted("the bounds of a file, in its commit", _COMMIT, "raw", "log bound", cut=32),
    "partition path": planted("the folder of a partition", _DATA, "name", "data path"),
    "log": planted("the predicate of a delete, in its commit", _COMMIT, "raw", "log row"),
    "checkpoint": planted(
        "the partition of a file, in a checkpoint",
        r"^_delta_log/\d{20}\.checkpoint\.parquet$",
        "parquet",
        "checkpoint row",
    ),
    "change data": _NO_CHANGES,
    "archive": Cannot("Delta moves nothing into an archive: its log is cleaned"),
    "orphan": planted(
        "a file that no version names", r"^part-00000-orphan\.snappy\.parquet$", "parquet", "unreferenced row"
    ),
    "staged": Cannot("Delta stages nothing: what was not committed is an orphan"),
    "metadata property": planted("a property of the table, in its commit", _COMMIT, "raw", "log row"),
}
_NO_BINARY = Cannot("Delta keeps no bounds of binary columns")
# Beside column mapping, Delta gives folders random names, and its change data lies in them too.
_CHANGES = planted("both images of an update", r"(^|/)cdc-[^/]*\.parquet$", "parquet", "change data row")
_RANDOM_FOLDERS = Cannot("with column mapping folders have random names: partitions stand in the log (`checkpoint`)")
VARIANTS = (
    Variant("delta", "plain", "plain", _COMMON, {}),
    Variant("delta", "vectors", "with vectors", _COMMON | {"vector": _HIDDEN}, {}),
    Variant(
        "delta",
        "mapped",
        "with column mapping and change data",
        _COMMON | {"change data": _CHANGES, "partition path": _RANDOM_FOLDERS},
        {("statistics", "uuid"): _NO_BINARY},
        binary_uuid=True,
    ),
)
_FEATURES = {
    "plain": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "mapped": {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"},
}
# A floor of the table's own that no erasure goes below: old versions stay on the first day, and may go on the fourth.
# Without it Delta keeps them for a week. By the real clock it is not over, and the engine keeps its tombstones.
_KEPT = "interval 2 days"


def build(spark: SparkSession, catalog: Catalog, variant: Variant) -> Made:
    return _Builder(spark, catalog, variant).build()


class _Builder:
    def __init__(self, spark: SparkSession, catalog: Catalog, variant: Variant) -> None:
        self._spark, self._variant, self._rows = spark, variant, Rows(variant)
        self._catalog = catalog
        self._location = Path(catalog.warehouse, "db", f"planted_{variant.name}")
        self._sql = quote("delta", str(self._location))

    def build(self) -> Made:
        rows = self._rows
        self._create()
        self._write("append", rows.both("old version"))
        self._write(
            "overwrite",
            [
                *rows.both("data"),
                *rows.filler(),
                *rows.both("log", lane=1),
                rows.one("statistics", lane=2),
                rows.one("statistics", "neighbour", lane=3),
                *rows.both("vector", lane=4),
                *rows.filler(lane=4),
                *rows.both("change data", lane=5),
                *rows.folders("partition path"),
                *rows.folders("checkpoint"),
            ],
        )
        self._delete_by_name("log")
        if self._variant.planted("vector"):
            ids = ", ".join(str(rows.id_of("vector", who)) for who in WHO[:2])
            self._spark.sql(f"DELETE FROM {self._sql} WHERE id IN ({ids})")
        if self._variant.planted("change data"):
            self._spark.sql(f"UPDATE {self._sql} SET id = id + 5 WHERE p_bigint = 5")
        java: Any = self._spark._jvm
        log = java.org.apache.spark.sql.delta.DeltaLog
        log.clearCache()
        log.forTable(self._spark._jsparkSession, str(self._location)).checkpoint()
        self._rows.write_orphan(self._location / "part-00000-orphan.snappy.parquet")
        versions = self._spark.sql(f"DESCRIBE HISTORY {self._sql}").collect()
        refs = {f"version {row['version']}": self._reading(row["version"]) for row in versions}
        return Made(
            self._variant, self._catalog, self._location, self._sql, {"main": reading(self._spark, self._sql), **refs}
        )

    def _reading(self, version: int) -> Read:
        return lambda: self._spark.read.format("delta").option("versionAsOf", version).load(str(self._location))

    def _create(self) -> None:
        notes = {f"note.{who}": self._rows.note("metadata property", who) for who in ("person", "neighbour")}
        settings = {
            "delta.enableDeletionVectors": "false",
            "delta.deletedFileRetentionDuration": _KEPT,
            **_FEATURES[self._variant.name],
            **notes,
        }
        listed = ", ".join(f"{quote_text(key)} = {quote_text(value)}" for key, value in settings.items())
        self._spark.sql(
            f"CREATE TABLE {self._sql} ({self._rows.columns}) USING delta PARTITIONED BY ({PARTITIONS}) "
            f"TBLPROPERTIES ({listed})"
        )

    def _frame(self, rows: list[Row]) -> DataFrame:
        schema = self._spark.read.format("delta").load(str(self._location)).schema
        return self._spark.createDataFrame(rows, schema).coalesce(1)

    def _write(self, mode: str, rows: list[Row]) -> None:
        self._frame(rows).write.format("delta").mode(mode).save(str(self._location))

    def _delete_by_name(self, place: str) -> None:
        """As people do it: the log keeps what they typed."""
        for_ = [self._called(self._rows.one(place, who)) for who in WHO[:2]]
        self._spark.sql(f"DELETE FROM {self._sql} WHERE {' OR '.join(for_)}")

    def _called(self, row: Row) -> str:
        _, text, number, decimal, uuid, *_ = row
        written: Any = f"X'{uuid.hex()}'" if isinstance(uuid, bytes) else f"'{uuid}'"
        return f"(c_text = '{text}' AND c_bigint = {number} AND c_decimal = {decimal} AND c_uuid = {written})"
