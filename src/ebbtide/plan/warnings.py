"""Policies that select nothing, and floors, exclusions and promises that name no table, with the nearest names: most
often somebody mistyped one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ebbtide.config.policies import Policy, PolicySet, Select
from ebbtide.plan.select import Chosen, names_branch, pattern
from ebbtide.plan.world import texts

_BRANCH = "branch:"
_MOST_NAMES = 3


def warnings(policies: PolicySet, chosen: Chosen, tables: DataFrame) -> list[str]:
    """A line for every policy that selects no dataset, or no branch of those that it selects.

    Then for whatever else names tables of which there is none. By label, a floor may well wait for its first table.
    """
    aged = F.size("for_partitions") > 0
    of_all = chosen.agg(
        F.array_distinct(F.flatten(F.collect_set("chosen"))),
        F.collect_list(F.when(aged & (F.col("date_by") == "text"), F.col("table_id"))),
        F.collect_list(F.when(aged & F.col("date_doubt").isNotNull(), F.col("table_id"))),
    ).first()
    assert of_all is not None
    found = set(of_all[0])
    missed = [policy for n, policy in enumerate(policies.policies) if n not in found]
    lines = [f"policy {policy.name!r} selects nothing{near}" for policy, near in _nearest(missed, tables)]
    lines += _dates(*of_all[1:])
    picky = [(n, p) for n, p in enumerate(policies.policies) if n in found and p.select.branches is not None]
    return lines + (_without_branch(picky, chosen) if picky else []) + _without_table(policies, tables)


def _dates(guessed: list[str], doubtful: list[str]) -> list[str]:
    """Tables that policies age by a date which is a guess, or which nobody can tell (formats.md)."""
    hint = "declare partition_date in tables/*.yml"
    lines = [f"the date of {_some(guessed)} is read from the text of a partition column: {hint}"] if guessed else []
    return lines + ([f"no column of {_some(doubtful)} is known to be its date: {hint}"] if doubtful else [])


def _some(names: list[str]) -> str:
    first, more = sorted(names)[:_MOST_NAMES], len(names) - _MOST_NAMES
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def _without_table(policies: PolicySet, tables: DataFrame) -> list[str]:
    whose = [(f"policy {policy.name!r}", policy.select) for policy in policies.policies]
    others = [(f"floor {floor.label!r}", floor.select) for floor in policies.floors]
    others += [(f"promise {p.name or f'gone within {p.gone_within}'!r}", p.select) for p in policies.promises]
    excluded = [(f"the exclusion of {who}", s.exclude) for who, s in (*whose, *others) if s.exclude is not None]
    named = [(who, select.tables) for who, select in (*excluded, *others) if select.tables is not None]
    if not named:
        return []
    hits = tables.agg(*(F.max(F.col("table_id").rlike(pattern(patterns))) for _, patterns in named)).first()
    assert hits is not None
    missed = [one for one, hit in zip(named, hits, strict=True) if not hit]
    known = _texts(tables.select("table_id")) if missed else []
    return [
        f"{who} names no table that there is{_close((name, known) for name in patterns)}" for who, patterns in missed
    ]


def _nearest(missed: list[Policy], tables: DataFrame) -> Iterable[tuple[Policy, str]]:
    if not missed:
        return
    asked = {key for policy in missed for key in policy.select.model_fields_set}
    names = _texts(tables.select("table_id")) if "tables" in asked else []
    labels = _texts(tables.select(F.explode("labels"))) if asked & {"any_labels", "all_labels"} else []
    formats = _texts(tables.select("format")) if "formats" in asked else []
    properties = _properties(tables, {key for policy in missed for key in policy.select.properties or ()})
    for policy in missed:
        select = policy.select
        wanted = [(name, names) for name in select.tables or ()]
        wanted += [(label, labels) for label in (*(select.any_labels or ()), *(select.all_labels or ()))]
        for key, value in (select.properties or {}).items():
            pairs = [f"{key}={other}" for other in properties.get(key, ())]
            wanted.append((f"{key}={value}", pairs) if pairs else (key, sorted(properties)))
        there = f"; formats there are: {', '.join(formats) or 'none'}" if _lacks_format(select, formats) else ""
        yield policy, _close(wanted) + there


def _lacks_format(select: Select, formats: list[str]) -> bool:
    return select.formats is not None and not set(select.formats) & set(formats)


def _properties(tables: DataFrame, asked: set[str]) -> dict[str, list[str]]:
    """The keys that tables have; values only of those that policies name: a key has few, a lake many."""
    if not asked:
        return {}
    entries = tables.select(F.explode("properties").alias("key", "value"))
    value = F.when(F.col("key").isin(*sorted(asked)), F.col("value"))
    rows = entries.groupBy("key").agg(F.sort_array(F.collect_set(value)).alias("values")).collect()
    return {row["key"]: row["values"] for row in rows}


def _texts(rows: DataFrame) -> list[str]:
    return sorted(row[0] for row in rows.distinct().collect() if row[0] is not None)


def _close(wanted: Iterable[tuple[str, list[str]]]) -> str:
    """The nearest of what there is, for every word that there is not."""
    close = {
        match for word, known in wanted if word not in known for match in difflib.get_close_matches(word, known, 2, 0.5)
    }
    return f"; nearest: {', '.join(sorted(close))}" if close else ""


def _without_branch(picky: list[tuple[int, Policy]], chosen: Chosen) -> list[str]:
    """Policies whose branches no dataset has that they select. Main is always there, also before a first commit."""
    named = F.filter("refs", lambda ref: ref["name"].startswith(_BRANCH))
    names = F.transform(named, lambda ref: F.substring(ref["name"], len(_BRANCH) + 1, 1 << 20))
    rows = chosen.select("chosen", F.array_union(names, texts("main")).alias("names"))
    hits = rows.agg(*(F.max(_takes_one(n, policy.select)) for n, policy in picky)).first()
    assert hits is not None
    missed = [policy for (_, policy), hit in zip(picky, hits, strict=True) if not hit]
    known = _texts(rows.select(F.explode("names"))) if missed else []
    return [
        f"policy {policy.name!r} selects no branch{_close((name, known) for name in policy.select.branches or ())}"
        for policy in missed
    ]


def _takes_one(number: int, select: Select) -> Column:
    return F.array_contains("chosen", number) & F.exists("names", lambda name: names_branch(select, name))
