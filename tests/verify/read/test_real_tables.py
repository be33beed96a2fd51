"""Tables that engines wrote: every planted value comes out, from data, from metadata and from what was deleted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ebbtide.model.dataset import Catalog
from ebbtide.verify.read.objects import read_object
from ebbtide.verify.read.pieces import Piece
from tests.verify.read.search import places, reasons

_GONE = "carol-was-deleted-long-ago-from-this-one"
_PEOPLE = {8841302: "alice-of-forty-characters-0000000000001a", 8841303: "bob-of-forty-characters-00000000000002b"}


def _read(folder: Path) -> dict[str, list[Piece]]:
    """All files below a folder, in pieces; not one of them is left unread."""
    found = {}
    for path in (each for each in folder.rglob("*") if each.is_file()):
        name = str(path.relative_to(folder.parent))
        found[name] = list(read_object(name, path.stat().st_size, lambda path=path: path.open("rb")))  # type: ignore[misc]
        assert reasons(found[name]) == [], name
    return found


def _write(spark: SparkSession, table: str, using: str, properties: Mapping[str, str], key: str) -> None:
    told = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    columns = "user_id BIGINT, email STRING, amount DECIMAL(20, 2), day STRING"
    spark.sql(f"CREATE TABLE {table} ({columns}) {using} PARTITIONED BY (day) TBLPROPERTIES ({told})")
    rows = ", ".join(f"({n}, '{email}', {n}.25, 'a b#c')" for n, email in _PEOPLE.items())
    spark.sql(f"INSERT INTO {table} VALUES {rows}, (8841304, '{_GONE}', 1.25, 'a b#c')")
    spark.sql(f"DELETE FROM {table} WHERE {key}")


def _found(files: Mapping[str, list[Piece]], part: str, value: object) -> set[str]:
    return {where for name, pieces in files.items() if part in name for where in places(pieces, value)}  # type: ignore[arg-type]


_HUDI = {
    "hoodie.table.name": "people",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "email",
    "hoodie.datasource.write.precombine.field": "user_id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
}


def test_a_table_of_hudi_comes_out_whole(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "people"
    rows = [*((number, email) for number, email in _PEOPLE.items()), (8841304, _GONE)]
    written = spark.createDataFrame([(*row, "a b#c") for row in rows], "user_id BIGINT, email STRING, day STRING")
    for operation, frame in (
        ("upsert", written),
        ("upsert", written.where("user_id < 8841304").withColumn("user_id", written.user_id + 1000)),
        ("delete", written.where(f"email = '{_GONE}'")),
    ):
        options = {**_HUDI, "hoodie.datasource.write.operation": operation}
        frame.write.format("hudi").options(**options).mode("append").save(str(folder))
    files = _read(folder)
    for number, email in _PEOPLE.items():
        assert "column email" in _found(files, ".parquet", email)
        assert "column user_id" in _found(files, ".parquet", number)
        assert "record key" in _found(files, "/metadata/record_index/", email)
    assert "field user_id" in _found(files, ".log.", 8842302), "a change that is not compacted"
    assert "record key" in _found(files, ".log.", _GONE), "the deletion's own key"
    assert _found(files, "/.hoodie/timeline/", "a b#c"), "the partition, in commits"
    assert "bound of column email" in _found(files, "/metadata/column_stats/", _PEOPLE[8841302])
    assert "bound of column user_id" in _found(files, "/metadata/column_stats/", 8841302)
    assert "key-value footer" in _found(files, ".parquet", _PEOPLE[8841302]), "the least key of the file"


@pytest.mark.parametrize("file_format", ["orc", "parquet", "avro"])
def test_a_table_of_paimon_comes_out_whole(
    spark: SparkSession, catalogs: Mapping[str, Catalog], file_format: str
) -> None:
    properties = {
        "primary-key": "day,email",
        "bucket": "1",
        "file.format": file_format,
        "changelog-producer": "input",
        "deletion-vectors.enabled": "false",
    }
    spark.sql("CREATE DATABASE IF NOT EXISTS stream.eye")
    table = f"people_{file_format}"
    _write(spark, f"stream.eye.{table}", "", properties, f"email = '{_GONE}'")
    files = _read(Path(catalogs["stream"].warehouse) / "eye.db" / table)
    for number, email in [*_PEOPLE.items(), (8841304, _GONE)]:
        assert _found(files, "/data-", email)
        assert _found(files, "/data-", number)
        assert _found(files, "/changelog-", email)
    manifests = _found(files, "/manifest/", _PEOPLE[8841302][:16])
    assert {"least key, field 0", "bound of column 1"} <= manifests
    assert "bound of column 0" in _found(files, "/manifest/", 8841302)
    assert _found(files, "/manifest/", _GONE), "the key of the file that only deletes"
    assert "partition field 0" in _found(files, "/manifest/", "a b#c")
