"""Hudi tables from which nobody is erased, as it was never tried, and what of the others cannot go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebbtide.formats.hudi.head import Theirs
from ebbtide.formats.hudi.holding import TableSpans
from ebbtide.formats.hudi.partitions import Layout
from ebbtide.formats.hudi.remove import key_fields, without_keys
from ebbtide.formats.hudi.timeline import library, read_timeline, version_of
from ebbtide.formats.hudi.writer import Writer
from ebbtide.model.dataset import TableHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ebbtide.formats.erasing import Erasure, People

IN_PARTITIONS = "a partition is named after somebody: Hudi's timeline and the names of folders keep that for good"
_UNCLEAR = "partitions carry identities, and of some of their names it cannot be told whose"
_NOT_BY_ERASURES = ("expr_index_", "secondary_index_")
_ORDERED = frozenset({"COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"})


def untried(line: TableSpans, erasure: Erasure, spark: SparkSession) -> str | None:
    """Why nobody is erased from a table of this kind; None where it was tried."""
    properties = line.reading.properties
    newest = int(library(spark).common.table.HoodieTableVersion.current().versionCode())
    version = version_of(properties)
    if version != newest:
        return f"erasing from Hudi tables of version {version} was never tried: upgrade it to {newest}"
    if properties.get("hoodie.populate.meta.fields", "true").lower() == "false":
        return "its rows do not carry their keys (hoodie.populate.meta.fields=false)"
    if "hoodie.bootstrap.base.path" in properties:
        return "it was bootstrapped, and reads files of another table"
    if properties.get("hoodie.datasource.write.drop.partition.columns", "").lower() == "true":
        return "its files are without the columns of its partitions"
    if (kind := properties.get("hoodie.table.base.file.format", "PARQUET").upper()) != "PARQUET":
        return f"erasing from Hudi tables of {kind} files was never tried"
    writer = Writer.open(erasure.found, spark)
    if writer.meta.getStorage().exists(library(spark).storage.StoragePath(writer.meta.getHashingMetadataPath())):
        # Which keys a group has stands in files beside it: one that is written under another name would have none.
        return "its buckets are hashed consistently, and erasing from such Hudi tables was never tried"
    index = min((name for name in writer.indexes() if name.startswith(_NOT_BY_ERASURES)), default=None)
    return f"erasing from Hudi tables with the index {index} was never tried: drop it" if index else None


def cannot_redact(found: TableHandle, theirs: Theirs, spark: SparkSession) -> str | None:
    """Why rows cannot be written in the place of those of their keys; None where they can."""
    writer = Writer.open(found, spark)
    table = writer.meta.getTableConfig()
    if reason := without_keys(writer):
        return f"Hudi cannot write redacted rows: {reason}"
    mode = str(table.getRecordMergeMode())
    if mode not in _ORDERED:
        return f"Hudi cannot write redacted rows: the table merges them by its own rules ({mode})"
    partitions = table.getPartitionFields()
    fixed = {*key_fields(writer), *map(str, table.getOrderingFields())}
    fixed.update(str(name).partition(":")[0] for name in (partitions.get() if partitions.isPresent() else ()))
    if both := sorted(fixed & theirs.changed):
        return f"Hudi cannot write redacted rows: {both[0]} says which row is which, or which is newer"
    return None


def in_partitions(line: TableSpans, people: People, spark: SparkSession) -> str | None:
    """Why somebody stays in the names of partitions, of the head or of any commit that the timeline knows."""
    from pyspark.sql import functions as F

    from ebbtide.spark.people import people_frame

    types = {column.name: column.type for column in line.reading.columns}
    layout = Layout.of(line.reading.properties, types)
    carrying = [name for name in layout.fields if name in people.columns]
    if not carrying:
        return None
    commits = read_timeline(line.found, spark).commits
    folders = {write.group[0] for each in commits for write in each.writes}
    folders |= {folder for each in commits for folder, _ in each.replaced}
    folders |= {span.group[0] for span in line.spans.values()}
    values = [layout.values(folder) or [] for folder in sorted(folders)]
    if any(len(each) != len(layout.fields) for each in values) or any(name not in types for name in layout.fields):
        return _UNCLEAR
    rows = [[value or "" for _, value in each] for each in values]
    named = [f"f{n}" for n in range(len(layout.fields))]
    texts = people_frame(spark, rows, named)
    typed = texts.select(
        *(F.col(as_).cast(types[name]).alias(name) for as_, name in zip(named, layout.fields, strict=True))
    )
    return None if people.among(typed).isEmpty() else IN_PARTITIONS
