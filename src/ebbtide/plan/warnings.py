"""Policies that select nothing, and floors, exclusions and promises that name no table, with the nearest names: most
often somebody mistyped one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ebbtide.config.policies import Policy, PolicySet, Select
from ebbtide.kernel.engine import beside, load
from ebbtide.plan.bind import bind_selections
from ebbtide.plan.sections import load_tables
from ebbtide.plan.select import pattern, takes_branch
from ebbtide.plan.world import World

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MOST_NAMES = 3


def warnings(among: DuckDBPyConnection, policies: PolicySet, world: World) -> list[str]:
    """A line for every policy that selects no dataset, or no branch of those that it selects.

    Then for whatever else names tables of which there is none. By label, both may well wait for their first table.
    """
    with beside(among) as engine:
        load_tables(engine, replace(world, former=None))
        bind_selections(engine, policies)
        found = {number for (number,) in engine.execute("SELECT DISTINCT number FROM selected").fetchall()}
        missed = [policy for n, policy in enumerate(policies.policies) if n not in found]
        lines = [f"policy {policy.name!r} selects nothing{near}" for policy, near in _nearest(missed, engine)]
        lines += _dates(engine, [n for n, policy in enumerate(policies.policies) if policy.partitions is not None])
        picky = [(n, p) for n, p in enumerate(policies.policies) if n in found and p.select.branches is not None]
        if picky:
            lines += _without_branch(picky, world, engine)
        return lines + _without_table(policies, engine)


def _dates(engine: DuckDBPyConnection, aging: list[int]) -> list[str]:
    """Tables that policies age by a date which is a guess, or which nobody can tell (formats.md)."""
    aged = "table_id IN (SELECT table_id FROM selected WHERE list_contains(?::INTEGER[], number))"
    hint = "declare partition_date in tables/*.yml"
    guessed = _texts(engine, f"SELECT table_id FROM in_tables WHERE date_by = 'text' AND {aged}", aging)
    doubtful = _texts(engine, f"SELECT table_id FROM in_tables WHERE date_doubt IS NOT NULL AND {aged}", aging)
    lines = [f"the date of {_some(guessed)} is read from the text of a partition column: {hint}"] if guessed else []
    return lines + ([f"no column of {_some(doubtful)} is known to be its date: {hint}"] if doubtful else [])


def _some(names: list[str]) -> str:
    first, more = sorted(names)[:_MOST_NAMES], len(names) - _MOST_NAMES
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def _without_table(policies: PolicySet, engine: DuckDBPyConnection) -> list[str]:
    whose = [(f"policy {policy.name!r}", policy.select) for policy in policies.policies]
    others = [(f"floor {floor.label!r}", floor.select) for floor in policies.floors]
    others += [(f"promise {p.name or f'gone within {p.gone_within}'!r}", p.select) for p in policies.promises]
    excluded = [(f"the exclusion of {who}", s.exclude) for who, s in (*whose, *others) if s.exclude is not None]
    named = [(who, select.tables) for who, select in (*excluded, *others) if select.tables is not None]
    if not named:
        return []
    asked = ", ".join("bool_or(regexp_matches(table_id, ?))" for _ in named)
    hits = engine.execute(f"SELECT {asked} FROM in_tables", [pattern(patterns) for _, patterns in named]).fetchall()[0]
    missed = [one for one, hit in zip(named, hits, strict=True) if not hit]
    known = _texts(engine, "SELECT table_id FROM in_tables") if missed else []
    return [
        f"{who} names no table that there is{_close((name, known) for name in patterns)}" for who, patterns in missed
    ]


def _nearest(missed: list[Policy], engine: DuckDBPyConnection) -> Iterable[tuple[Policy, str]]:
    if not missed:
        return
    asked = {key for policy in missed for key in policy.select.model_fields_set}
    names = _texts(engine, "SELECT table_id FROM in_tables") if "tables" in asked else []
    by_label = asked & {"any_labels", "all_labels"}
    labels = _texts(engine, "SELECT unnest(labels) FROM in_tables") if by_label else []
    formats = _texts(engine, "SELECT format FROM in_tables") if "formats" in asked else []
    properties = _properties(engine, {key for policy in missed for key in policy.select.properties or ()})
    for policy in missed:
        select = policy.select
        if _waits(select, labels):
            continue
        wanted = [(name, names) for name in select.tables or ()]
        wanted += [(label, labels) for label in (*(select.any_labels or ()), *(select.all_labels or ()))]
        for key, value in (select.properties or {}).items():
            pairs = [f"{key}={other}" for other in properties.get(key, ())]
            wanted.append((f"{key}={value}", pairs) if pairs else (key, sorted(properties)))
        there = f"; formats there are: {', '.join(formats) or 'none'}" if _lacks_format(select, formats) else ""
        yield policy, _close(wanted) + there


def _waits(select: Select, labels: list[str]) -> bool:
    """Whether a selection by labels alone, or of everything, has nothing mistyped in it: it waits for its first table.

    Which labels there are is checked when policies are read. So only one of another classifier may have been meant.
    """
    if select.model_fields_set - {"any_labels", "all_labels", "tables", "exclude"} or select.tables not in (
        None, ("**",)
    ):  # fmt: skip
        return False
    wanted = {*(select.any_labels or ()), *(select.all_labels or ())}
    classifiers = {label.partition(".")[0] for label in wanted}
    others = [label for label in labels if label.partition(".")[0] not in classifiers]
    return not _close((label, others) for label in wanted)


def _lacks_format(select: Select, formats: list[str]) -> bool:
    return select.formats is not None and not set(select.formats) & set(formats)


def _properties(engine: DuckDBPyConnection, asked: set[str]) -> dict[str, list[str]]:
    """The keys that tables have; values only of those that policies name: a key has few, a lake many."""
    if not asked:
        return {}
    rows = engine.execute(
        "SELECT e.key, coalesce(list(DISTINCT e.value ORDER BY e.value) "
        "FILTER (list_contains(?::VARCHAR[], e.key)), []) "
        "FROM (SELECT unnest(map_entries(properties)) AS e FROM in_tables) GROUP BY e.key", [sorted(asked)]
    ).fetchall()  # fmt: skip
    return dict(rows)


def _texts(engine: DuckDBPyConnection, query: str, *bound: object) -> list[str]:
    return sorted({row[0] for row in engine.execute(query, list(bound)).fetchall() if row[0] is not None})


def _close(wanted: Iterable[tuple[str, list[str]]]) -> str:
    """The nearest of what there is, for every word that there is not."""
    close = {
        match for word, known in wanted if word not in known for match in difflib.get_close_matches(word, known, 2, 0.5)
    }
    return f"; nearest: {', '.join(sorted(close))}" if close else ""


def _without_branch(picky: list[tuple[int, Policy]], world: World, engine: DuckDBPyConnection) -> list[str]:
    """Policies whose branches no dataset has that they select. Main is always there, also before a first commit."""
    load(engine, "in_branches", world.branches, among="in_tables")
    engine.execute(
        "CREATE TEMP TABLE names AS SELECT DISTINCT s.number, b.name FROM selected s "
        "JOIN (SELECT table_id, name FROM in_branches WHERE kind = 'branch' AND head IS NOT NULL "
        "UNION SELECT table_id, 'main' FROM in_tables) b USING (table_id)"
    )
    missed = []
    for number, policy in picky:
        where, values = takes_branch(policy.select)
        if not engine.execute(
            f"SELECT 1 FROM names WHERE number = ? AND {where} LIMIT 1", [number, *values]
        ).fetchall():
            missed.append(policy)
    known = _texts(engine, "SELECT name FROM names") if missed else []
    return [
        f"policy {policy.name!r} selects no branch{_close((name, known) for name in policy.select.branches or ())}"
        for policy in missed
    ]
