"""Hudi tables in which people are planted: copy-on-write, merge-on-read, with indexes, with change data.

All of them have the person as their key, as a table of users has: keys lie in more places than other columns. As few
commits as can be: each takes seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ebbtide.model.dataset import Catalog
from ebbtide.spark.session import quote, quote_text
from tests.erasure.cells import Cannot, Cell, Variant, planted
from tests.erasure.people import WHO
from tests.erasure.variants.rows import PARTITIONS, Made, Read, Row, Rows, reading

_DATA = r"^(?!\.hoodie/)[^.].*\.parquet$"
_COMMON: dict[str, Cell] = {
    "data": planted("a row of the head", _DATA, "parquet", "data row", by="branch:main"),
    "delete file": Cannot("copy-on-write leaves no delete file"),
    "vector": Cannot("Hudi has no vectors"),
    "old version": planted("a row of a version that was overwritten", _DATA, "parquet", "data row"),
    "branch": Cannot("Hudi has no branches"),
    "tag": planted("a row of a version that a savepoint keeps", _DATA, "parquet", "data row", by="tag:"),
    "manifest bound": Cannot("Hudi has no manifests: bounds stand in its metadata table (`statistics`)"),
    "partition summary": Cannot("the metadata table is off: partitions stand in the timeline (`log`) alone"),
    "statistics": planted("the lowest and the highest key of a file, in its footer", _DATA, "footer", "data row"),
    "partition path": planted("the folder of a partition", _DATA, "name", "data path"),
    "log": planted(
        "the partition of a file, in an instant of the timeline",
        r"^\.hoodie/timeline/[^/]*commit$",
        "avro",
        "metadata row",
    ),
    "checkpoint": Cannot("Hudi has no checkpoints"),
    "change data": Cannot("change data is off: it is read from the versions"),
    "archive": planted(
        "the partition of a file, in the archived timeline",
        r"^\.hoodie/timeline/history/.*\.parquet$",
        "parquet/avro",
        "metadata row",
    ),
    "orphan": planted(
        "a file that no commit names", r"/orphan-0_0-1-1_20990101000000000\.parquet$", "parquet", "unreferenced row"
    ),
    "staged": planted("a row of a commit that was never completed", _DATA, "parquet", "data|unreferenced row"),
    "metadata property": planted("a property of the table", r"^\.hoodie/hoodie\.properties$", "raw", "metadata row"),
}
_LOGS = r"^[^.].*/\.[^/]*\.log\.[^/]*$"
_METADATA = r"^\.hoodie/metadata/{}/.*"


def _variant(name: str, title: str, **more: Cell) -> Variant:
    return Variant("hudi", name, title, _COMMON | {k.replace("_", " "): cell for k, cell in more.items()}, {})


VARIANTS = (
    _variant("cow", "copy-on-write"),
    _variant(
        "mor",
        "merge-on-read",
        delete_file=planted("the key of a delete block, in a log file", _LOGS, "raw", "log row"),
        log=planted("a row of a data block, in a log file", _LOGS, "raw", "log row"),
    ),
    _variant(
        "indexed",
        "with record index and column statistics",
        statistics=planted(
            "the bounds of a file, in the metadata table",
            _METADATA.format("column_stats"),
            "raw gzip",
            "statistics bound",
        ),
        partition_summary=planted(
            "the list of partitions, in the metadata table", _METADATA.format("files"), "raw gzip", "index|metadata row"
        ),
    ),
    _variant(
        "changes",
        "with change data",
        change_data=planted("both images of an update", r"^[^.].*/\.[^/]*\.cdc$", "raw", "change data row"),
    ),
)
_QUIET = {
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
}
_TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "c_text,c_bigint,c_decimal,c_uuid",
    "hoodie.datasource.write.partitionpath.field": PARTITIONS.replace(" ", ""),
    "hoodie.datasource.write.precombine.field": "id",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
}
_OPTIONS = {
    "cow": {},
    "mor": {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "indexed": {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "false",  # a second commit with it fails (`_add_statistics`)
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.metadata.compact.max.delta.commits": "2",  # nothing is archived before the metadata table was compacted
    },
    "changes": {
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": "data_before_after",
    },
}


def build(spark: SparkSession, catalog: Catalog, variant: Variant) -> Made:
    return _Builder(spark, catalog, variant).build()


class _Builder:
    def __init__(self, spark: SparkSession, catalog: Catalog, variant: Variant) -> None:
        self._spark, self._variant, self._rows = spark, variant, Rows(variant)
        self._catalog = catalog
        self._location = Path(catalog.warehouse, "db", f"planted_{variant.name}")
        self._sql = quote("default", f"{catalog.name}_planted_{variant.name}")
        # SQL encodes a folder's odd name, and Hudi does not find its metadata table below one: a link leads there.
        self._link = self._location.parents[3] / f"link-{variant.name}"

    def build(self) -> Made:
        rows = self._rows
        self._location.mkdir(parents=True)
        self._link.symlink_to(self._location)
        self._write("insert", [*rows.both("old version"), *rows.folders("archive")])
        self._write("insert_overwrite_table", rows.both("tag"))
        self._register()
        self._call("create_savepoint", f"commit_time => '{self._instants()[-1]}'")
        updated = [*rows.folders("log"), *rows.both("change data", lane=2)]
        self._write(
            "insert_overwrite_table",
            [
                *rows.both("data"),
                *rows.filler(),
                *updated,
                *rows.both("delete file", lane=3),
                *rows.both("statistics", lane=4),
                *rows.folders("partition path"),
                *rows.folders("partition summary"),
            ],
        )
        # What is written here is in order: the same rows, newer.
        self._write("upsert", [(row[0] + 5 if isinstance(row[0], int) else None, *row[1:]) for row in updated])
        if self._variant.planted("delete file"):
            self._write("delete", rows.both("delete file", lane=3))
        self._archive()
        refs = {f"version {at}": self._reading(at) for at in self._instants()}
        self._write("insert", rows.both("staged", lane=5))
        if self._variant.name == "indexed":
            self._add_statistics()
        self._uncomplete()
        lane = next(self._location.glob("p_text=-/p_bigint=0/*/*"))
        self._rows.write_orphan(lane / "orphan-0_0-1-1_20990101000000000.parquet")
        self._note()
        main = self._refreshed(reading(self._spark, self._sql))
        refs = {"main": main, **refs}
        return Made(self._variant, self._catalog, self._location, self._sql, refs, self._roll_back)

    def _write(self, operation: str, rows: list[Row]) -> None:
        settings = _QUIET | _TABLE | _OPTIONS[self._variant.name]
        settings |= {"hoodie.datasource.write.operation": operation}
        frame = self._spark.createDataFrame(rows, self._rows.columns).coalesce(1)
        frame.write.format("hudi").options(**settings).mode("append").save(str(self._link))

    def _register(self) -> None:
        """For procedures, which ask for a table by its name."""
        self._spark.sql(f"CREATE TABLE {self._sql} USING hudi LOCATION {quote_text(str(self._link))}")

    def _call(self, procedure: str, arguments: str) -> None:
        name = quote_text(self._sql.replace("`", ""))
        self._spark.sql(f"CALL {procedure}(table => {name}, {arguments})").collect()

    def _timeline(self) -> list[Path]:
        """The completed commits, oldest first."""
        return sorted((self._location / ".hoodie" / "timeline").glob("*_*commit"))

    def _instants(self) -> list[str]:
        return [path.name.partition("_")[0] for path in self._timeline()]

    def _uncomplete(self) -> None:
        """As a writer leaves it that died at the very end: what it wrote is there, and the commit is not."""
        last = self._timeline()[-1]
        last.unlink()
        last.with_name(f".{last.name}.crc").unlink(missing_ok=True)

    def _roll_back(self) -> None:
        """What Hudi's next writer does with a commit that was never completed. Nobody is erased before: Ebbtide cannot
        tell it from one that a writer is at work on.
        """
        # What marked its files went when it seemed to be complete.
        config = self._config({"hoodie.rollback.using.markers": "false"})
        client = self._hudi.client.SparkRDDWriteClient(self._context, config)
        for path in (self._location / ".hoodie" / "timeline").glob("*.inflight"):
            if not list(path.parent.glob(f"{path.name.partition('.')[0]}_*")):
                assert client.rollback(path.name.partition(".")[0])
        client.close()

    @property
    def _java(self) -> Any:
        return self._spark._jvm

    @property
    def _hudi(self) -> Any:
        return self._java.org.apache.hudi

    def _archive(self) -> None:
        """All commits before the savepoint. Without the last setting, those of merge-on-read would wait for more."""
        config = self._config(
            {
                "hoodie.clean.commits.retained": "1",
                "hoodie.keep.min.commits": "2",
                "hoodie.keep.max.commits": "3",
                "hoodie.compact.inline.max.delta.commits": "1",
            }
        )
        client = self._hudi.client.SparkRDDWriteClient(self._context, config)
        client.archive(self._hudi.table.HoodieSparkTable.create(config, self._context))
        client.close()

    def _add_statistics(self) -> None:
        """Column statistics from the files that are there.

        Hudi 1.2.0 cannot keep them in step in a partitioned table: tasks get the metadata table's files without their
        paths (`StoragePathInfo.getPath()`, "pathInfo" is null).
        """
        config = self._config(
            {
                "hoodie.metadata.index.column.stats.enable": "true",
                "hoodie.metadata.index.column.stats.column.list": "c_text,c_bigint,c_decimal,c_uuid",
            }
        )
        make = self._hudi.metadata.SparkHoodieBackedTableMetadataWriter.create
        make(self._storage, config, self._context, self._hudi.common.util.Option.empty()).close()

    def _config(self, more: dict[str, str]) -> Any:
        settings = _QUIET | {"hoodie.table.name": "t"} | _OPTIONS[self._variant.name] | more
        builder = self._hudi.config.HoodieWriteConfig.newBuilder().withPath(str(self._link))
        return builder.withProperties(self._properties(settings)).build()

    @property
    def _context(self) -> Any:
        return self._hudi.client.common.HoodieSparkEngineContext(self._spark.sparkContext._jsc)

    @property
    def _storage(self) -> Any:
        conf = self._spark.sparkContext._jsc.hadoopConfiguration()
        return self._hudi.storage.hadoop.HadoopStorageConfiguration(conf)

    def _properties(self, settings: dict[str, str]) -> Any:
        properties = self._java.java.util.Properties()
        for name, value in settings.items():
            properties.setProperty(name, value)
        return properties

    def _note(self) -> None:
        client = self._hudi.common.table.HoodieTableMetaClient.builder().setConf(self._storage)
        client = client.setBasePath(str(self._link)).build()
        notes = {f"note.{who}": self._rows.note("metadata property", who) for who in WHO[:2]}
        folder = self._hudi.storage.StoragePath(f"{self._link}/.hoodie")
        self._hudi.common.table.HoodieTableConfig.update(client.getStorage(), folder, self._properties(notes))

    def _refreshed(self, read: Read) -> Read:
        """A session keeps the list of files that it read first."""

        def anew() -> DataFrame:
            self._spark.catalog.refreshTable(self._sql)
            return read()

        return anew

    def _reading(self, instant: str) -> Read:
        return lambda: self._spark.read.format("hudi").option("as.of.instant", instant).load(str(self._link))
