"""Letting a Hudi table's oldest versions end with exactly the files that were named, and building its indexes anew.

The cleaner says what it would take, and of that only what was named goes. Its plan says from which version on the table
can be read: without that, a reader of an older one is answered with the rows of those files that are left. Nothing that
ended before that version may be left out of the plan: a writer's own cleaner looks at newer versions alone afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from ebbtide.formats.hudi.clean import carry_out, policy
from ebbtide.formats.hudi.rewrite import is_ours, marked, pending, plan_of_clean
from ebbtide.formats.hudi.timeline import read_timeline
from ebbtide.formats.hudi.writer import Writer
from ebbtide.model.dataset import TableHandle
from ebbtide.model.paths import normalise

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    return bool(Writer.open(found, spark).indexes())


def index_anew(found: TableHandle, spark: SparkSession) -> None:
    """Remove the metadata table, and make it again with the same indexes, of the files that are left."""
    writer = Writer.open(found, spark)
    have, settings = writer.indexes(), _same_indexes(writer)
    util = writer.hudi.metadata.HoodieTableMetadataUtil
    util.deleteMetadataTable(writer.meta, writer.context, False)
    again = Writer.open(found, spark)
    conf = again.hudi.storage.hadoop.HadoopStorageConfiguration(spark.sparkContext._jsc.hadoopConfiguration())
    make = again.hudi.metadata.SparkHoodieBackedTableMetadataWriter.create
    make(conf, again.config(settings), again.context, again.none).close()
    made = Writer.open(found, spark)
    for name in sorted(made.indexes() - have):
        util.deleteMetadataTablePartition(made.meta, made.context, name, False)


def _same_indexes(writer: Writer) -> Mapping[str, str]:
    asked = {"hoodie.metadata.enable": "true", _COLUMN_STATISTICS: str("column_stats" in writer.indexes()).lower()}
    return writer.settings() | asked
