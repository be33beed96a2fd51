"""Commits that take people out of a Hudi table's head, each on exactly the groups of files that hold them.

Rows leave by their keys. Where a slice keeps what its readers no longer see (log files, change data), its group gets a
new slice: by a compaction, or where change data is written, by a clustering of one group into one.

Plans of these two carry a mark, so that what a run left behind that died is told from another's and finished.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ebbtide.formats.conflicts import WriterWasFasterError
from ebbtide.formats.hudi.replay import Group
from ebbtide.formats.hudi.timeline import java_path, read_timeline
from ebbtide.formats.hudi.writer import BESIDE_OTHERS, Writer, completed
from ebbtide.model.dataset import TableHandle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MARK = ("ebbtide", "erase")
_KEYS_A_TASK = 50_000
_CLUSTERING = "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"
_OURS = frozenset({"compaction", "clustering", "clean"})


def pending(found: TableHandle, spark: SparkSession) -> list[tuple[str, str]]:
    """Instants that somebody began and did not complete, as `(id, action)`: Hudi's writers trust to be alone."""
    return [(id_, action) for id_, action, _ in read_timeline(found, spark).pending]


def writing(found: TableHandle, spark: SparkSession, but: str = "") -> list[tuple[str, str]]:
    """Those of them beside which nothing is begun. A clean takes only what no version needs that stays."""
    return [(id_, action) for id_, action in pending(found, spark) if action != "clean" and id_ != but]


def is_ours(writer: Writer, id_: str, action: str) -> bool:
    """Whether a pending instant was planned by an erasure."""
    if action not in _OURS:
        return False
    utils = writer.hudi.common.util
    if action == "compaction":
        plan = utils.CompactionUtils.getCompactionPlan(writer.meta, id_)
    elif action == "clustering":
        requested = writer.meta.getInstantGenerator().getClusteringCommitRequestedInstant(id_)
        found = utils.ClusteringUtils.getClusteringPlan(writer.meta, requested)
        plan = found.get().getRight() if found.isPresent() else None
    else:
        plan = plan_of_clean(writer, id_)
    more = plan.getExtraMetadata() if plan is not None else None
    return more is not None and more.get(MARK[0]) == MARK[1]


def plan_of_clean(writer: Writer, id_: str) -> Any:
    requested = writer.meta.getInstantGenerator().getCleanRequestedInstant(id_)
    return writer.meta.getActiveTimeline().readCleanerPlan(requested)


def marked(writer: Writer, more: Any) -> Any:
    """The extra metadata of a plan, with the mark."""
    map_ = writer.java.HashMap() if more is None else writer.java.HashMap(more)
    map_.put(*MARK)
    return map_


def finish(found: TableHandle, spark: SparkSession) -> bool:
    """Finish what an erasure planned that died since. Whether there was any."""
    done = False
    for id_, action, state in read_timeline(found, spark).pending:
        writer = Writer.open(found, spark)
        if action not in ("compaction", "clustering") or not is_ours(writer, id_, action):
            continue
        if action == "clustering" and not _is_of_latest(writer, id_):
            _take_back(writer, id_, state)
        else:
            _carry_out(writer, id_, action)
            done = True
    return done


def _is_of_latest(writer: Writer, id_: str) -> bool:
    """Whether each slice that a clustering reads is what its group's readers see: what came since would be lost."""
    requested = writer.meta.getInstantGenerator().getClusteringCommitRequestedInstant(id_)
    plan = writer.hudi.common.util.ClusteringUtils.getClusteringPlan(writer.meta, requested).get().getRight()
    view = writer.hudi.table.HoodieSparkTable.create(writer.config(), writer.context).getSliceView()
    for group in plan.getInputGroups():
        for planned in group.getSlices():
            found = view.getLatestFileSlice(planned.getPartitionPath(), planned.getFileId())
            paths = [planned.getDataFilePath(), *(planned.getDeltaFilePaths() or ())]
            if not found.isPresent() or _files_of(found.get()) != {
                str(path).rpartition("/")[2] for path in paths if path
            }:
                return False
    return True


def _files_of(slice_: Any) -> set[str]:
    base = slice_.getBaseFile()
    logs = {str(log.getFileName()) for log in slice_.getLogFiles().toArray()}
    return logs | ({str(base.get().getFileName())} if base.isPresent() else set())


def _take_back(writer: Writer, id_: str, state: str) -> None:
    """Let a plan be as if it had not been made."""
    if state == "REQUESTED":
        requested = writer.meta.getInstantGenerator().getClusteringCommitRequestedInstant(id_)
        writer.meta.getActiveTimeline().deleteInstantFileIfExists(requested)
        return
    client = writer.hudi.client.SparkRDDWriteClient(writer.context, writer.config())
    try:
        client.rollback(id_)
    finally:
        client.close()


def delete_keys(
    found: TableHandle, keys: Collection[tuple[str, str]], spark: SparkSession, *, after: Collection[str]
) -> str:
    """Delete rows by Hudi's own keys, `(record key, partition path)`, as they were `after` these instants; gives the
    instant.
    """
    writer = Writer.open(found, spark)
    client = writer.hudi.client.SparkRDDWriteClient(writer.context, writer.config(BESIDE_OTHERS))
    try:
        going, made = writer.java.ArrayList(), writer.hudi.common.model.HoodieKey
        for key, folder in keys:
            going.add(made(key, folder))
        instant = str(client.startCommit())
        context: Any = spark.sparkContext._jsc
        try:
            _unless_faster(found, spark, after, but=instant)
            tasks = 1 + len(keys) // _KEYS_A_TASK
            statuses = client.delete(context.parallelize(going, tasks), instant)
            client.commit(instant, statuses)
        except BaseException:
            # Left behind, it would hold up everything that Ebbtide does to the table.
            client.rollback(instant)
            raise
        return instant
    finally:
        client.close()


def _unless_faster(found: TableHandle, spark: SparkSession, after: Collection[str], *, but: str = "") -> None:
    """Beside a writer, and after one who came since, a key may be another's by now."""
    if writing(found, spark, but=but) or completed(found, spark) - set(after):
        raise WriterWasFasterError


def upsert(found: TableHandle, rows: DataFrame, spark: SparkSession, *, after: Collection[str]) -> None:
    """Write changed rows in the place of those of their keys, which were as they are here `after` these instants."""
    columns = [name for name in rows.columns if not name.startswith("_hoodie_")]
    settings = Writer.open(found, spark).settings() | BESIDE_OTHERS | {"hoodie.datasource.write.operation": "upsert"}
    _unless_faster(found, spark, after)
    rows.select(*columns).write.format("hudi").options(**settings).mode("append").save(java_path(found.location))


def compact(found: TableHandle, groups: Collection[Group], spark: SparkSession) -> None:
    """Merge the log files of these groups into new base files; the plan is narrowed before it is on the timeline."""
    writer = Writer.open(found, spark)
    config = writer.config({"hoodie.compact.inline.max.delta.commits": "1"})
    table = writer.hudi.table.HoodieSparkTable.create(config, writer.context)
    time = writer.meta.createNewInstantTime(False)
    actions = writer.hudi.table.action.compact
    kind = writer.hudi.common.model.WriteOperationType.COMPACT
    planner = actions.ScheduleCompactionActionExecutor(writer.context, config, table, time, writer.none, kind)
    generator = actions.plan.generators.HoodieCompactionPlanGenerator(table, writer.context, config, planner)
    plan = generator.generateCompactionPlan(time)
    operations = writer.java.ArrayList()
    for each in plan.getOperations() or () if plan is not None else ():
        if (str(each.getPartitionPath()), str(each.getFileId())) in groups:
            operations.add(each)
    if operations.isEmpty():
        return
    plan.setOperations(operations)
    plan.setExtraMetadata(marked(writer, plan.getExtraMetadata()))
    requested = writer.meta.getInstantGenerator().getCompactionRequestedInstant(time)
    writer.meta.getActiveTimeline().saveToCompactionRequested(requested, plan)
    _unless_beside_a_writer(writer, requested, time, spark)
    _carry_out(writer, time, "compaction")


def cluster(found: TableHandle, groups: Collection[Group], spark: SparkSession) -> None:
    """Write each of these groups anew under another id: what lay beside its base file stays with the old one."""
    writer = Writer.open(found, spark)
    table = writer.hudi.table.HoodieSparkTable.create(writer.config(), writer.context)
    found_in = (table.getSliceView().getLatestFileSlice(folder, id_) for folder, id_ in sorted(groups))
    slices = [each.get() for each in found_in if each.isPresent()]
    if not slices:
        return
    plan = _one_into_one(writer, slices, spark)
    time = writer.meta.createNewInstantTime(False)
    asked = writer.hudi.avro.model.HoodieRequestedReplaceMetadata()
    asked.setOperationType(writer.hudi.common.model.WriteOperationType.CLUSTER.name())
    asked.setClusteringPlan(plan)
    asked.setExtraMetadata(writer.java.HashMap())
    asked.setVersion(1)
    requested = writer.meta.getInstantGenerator().getClusteringCommitRequestedInstant(time)
    writer.meta.getActiveTimeline().saveToPendingClusterCommit(requested, asked)
    _unless_beside_a_writer(writer, requested, time, spark)
    _carry_out(writer, time, "clustering")


def _unless_beside_a_writer(writer: Writer, requested: Any, time: str, spark: SparkSession) -> None:
    """Take a plan back that a writer did not see who had begun before it: what he writes would be lost with a group."""
    if writing(writer.found, spark, but=str(time)):
        writer.meta.getActiveTimeline().deleteInstantFileIfExists(requested)
        raise WriterWasFasterError


def _one_into_one(writer: Writer, slices: Sequence[Any], spark: SparkSession) -> Any:
    any_: Any = spark
    groups = any_.sparkContext._gateway.new_array(any_._jvm.java.util.List, len(slices))
    for n, each in enumerate(slices):
        groups[n] = writer.java.Collections.singletonList(each)
    utils, none = writer.hudi.common.util.ClusteringUtils, writer.java.HashMap()
    plan = utils.createClusteringPlan(_CLUSTERING, none, groups, marked(writer, None))
    for each in plan.getInputGroups():
        each.setNumOutputFileGroups(1)
    plan.setPreserveHoodieMetadata(True)
    return plan


def _carry_out(writer: Writer, time: str, action: str) -> None:
    client = writer.hudi.client.SparkRDDWriteClient(writer.context, writer.config())
    try:
        if action == "compaction":
            client.compact(time, True)
        else:
            client.cluster(time, True)
    finally:
        client.close()
