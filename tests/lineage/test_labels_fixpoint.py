"""Propagation against a naive fixpoint that shares no code with it; monotone, and whatever the order."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.config.tables import Reclassify
from tests.lineage.label_worlds import MACHINE, STATIC, USER, World

TABLES = "abcdefgh"
COLUMNS = [f"{table}.{column}" for table in TABLES for column in "xy"]
PII_LABELS = ["PII.tag", "PII.email", "PII.hashed", "Note.old"]
TABLE_LABELS = [USER, MACHINE, STATIC, "LegalHold.is_true", "Domain.risk", "Domain.growth"]
ORDER = {STATIC: 1, None: 2, MACHINE: 3}


def arrows(names: list[str]) -> st.SearchStrategy[str]:
    return st.builds("{}>{}".format, st.sampled_from(names), st.sampled_from(names))


changes_strategy = st.one_of(
    st.builds(lambda labels: Reclassify(instead=tuple(labels)), st.lists(st.sampled_from(PII_LABELS), max_size=2)),
    st.builds(
        lambda pairs: Reclassify(changes=pairs),
        st.dictionaries(st.sampled_from(PII_LABELS), st.sampled_from([*PII_LABELS, None]), max_size=3),
    ),
)
worlds = st.builds(
    World,
    edges=st.lists(arrows(COLUMNS), max_size=25).map(tuple),
    inputs=st.lists(arrows(list(TABLES)), max_size=8).map(tuple),
    tables=st.dictionaries(
        st.sampled_from(TABLES),
        st.sets(st.sampled_from(TABLE_LABELS), max_size=2),
        max_size=5,
    ),
    columns=st.dictionaries(st.sampled_from(COLUMNS), st.sets(st.sampled_from(PII_LABELS), max_size=2), max_size=4),
    reclassify=st.dictionaries(st.sampled_from(COLUMNS), changes_strategy, max_size=4),
    schedules=st.dictionaries(st.sampled_from(TABLES), st.sampled_from(["+1d", "+7d", "+2m", "+1y"]), max_size=4),
    grains=st.dictionaries(st.sampled_from(TABLES), st.sampled_from(["+3d", "+9d", "+3m"]), max_size=2),
)
DAYS = {"+1d": 1, "+3d": 3, "+7d": 7, "+9d": 9, "+2m": 62, "+3m": 93, "+1y": 366}


def naive(world: World) -> dict[str, set[str]]:  # noqa: C901 - an oracle in one piece
    """Dictionaries of sets, every rule applied to everything until nothing changes."""
    edges = [tuple(edge.split(">")) for edge in world.edges]
    columns = {name: set(world.columns.get(name, ())) for name in COLUMNS}
    for name, said_instead in world.reclassify.items():
        columns[name] |= set(said_instead.instead or ())
    changed = True
    while changed:
        changed = False
        for source, target in edges:
            flowing = {label for label in columns[source] if label.startswith("PII.")}
            if (change := world.reclassify.get(target)) is not None:
                if change.instead is not None:
                    flowing = set()
                else:
                    moved = {change.changes.get(label, label) for label in flowing}
                    flowing = {label for label in moved if label is not None}
            if not flowing <= columns[target]:
                columns[target] |= flowing
                changed = True
    pairs = {(s[0], t[0]) for s, t in edges} | {(i[0], i[-1]) for i in world.inputs}
    inputs = {t: {s for s, target in pairs if target == t and s != t} for t in TABLES}
    pii = {t for t in TABLES if any(label.startswith("PII.") for c in "xy" for label in columns[f"{t}.{c}"])}
    own = {t: set(world.tables.get(t, ())) for t in TABLES}
    user = {t for t in TABLES if t in pii or USER in own[t]}
    content: dict[str, int] = dict.fromkeys(TABLES, 0)
    domains: dict[str, set[str]] = {t: {x for x in own[t] if x.startswith("Domain.")} for t in TABLES}
    said = {t: DAYS.get(world.grains.get(t) or world.schedules.get(t) or "", 0) for t in TABLES}
    grain = dict(said)
    for _ in range(200):
        for t in TABLES:
            mine = {x for x in own[t] if x.startswith("TableContent.")}
            if mine:
                level = 3 if MACHINE in mine else 1 if mine == {STATIC} else 2
            elif not inputs[t]:
                level = 2
            else:
                level = max(content[s] for s in inputs[t])
            content[t] = max(level, 2) if t in user else level
            if not any(x.startswith("Domain.") for x in own[t]):
                domains[t] = set().union(*(domains[s] for s in inputs[t]))
            grain[t] = max([said[t], *(grain[s] for s in inputs[t])])
    found = dict(columns)
    for t in TABLES:
        labels = domains[t] | {x for x in own[t] if x.startswith("LegalHold.")}
        mine = {x for x in own[t] if x.startswith("TableContent.")}
        if t in user:
            labels.add(USER)
        elif mine:
            labels.add(MACHINE if MACHINE in mine else STATIC)
        elif content[t] in (1, 3):
            labels.add(MACHINE if content[t] == 3 else STATIC)
        if grain[t]:
            labels.add(f"TimeGrain.{next(text for text, days in DAYS.items() if days == grain[t])}")
        found[t] = labels
    return found


def found_labels(world: World) -> dict[str, set[str]]:
    everything = replace(world)
    everything.tables = {**dict.fromkeys(TABLES, ()), **world.tables}
    explainer, tables, columns = everything.explainer()
    found = {name: {why.label for why in explainer.column(columns[name])} for name in COLUMNS}
    return found | {name: {why.label for why in explainer.table(tables[name])} for name in TABLES}


@settings(max_examples=150, deadline=None)
@given(worlds)
def test_propagation_equals_a_naive_fixpoint(world: World) -> None:
    assert found_labels(world) == naive(world)


@settings(max_examples=60, deadline=None)
@given(worlds, st.randoms(use_true_random=False))
def test_propagation_does_not_depend_on_the_order_of_edges(world: World, chance: random.Random) -> None:
    shuffled = replace(world)
    shuffled.edges = tuple(chance.sample(world.edges, len(world.edges)))
    shuffled.inputs = tuple(chance.sample(world.inputs, len(world.inputs)))
    assert found_labels(shuffled) == found_labels(world)


@settings(max_examples=60, deadline=None)
@given(worlds, st.sampled_from(COLUMNS), st.sampled_from(COLUMNS), st.sampled_from(PII_LABELS))
def test_one_more_edge_or_label_never_takes_a_column_label_or_user_data_away(
    world: World, source: str, target: str, label: str
) -> None:
    before = found_labels(world)
    more = replace(world)
    more.edges = (*world.edges, f"{source}>{target}")
    more.columns = {**world.columns, source: {*world.columns.get(source, ()), label}}
    after = found_labels(more)
    for name in COLUMNS:
        assert before[name] <= after[name]
    for name in TABLES:
        assert (USER in before[name]) <= (USER in after[name])
        strictness = [
            ORDER.get(next((x for x in (MACHINE, STATIC) if x in found[name]), None), 2) for found in (before, after)
        ]
        assert USER in after[name] or strictness[0] <= strictness[1]


@settings(max_examples=60, deadline=None)
@given(worlds)
def test_every_path_starts_where_the_label_is_said_and_ends_here(world: World) -> None:
    explainer, tables, columns = world.explainer()
    for name, number in columns.items():
        for why in explainer.column(number):
            assert why.path[-1].name == f"l.d.{name}"
            origin, label = why.path[0].name.removeprefix("l.d."), why.path[0].label
            change = world.reclassify.get(origin)
            assert label in world.columns.get(origin, ()) or (change is not None and label in (change.instead or ()))
            steps = [step.name.removeprefix("l.d.") for step in why.path]
            assert all(f"{one}>{two}" in world.edges for one, two in pairwise(steps))
    for number in tables.values():
        for why in explainer.table(number):
            assert why.path
