"""Promises over all tables: what `check` shows, and what `older_than: auto` comes from (spec §3).

The selections and the facts are gathered by `sql/promises`, a row per table; the proof itself is arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ebbtide.config.policies import AUTO, PolicySet
from ebbtide.errors import InputError
from ebbtide.kernel.engine import connection
from ebbtide.kernel.steps import run_steps
from ebbtide.model.durations import Duration
from ebbtide.plan.promise_bound import Bound, Facts, bound_of, lengths
from ebbtide.plan.sections import load_facts
from ebbtide.plan.world import ORPHANS_ONLY, Orders, World

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MONTH, _YEAR = range(27, 31), range(364, 366)
_DERIVED = ("partitions", "rows")
_HOUR = 3_600_000_000
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PromiseProof:
    """One promise for one table. `breaks` is None where it is proved."""

    promise: str
    gone_within: str
    table_id: str
    labels: tuple[str, ...]
    bound: Bound
    breaks: str | None


def prove(engine: DuckDBPyConnection, policies: PolicySet, *, tick: Duration) -> list[PromiseProof]:
    """Every promise for every table that it selects, in order of promise and table, from facts that were loaded."""
    if not policies.promises:
        return []
    found = []
    for facts, promised in _gathered(engine):
        bound = bound_of(facts, policies, tick)
        for n in promised:
            promise = policies.promises[n]
            name = promise.name or f"{_what(policies, n)} gone within {promise.gone_within}"
            broken = bound.breaks(promise.gone_within)
            found.append((n, PromiseProof(name, str(promise.gone_within), facts.table_id, facts.labels, bound, broken)))
    return [proof for _, proof in sorted(found, key=lambda pair: (pair[0], pair[1].table_id))]


def gone_by_age(
    policies: PolicySet, world: World, orders: Orders, gone_within: Duration, *, tick: Duration
) -> set[str]:
    """The tables of which nothing is left so long after it was written, proved: their partitions go by date in time."""
    policies = derive_auto(policies, world, tick=tick)
    found = set()
    for facts, _ in _gather(policies, world, orders):
        bound = None if facts.partitions is None else bound_of(facts, policies, tick)
        if bound is not None and bound.breaks(gone_within) is None:
            found.add(facts.table_id)
    return found


def _what(policies: PolicySet, n: int) -> str:
    select = policies.promises[n].select
    return ", ".join((*(select.any_labels or ()), *(select.all_labels or ()), *(select.tables or ()))) or "everything"


def derive_auto(policies: PolicySet, world: World, *, tick: Duration) -> PolicySet:
    """The policies with each `older_than: auto` replaced by the longest retention that keeps every promise.

    A policy has one retention, so the strictest of its tables and of their promises counts. It needs the whole lake:
    derive before looking at one dataset only.
    """
    if not any(_is_auto(policy, target) for policy in policies.policies for target in policy.targets):
        return policies
    for policy in policies.policies:
        for target in policy.targets:
            if _is_auto(policy, target) and (target not in _DERIVED or not policies.promises):
                why = "there is no promise to derive it from" if target in _DERIVED else f"{target} follow no promise"
                raise InputError(
                    f"policy {policy.name!r}: {target}.older_than is auto, and {why}",
                    hint="add `promises:` with gone_within, or write a duration, as in older_than: 71d",
                )
    # Holds are no reason to keep less of the rest.
    gathered = _gather(policies, world, Orders())
    return _replaced(policies, gathered, tick)


def _is_auto(policy: Any, target: str) -> bool:
    return getattr(getattr(policy, target), "older_than", None) == AUTO


def _replaced(policies: PolicySet, gathered: Sequence[tuple[Facts, tuple[int, ...]]], tick: Duration) -> PolicySet:
    made = []
    for number, policy in enumerate(policies.policies):
        changed = {}
        for target in policy.targets:
            if not _is_auto(policy, target):
                continue
            mine = [(facts, n) for facts, promised in gathered if getattr(facts, target) == number for n in promised]
            # Without a table that a promise concerns, nothing depends on the answer: a daily one stands in.
            stand_in = Facts("any", partitions=number, versions=number) if target == "partitions" else None
            mine = mine or [(stand_in or Facts("any", rows=number, versions=number), n)
                            for n in range(len(policies.promises))]  # fmt: skip
            rooms = [(_room(facts, policies, n, tick), facts, n) for facts, n in mine]
            # A table whose other steps take too long breaks its promise by any retention: its proof says so, by name.
            days = min((room for room, _, _ in rooms if room >= 1), default=0)
            if not days:
                _, facts, n = min(rooms, key=lambda room: room[0])
                broken = bound_of(facts, policies, tick).breaks(policies.promises[n].gone_within)
                why = broken or "the other steps take all of it"
                raise InputError(
                    f"policy {policy.name!r}: no {target}.older_than keeps the promise for {facts.table_id}: {why}",
                    hint="promise more time, or shorten grace and versions.older_than",
                )
            changed[target] = getattr(policy, target).model_copy(update={"older_than": Duration(days, "d")})
        made.append(policy.model_copy(update=changed) if changed else policy)
    return PolicySet(tuple(made), policies.promises, policies.floors)


def _room(facts: Facts, policies: PolicySet, promise: int, tick: Duration) -> int:
    """The days that the other terms leave for the retention."""
    terms = bound_of(facts, policies, tick).terms
    others = sum(term.hours for term in terms if term.name not in ("retention", "floor"))
    return lengths(policies.promises[promise].gone_within)[0] - -(-others // 24)


def _gather(policies: PolicySet, world: World, orders: Orders) -> list[tuple[Facts, tuple[int, ...]]]:
    """A row per table: its facts, and the promises that select it. Nothing of it depends on the time."""
    with connection() as engine:
        load_facts(engine, policies, world, orders, now=_ANY_TIME)
        return _gathered(engine)


def _gathered(engine: DuckDBPyConnection) -> list[tuple[Facts, tuple[int, ...]]]:
    run_steps(engine, "ebbtide.plan", "sql/promises")
    rows = engine.sql("SELECT * FROM promise_facts ORDER BY table_id").to_arrow_table().to_pylist()
    return [(_facts(row), tuple(row["promised"])) for row in rows]


def _facts(row: dict[str, Any]) -> Facts:
    endless = [*row["blocks"], *row["floor_gc"], *row["floor_append"], *row["held"], *row["counts"], *row["consumers"]]
    endless += [name for name in row["refs"] if name != "branch:main"]
    endless += [rule["text"] for rule in row["floor_times"] if rule["micros"] is None]
    without = f"{row['undated']} partitions have no date" if row["undated"] else None
    if row["plain_files"]:
        without = "its data is not partitioned by a date"
    return Facts(
        table_id=row["table_id"],
        labels=tuple(row["labels"] or ()),
        **{target: row[target] for target in ("partitions", "rows", "versions", "orphans")},
        floors=tuple(row["floor_numbers"]),
        span=max(_longest(row["span"] or 0), (row["grain"] or 1) - (0 if row["trailing"] else 1)),
        grain_days=row["grain"],
        endless=tuple(endless),
        without_date=without,
        timed_floors=tuple((r["text"], -(-r["micros"] // _HOUR)) for r in row["floor_times"] if r["micros"]),
        orphans_only=ORPHANS_ONLY in row["capabilities"],
    )


def _longest(span: int) -> int:
    """What is seen of months and years is rounded up to the longest of them."""
    return _MONTH[-1] if span in _MONTH else _YEAR[-1] if span in _YEAR else span
