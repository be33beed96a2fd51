"""`ebbtide report overview`: everything that one page says of a project, as of its last scan. No session is started."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ebbtide.app.plan import inventory_age, make_plan
from ebbtide.app.state import open_state
from ebbtide.app.storage_history import StoredBytes, record_stored, stored_before, stored_now
from ebbtide.app.tables import list_tables
from ebbtide.app.world import orders_of, read_state, some_policies, tick_of, world_of
from ebbtide.config import Project
from ebbtide.config.policies import PolicySet
from ebbtide.inventory.information_schema import Inventory
from ebbtide.model.durations import parse_duration
from ebbtide.state.counts import deadlines, marks_by_state, requests_by_state
from ebbtide.state.values import MarkState, Request, RequestState

if TYPE_CHECKING:
    from ebbtide.plan.summary import PolicySummary

_OPEN = (MarkState.MARKED, MarkState.WAITING, MarkState.SWEEPING)


@dataclass(frozen=True, slots=True)
class RetentionLine:
    """What one policy says of one target of a table."""

    target: str
    policy: str
    older_than: str | None
    grace: str


@dataclass(frozen=True, slots=True)
class TableOverview:
    table_id: str
    format: str | None
    bytes: int
    kept: tuple[RetentionLine, ...]
    error: str | None


@dataclass(frozen=True, slots=True)
class Promised:
    """A promise for one table, in days. `bound` is None where there is none; `breaks` is None where it is proved."""

    promise: str
    table_id: str
    within: int
    bound: int | None
    breaks: str | None
    terms: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """`storage` are bytes by state; those of `marked` and of orphans may be among the others."""

    project: str
    at: datetime
    age: str
    unread: tuple[str, ...]
    tables: tuple[TableOverview, ...]
    due: tuple[PolicySummary, ...]
    promises: tuple[Promised, ...]
    storage: Mapping[str, int]
    history: tuple[StoredBytes, ...]
    requests: Mapping[RequestState, int]
    overdue: int
    waiting: tuple[Request, ...]


def make_overview(project: Project, *, now: datetime) -> Overview:
    """Read it all, and plan as `ebbtide plan` does. Nothing is written but the curve's line of the last scan."""
    from ebbtide.plan.summary import GOING, summarise

    record_stored(project, now=now)
    inventory = Inventory.open(project.inventory)
    with make_plan(project, now=now) as plan:
        lines = [line for line in summarise(plan) if any(line.counts.get(each) for each in GOING)]
    with open_state(project).reader() as state:
        marks = marks_by_state(state.connection, now=now)
        requests = requests_by_state(state.connection)
        overdue = deadlines(state.connection, now=now, soon=now).overdue
        waiting = [each for each in state.requests(only_open=True) if each.state not in _ANSWERED]
    stored = stored_now(inventory, now=now)
    storage = {
        "live": stored.live,
        "kept for older versions": stored.kept,
        "marked, to go after their grace": sum(marks[each].bytes for each in _OPEN),
        "orphans that policies take": sum(line.bytes for line in lines if line.target == "orphans"),
    }
    retention, promises = _governed(project, inventory, some_policies(project), now)
    age, unread = inventory_age(project, now=now)
    tables = tuple(
        TableOverview(row["table_id"], row["format"], row["bytes"], retention.get(row["table_id"], ()), row["error"])
        for row in list_tables(project)
    )
    return Overview(
        project.name, now, age, unread, tables, tuple(lines), promises, storage, tuple(stored_before(project)),
        requests, overdue, tuple(sorted(waiting, key=lambda each: each.deadline)),
    )  # fmt: skip


def broken_promises(project: Project, *, now: datetime) -> int:
    """For how many tables a promise is broken, as of the last scan."""
    policies = some_policies(project)
    if not policies.promises:
        return 0
    _, promises = _governed(project, Inventory.open(project.inventory), policies, now)
    return sum(promise.breaks is not None for promise in promises)


_ANSWERED = (RequestState.CERTIFIED_WITH_EXCEPTIONS,)


def _governed(
    project: Project, inventory: Inventory, policies: PolicySet, now: datetime
) -> tuple[Mapping[str, tuple[RetentionLine, ...]], tuple[Promised, ...]]:
    """Which policy owns what of each table, and every promise."""
    from ebbtide.lineage.labelled import label_inventory
    from ebbtide.plan.promise_bound import lengths
    from ebbtide.plan.promises import derive_auto
    from ebbtide.plan.views import plan_views

    tick = tick_of(project)
    world = world_of(label_inventory(project, inventory), inventory)
    orders = orders_of(project, read_state(project), inventory)
    policies = derive_auto(policies, world, tick=tick)
    views = plan_views(policies, world, orders, tick=tick, now=now)
    found: dict[str, list[RetentionLine]] = defaultdict(list)
    for row in views.retention.to_pylist():
        found[row["table_id"]].append(RetentionLine(row["target"], row["policy"], row["older_than"], row["grace"]))
    promises = tuple(
        Promised(
            proof.promise, proof.table_id, lengths(parse_duration(proof.gone_within))[0], proof.bound.days,
            proof.breaks, tuple((term.name, term.days) for term in proof.bound.terms),
        )
        for proof in views.proofs
    )  # fmt: skip
    return {table: tuple(sorted(kept, key=lambda one: one.target)) for table, kept in found.items()}, promises
