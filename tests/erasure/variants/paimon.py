"""Paimon tables in which people are planted: append and key tables, with vectors, with a changelog."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from ebbtide.model.dataset import Catalog
from ebbtide.spark.session import quote, quote_text
from tests.erasure.cells import Cannot, Cell, Variant, planted
from tests.erasure.people import WHO
from tests.erasure.variants.rows import PARTITIONS, Made, Read, Row, Rows, reading

_DATA = r"/bucket-\d+/data-.*\.parquet$"
_CHANGELOGS = "changelog-*.parquet"
_MANIFEST = r"^manifest/manifest-[^/]*-\d+$"
_COMMON: dict[str, Cell] = {
    "data": planted("a row of the head", _DATA, "parquet", "data row", by="branch:main"),
    "delete file": planted("a row that says of a key that it is deleted", _DATA, "parquet", "data row"),
    "vector": Cannot("vectors are off"),
    "old version": planted("a row of a version that was overwritten", _DATA, "parquet", "data row", by="version:"),
    "branch": planted("a row that was appended to a branch only", _DATA, "parquet", "data row", by="branch:side"),
    "tag": planted("a row of a version that a tag keeps", _DATA, "parquet", "data row", by="tag:kept"),
    "manifest bound": planted("the bounds of a file, in its manifest", _MANIFEST, "avro", "manifest bound", cut=16),
    "partition summary": planted(
        "the bounds of a manifest's partitions",
        r"^manifest/manifest-list-[^/]*$",
        "avro",
        "manifest list bound",
        cut=16,
    ),
    "statistics": planted("statistics that ANALYZE wrote", r"^statistics/stats-[^/]*$", "raw", "statistics row"),
    "partition path": planted("the folder of a partition", _DATA, "name", "data path"),
    "log": Cannot("Paimon has no log: a commit is a snapshot that names manifests"),
    "checkpoint": Cannot("Paimon has no checkpoints"),
    "change data": Cannot("no changelog is written: changes are read from the versions"),
    "archive": Cannot("Paimon moves nothing into an archive: what expired is removed"),
    "orphan": planted("a file that no version names", r"/data-orphan-0\.parquet$", "parquet", "unreferenced row"),
    "staged": Cannot("Paimon stages nothing: what was not committed is an orphan"),
    "metadata property": planted(
        "an option of the table, in its schema", r"^schema/schema-\d+$", "raw", "metadata row"
    ),
}
_COPIES = Cannot("a delete on an append table rewrites the file")
_NO_BOUNDS = Cannot("Spark's statistics have no bounds of texts and binaries")
_VECTOR = planted(
    "the partition of the file whose rows a vector hides, in the manifest of indexes",
    r"^manifest/index-manifest-[^/]*$",
    "avro",
    "manifest|index path",
)
_CHANGELOG = planted("the changelog of an insert", r"/bucket-\d+/changelog-.*\.parquet$", "parquet", "changelog row")
_KEY = {"bucket": "1", "primary-key": f"id, {PARTITIONS}"}
_OPTIONS = {
    "append": {"bucket": "-1", "write-only": "true"},
    "append_vectors": {"bucket": "-1", "deletion-vectors.enabled": "true"},
    "key": {**_KEY, "write-only": "true"},
    "key_vectors": {**_KEY, "deletion-vectors.enabled": "true"},
    "key_changelog": {
        "bucket": "1",
        "write-only": "true",
        "primary-key": f"c_text, c_bigint, c_decimal, c_uuid, {PARTITIONS}",
        "changelog-producer": "input",
    },
}


def _variant(name: str, title: str, *, binary_uuid: bool = False, **more: Cell) -> Variant:
    cells = _COMMON | {place.replace("_", " "): cell for place, cell in more.items()}
    but: dict[tuple[str, str], Cell] = {("statistics", type_): _NO_BOUNDS for type_ in ("text", "uuid")}
    if binary_uuid:
        but["manifest bound", "uuid"] = Cannot("Paimon keeps no bounds of binary columns")
    return Variant("paimon", name, title, cells, but, binary_uuid)


VARIANTS = (
    _variant("append", "append", delete_file=_COPIES),
    _variant("append_vectors", "append with vectors", delete_file=_COPIES, vector=_VECTOR, binary_uuid=True),
    _variant("key", "primary key", binary_uuid=True),
    _variant("key_vectors", "primary key with vectors", vector=_VECTOR),
    _variant("key_changelog", "primary key with changelog, the person as its key", change_data=_CHANGELOG),
)


def build(spark: SparkSession, catalog: Catalog, variant: Variant) -> Made:
    return _Builder(spark, catalog, variant).build()


class _Builder:
    def __init__(self, spark: SparkSession, catalog: Catalog, variant: Variant) -> None:
        self._spark, self._variant, self._rows = spark, variant, Rows(variant)
        self._catalog, self._name = catalog, f"planted_{variant.name}"
        self._sql = self._part("")
        self._location = Path(catalog.warehouse, "db.db", self._name)

    def build(self) -> Made:
        rows = self._rows
        self._create()
        self._insert("OVERWRITE", rows.both("statistics"))
        self._spark.sql(f"ANALYZE TABLE {self._sql} COMPUTE STATISTICS FOR COLUMNS c_bigint, c_decimal")
        self._insert("OVERWRITE", rows.both("tag"))
        self._call("create_tag", "tag => 'kept'")
        self._call("create_branch", "branch => 'side', tag => 'kept'")
        self._insert("INTO", rows.both("branch"), part="$branch_side")
        self._insert("OVERWRITE", rows.both("old version"))
        self._insert(
            "OVERWRITE",
            [
                *rows.both("data"),
                *rows.filler(),
                rows.one("manifest bound", lane=1),
                rows.one("manifest bound", "neighbour", lane=2),
                *rows.both("delete file", lane=3),
                *rows.folders("partition path"),
                # Against a smaller file, compaction would merge the delete at once.
                *rows.folders("vector", crowd=200),
            ],
        )
        self._insert("INTO", rows.folders("partition summary"))
        if self._variant.planted("change data"):  # no changelog is committed of an overwrite
            self._insert("INTO", rows.both("change data", lane=4))
        gone = [place for place in ("delete file", "vector") if self._variant.planted(place)]
        if gone:
            ids = ", ".join(str(rows.id_of(place, who)) for place in gone for who in WHO[:2])
            self._spark.sql(f"DELETE FROM {self._sql} WHERE id IN ({ids})")
        bucket = next(self._location.glob("p_text=-/p_bigint=0/*/*/bucket-0"))
        self._rows.write_orphan(bucket / "data-orphan-0.parquet")
        return Made(self._variant, self._catalog, self._location, self._sql, self._refs())

    def _part(self, part: str) -> str:
        return quote(self._catalog.name, "db", self._name + part)

    def _create(self) -> None:
        notes = {f"note.{who}": self._rows.note("metadata property", who) for who in ("person", "neighbour")}
        options = _OPTIONS[self._variant.name] | notes
        listed = ", ".join(f"{quote_text(key)} = {quote_text(value)}" for key, value in options.items())
        self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote(self._catalog.name, 'db')}")
        self._spark.sql(
            f"CREATE TABLE {self._sql} ({self._rows.columns}) PARTITIONED BY ({PARTITIONS}) TBLPROPERTIES ({listed})"
        )

    def _insert(self, how: str, rows: list[Row], *, part: str = "") -> None:
        before = set(self._location.rglob(_CHANGELOGS))
        self._spark.createDataFrame(rows, self._rows.columns).coalesce(1).createOrReplaceTempView("planted_rows")
        self._spark.sql(f"INSERT {how} {self._part(part)} SELECT * FROM planted_rows")
        self._spark.catalog.dropTempView("planted_rows")
        if how == "OVERWRITE":
            # It commits none of the changelog files that it wrote. They are orphans: one is planted, and no erasure's.
            for path in set(self._location.rglob(_CHANGELOGS)) - before:
                path.unlink()

    def _call(self, procedure: str, arguments: str) -> None:
        name = quote_text(quote("db", self._name))
        self._spark.sql(f"CALL {quote(self._catalog.name)}.sys.{procedure}(table => {name}, {arguments})").collect()

    def _refs(self) -> dict[str, Read]:
        snapshots = self._spark.sql(f"SELECT snapshot_id FROM {self._part('$snapshots')}").collect()
        versions = {f"version {row[0]}": self._reading("scan.snapshot-id", str(row[0])) for row in snapshots}
        names = {"main": self._sql, "side": self._part("$branch_side")}
        refs = {name: reading(self._spark, text) for name, text in names.items()}
        return refs | {"kept": self._reading("scan.tag-name", "kept")} | versions

    def _reading(self, option: str, value: str) -> Read:
        return lambda: self._spark.read.format("paimon").option(option, value).load(str(self._location))
