"""What a plan is made from: the inventory with its labels, what the storage holds beside it, and the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from ebbtide.app.hot_chunks import chunks_of, has_hot_tables, on_both_tiers, who_drops
from ebbtide.app.orphans import tasks_of, with_orphans
from ebbtide.config import Project
from ebbtide.config.policies import PolicySet, load_policies
from ebbtide.config.project import Limits
from ebbtide.errors import InputError
from ebbtide.inventory.doubts import WAY_OUT as WAY_OUT
from ebbtide.inventory.doubts import Doubt, declarations, doubts, names_to_wait_for, unread
from ebbtide.inventory.information_schema import Inventory
from ebbtide.inventory.listing import Listing, last_listing
from ebbtide.inventory.partition_days import DeclaredDates, declared_dates, named_by_dates
from ebbtide.inventory.renames import called_now
from ebbtide.lineage.labelled import Labelled, label_inventory
from ebbtide.model.durations import Duration, parse_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ebbtide.plan.plan import Plan
    from ebbtide.plan.world import Orders, World
    from ebbtide.state.values import Hold, Mark, Snapshot, Unmark

_Order = TypeVar("_Order", "Hold", "Unmark")


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that a plan is made from, read once."""

    project: Project
    policies: PolicySet
    inventory: Inventory
    snapshot: Snapshot
    world: World
    declared: tuple[str, ...] = ()
    """What people said that lifts a protection: every plan shows it."""
    labelled: Labelled | None = None
    warnings: tuple[str, ...] = ()

    def dated(self) -> frozenset[str]:
        """The tables whose partitions the ledger may name by their dates."""
        if self.labelled is None:
            return frozenset()
        return named_by_dates(self.inventory, self.labelled.settings, self.labelled.personal_columns())

    def orders(self) -> Orders:
        return orders_of(self.project, self.snapshot, self.inventory)

    def plan(self, *, now: datetime, limits: Limits | None = None) -> Plan:
        """Decide on every object at `now`: in this process, or in Spark tasks where there is much to decide."""
        from ebbtide.plan.build import build_plan

        project = self.project
        made = build_plan(
            self.policies, self.world, self.orders(), now=now, limits=limits or project.limits, tick=tick_of(project),
            tasks=tasks_of(project),
        )  # fmt: skip
        mislabelled = [] if self.labelled is None else self.labelled.mislabelled(self.inventory)
        due = who_drops(made) if self.world.chunks.num_rows else ()
        return replace(made, warnings=(*made.warnings, *self.declared, *mislabelled, *self.warnings, *due))


def read_inputs(
    project: Project,
    policies: PolicySet,
    snapshot: Snapshot,
    inventory: Inventory,
    listing: Listing | None,
    *,
    now: datetime,
) -> Inputs:
    """The world as the inventory and a listing before it have it, with every `auto` of the policies settled."""
    from ebbtide.plan.promises import derive_auto

    listing = listing if needs_listing(policies, snapshot) else None
    labelled = label_inventory(project, inventory)
    waits_for = names_to_wait_for(in_doubt(project, inventory, now=now))
    world = replace(world_of(labelled, inventory), unread=waits_for)
    if listing is not None:
        world = with_orphans(world, project, inventory, labelled, listing, now=now)
    warnings: tuple[str, ...] = ()
    if has_hot_tables(project):
        chunks, warnings = chunks_of(project, snapshot.holds)
        world = replace(world, chunks=chunks)
    policies = derive_auto(policies, world, tick=tick_of(project))
    declared = tuple(declarations(project.catalogs, project.ignore, now=now))
    return Inputs(project, policies, inventory, snapshot, world, declared, labelled, warnings)


def in_doubt(project: Project, inventory: Inventory, *, now: datetime) -> tuple[Doubt, ...]:
    """Who may reference files of others unknown to anybody (spec §7)."""
    return doubts(inventory.current, project.catalogs, project.ignore, now=now)


def not_read(project: Project, inventory: Inventory, *, now: datetime) -> tuple[str, ...]:
    """What could not be read, in a line each, but for what the project ignores."""
    return tuple(unread(inventory, in_doubt(project, inventory, now=now), project.ignore, now=now))


def listing_before(project: Project, inventory: Inventory) -> Listing | None:
    """The last listing of the storage, where the inventory was read after it."""
    listing = last_listing(project.inventory)
    return listing if listing is not None and listing.is_before(inventory.current) else None


def needs_listing(policies: PolicySet, snapshot: Snapshot) -> bool:
    """Whether anybody asks for orphans: a policy, or a mark that is still open."""
    return any(p.orphans for p in policies.policies) or any(m.key.target == "orphans" for m in snapshot.marks)


def tick_of(project: Project) -> Duration:
    """The longest time between two runs."""
    return parse_duration(project.tick, hours=True)


def some_policies(project: Project, *, hot: bool = False) -> PolicySet:
    """The project's policies, of which there must be one. `hot`: those of hot tables, in their own files, will do."""
    policies = load_policies(project.root, unsafe=project.unsafe)
    if not policies.policies and not (hot and has_hot_tables(project)):
        raise InputError("there are no policies", hint=f"write one into {project.root / 'policies'}/retention.yml")
    return policies


def world_of(labelled: Labelled, inventory: Inventory) -> World:
    """The inventory with its labels as the plan's world."""
    from ebbtide.kernel.engine import table_of
    from ebbtide.plan.world import DAYS, World

    declared = declared_dates(inventory, labelled.settings)
    return World(
        tables=_tables(labelled, inventory, declared),
        columns=inventory.section("columns"),
        partitions=inventory.section("partitions"),
        branches=inventory.section("branches"),
        transactions=inventory.section("transactions"),
        files=inventory.section("files"),
        declared_days=table_of(declared.partitions, DAYS),
    )


def _tables(labelled: Labelled, inventory: Inventory, declared: DeclaredDates) -> pa.Table:
    """The section `tables` with what labels and lineage say in place of the scan's empty columns, and with what the
    inventory knows of each dataset as a whole.
    """
    tables = labelled.section(inventory, "tables")
    entries = [inventory.current.entries[table_id] for table_id in tables["table_id"].to_pylist()]
    settings = [labelled.settings.get(entry.table_id) for entry in entries]
    dates = [about.partition_date if about is not None else None for about in settings]
    columns = {
        "scan_id": pa.array([entry.scan_id for entry in entries], pa.string()),
        "locked_by": pa.array([list(entry.locked_by) for entry in entries], pa.list_(pa.string())),
        "scan_error": pa.array([entry.error for entry in entries], pa.string()),
        "covers": pa.array([about.covers if about is not None else None for about in dates], pa.string()),
        "identity": pa.array([entry.identity for entry in entries], pa.string()),
    }
    for name, values in columns.items():
        tables = tables.append_column(name, values)
    said = {table_id: (column, "declared", doubt) for table_id, column, doubt in declared.tables}
    for n, name in enumerate(("date_column", "date_by", "date_doubt")):
        found = zip(tables["table_id"].to_pylist(), tables[name].to_pylist(), strict=True)
        values = [said[table_id][n] if table_id in said else value for table_id, value in found]
        tables = tables.set_column(tables.schema.get_field_index(name), name, pa.array(values, pa.string()))
    return tables


def read_state(project: Project) -> Snapshot:
    """Open marks, unmarks and holds, read in one transaction. Holds carry their owner's name, not the opaque id."""
    from ebbtide.app.state import open_state

    with open_state(project).reader() as state:
        found = state.snapshot()
        named = tuple(replace(hold, owner=state.actor_name(hold.owner)) for hold in found.holds)
    return replace(found, holds=on_both_tiers(project, named))


def orders_of(project: Project, snapshot: Snapshot, inventory: Inventory) -> Orders:
    """Marks, unmarks and holds as the plan takes them. A hold on a person is one on every dataset that could show them:
    no row is looked at here.
    """
    from ebbtide.plan.world import Orders

    return Orders.of(
        [_mark(mark) for mark in snapshot.marks],
        [_unmark(pin) for pin in followed(snapshot.unmarks, inventory) if pin.released_at is None],
        [_hold(hold) for hold in followed(_by_dataset(project, snapshot.holds, inventory), inventory)],
        [(mark.key.dataset, mark.key.object, *mark.days) for mark in snapshot.marks if mark.days is not None],
    )


def _by_dataset(project: Project, holds: Sequence[Hold], inventory: Inventory) -> Iterator[Hold]:
    """Holds as they are on datasets."""
    of_people = [hold for hold in holds if hold.dataset is None]
    yield from (hold for hold in holds if hold.dataset is not None)
    if of_people:
        from ebbtide.app.ledger import open_ledger
        from ebbtide.app.state import open_state
        from ebbtide.config.copies import load_copies
        from ebbtide.config.subjects import load_identities
        from ebbtide.erasure.held_people import datasets_of_people

        with open_state(project).reader() as state:
            condemned = [each.dataset for each in state.condemned()]
        known = load_identities(project.root), label_inventory(project, inventory), inventory, load_copies(project.root)
        for dataset in datasets_of_people(open_ledger(project).home, of_people, *known, condemned):
            yield from (replace(hold, dataset=dataset) for hold in of_people)


def followed(orders: Iterable[_Order], inventory: Inventory) -> Iterator[_Order]:
    """What people ordered, and again for a dataset that is the named one by another name: a rename takes it along."""
    renamed = called_now(inventory.current)
    for order in orders:
        yield order
        for name in renamed.get(order.dataset or "", ()):
            yield replace(order, dataset=name)


def state_views(
    project: Project, spark: SparkSession, snapshot: Snapshot, inventory: Inventory
) -> dict[str, DataFrame]:
    """Marks, unmarks and holds as checks and reports see them: what the plan takes, and what else people ask."""
    from ebbtide.governance.views import HOLDS, MARKS, UNMARKS
    from ebbtide.spark.frames import small_frame

    marks = [
        (*_mark(m), m.id, m.state.value, m.because, list(m.waits_for), m.rows, m.bytes, m.run) for m in snapshot.marks
    ]
    pins = (pin for pin in followed(snapshot.unmarks, inventory) if pin.released_at is None)
    unmarks = [(*_unmark(pin), pin.id, pin.created_at) for pin in pins]
    by_dataset = followed(_by_dataset(project, snapshot.holds, inventory), inventory)
    holds = [(*_hold(h), h.id, h.scope.value, h.created_at) for h in by_dataset]
    return {
        "marks": small_frame(spark, marks, MARKS),
        "unmarks": small_frame(spark, unmarks, UNMARKS),
        "holds": small_frame(spark, holds, HOLDS),
    }


def _mark(m: Mark) -> tuple[object, ...]:
    return (
        m.key.dataset, m.key.target, m.key.object, m.policy, m.fingerprint, m.marked_at, m.grace_until, m.frozen,
        m.acted_at, m.act,
    )  # fmt: skip


def _unmark(pin: Unmark) -> tuple[object, ...]:
    return (pin.dataset, None, pin.object, pin.until, pin.reason or None)


def _hold(hold: Hold) -> tuple[object, ...]:
    return (hold.dataset, hold.first_day, hold.last_day, hold.owner, hold.reason)
