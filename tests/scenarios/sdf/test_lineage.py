"""Forty models of a payments company, with the edge list that a person read off the SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.config.classifiers import Classifier, ClassifierKind, Classifiers
from ebbtide.lineage.cache import FlowCache
from ebbtide.lineage.declared import DeclaredLabels
from ebbtide.lineage.graph import Graph, build_graph, cycles
from ebbtide.lineage.labels import propagate
from ebbtide.lineage.models import Traced, sql_models, trace_models
from ebbtide.lineage.values import ColumnRef, EdgeKind
from tests.scenarios.sdf.tables import TABLES

HERE = Path(__file__).parent
COLUMNS = {table_id: names.split() for table_id, names in TABLES.items()}
CLASSIFIERS = Classifiers.of(
    [
        Classifier("PII", ClassifierKind.COLUMN, True, ("tag",)),
        Classifier("TableContent", ClassifierKind.TABLE, True, ("machine_data", "static_data", "user_data")),
    ]
)


def expected_edges() -> set[tuple[str, str, bool]]:
    edges = set()
    for line in (HERE / "edges.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            target, _, sources = line.partition(" < ")
            edges |= {(s.rstrip("~"), target, s.endswith("~")) for s in sources.split(", ")}
    return edges


@pytest.fixture(scope="module")
def traced() -> Traced:
    models = sql_models(HERE / "models", HERE)
    assert len(models) >= 40
    return trace_models(models, COLUMNS, dict.fromkeys(COLUMNS, ""), {}, FlowCache())


@pytest.fixture(scope="module")
def graph(traced: Traced) -> Graph:
    return build_graph(traced.flows, COLUMNS)


def test_the_direct_edges_are_exactly_those_that_a_person_finds(traced: Traced) -> None:
    found = {
        (str(e.source).removeprefix("lake."), str(e.target).removeprefix("lake."), e.masking)
        for flow in traced.flows
        for e in flow.edges
        if e.kind is EdgeKind.DIRECT
    }
    expected = expected_edges()
    assert sorted(found - expected) == []
    assert sorted(expected - found) == []


def test_nothing_had_to_be_guessed(traced: Traced) -> None:
    assert traced.problems == ()
    assert [problem for flow in traced.flows for problem in flow.problems] == []


def test_filters_and_joins_are_there_and_carry_no_label(traced: Traced) -> None:
    (rate,) = [flow for flow in traced.flows if flow.target == "lake.app.users_by_country"]
    indirect = {str(edge.source) for edge in rate.all_edges() if edge.kind is EdgeKind.INDIRECT}
    assert {"lake.stg.users.country_code", "lake.raw.country_codes.code"} <= indirect
    assert "lake.stg.users" in rate.inputs


def test_an_accumulating_table_that_reads_itself_is_no_cycle(graph: Graph) -> None:
    assert cycles(graph) == []


def test_labels_of_the_sources_reach_exactly_the_tables_that_hold_people(graph: Graph) -> None:
    people = {"lake.raw.users": ["uid", "email", "phone", "full_name"], "lake.raw.daily_user_events": ["uid", "ip"],
              "lake.raw.payments": ["uid"], "lake.raw.support_tickets": ["uid"]}  # fmt: skip
    declared = DeclaredLabels(
        tables={
            "lake.raw.machine_logs": {"TableContent.machine_data": "here"},
            "lake.raw.country_codes": {"TableContent.static_data": "here"},
        },
        columns={ColumnRef(table, name): {"PII.tag": "here"} for table, names in people.items() for name in names},
    )
    labels = dict(zip(graph.tables, propagate(graph, declared, CLASSIFIERS).tables(), strict=True))
    user_data = {table.removeprefix("lake.") for table, found in labels.items() if "TableContent.user_data" in found}
    assert user_data == {
        "raw.users", "raw.daily_user_events", "raw.payments", "raw.support_tickets", "stg.users", "stg.events",
        "stg.payments", "app.daily_active_users", "app.l7_active_users", "app.monthly_user_events", "app.sessions",
        "app.user_devices", "app.payment_totals", "app.users_current", "app.mail_domains", "app.tickets",
        "mart.merchant_owners", "mart.customer_360", "mart.churn", "mart.fraud_candidates", "mart.fraud_pseudonyms",
        "mart.inactive", "mart.loyal", "mart.exposure", "mart.latest_payment", "mart.cohorts",
    }  # fmt: skip
    machine = {table for table, found in labels.items() if "TableContent.machine_data" in found}
    assert machine >= {"lake.app.log_errors", "lake.app.log_hosts", "lake.mart.service_health"}
    static = {table for table, found in labels.items() if "TableContent.static_data" in found}
    assert static == {"lake.raw.country_codes", "lake.app.countries", "lake.app.regions"}
