"""Removing from one Hudi table (spec §2; formats.md).

`commit` replaces the file groups of planned partitions and deletes rows, metadata only. Versions and whole tables wait
for `delete_files`: the cleaner removes the files itself. While a writer is at work on the table nothing is begun.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError

from ebbtide.formats.base import Depth
from ebbtide.formats.hudi.clean import Prefix, clean, prefix_of
from ebbtide.formats.hudi.files import explain, is_checksum
from ebbtide.formats.hudi.read import read
from ebbtide.formats.hudi.timeline import COMMIT_ACTIONS, java_path, read_timeline
from ebbtide.formats.hudi.writer import Writer, answered
from ebbtide.formats.row_deletes import rows_of
from ebbtide.model.dataset import Catalog, Reading, TableHandle
from ebbtide.model.history import RefKind
from ebbtide.model.paths import normalise
from ebbtide.model.removal import Committed, Drop, FileDeletion, Removal, RowDelete
from ebbtide.storage.files import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = frozenset({"data", "log"})
_KEY_GENERATORS = frozenset(
    f"org.apache.hudi.keygen.{kind}{avro}KeyGenerator"
    for kind in ("Simple", "Complex", "Nonpartitioned")
    for avro in ("", "Avro")
)
"""Those that need nothing but the table's fields; others ask for settings that a table need not keep, or for code."""
# Indexes that Hudi 1.2 does not keep in step: it fails after it began, or refuses.
_NOT_BY_DELETES = ("expr_index_",)
_NOT_BY_DROPS = ("expr_index_", "secondary_index_")


def commit(removal: Removal, catalog: Catalog, spark: SparkSession) -> Committed:
    """Change metadata. Versions that `delete_files` can clean are neither done nor sent back."""
    found = removal.found
    done: list[str] = []
    sent_back = dict.fromkeys(removal.branches, "Hudi has no branches")
    for drop in removal.drops:
        reason = _busy(found, spark) or _drop(found, drop, catalog, spark)
        if reason:
            sent_back[drop.object] = reason
        else:
            done.append(drop.object)
    for rows in removal.rows:
        reason = _busy(found, spark) or _delete(found, rows, spark)
        if reason:
            sent_back[rows.object] = reason
        else:
            done.append(rows.object)
    reading = read(found, catalog, Depth.FILES, spark)
    gone = [t.id for t in reading.transactions if t.expired and t.id in removal.versions]
    sent_back |= _prefix(reading, removal).sent_back
    return Committed(version=reading.refs[0].head, done=(*done, *gone), sent_back=sent_back)


def delete_files(
    removal: Removal,
    paths: Collection[str],
    catalog: Catalog,
    spark: SparkSession,
    before_batch: Callable[[], None],
) -> FileDeletion:
    """Clean what can go, or remove the table, where that takes nothing but `paths`."""
    found = removal.found
    if removal.table:
        return _drop_table(found, frozenset(paths), catalog, spark, before_batch)
    reading = read(found, catalog, Depth.FILES, spark)
    prefix = _prefix(reading, removal)
    if not prefix.versions:
        reasons = sorted({*prefix.sent_back.values()})
        return FileDeletion(because="; ".join(reasons) or "no version may go yet") if paths else FileDeletion()
    named = {normalise(path) for path in paths} - _needed(reading, prefix.versions)
    return clean(found, prefix.kept, named, spark, before_batch)


def _prefix(reading: Reading, removal: Removal) -> Prefix:
    savepoints = {ref.head for ref in reading.refs if ref.kind is RefKind.TAG and ref.head is not None}
    return prefix_of(reading.transactions, removal.versions, savepoints)


def _needed(reading: Reading, going: Collection[str]) -> set[str]:
    """Files that a version which stays holds, savepoints included: they are not removed, whoever named them."""
    order = {transaction.id: position for position, transaction in enumerate(reading.transactions)}
    stay = [order[t.id] for t in reading.transactions if t.id not in going and not t.expired]
    needed = set()
    for file in reading.files:
        begin = order.get(file.first_transaction or "", 0)
        end = min((order[id_] for id_ in file.removed_by if id_ in order), default=len(order))
        if any(begin <= position < end for position in stay):
            needed.add(file.path)
    return needed


def _busy(found: TableHandle, spark: SparkSession) -> str | None:
    """Hudi's writers trust that they are alone, unless told how to lock: another one's work is never raced."""
    pending = [(id_, action) for id_, action, _ in read_timeline(found, spark).pending if action in COMMIT_ACTIONS]
    return f"instant {pending[0][0]} ({pending[0][1]}) is not completed" if pending else None


def _drop(found: TableHandle, drop: Drop, catalog: Catalog, spark: SparkSession) -> str | None:
    """Replace the file groups of one partition, all as they were planned. Why not, where that cannot be."""
    if drop.partition is None:
        return "Hudi drops whole partitions, not single files"
    reading = read(found, catalog, Depth.FILES, spark)
    live = {f.path for f in reading.files if f.live and f.partition == drop.partition and f.role in _ROWS}
    planned = {normalise(path) for path in drop.paths}
    if not planned & live:
        return None
    if late := live - planned:
        return f"a late write: {len(late)} live files in the partition were not planned"
    if missing := planned - live:
        return f"{len(missing)} of its {len(planned)} files are no longer live: it was rewritten"
    groups = {listed.group for path in live if (listed := explain(path.removeprefix(f"{found.location}/"), 0))}
    folders = {group[0] for group in groups if group is not None}
    if len(folders) != 1 or None in groups:
        return f"its files lie in {len(folders)} folders"
    (folder,) = folders
    return _replace(found, folder, {group[1] for group in groups if group is not None}, spark)


def _replace(found: TableHandle, folder: str, wanted: set[str], spark: SparkSession) -> str | None:
    """A replacecommit without new files. Hudi says what it would replace before it commits: more is not committed."""
    with answered(found, "dropping a partition"):
        writer = Writer.open(found, spark)
        if reason := _out_of_step(writer, *_NOT_BY_DROPS):
            return reason
        client = writer.hudi.client.SparkRDDWriteClient(writer.context, writer.config())
        try:
            instant = client.startDeletePartitionCommit()
            names = writer.java.ArrayList()
            names.add(folder)
            try:
                result = client.deletePartitions(names, instant)
            except Py4JJavaError:
                # Left behind, it would hold up everything that Ebbtide does to the table.
                client.rollback(instant)
                raise
            replaced = {str(id_) for ids in result.getPartitionToReplaceFileIds().values() for id_ in ids}
            if replaced != wanted:
                client.rollback(instant)
                return f"a late write: the partition has {len(replaced)} file groups, {len(wanted)} were planned"
            ids = result.getPartitionToReplaceFileIds()
            client.commit(instant, result.getWriteStatuses(), writer.none, "replacecommit", ids, writer.none)
        finally:
            client.close()
    return None


def _delete(found: TableHandle, rows: RowDelete, spark: SparkSession) -> str | None:
    """Delete rows by their keys. Where none match, nothing is committed."""
    writer = Writer.open(found, spark)
    if reason := without_keys(writer) or _out_of_step(writer, *_NOT_BY_DELETES):
        return reason
    frame = spark.read.format("hudi").load(java_path(found.location))
    matching = rows_of(rows, frame)
    if isinstance(matching, str):
        return matching
    if matching.frame.isEmpty():
        return None
    if _shares_keys(frame, matching.predicate, writer):
        return (
            "rows that are to stay have the key of rows that are to go, and Hudi deletes by key: deduplicate the table"
        )
    columns = [name for name in frame.columns if not name.startswith("_hoodie_")]
    settings = writer.settings() | {"hoodie.datasource.write.operation": "delete"}
    with answered(found, "deleting rows"):
        target = matching.frame.select(*columns).write.format("hudi").options(**settings).mode("append")
        target.save(java_path(found.location))
    return None


def without_keys(writer: Writer) -> str | None:
    """Why the keys of the table's rows cannot be made again from their columns alone; None where they can.

    Hudi finds that out after it began the commit, which nobody could tell from another writer's then.
    """
    table = writer.meta.getTableConfig()
    if not key_fields(writer):
        return "the table has no record key fields, by which Hudi deletes rows"
    generator = table.getKeyGeneratorClassName()
    if generator is not None and generator not in _KEY_GENERATORS:
        return f"Hudi cannot delete rows by the table's key generator ({generator.rpartition('.')[2]})"
    return None


def _out_of_step(writer: Writer, *prefixes: str) -> str | None:
    """Why an index of the table stands in the way; None where none does."""
    found = sorted(name for name in writer.indexes() if name.startswith(prefixes))
    return f"Hudi cannot keep the table's index {found[0]} in step with it" if found else None


def key_fields(writer: Writer) -> list[str]:
    fields = writer.meta.getTableConfig().getRecordKeyFields()
    return [str(name) for name in fields.get()] if fields.isPresent() else []


def _shares_keys(frame: DataFrame, predicate: str, writer: Writer) -> bool:
    """Whether a row that stays has the key of one that goes: inserts that look for no other row let keys come twice."""
    from pyspark.sql import functions as F

    table = writer.meta.getTableConfig()
    # Where rows do not carry their keys, the fields of the key alone are compared: that may keep more, never less.
    keys = ["_hoodie_record_key", "_hoodie_partition_path"] if table.populateMetaFields() else key_fields(writer)
    goes = F.coalesce(F.expr(predicate), F.lit(False))
    by_key = frame.groupBy(*(F.col(name) for name in keys))
    both = by_key.agg(F.bool_or(goes).alias("some_go"), F.bool_or(~goes).alias("some_stay"))
    return not both.where("some_go AND some_stay").isEmpty()


def _drop_table(
    found: TableHandle, paths: frozenset[str], catalog: Catalog, spark: SparkSession, before_batch: Callable[[], None]
) -> FileDeletion:
    """The table's folder goes with all that is in it, so all that is in it must be named."""
    entries = open_store(found.location, catalog.options).list(found.location, recursive=True)
    files = {entry.path for entry in entries if not entry.is_folder}
    foreign = sorted(path for path in files if path not in paths and not is_checksum(path, paths))
    if foreign:
        return FileDeletion(
            because=f"the table's folder also holds {foreign[0]} ({len(foreign)} in all), which nobody named"
        )
    before_batch()
    with answered(found, "dropping the table"):
        meta = Writer.open(found, spark).meta
        meta.getStorage().deleteDirectory(meta.getBasePath())
    return FileDeletion()
