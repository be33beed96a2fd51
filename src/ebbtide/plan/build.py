"""`build_plan`: all datasets and all policies in a handful of Spark jobs, never a loop over datasets (spec §1).

1. One row per dataset (`datasets`), and the files that several datasets share.
2. Objects with their decisions: partitions, then transactions and versions (`timeline`), then the rest.
3. Files that are free once what goes has gone (`freed`), and from them what each object frees and waits for.
4. Limits, the digest (`finish`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ebbtide.config.policies import PolicySet
from ebbtide.config.project import Limits
from ebbtide.errors import InputError
from ebbtide.model.durations import Duration
from ebbtide.plan import freed, leaving, orphans, others, partitions
from ebbtide.plan.datasets import held_datasets, prepare
from ebbtide.plan.finish import Decided, finish
from ebbtide.plan.limited import limit_versions
from ebbtide.plan.plan import Plan
from ebbtide.plan.promises import derive_auto
from ebbtide.plan.proof import TICK
from ebbtide.plan.references import shared_files, waits_for_unread
from ebbtide.plan.timeline import timeline
from ebbtide.plan.verdict import READY, open_marks, pins
from ebbtide.plan.world import World, joined, no_texts, settled, texts

_HISTORY = ("transactions", "versions")
PROOF = "the proof that its files are gone"
"""What a marked object waits for that is no longer in the inventory."""


def build_plan(
    policies: PolicySet,
    world: World,
    marks: DataFrame | None,
    unmarks: DataFrame | None,
    holds: DataFrame,
    *,
    now: datetime,
    limits: Limits | None = None,
    tick: Duration = TICK,
) -> Plan:
    """Decide on every object. `marks` are the open ones, `unmarks` and `holds` those that were not released.

    `tick` is the longest time between runs, from which `older_than: auto` is derived.
    """
    policies = derive_auto(policies, world, tick=tick)
    marks, unmarks = _or_none(marks), _or_none(unmarks)
    work = _Work(policies, world, marks, unmarks, holds, now)
    decided = work.decide()
    return finish(policies, world, work.datasets, decided, limits or Limits(), now)


def _or_none(frame: DataFrame | None) -> DataFrame | None:
    return None if frame is None or frame.isEmpty() else frame


class _Work:
    """The steps of one plan."""

    def __init__(
        self,
        policies: PolicySet,
        world: World,
        marks: DataFrame | None,
        unmarks: DataFrame | None,
        holds: DataFrame,
        now: datetime,
    ) -> None:
        self.policies, self.world, self.now = policies, world, now
        self.marks, self.pinned = marks, None if unmarks is None else pins(unmarks, now)
        self.holds = holds
        self.datasets = settled(prepare(policies, world, holds))
        self.has_ranges = not self.datasets.where(
            F.exists("holds", lambda h: h["first"].isNotNull() | h["last"].isNotNull())
        ).isEmpty()
        self.shared = _or_none(settled(shared_files(world.files)))
        self.targets = {target for policy in policies.policies for target in policy.targets}
        if marks is not None:
            self.targets |= {row[0] for row in marks.select("target").distinct().collect()}

    @property
    def _row_marks(self) -> DataFrame | None:
        return self.marks if "rows" in self.targets else None

    def _marks(self, *targets: str) -> DataFrame | None:
        return None if self.marks is None else _or_none(settled(open_marks(self.marks, *targets)))

    def decide(self) -> Decided:
        """All objects with final decisions but for limits, the files that each names, and what leaves which heads."""
        objects: list[DataFrame] = []
        named: list[DataFrame] = []
        waits: list[DataFrame] = []
        left: list[DataFrame] = []
        kept_by: list[DataFrame] = []
        files = self.world.files
        parts = theirs = along = rows = kept = None
        if "partitions" in self.targets:
            parts = settled(
                partitions.partition_objects(
                    self.policies, self.world, self.datasets, self._marks("partitions"), self.pinned, self.now
                )
            )
            theirs = settled(partitions.files_of_partitions(parts, files, self.shared))
            objects.append(parts.withColumn("cutoff", F.lit(None).cast("string")).select(*others.COLUMNS))
            if self.marks is not None:
                along = partitions.taken_along(theirs, self.world)
        if self._row_marks is not None:
            before = others.versions_before_delete(self._row_marks, self.world)
            along = before if along is None else along.unionByName(before).distinct()
        along = None if along is None else _or_none(settled(along))
        if self.targets.intersection(_HISTORY):
            rows = settled(self._history(along))
            kept = freed.next_kept(rows)
            objects += [_objects(rows, "transactions", "t", "owner_t"), _objects(rows, "versions", "v", "owner_v")]
            named.append(freed.files_of_history(rows, freed.free_files(files, kept, self.shared)).select(*_FILE))
            if self.marks is not None:
                if "transactions" in self.targets:
                    waits.append(settled(freed.waits(rows, files, kept, self.shared)))
                waits.append(freed.oldest_first(rows))
            if any(p.transactions and p.transactions.allow_latest_view for p in self.policies.policies):
                if self.marks is not None:
                    waits.append(freed.own_versions(rows))
                named.append(_without_waiting(freed.files_of_leaving(rows, files, self.shared), waits[:1]))
                left.append(leaving.of_transactions(rows, files))
        if parts is not None and theirs is not None:
            found = [] if self.marks is None else [settled(partitions.waits_of_partitions(parts, theirs, kept))]
            waits += found
            named.append(_without_waiting(theirs.where(F.size("stay") == 0), found))
            left.append(leaving.of_partitions(theirs))
            kept_by.append(leaving.kept_by_others(theirs))
        if self._row_marks is not None:
            waits.append(settled(others.waits_of_rows(self._row_marks, rows, self.world)))
        self._add_others(objects, named, left, kept_by)
        if not self.targets:
            raise InputError("there is no policy", hint="write one into policies/, as in `policies/retention.yml`")
        if not objects:  # a policy of orphans alone, and no file that nothing references
            objects.append(self.datasets.sparkSession.createDataFrame([], others.OBJECTS))
        whole = reduce(DataFrame.unionByName, objects)
        if self.marks is not None:
            whole = whole.unionByName(self._leftover(whole))
        together, files_ = reduce(DataFrame.unionByName, left) if left else None, reduce(DataFrame.unionByName, named)
        if self.marks is not None and self.world.unread:
            stuck = settled(waits_for_unread(whole, self.datasets, self.world.unread))
            waits.append(stuck)
            files_ = _without_waiting(files_, [stuck])
        keepers = reduce(DataFrame.unionByName, kept_by) if kept_by else None
        return Decided(_with_waits(whole, waits), files_, together, keepers)

    def _history(self, along: DataFrame | None) -> DataFrame:
        held = settled(partitions.held_versions(self.world, self.datasets)) if self.has_ranges else None
        rows = timeline(
            self.policies, self.world, self.datasets, self._marks(*_HISTORY), self.pinned, held, along, self.shared,
            self.targets, self.now,
        )  # fmt: skip
        return limit_versions(self.policies, rows)

    def _add_others(
        self, objects: list[DataFrame], named: list[DataFrame], left: list[DataFrame], kept_by: list[DataFrame]
    ) -> None:
        facts = (self.policies, self.world, self.datasets)
        if "rows" in self.targets:
            objects.append(others.row_objects(*facts, self._marks("rows"), self.pinned, self.now))
        if "branches" in self.targets:
            branches = others.branch_objects(*facts, self._marks("branches"), self.pinned, self.now)
            objects.append(branches)
            left.append(leaving.of_whole_heads(branches, self.datasets, self.world.files))
            kept_by.append(leaving.kept_by_other_names(branches, self.datasets, self.world.files))
        if "tables" in self.targets:
            tables = others.table_objects(*facts, self._marks("tables"), self.pinned, self.shared, self.now)
            objects.append(tables)
            named.append(_files_with(tables, self.world.files.withColumn("object_id", F.col("table_id"))))
            left.append(leaving.of_whole_heads(tables, self.datasets, self.world.files))
        if "orphans" in self.targets:
            facts = (self.policies, self.world, self._owners())
            found = orphans.orphan_objects(*facts, self._marks("orphans"), self.pinned, self.now)
            if found is not None:
                objects.append(found[0])
                named.append(_files_with(*found))
        if not named:
            named.append(self.world.files.where(F.lit(False)).transform(_no_files))

    def _owners(self) -> DataFrame:
        """The datasets, and those that are none any more and left files."""
        if self.world.former is None:
            return self.datasets
        gone = prepare(self.policies, replace(self.world, tables=self.world.former), self.holds)
        return self.datasets.unionByName(gone.join(self.datasets.select("table_id"), "table_id", "left_anti"))

    def _leftover(self, objects: DataFrame) -> DataFrame:
        """Marks of what no longer is: history, partitions and tables wait for the proof that their files are gone, the
        rest is sent back.
        """
        assert self.marks is not None
        key = ["table_id", "target", "object_id"]
        gone = F.col("target").isin(*_HISTORY, "partitions", "tables")
        number = F.lit(None).cast("int")
        left = self.marks.join(objects.select(*key), key, "left_anti").join(
            held_datasets(self.holds), "table_id", "left"
        )
        # Nobody knows the days of what is gone: any hold on its dataset keeps what is left of it.
        held = F.transform("holds", lambda hold: hold["text"])
        return left.select(
            *key,
            no_texts().alias("branches"),
            number.alias("policy"),
            "fingerprint",
            "cutoff",
            F.when(gone, "wait").otherwise("unmarked").alias("decision"),
            F.when(gone, "it is no longer in the inventory")
            .otherwise("unmarked: no policy selects it any more, or it is gone")
            .alias("because"),
            F.when(gone, F.coalesce(held, texts(PROOF, *self.world.unread))).otherwise(no_texts()).alias("waits_for"),
            no_texts().alias("protected_by"),
            no_texts().alias("drops_from"),
        )


_FILE = ("table_id", "target", "object_id", "path", "bytes", "rows", "decision")


def _without_waiting(files: DataFrame, waits: Sequence[DataFrame]) -> DataFrame:
    """Files of objects that wait for nothing: a file that something still reads is not named."""
    for found in waits:
        files = files.join(found.where(F.size("waits") > 0), ["table_id", "target", "object_id"], "left_anti")
    return files.select(*_FILE)


def _no_files(files: DataFrame) -> DataFrame:
    empty = {"target": "string", "object_id": "string", "decision": "string"}
    return files.withColumns({name: F.lit(None).cast(type_) for name, type_ in empty.items()}).select(*_FILE)


def _files_with(objects: DataFrame, files: DataFrame) -> DataFrame:
    """Files of objects that go whole."""
    going = objects.where(F.col("decision").isin("mark", "marked", READY)).select(
        "table_id", "target", "object_id", "decision"
    )
    return files.drop("target").join(going, ["table_id", "object_id"]).select(*_FILE)


def _objects(rows: DataFrame, target: str, part: str, owner: str) -> DataFrame:
    leaves = F.transform("leaves", lambda name: F.substring(name, len("branch:") + 1, 1 << 20))
    drops = leaves if target == "transactions" else no_texts()
    return rows.where(F.col(f"{part}.exists")).select(
        "table_id", F.lit(target).alias("target"), "object_id", "branches", F.col(owner).alias("policy"), "fingerprint",
        F.lit(None).cast("string").alias("cutoff"),
        *(f"{part}.{name}" for name in ("decision", "because", "waits_for", "protected_by")), drops.alias("drops_from"),
    ).select(*others.COLUMNS)  # fmt: skip


def _with_waits(objects: DataFrame, waits: Sequence[DataFrame]) -> DataFrame:
    """`ready` becomes `wait` where something still references the object's files, else `sweep`."""
    found: Column = no_texts()
    if waits:
        key = ["table_id", "target", "object_id"]
        together = reduce(DataFrame.unionByName, waits).groupBy(*key).agg(F.flatten(F.collect_set("waits")).alias("w"))
        objects, found = objects.join(together, key, "left"), F.coalesce("w", no_texts())
    ready = F.col("decision") == READY
    waiting = ready & (F.size(found) > 0)
    return objects.select(
        *(c for c in others.COLUMNS if c not in ("decision", "waits_for")),
        F.when(waiting, "wait").when(ready, "sweep").otherwise(F.col("decision")).alias("decision"),
        F.when(waiting, joined(found)).otherwise(F.col("waits_for")).alias("waits_for"),
    )
