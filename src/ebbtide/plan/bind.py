"""What a plan's SQL is handed: policies, selections and the moment as relations. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ebbtide.config.policies import Policy, PolicySet
from ebbtide.config.project import Limits
from ebbtide.kernel.engine import hand_in, literal
from ebbtide.model.dataset import BESIDE
from ebbtide.model.durations import Duration, as_interval, days_of, first_kept_day, first_kept_instant, micros_of
from ebbtide.model.history import CONTENT, HELD_BY_HEAD, OF_PARTITIONS
from ebbtide.model.reasons import PREFIXES, SENTENCES
from ebbtide.model.times import as_text
from ebbtide.plan.select import looks_at_branches, selects, takes_branch

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_INT, _LONG, _BOOL, _TEXT = pa.int32(), pa.int64(), pa.bool_(), pa.string()
_TEXTS = pa.list_(_TEXT)

_POLICY = pa.schema(
    {
        "number": _INT, "name": _TEXT, "targets": _TEXTS, "looks_at_branches": _BOOL, "counts_places": _BOOL,
        "has_versions": _BOOL,
        "t_months": _INT, "t_micros": _LONG, "t_text": _TEXT, "t_keep_views": _LONG, "t_staged": _BOOL,
        "t_latest": _BOOL,
        "v_months": _INT, "v_micros": _LONG, "v_text": _TEXT, "v_keep_min": _LONG, "v_keep_max": _LONG,
        "v_limit": _LONG,
        "p_months": _INT, "p_days": _INT, "p_text": _TEXT, "p_longest": _INT, "p_oldest": _BOOL,
        "r_column": _TEXT, "r_where": _TEXT, "r_text": _TEXT, "r_day": _TEXT, "r_instant": _TEXT,
        "r_first_day": pa.date32(),
        "o_text": _TEXT, "o_allowed": _LONG,
        "b_months": _INT, "b_micros": _LONG, "b_text": _TEXT,
        "tb_months": _INT, "tb_micros": _LONG, "tb_text": _TEXT, "tb_unpartitioned": _BOOL, "tb_own_label": _BOOL,
        "tb_labels": _TEXTS,
    }
)  # fmt: skip
_STATUTE = pa.schema(
    {"number": _INT, "label": _TEXT, "months": _INT, "micros": _LONG, "days": _INT, "first_day": pa.date32()}
)
_MOMENT = pa.schema(
    {
        "now_us": _LONG, "today": pa.date32(), "unread": _TEXTS, "errors": _TEXTS,
        "min_bytes": _LONG, "max_share": pa.float64(),
    }
)  # fmt: skip


def bind_words(engine: DuckDBPyConnection) -> None:
    """What others call things: the roles of files, positions beside history, reasons and their codes."""
    for name, roles in (("content", CONTENT), ("of_partition", OF_PARTITIONS), ("held_by_head", HELD_BY_HEAD)):
        every = ", ".join(map(literal, roles))
        engine.execute(f"CREATE TEMP MACRO is_{name}(role) AS role IN ({every})")
    engine.execute(f"CREATE TEMP MACRO is_beside(first) AS first = {BESIDE}")
    for code, text in SENTENCES.items():
        engine.execute(f"CREATE TEMP MACRO {code}() AS {literal(text)}")
    cases = [f"WHEN text = {literal(text)} THEN {literal(code)}" for code, text in SENTENCES.items()]
    cases += [f"WHEN starts_with(text, {literal(start)}) THEN {literal(code)}" for start, code in PREFIXES.items()]
    engine.execute(f"CREATE TEMP MACRO code_of(text) AS CASE {' '.join(cases)} END")


def bind_policies(engine: DuckDBPyConnection, policies: PolicySet, now: datetime, listed: datetime | None) -> None:
    """`policies` and `statutory`: a row each, with every setting in the engine's words."""
    rows = [_policy(n, policy, now, listed) for n, policy in enumerate(policies.policies)]
    statutes = [
        {
            "number": n, "label": floor.label, "months": floor.keep_at_least.months,
            "micros": micros_of(floor.keep_at_least), "days": days_of(floor.keep_at_least),
            "first_day": first_kept_day(floor.keep_at_least, now),
        }
        for n, floor in enumerate(policies.floors)
    ]  # fmt: skip
    hand_in(engine, "policies", pa.Table.from_pylist(rows, _POLICY))
    hand_in(engine, "statutory", pa.Table.from_pylist(statutes, _STATUTE))


def bind_moment(
    engine: DuckDBPyConnection,
    now: datetime,
    unread: Iterable[str],
    errors: Iterable[str],
    limits: Limits,
) -> None:
    row = {
        "now_us": _micros(now), "today": now.astimezone(UTC).date(),
        "unread": list(unread), "errors": list(errors), "min_bytes": limits.min_bytes, "max_share": limits.max_share,
    }  # fmt: skip
    hand_in(engine, "moment", pa.Table.from_pylist([row], _MOMENT))


def bind_selections(engine: DuckDBPyConnection, policies: PolicySet) -> None:
    """`selected`, `selected_floors`, `selected_promises`: which of them selects which dataset. One statement each: a
    pattern is compiled once, and asked of all names.
    """
    every = {
        "selected": [policy.select for policy in policies.policies],
        "selected_floors": [floor.select for floor in policies.floors],
        "selected_promises": [promise.select for promise in policies.promises],
    }
    for target, each in every.items():
        engine.execute(f"CREATE TEMP TABLE {target} (table_id VARCHAR, number INTEGER)")
        for number, select in enumerate(each):
            where, values = selects(select)
            engine.execute(f"INSERT INTO {target} SELECT table_id, {number} FROM in_tables WHERE {where}", values)


def bind_branches(engine: DuckDBPyConnection, policies: PolicySet) -> None:
    """`branch_sets`: for every set of branches that objects have, the policies that take none of them; and what those
    that look at branches take (`taken_branches`).
    """
    engine.execute(
        "CREATE TEMP TABLE branch_names AS SELECT DISTINCT unnest(branches) AS name FROM in_transactions "
        "UNION SELECT name FROM in_branches UNION SELECT 'main'"
    )
    engine.execute("CREATE TEMP TABLE takes (number INTEGER, name VARCHAR)")
    picky = [(n, policy.select) for n, policy in enumerate(policies.policies) if looks_at_branches(policy.select)]
    for number, select in picky:
        where, values = takes_branch(select)
        engine.execute(f"INSERT INTO takes SELECT {number}, name FROM branch_names WHERE {where}", values)
    hand_in(engine, "picky", pa.table({"number": pa.array([n for n, _ in picky], _INT)}))
    engine.execute(_BRANCH_SETS)


_BRANCH_SETS = """
CREATE TEMP TABLE branch_sets AS
WITH sets AS (
    SELECT DISTINCT coalesce(branches, []::VARCHAR[]) AS branches FROM in_transactions
    UNION SELECT [name] FROM branch_names
)
SELECT branches, coalesce((SELECT list(p.number) FROM picky p WHERE NOT EXISTS (
           SELECT 1 FROM takes t WHERE t.number = p.number AND list_contains(sets.branches, t.name))),
       []::INTEGER[]) AS refused
FROM sets;
CREATE TEMP TABLE taken_branches AS SELECT number, list(name) AS taken FROM takes GROUP BY number;
CREATE TEMP TABLE refused_on_main AS SELECT refused FROM branch_sets WHERE branches = ['main'];
"""


def _policy(number: int, policy: Policy, now: datetime, listed: datetime | None) -> dict[str, Any]:
    t, v, p, r, b, tables = (
        policy.transactions, policy.versions, policy.partitions, policy.rows, policy.branches, policy.tables,
    )  # fmt: skip
    views = t is not None and t.keep_views > 1
    versions = v is not None and (v.keep_max is not None or (v.keep_min or 1) > 1)
    row: dict[str, Any] = {
        "number": number, "name": policy.name, "targets": list(policy.targets),
        "looks_at_branches": looks_at_branches(policy.select), "counts_places": views or versions,
        "has_versions": v is not None,
        "t_keep_views": 1 if t is None else t.keep_views, "t_staged": t is not None and t.staged,
        "t_latest": t is not None and t.allow_latest_view,
        "p_oldest": p is not None and p.age_of == "oldest",
        "tb_unpartitioned": tables is not None and tables.unpartitioned,
        "tb_own_label": tables is not None and tables.own_label,
        "tb_labels": [*(policy.select.any_labels or ()), *(policy.select.all_labels or ())],
    }  # fmt: skip
    if v is not None:
        row |= {"v_keep_min": v.keep_min, "v_keep_max": v.keep_max, "v_limit": v.limit}
    for prefix, given in (
        ("t", t and t.older_than), ("v", v and v.older_than), ("b", b and b.unused_for),
        ("tb", tables and tables.older_than),
    ):  # fmt: skip
        if isinstance(given, Duration):
            row |= {
                f"{prefix}_months": given.months,
                f"{prefix}_micros": micros_of(given),
                f"{prefix}_text": str(given),
            }
    if p is not None and isinstance(p.older_than, Duration):
        d = p.older_than
        row |= {"p_months": d.months, "p_days": days_of(d), "p_text": str(d), "p_longest": as_interval(d)}
    if r is not None:
        row |= {"r_column": r.column, "r_where": r.where}
        if isinstance(r.older_than, Duration):
            day = first_kept_day(r.older_than, now)
            row |= {"r_text": str(r.older_than), "r_day": day.isoformat(), "r_first_day": day,
                    "r_instant": as_text(first_kept_instant(r.older_than, now))}  # fmt: skip
    if policy.orphans is not None:
        row["o_text"] = str(policy.orphans.older_than)
        if listed is not None:
            row["o_allowed"] = _micros(first_kept_instant(policy.orphans.older_than, listed))
    return row


def _micros(instant: datetime) -> int:
    whole = instant.astimezone(UTC).replace(microsecond=0)
    return int(whole.timestamp()) * 1_000_000 + instant.microsecond
