"""`ebbtide plan`: what would be marked and swept, and why. Writes nothing but the file that it is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide.config import Project
from ebbtide.config.classifiers import load_classifiers
from ebbtide.config.policies import load_policies
from ebbtide.config.tables import TableSettings, load_tables
from ebbtide.errors import InputError
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.labelled import label_inventory
from ebbtide.inventory.listing import last_listing
from ebbtide.inventory.partition_days import dated_partitions
from ebbtide.model.durations import parse_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ebbtide.plan.plan import Plan
    from ebbtide.plan.world import World
    from ebbtide.state.values import Snapshot


def parse_time(text: str) -> datetime:
    """`--as-of`: a date (its first moment in UTC) or an instant. An instant without a zone is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"not a time: {text!r}", hint="write 2026-11-15 or 2026-11-15T12:00:00Z") from None
    if len(text) == len(date.min.isoformat()) and time.time() == datetime.min.time():
        return time.replace(tzinfo=UTC)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def make_plan(project: Project, *, now: datetime) -> Plan:
    """Plan the whole project on its last inventory, at `now`."""
    from ebbtide.app.orphans import with_orphans
    from ebbtide.app.scan import start_session
    from ebbtide.plan.build import build_plan
    from ebbtide.spark.session import few_rows

    policies = load_policies(project.root)
    inventory = Inventory.open(project.inventory)
    if not policies.policies:
        raise InputError("there are no policies", hint=f"write one into {project.root / 'policies'}/retention.yml")
    spark = start_session(project)
    marks, unmarks, holds = state_frames(spark, read_state(project))
    world = world_of(project, inventory, spark)
    listing = last_listing(project.inventory)
    if listing is not None and listing.is_before(inventory.current):
        world = with_orphans(world, project, inventory, listing, spark)
    tick = parse_duration(project.tick, hours=True)
    with few_rows(spark, apply=inventory.is_small):
        return build_plan(policies, world, marks, unmarks, holds, now=now, limits=project.limits, tick=tick)


def world_of(project: Project, inventory: Inventory, spark: SparkSession) -> World:
    """The inventory with its labels as the plan's world. Catalogs that did not answer are errors of it."""
    from ebbtide.plan.world import World

    settings = load_tables(project.root / "tables", load_classifiers(project.root / "classifiers"))
    errors = tuple(f"{failed.catalog}: {failed.error}" for failed in inventory.current.catalog_errors)
    return World(
        tables=_labelled(project, inventory, spark, settings),
        columns=inventory.frame(spark, "columns"),
        partitions=dated_partitions(spark, inventory, settings),
        branches=inventory.frame(spark, "branches"),
        transactions=inventory.frame(spark, "transactions"),
        files=inventory.frame(spark, "files"),
        errors=errors,
    )


def _labelled(
    project: Project, inventory: Inventory, spark: SparkSession, settings: Mapping[str, TableSettings]
) -> DataFrame:
    """The section `tables` with what labels and lineage say, in place of the scan's empty columns."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    from ebbtide.spark.frames import small_frame

    found = label_inventory(project, inventory).tables()
    rows = [tuple(row.values()) for row in found.to_pylist()]
    labels = small_frame(spark, rows, from_arrow_schema(found.schema))
    scanned = inventory.frame(spark, "tables").drop(*(name for name in found.column_names if name != "table_id"))
    covers = [
        (table_id, about.partition_date.covers)
        for table_id, about in settings.items()
        if about.partition_date and about.partition_date.covers
    ]
    covered = small_frame(spark, covers, "table_id string, covers string")
    return scanned.join(F.broadcast(labels), "table_id", "left").join(F.broadcast(covered), "table_id", "left")


def read_state(project: Project) -> Snapshot:
    """Open marks, unmarks and holds, read in one transaction. Holds carry their owner's name, not the opaque id."""
    from ebbtide.app.state import open_state

    with open_state(project).reader() as state:
        found = state.snapshot()
        named = tuple(replace(hold, owner=state.actor_name(hold.owner)) for hold in found.holds)
        return replace(found, holds=named)


def state_frames(spark: SparkSession, snapshot: Snapshot) -> tuple[DataFrame | None, DataFrame | None, DataFrame]:
    """Marks, unmarks and holds as the plan takes them. A hold on a subject names no dataset: erasure traces it."""
    from ebbtide.plan.world import HOLDS, MARKS, UNMARKS
    from ebbtide.spark.frames import small_frame

    marks = [
        (m.key.dataset, m.key.target, m.key.object, m.policy, m.fingerprint, m.marked_at, m.grace_until, m.frozen,
         m.acted_at)
        for m in snapshot.marks
    ]  # fmt: skip
    unmarks = [(u.dataset, None, u.object, u.until, u.reason) for u in snapshot.unmarks if u.released_at is None]
    holds = [(h.dataset, h.first_day, h.last_day, h.owner, h.reason) for h in snapshot.holds if h.dataset is not None]
    return (
        small_frame(spark, marks, MARKS) if marks else None,
        small_frame(spark, unmarks, UNMARKS) if unmarks else None,
        small_frame(spark, holds, HOLDS),
    )


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan in the shape of design.md."""
    return {**plan.head(), "objects": list(plan.rows())}


def write_plan(plan: Plan, path: Path) -> None:
    """Write the plan to `path`, and the files that it names, sorted, a file a line, to `path.files`.

    Object by object, because a plan can be larger than memory.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    names = path.with_name(path.name + ".files")
    with names.open("w", encoding="utf-8") as out:
        out.writelines(f"{name}\n" for name in plan.paths())
    with path.open("w", encoding="utf-8") as out:
        out.writelines(_lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    head = json.dumps(plan.head(), indent=1, ensure_ascii=False)
    yield head.removesuffix("\n}") + ',\n "objects": ['
    for number, row in enumerate(plan.rows()):
        yield ("," if number else "") + "\n  " + json.dumps(row, ensure_ascii=False)
    yield "\n ]\n}\n"
