"""Letting a Hudi table's oldest versions end with exactly the files that were named, and building its indexes anew.

The cleaner says what it would take, and of that only what was named goes. Its plan says from which version on the table
can be read: without that, a reader of an older one is answered with the rows of those files that are left. Nothing that
ended before that version may be left out of the plan: a writer's own cleaner looks at newer versions alone afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ebbtide.formats.conflicts import ATTEMPTS
from ebbtide.formats.hudi.clean import carry_out, policy
from ebbtide.formats.hudi.rewrite import is_ours, marked, pending, plan_of_clean, writing
from ebbtide.formats.hudi.timeline import read_timeline
from ebbtide.formats.hudi.writer import Writer, completed
from ebbtide.model.dataset import TableHandle
from ebbtide.model.paths import normalise

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REMEMBERED = "ebbtide.erasure.indexes"
"""The property of a table whose indexes are being made anew."""
_COLUMN_STATISTICS = "hoodie.metadata.index.column.stats.enable"


def end_versions(
    found: TableHandle, begins: str, paths: Collection[str], spark: SparkSession, before: Callable[[], None]
) -> dict[str, str]:
    """Clean so that the history begins with the version `begins`. The files that Hudi could not remove."""
    writer = Writer.open(found, spark)
    config = writer.config(policy(1) | {"hoodie.clean.trigger.max.commits": "0"})
    table = writer.hudi.table.HoodieSparkTable.create(config, writer.context)
    planned = table.createCleanerPlan(writer.context, writer.none)
    if not planned.isPresent():
        return {}
    plan = planned.get()
    plan.setPartitionsToBeDeleted(writer.java.ArrayList())
    if not _narrow(writer, plan, {normalise(path) for path in paths}):
        return {}
    plan.setEarliestInstantToRetain(_instant(writer, begins, spark))
    plan.setExtraMetadata(marked(writer, plan.getExtraMetadata()))
    before()
    return carry_out(found, writer, config, planned)


def _narrow(writer: Writer, plan: Any, named: Collection[str]) -> bool:
    """Leave in the plan what was named. Whether anything is left."""
    files = writer.java.HashMap()
    for folder, infos in dict(plan.getFilePathsToBeDeletedPerPartition() or {}).items():
        going = writer.java.ArrayList()
        for info in infos:
            if normalise(str(info.getFilePath())) in named:
                going.add(info)
        if not going.isEmpty():
            files.put(folder, going)
    plan.setFilePathsToBeDeletedPerPartition(files)
    return not files.isEmpty()


def _instant(writer: Writer, id_: str, spark: SparkSession) -> Any:
    action = next(each.action for each in read_timeline(writer.found, spark).commits if each.id == id_)
    return writer.hudi.avro.model.HoodieActionInstant(id_, action, "COMPLETED")


def finish_clean(
    found: TableHandle, there: Collection[str], going: Collection[str], spark: SparkSession, before: Callable[[], None]
) -> str | None:
    """Finish a clean that an erasure planned and that died, if it takes nothing of what is `there` but what is to go.
    Why nothing can be done, where that is not so, or where another's instant is pending.
    """
    for id_, action in pending(found, spark):
        if action != "clean":
            return f"instant {id_} ({action}) is not completed"
        writer = Writer.open(found, spark)
        if not is_ours(writer, id_, action):
            return "a clean that somebody else began is not finished"
        planned = plan_of_clean(writer, id_).getFilePathsToBeDeletedPerPartition()
        taken = {normalise(str(info.getFilePath())) for infos in dict(planned).values() for info in infos}
        if more := len(taken & set(there) - set(going)):
            return f"a clean of an erasure that died would take {more} files that are to stay now"
        before()
        writer.hudi.table.HoodieSparkTable.create(writer.config(policy(1)), writer.context).clean(writer.context, id_)
    return None


def indexed(found: TableHandle, spark: SparkSession) -> bool:
    """Whether the table has indexes, or had some that a run that died took away."""
    writer = Writer.open(found, spark)
    return bool(writer.indexes() or _remembered(writer).names)


def index_anew(found: TableHandle, spark: SparkSession) -> str | None:
    """Remove the metadata table, and make it again with the same indexes, of the files that are left. Why not, where
    writers are at work: what one commits meanwhile is in no index.
    """
    for _ in range(ATTEMPTS):
        if busy := writing(found, spark):
            return (
                f"instant {busy[0][0]} ({busy[0][1]}) is not completed, and its indexes cannot be made anew beside it"
            )
        writer, before = Writer.open(found, spark), completed(found, spark)
        indexes = _remembered(writer) | _Indexes.of(writer)
        _remember(writer, indexes)
        _metadata_of(writer).deleteMetadataTable(writer.meta, writer.context, False)
        made = _make(found, indexes, spark)
        if indexes.names <= made.indexes() and completed(found, spark) == before and not writing(found, spark):
            for name in sorted(made.indexes() - indexes.names):
                _metadata_of(made).deleteMetadataTablePartition(made.meta, made.context, name, False)
            _forget(made)
            return None
    return "writers were faster than its indexes could be made anew: the next run makes them"


def _make(found: TableHandle, indexes: _Indexes, spark: SparkSession) -> Writer:
    writer = Writer.open(found, spark)
    conf = writer.hudi.storage.hadoop.HadoopStorageConfiguration(spark.sparkContext._jsc.hadoopConfiguration())
    make = writer.hudi.metadata.SparkHoodieBackedTableMetadataWriter.create
    make(conf, writer.config(indexes.settings), writer.context, writer.none).close()
    return Writer.open(found, spark)


@dataclass(frozen=True, slots=True)
class _Indexes:
    """What a metadata table holds, and how a writer is told to make it."""

    names: frozenset[str] = frozenset()
    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, writer: Writer) -> _Indexes:
        names = frozenset(writer.indexes())
        settings = {key: value for key, value in writer.settings().items() if key.startswith("hoodie.metadata.")}
        asked = {"hoodie.metadata.enable": "true", _COLUMN_STATISTICS: str("column_stats" in names).lower()}
        return cls(names, settings | asked)

    def __or__(self, now: _Indexes) -> _Indexes:
        """These and what there is now; what was there first says how."""
        return _Indexes(self.names | now.names, self.settings if self.names else now.settings)


def _metadata_of(writer: Writer) -> Any:
    return writer.hudi.metadata.HoodieTableMetadataUtil


def _remembered(writer: Writer) -> _Indexes:
    said = writer.meta.getTableConfig().propsMap().get(_REMEMBERED)
    known = json.loads(str(said)) if said is not None else {"names": [], "settings": {}}
    return _Indexes(frozenset(known["names"]), known["settings"])


def _remember(writer: Writer, indexes: _Indexes) -> None:
    """Keep with the table which indexes it has: where the run dies without them, the next one makes these."""
    properties = writer.java.Properties()
    said = {"names": sorted(indexes.names), "settings": dict(indexes.settings)}
    properties.setProperty(_REMEMBERED, json.dumps(said, sort_keys=True))
    table = writer.hudi.common.table.HoodieTableConfig
    table.update(writer.meta.getStorage(), writer.meta.getMetaPath(), properties)


def _forget(writer: Writer) -> None:
    table, names = writer.hudi.common.table.HoodieTableConfig, writer.java.HashSet()
    names.add(_REMEMBERED)
    table.delete(writer.meta.getStorage(), writer.meta.getMetaPath(), names)
