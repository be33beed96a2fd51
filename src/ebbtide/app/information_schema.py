"""The information schema: labelled, with lineage, the state and what policies make of it; one for all who ask.

Checks and reports have its sections as views of a session of their own, the library hands them out as DataFrames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from ebbtide.app.world import orders_of, read_state, state_views, tick_of, world_of
from ebbtide.config import Project
from ebbtide.config.classifiers import Classifiers, load_classifiers
from ebbtide.config.policies import load_policies
from ebbtide.config.yaml import nearest
from ebbtide.errors import InputError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.kernel.work_folder import WorkFolder
from ebbtide.lineage.labelled import Labelled, label_inventory
from ebbtide.private import private_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ebbtide.governance.views import Schema
    from ebbtide.model.contract import ContractDrift
    from ebbtide.plan.promises import PromiseProof
    from ebbtide.plan.views import Views
    from ebbtide.state.values import Snapshot

_PROBLEMS = pa.schema([(name, pa.string()) for name in ("kind", "place", "subject", "message", "hint")])


@contextmanager
def information_schema(project: Project, *, now: datetime) -> Iterator[SparkSession]:
    """A session of its own, in which every section of the information schema is a view."""
    from ebbtide.app.scan import start_plan_session
    from ebbtide.governance.views import register_views

    inventory = Inventory.open(project.inventory)
    spark = start_plan_session(project, inventory)
    with WorkFolder(project.inventory, "views-") as folder:
        register_views(spark, *_made(project, inventory, spark, Path(folder), now), now=now)
        yield spark


def section(project: Project, name: str, folder: Callable[[], Path], *, now: datetime) -> DataFrame:
    """One section as a frame of the project's session. What it reads lies in a `folder`, as long as it is used."""
    from ebbtide.app.scan import start_session
    from ebbtide.governance.views import SECTIONS, sections

    if name not in SECTIONS:
        raise InputError(f"the information schema has no section {name!r}", hint=nearest(name, list(SECTIONS)))
    inventory = Inventory.open(project.inventory)
    spark = start_session(project)
    if name in AS_SCANNED:
        return inventory.frame(spark, name)
    return sections(spark, *_made(project, inventory, spark, folder(), now))[name]


AS_SCANNED = ("branches", "transactions", "files")
"""Sections that are what the scan wrote: labels, policies and the state add nothing to them."""


def _as_scanned(inventory: Inventory, spark: SparkSession) -> dict[str, DataFrame]:
    return {name: inventory.frame(spark, name) for name in AS_SCANNED}


def _made(
    project: Project, inventory: Inventory, spark: SparkSession, folder: Path, now: datetime
) -> tuple[Schema, Sequence[PromiseProof], Classifiers]:
    """Everything that the sections are made of."""
    from ebbtide.plan.promises import derive_auto
    from ebbtide.plan.views import plan_views

    policies, classifiers = load_policies(project.root, unsafe=True), load_classifiers(project.root / "classifiers")
    snapshot, tick = read_state(project), tick_of(project)
    labelled = label_inventory(project, inventory)
    world, orders = world_of(labelled, inventory), orders_of(project, snapshot, inventory)
    policies = derive_auto(policies, world, tick=tick)
    views = plan_views(policies, world, orders, tick=tick, now=now)
    return _schema(project, spark, inventory, labelled, snapshot, views, folder), views.proofs, classifiers


def _schema(
    project: Project,
    spark: SparkSession,
    inventory: Inventory,
    labelled: Labelled,
    snapshot: Snapshot,
    views: Views,
    folder: Path,
) -> Schema:
    from ebbtide.governance.contracts import drift
    from ebbtide.governance.views import DRIFT, READABLE, Schema
    from ebbtide.spark.frames import small_frame

    problems = [asdict(problem) for problem in labelled.problems]
    for row in problems:
        row["place"], row["kind"] = row.pop("where"), row["kind"].value
    drifts = drift(labelled, inventory)
    readable = [(one.table_id, *kept) for one in drifts for kept in one.readable.items()]
    worked_out = {
        "tables": views.tables,
        "columns": labelled.section(inventory, "columns"),
        "partitions": views.partitions,
        "retention": views.retention,
        "lineage": labelled.lineage.graph.to_arrow(),
        "problems": pa.Table.from_pylist(problems, _PROBLEMS),
    }
    return Schema(
        **{name: _frame(spark, table, folder / name) for name, table in worked_out.items()},
        **_as_scanned(inventory, spark),
        **state_views(project, spark, snapshot, inventory),
        scan_errors=inventory.errors_frame(spark),
        contract_drift=small_frame(spark, _asked(drifts, labelled), DRIFT),
        readable_statistics=small_frame(spark, readable, READABLE),
    )


def _asked(drifts: Sequence[ContractDrift], labelled: Labelled) -> list[tuple[str, str, str, str]]:
    """Where tables differ from a contract that somebody wrote; what only labels ask for has checks of its own."""
    asked = {
        table_id
        for table_id, about in labelled.settings.items()
        if about.contract is not None or about.enforce or about.is_pii is not None
    }
    return [(one.table_id, one.aspect.value, one.found, one.wanted) for one in drifts if one.table_id in asked]


def _frame(spark: SparkSession, table: pa.Table, path: Path) -> DataFrame:
    """Through a file: a million edges would be slow to hand over value by value."""
    from ebbtide.spark.frames import own_parquet

    pq.write_table(table, private_file(path))
    return own_parquet(spark, path)
