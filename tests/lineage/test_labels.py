"""Propagation of labels: the precedence of spec §3, rule by rule."""

from __future__ import annotations

import pytest

from ebbtide.config.classifiers import Classifier, ClassifierKind, Classifiers
from ebbtide.config.tables import Reclassify
from ebbtide.errors import InputError
from ebbtide.lineage.declared import DeclaredLabels
from ebbtide.lineage.graph import build_graph
from ebbtide.lineage.labels import propagate
from ebbtide.lineage.values import ColumnEdge, ColumnRef, EdgeKind, Flow
from tests.lineage.label_worlds import CLASSIFIERS, MACHINE, STATIC, USER, World

CHAIN = ("a.x>b.x", "b.x>c.x", "c.x>d.y")


def test_column_labels_flow_along_direct_edges_and_nowhere_else() -> None:
    world = World(edges=CHAIN, indirect=("a.x>e.x",), columns={"a.x": ["PII.tag"], "a.y": ["PII.email"]})
    assert world.labels("d.y") == {"PII.tag"}
    assert world.labels("d.x") == set()
    assert world.labels("e.x") == set()
    assert world.labels("b.y") == set()


def test_own_column_labels_join_what_flows_in() -> None:
    assert World(edges=CHAIN, columns={"a.x": ["PII.tag"], "b.x": ["PII.email"]}).labels("c.x") == {
        "PII.tag",
        "PII.email",
    }


def test_a_label_that_does_not_propagate_stays_where_it_is() -> None:
    world = World(edges=CHAIN, columns={"a.x": ["Note.old", "PII.tag"]})
    assert world.labels("a.x") == {"Note.old", "PII.tag"}
    assert world.labels("b.x") == {"PII.tag"}


def test_reclassify_stops_or_replaces_and_what_stands_instead_flows_on() -> None:
    seeds = {"a.x": ["PII.tag", "PII.email"]}
    stopped = World(edges=CHAIN, columns=seeds, reclassify={"b.x": Reclassify(instead=())})
    assert stopped.labels("b.x") == stopped.labels("d.y") == set()
    replaced = World(edges=CHAIN, columns=seeds, reclassify={"b.x": Reclassify(instead=("PII.hashed",))})
    assert replaced.labels("b.x") == replaced.labels("d.y") == {"PII.hashed"}
    single = World(edges=CHAIN, columns=seeds, reclassify={"b.x": Reclassify(changes={"PII.email": "PII.hashed"})})
    assert single.labels("d.y") == {"PII.tag", "PII.hashed"}
    dropped = World(edges=CHAIN, columns=seeds, reclassify={"b.x": Reclassify(changes={"PII.tag": None})})
    assert dropped.labels("d.y") == {"PII.email"}
    unflowing = World(edges=CHAIN, columns=seeds, reclassify={"b.x": Reclassify(changes={"PII.tag": "Note.old"})})
    assert unflowing.labels("b.x") == {"PII.email", "Note.old"}
    assert unflowing.labels("c.x") == {"PII.email"}


def test_reclassify_does_not_touch_the_columns_own_labels() -> None:
    world = World(edges=CHAIN, columns={"b.x": ["PII.tag"]}, reclassify={"b.x": Reclassify(instead=())})
    assert world.labels("d.y") == {"PII.tag"}


def test_removing_the_source_removes_what_it_propagated() -> None:
    assert World(edges=CHAIN, columns={"a.x": ["PII.tag"]}).labels("d") == {USER}
    assert World(edges=CHAIN).labels("d") == set()


def test_a_table_with_a_pii_column_is_user_data_whatever_it_says_of_itself() -> None:
    assert World(columns={"a.x": ["PII.tag"]}).labels("a") == {USER}
    assert World(columns={"a.x": ["PII.tag"]}, tables={"a": [STATIC]}).labels("a") == {USER}
    assert World(edges=CHAIN, columns={"a.x": ["PII.tag"]}, tables={"c": [MACHINE]}).labels("c") == {USER}
    only_reclassifying = World(
        edges=CHAIN, columns={"a.x": ["PII.tag"]}, tables={"c": [MACHINE]}, reclassify={"c.x": Reclassify(instead=())}
    )
    assert only_reclassifying.labels("c") == {MACHINE}


def test_user_data_put_on_by_hand_counts_and_does_not_flow() -> None:
    world = World(inputs=("a>b",), tables={"a": [USER]})
    assert world.labels("a") == {USER}
    assert world.labels("b") == set()


def test_an_aggregate_of_user_data_without_pii_is_not_user_data() -> None:
    world = World(edges=("a.y>b.x",), columns={"a.x": ["PII.tag"]}, tables={"a": [USER]})
    assert world.labels("b") == set()


def test_the_strictest_of_the_inputs_wins() -> None:
    kinds = {"a": [MACHINE], "b": [STATIC], "c": [STATIC], "d": [USER]}
    assert World(inputs=("a>h",), tables=kinds).labels("h") == {MACHINE}
    assert World(inputs=("a>h", "b>h"), tables=kinds).labels("h") == {MACHINE}
    assert World(inputs=("b>h", "c>h"), tables=kinds).labels("h") == {STATIC}
    assert World(inputs=("b>h", "e>h"), tables=kinds).labels("h") == set()  # e says nothing
    assert World(inputs=("b>h", "d>h"), tables=kinds).labels("h") == set()  # user data is not static
    assert World(inputs=("a>h", "d>h"), tables=kinds).labels("h") == {MACHINE}
    assert World(inputs=("b>e", "e>h", "c>h"), tables=kinds).labels("h") == {STATIC}


def test_a_static_table_with_pii_does_not_make_others_static() -> None:
    assert World(inputs=("a>b",), tables={"a": [STATIC]}, columns={"a.x": ["PII.tag"]}).labels("b") == set()


def test_own_labels_beat_propagated_ones() -> None:
    assert World(inputs=("a>b", "b>c"), tables={"a": [MACHINE], "b": [STATIC]}).labels("b") == {STATIC}
    assert World(inputs=("a>b", "b>c"), tables={"a": [MACHINE], "b": [STATIC]}).labels("c") == {STATIC}
    domains = World(inputs=("a>b", "b>c"), tables={"a": ["Domain.risk"], "b": ["Domain.growth"]})
    assert domains.labels("b") == domains.labels("c") == {"Domain.growth"}
    joined = World(inputs=("a>c", "b>c"), tables={"a": ["Domain.risk"], "b": ["Domain.growth"]})
    assert joined.labels("c") == {"Domain.growth", "Domain.risk"}


def test_of_two_own_contents_the_strictest_counts() -> None:
    assert World(tables={"a": [MACHINE, STATIC]}).labels("a") == {MACHINE}
    assert World(tables={"a": [MACHINE, USER]}).labels("a") == {USER}


def test_legal_hold_does_not_propagate() -> None:
    world = World(inputs=("a>b",), tables={"a": ["LegalHold.is_true", MACHINE]})
    assert world.labels("a") == {"LegalHold.is_true", MACHINE}
    assert world.labels("b") == {MACHINE}


def test_time_grain_is_the_longest_of_the_inputs_and_its_own_and_defaults_to_the_schedule() -> None:
    world = World(
        inputs=("a>c", "b>c", "c>d", "d>e"),
        schedules={"a": "+1d", "b": "+1d", "c": "+1d", "d": "+1m"},
        grains={"b": "+7d"},
    )
    assert world.labels("a") == {"TimeGrain.+1d"}
    assert world.labels("b") == world.labels("c") == {"TimeGrain.+7d"}
    assert world.labels("d") == world.labels("e") == {"TimeGrain.+1m"}
    assert World(tables={"a": [MACHINE]}).labels("a") == {MACHINE}
    own_spelling = World(inputs=("a>b",), grains={"a": "+7d", "b": "+1w"})
    assert own_spelling.labels("b") == {"TimeGrain.+1w"}
    assert World(inputs=("a>b",), grains={"a": "+1m", "b": "+30d"}).labels("b") == {"TimeGrain.+1m"}


def test_cycles_reach_a_fixpoint() -> None:
    ring = ("a.x>b.x", "b.x>c.x", "c.x>a.x")
    assert World(edges=ring, columns={"b.x": ["PII.tag"]}).labels("a.x") == {"PII.tag"}
    fed = World(inputs=("a>b", "b>c", "c>b"), tables={"a": [STATIC]})
    assert fed.labels("b") == fed.labels("c") == {STATIC}
    assert World(inputs=("b>c", "c>b")).labels("b") == set()


def test_a_label_is_explained_with_the_path_that_brought_it() -> None:
    world = World(
        edges=(*CHAIN, "a.x>d.x"), columns={"a.x": ["PII.email"]},
        reclassify={"b.x": Reclassify(changes={"PII.email": "PII.hashed"})},
    )  # fmt: skip
    (why,) = world.why("d.y")
    assert [(step.name, step.label) for step in why.path] == [
        ("l.d.a.x", "PII.email"), ("l.d.b.x", "PII.hashed"), ("l.d.c.x", "PII.hashed"), ("l.d.d.y", "PII.hashed"),
    ]  # fmt: skip
    assert [step.provenance for step in why.path[1:]] == [("sql:0",), ("sql:1",), ("sql:2",)]
    assert why.because == "flows from l.d.a.x, said at here"
    (derived,) = world.why("c")
    assert (derived.how, derived.because) == ("derived", "l.d.c.x has PII.hashed")
    assert [step.name for step in derived.path] == ["l.d.a.x", "l.d.b.x", "l.d.c.x", "l.d.c"]
    (machine,) = World(inputs=("a>b", "b>c"), tables={"a": [MACHINE]}).why("c")
    assert [step.name for step in machine.path] == ["l.d.a", "l.d.b", "l.d.c"]
    (grain,) = World(inputs=("a>b", "b>c"), schedules={"a": "+7d"}).why("c")
    assert (grain.how, [step.name for step in grain.path]) == ("propagated", ["l.d.a", "l.d.b", "l.d.c"])
    (own,) = World(schedules={"a": "+7d"}).why("a")
    assert own.how == "schedule"
    (instead,) = World(edges=CHAIN, reclassify={"b.x": Reclassify(instead=("PII.tag",))}).why("c.x")
    assert instead.because == "flows from l.d.b.x, reclassified at l.d.b.x"


def test_more_labels_than_a_word_has_bits_are_carried_too() -> None:
    names = tuple(f"l{n}" for n in range(150))
    graph = build_graph(
        [Flow("l.d.b", "s", (), (), (ColumnEdge(ColumnRef("l.d.a", "x"), ColumnRef("l.d.b", "x"), EdgeKind.DIRECT),))],
        {},
    )
    own = {ColumnRef("l.d.a", "x"): {f"Many.{name}": "here" for name in names}}
    changes = {ColumnRef("l.d.b", "x"): Reclassify(changes={"Many.l0": "Many.l149", "Many.l1": None})}
    found = propagate(
        graph,
        DeclaredLabels(columns=own, reclassify=changes),
        Classifiers.of([Classifier("Many", ClassifierKind.COLUMN, True, names)]),
    )
    labels = dict(zip(map(str, graph.columns), found.columns(), strict=True))
    assert set(labels["l.d.b.x"]) == {f"Many.{name}" for name in names} - {"Many.l0", "Many.l1"}
    ring = {f"Many.l{n}": f"Many.l{n + 1}" for n in range(70)}
    with pytest.raises(InputError, match="reclassified into each other"):
        propagate(
            graph,
            DeclaredLabels(columns=own, reclassify={ColumnRef("l.d.b", "x"): Reclassify(changes=ring)}),
            CLASSIFIERS,
        )
