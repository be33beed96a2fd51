"""What keeps an erasure from datasets and from single versions of them, by the steps that retention plans with.

A version is kept by what would keep it from a policy without any age: a rescue, a floor of the format, a consumer, a
savepoint. Heads and tags are no reason here: an erasure rewrites what they show. Neither is that a version is staged:
it may not end before it is published, but it may be rewritten, and a format that cannot says so itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from ebbtide.config.policies import Policy, PolicySet, Select, Versions
from ebbtide.kernel.engine import connection
from ebbtide.kernel.steps import run_steps
from ebbtide.model.durations import Duration, add
from ebbtide.model.reasons import Code, Reason
from ebbtide.plan.build import build_plan
from ebbtide.plan.promise_bound import TICK
from ebbtide.plan.sections import load_facts
from ebbtide.plan.world import MARKS, Orders, World

_BY_PEOPLE = {"held": Code.HOLD, "unmarked": Code.RESCUED}
_AT_ONCE = Policy(
    name="erasure",
    select=Select(tables=("**",)),
    grace=Duration(0, "h"),
    versions=Versions(older_than=Duration(0, "d"), keep_min=1),
)


@dataclass(frozen=True, slots=True)
class Statute:
    """A statutory floor on a dataset, and the last day that it keeps rows; None where that cannot be told."""

    basis: str
    until: date | None


@dataclass(frozen=True, slots=True)
class HeldBack:
    """What keeps an erasure from one dataset. `kept` are versions that may neither be rewritten nor end, with why;
    `ages` settings of the format that keep what was superseded, each with how long; None where that is not understood.
    """

    blocks: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    statutes: tuple[Statute, ...] = ()
    settings: tuple[str, ...] = ()
    rows: int | None = None
    kept: Mapping[str, Reason] = field(default_factory=dict)
    ages: Mapping[str, timedelta | None] = field(default_factory=dict)


def held_back(
    policies: PolicySet, world: World, orders: Orders, tables: Collection[str], *, now: datetime
) -> dict[str, HeldBack]:
    """For each of these datasets what keeps an erasure from it at `now`."""
    world, orders = world.only(tables), orders.only(tables)
    kept = _kept(world, orders, now)
    with connection() as engine:
        load_facts(engine, policies, world, orders, now=now)
        run_steps(engine, "ebbtide.plan", "sql/held_back")
        rows = engine.sql("SELECT * FROM held_back ORDER BY table_id").to_arrow_table().to_pylist()
    return {
        row["table_id"]: HeldBack(
            blocks=tuple(row["blocks"] or ()),
            holds=tuple(row["holds"] or ()),
            statutes=tuple(_statutes(policies, row["floor_numbers"], row["last_day"], now)),
            settings=tuple(row["settings"] or ()),
            rows=row["rows"],
            kept=kept.get(row["table_id"], {}),
            ages={rule["text"]: _age(rule["micros"]) for rule in row["times"]},
        )
        for row in rows
    }


def _age(micros: int | None) -> timedelta | None:
    return None if micros is None else timedelta(microseconds=micros)


def _statutes(policies: PolicySet, numbers: Collection[int], last_day: date | None, now: datetime) -> list[Statute]:
    found = []
    for number in numbers:
        floor = policies.floors[number]
        until = None if last_day is None else add(last_day, floor.keep_at_least)
        if until is None or until >= now.date():
            found.append(Statute(f"floor:{floor.label}", until))
    return found


def _kept(world: World, orders: Orders, now: datetime) -> dict[str, dict[str, Reason]]:
    found: dict[str, dict[str, Reason]] = {}
    # A mark of a policy says that a version goes. To the plan of another policy it would be one to send back.
    orders = replace(orders, marks=MARKS.empty_table())
    with build_plan(PolicySet((_AT_ONCE,)), world, orders, now=now, tick=TICK) as plan:
        for row in plan.rows("keep", "held", "unmarked", "wait", codes=True):
            if row["target"] == "versions" and (why := _why(row)) is not None:
                found.setdefault(row["dataset"], {})[row["object"]] = why
    return found


def _why(row: Mapping[str, object]) -> Reason | None:
    """What keeps a version beside heads and tags; None where only these do, or its age."""
    if (code := _BY_PEOPLE.get(str(row["decision"]))) is not None:
        return Reason(str(row["because"]), code)
    texts, codes = row["protected_by"], row["protected_by_codes"]
    assert isinstance(texts, list)
    assert isinstance(codes, list)
    floors = (Reason(text, Code.FLOOR) for text, code in zip(texts, codes, strict=True) if code == Code.FLOOR)
    return next(floors, None)
