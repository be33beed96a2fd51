"""`build_plan`: all datasets and all policies by the SQL of `sql/`, never a loop over datasets (spec §1).

1. `parts`: the lake as one part, or in several where it is large; what needs all of it is asked first.
2. `sql/facts`: what is known of each dataset. `sql/decide`: every object with its verdict, and the files that are free
   once what goes has gone. `measure`: what is past a limit. `sql/finish`: the objects as the
   plan file has them. `sql/outcome`: their digest, and what marks and sweeps take of them.
3. The digest over all parts, and the lake's limits.

A small lake is planned in this process, a large one in Spark tasks: the same steps, byte for byte the same plan.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from ebbtide.config.policies import PolicySet
from ebbtide.config.project import Limits
from ebbtide.errors import InputError
from ebbtide.kernel.engine import beside, connection, hand_in, save, scan, table_of
from ebbtide.kernel.steps import run_steps
from ebbtide.kernel.tasks import Tasks, run_parts
from ebbtide.model.durations import Duration
from ebbtide.plan.measure import Measured, measure, over_limits, together
from ebbtide.plan.parts import ROWS_OF_PART, PlanPart, rows_in, split, whole
from ebbtide.plan.plan import DECISIONS, Plan, objects_digest, plan_digest
from ebbtide.plan.promise_bound import TICK
from ebbtide.plan.promises import derive_auto
from ebbtide.plan.sections import load_facts
from ebbtide.plan.warnings import warnings
from ebbtide.plan.world import Orders, World

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ebbtide.kernel.work_folder import WorkFolder

_RELATIONS = {
    "files": "named_files", "sweeps": "files_to_sweep", "drops": "files_of_drops",
    "facts": "history_facts", "days": "days_to_mark",
}  # fmt: skip
"""The relations of a plan beside `objects`, and the tables of `sql/outcome` that they are."""
_LIMITED = pa.schema({"table_id": pa.string(), "verb": pa.string(), "text": pa.string()})


def build_plan(
    policies: PolicySet,
    world: World,
    orders: Orders,
    *,
    now: datetime,
    limits: Limits | None = None,
    tick: Duration = TICK,
    tasks: Tasks | None = None,
) -> Plan:
    """Decide on every object. `tick` is the longest time between runs, from which `older_than: auto` is derived."""
    if not policies.policies and not orders.marks.num_rows and not world.chunks.num_rows:
        raise InputError("there is no policy", hint="write one into policies/, as in `policies/retention.yml`")
    policies, limits = derive_auto(policies, world, tick=tick), limits or Limits()
    rows = rows_in(world)
    aside = tasks is not None and rows > tasks.rows
    with connection() as engine:
        parts = list(split(engine, world, orders)) if aside or rows > ROWS_OF_PART else [whole(engine, world, orders)]
        told = tuple(warnings(engine, policies, world))
        below = _below(tasks) if tasks is not None and aside else None
        # 0700, as `mkdtemp` makes it: a plan names people's tables and files.
        folder = Path(tempfile.mkdtemp(prefix="plan-")) if below is None else below.path
        if not aside:
            work = partial(plan_part, engine, policies, now=now, limits=limits, folder=folder)
            done = run_parts(work, parts)
    if tasks is not None and aside:
        task = partial(_plan_alone, tasks.memory, policies, now=now, limits=limits, folder=folder)
        done = run_parts(task, parts, tasks.session())
    counts = {name: sum(each.counts[name] for each in done) for name in DECISIONS}
    measured = together(each.measured for each in done)
    limited = {name: sum(each.acted[name] for each in done) for name in DECISIONS}
    root = objects_digest(pair for each in done for pair in each.digests)
    return Plan(
        now, plan_digest(now, root, policies.canonical()), folder, counts, measured.totals,
        over_limits(measured, limited, limits), told, below,
        {policy.name: policy.grace for policy in policies.policies} | _rules(world),
    )  # fmt: skip


def _rules(world: World) -> dict[str, Duration]:
    """The files of hot tables, which are the policies of their chunks: nothing is marked there, so nothing waits."""
    return {rule: Duration(0, "h") for rule in world.chunks["rule"].to_pylist() if rule is not None}


def _below(tasks: Tasks) -> WorkFolder:
    # Late, because a small plan locks nothing.
    from ebbtide.kernel.work_folder import WorkFolder

    return WorkFolder(tasks.folder, "plan-")


@dataclass(frozen=True, slots=True)
class Planned:
    """What is known of a part once it is planned: the digest of each of its datasets, and what goes of them. `acted`
    are the counts without chunks, which no mark and no sweep takes.
    """

    digests: tuple[tuple[str, str], ...]
    counts: Mapping[str, int]
    acted: Mapping[str, int]
    measured: Measured


def _plan_alone(
    memory: str, policies: PolicySet, part: PlanPart, *, now: datetime, limits: Limits, folder: Path
) -> Planned:
    """A task's work: the cores are shared out already."""
    with connection(threads=1, memory=memory) as engine:
        return plan_part(engine, policies, part, now=now, limits=limits, folder=folder)


def plan_part(
    among: DuckDBPyConnection,
    policies: PolicySet,
    part: PlanPart,
    *,
    now: datetime,
    limits: Limits,
    folder: Path,
) -> Planned:
    """Plan some datasets, and write what was decided into the plan's folder."""
    with beside(among) as engine:
        load_facts(engine, policies, part.world, part.orders, now=now, limits=limits)
        hand_in(engine, "shared", part.shared)
        run_steps(engine, "ebbtide.plan", "sql/decide")
        measured = measure(engine, limits)
        _bind_limited(engine, measured)
        run_steps(engine, "ebbtide.plan", "sql/finish")
        # Written once, and read from there: in the file equal texts are one text.
        objects = folder / f"objects-{part.number:05}.parquet"
        save(engine, "finished", objects)
        engine.execute(f"CREATE TEMP VIEW planned AS SELECT * FROM {scan([objects])}")
        run_steps(engine, "ebbtide.plan", "sql/outcome")
        for relation, table in _RELATIONS.items():
            save(engine, table, folder / f"{relation}-{part.number:05}.parquet")
        rows = engine.execute(f"SELECT dataset, digest, {', '.join(DECISIONS)} FROM digests").fetchall()
    hot = set(part.world.chunks["table_id"].to_pylist())
    counts, acted = (
        {name: sum(row[n] for row in counted) for n, name in enumerate(DECISIONS, 2)}
        for counted in (rows, [row for row in rows if row[0] not in hot])
    )
    return Planned(tuple((row[0], row[1]) for row in rows), counts, acted, measured)


def _bind_limited(engine: DuckDBPyConnection, measured: Measured) -> None:
    """`limited`: the datasets of which too much would go, by verb."""
    rows = [(one.dataset, one.verb, f"limit:{one.text}") for one in measured.over]
    hand_in(engine, "limited", table_of(rows, _LIMITED))
