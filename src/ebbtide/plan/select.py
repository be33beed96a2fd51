"""Which policies select which datasets, and who owns an object: the first policy in order (spec §2).

A policy that selects a dataset and has a target owns every object of that target there, due or not: later policies
ignore it. Numbers are places in the ordered list of policies.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ebbtide.config.policies import TARGETS, Exclude, PolicySet, Select
from ebbtide.plan.world import no_texts, texts

Chosen = DataFrame
"""A row per dataset: what `tables` says of it, an array of policy numbers per target, and the floors' numbers."""


def pattern(names: Sequence[str]) -> str:
    """A regular expression for name patterns: `*` stops at dots, `**` does not."""
    parts = [
        "".join(".*" if piece == "**" else "[^.]*" if piece == "*" else re.escape(piece) for piece in pieces)
        for pieces in (re.split(r"(\*\*|\*)", name) for name in names)
    ]
    return rf"(?s)\A(?:{'|'.join(parts)})\z"


def conditions(select: Select | Exclude) -> dict[str, Column]:
    """What each key of a selection asks of a row of `tables`. Branches are asked of transactions, not of datasets."""
    labels = F.coalesce(F.col("labels"), no_texts())
    asked: dict[str, Column] = {}
    if select.tables is not None:
        asked["tables"] = F.col("table_id").rlike(pattern(select.tables))
    if select.formats is not None:
        asked["formats"] = F.col("format").isin(*select.formats)
    if select.any_labels is not None:
        asked["any_labels"] = F.arrays_overlap(labels, texts(*select.any_labels))
    if select.all_labels is not None:
        asked["all_labels"] = F.size(F.array_except(texts(*select.all_labels), labels)) == 0
    if select.properties is not None:
        wanted = [F.col("properties")[key] == value for key, value in select.properties.items()]
        asked["properties"] = _all(wanted)
    if isinstance(select, Select) and select.exclude is not None:
        asked |= {f"exclude.{key}": ~held for key, held in conditions(select.exclude).items()}
    return {key: F.coalesce(condition, F.lit(False)) for key, condition in asked.items()}


def selects(select: Select) -> Column:
    return _all(list(conditions(select).values()))


def _all(held: list[Column]) -> Column:
    whole = F.lit(True)
    for condition in held:
        whole = whole & condition
    return whole


def choose(policies: PolicySet, tables: DataFrame) -> Chosen:
    """Every dataset with the policies that select it, target by target, in order."""
    chosen = F.array_compact(F.array(*(F.when(selects(p.select), n) for n, p in enumerate(policies.policies))))
    floors = F.array_compact(F.array(*(F.when(selects(f.select), n) for n, f in enumerate(policies.floors))))
    numbers = {
        target: F.array(*(F.lit(n) for n, p in enumerate(policies.policies) if target in p.targets)).cast("array<int>")
        for target in TARGETS
    }
    return (
        tables.withColumn("chosen", chosen.cast("array<int>"))
        .withColumn("floor_numbers", floors.cast("array<int>"))
        .withColumns({f"for_{target}": F.array_intersect("chosen", held) for target, held in numbers.items()})
    )


def names_branch(select: Select, name: Column) -> Column:
    """Whether a selection takes a branch."""
    wanted = F.lit(True) if select.branches is None else name.rlike(pattern(select.branches))
    excluded = select.exclude.branches if select.exclude is not None else None
    return wanted if excluded is None else wanted & ~name.rlike(pattern(excluded))


def looks_at_branches(select: Select) -> bool:
    return select.branches is not None or (select.exclude is not None and select.exclude.branches is not None)


def owner(policies: PolicySet, numbers: Column, branches: Column) -> Column:
    """The number of the policy that owns an object of these branches; NULL where none does.

    An object that no branch reaches goes with every policy that selects its dataset (spec §1).
    """
    picky = [n for n, p in enumerate(policies.policies) if looks_at_branches(p.select)]
    if not picky:
        return F.get(numbers, F.lit(0))
    taken = F.array(*(F.when(F.size(_matching(policies.policies[n].select, branches)) > 0, F.lit(n)) for n in picky))
    refused = F.array_except(F.array(*(F.lit(n) for n in picky)), F.array_compact(taken))
    return F.when(F.size(branches) == 0, F.get(numbers, F.lit(0))).otherwise(
        F.get(F.array_except(numbers, refused), F.lit(0))
    )


def selected_branches(policies: PolicySet, number: Column, branches: Column) -> Column:
    """Those of an object's branches that its owner selects."""
    picky = [n for n, p in enumerate(policies.policies) if looks_at_branches(p.select)]
    taken = branches
    for n in picky:
        taken = F.when(number == n, _matching(policies.policies[n].select, branches)).otherwise(taken)
    return taken


def _matching(select: Select, branches: Column) -> Column:
    return F.filter(branches, lambda branch: names_branch(select, branch))


def setting(values: Sequence[object], number: Column, type_: str) -> Column:
    """The owner's value of a setting, from the values of all policies in order."""
    return F.get(F.array(*(F.lit(value) for value in values)).cast(f"array<{type_}>"), number)
