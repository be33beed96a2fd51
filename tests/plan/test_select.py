"""Selection by labels, formats, properties and branches, in the plan: who owns what, and who selects nothing."""

from __future__ import annotations

from typing import Any

import pytest

from ebbtide.plan.plan import Plan
from tests.plan.worlds import Table, decided, plan, policies, world

POLICIES = """\
policies:
  - {name: both, select: {all_labels: [Team.hr, Region.eu]}, tables: {older_than: 1d}}
  - name: some
    select: {any_labels: [Team.hr, Region.us], exclude: {tables: ["lake.hr.*"], properties: {keep: "yes"}}}
    tables: {older_than: 1d}
  - {name: property, select: {properties: {owner: risk, tier: 1}}, tables: {older_than: 1d}}
  - name: format
    select: {formats: [delta, hudi], exclude: {formats: [hudi], all_labels: [Region.us, Team.hr]}}
    tables: {older_than: 1d}
  - {name: name, select: {tables: ["lake.hr.*"], formats: [iceberg]}, tables: {older_than: 1d}}
  - {name: branch, select: {formats: [hudi], branches: ["x*"], exclude: {branches: [xy]}}, branches: {unused_for: 1d}}
  - {name: no format, select: {formats: [paimon]}, orphans: {}}
  - {name: no label, select: {any_labels: [Regio.eu]}, orphans: {}}
  - {name: no property, select: {properties: {ownr: risk}}, orphans: {}}
  - {name: no value, select: {properties: {owner: rsik, tier: "1"}}, orphans: {}}
  - {name: no branch, select: {tables: ["lake.**"], branches: [mian, xw]}, branches: {unused_for: 1d}}
  - {name: excludes, select: {tables: ["lake.**"], exclude: {tables: [lake.hr.poeple]}}, orphans: {}}
floors:
  - {tables: [lake.hr.lgo, "lake.hr.*"], keep_at_least: 1d, basis: one is right}
  - {tables: [lake.hr.lgo], any_labels: [Team.hr], keep_at_least: 1d, basis: tax code}
  - {any_labels: [Regio.eu], keep_at_least: 1d, basis: nobody has the label yet}
promises:
  - {tables: [lake.a.ku], gone_within: 110d}
"""


def table(name: str, *labels: str, format_: str = "iceberg", **properties: str) -> Table:
    return Table(f"lake.{name}", format_, properties=properties, extra={"labels": list(labels)}).commit("T1", 100)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    tables = [
        table("a.both", "Region.eu", "Team.hr", "X.y"),
        table("a.one", "Team.hr"),
        table("a.us", "Region.us", owner="risk", tier="1"),
        table("a.kept", "Region.us", keep="yes"),
        table("a.kept_not", "Region.us", keep="no"),
        table("a.eu", "Region.eu"),
        table("a.half", owner="risk"),
        table("a.risk", owner="risk", tier="1"),
        table("a.delta", format_="delta"),
        table("a.delta_us", "Region.us", format_="delta", keep="yes"),
        table("a.delta_pii", "Region.us", "Team.hr", format_="delta", keep="yes"),
        table("a.hudi", format_="hudi").branch("x1", "T1").branch("xy", "T1").branch("y", "T1"),
        table("hr.people", "Team.hr"),
        table("hr.log", "Team.hr", format_="delta"),
        table("hr.deep.people"),
    ]
    labels = ("Team.hr", "Region.eu", "Region.us", "Regio.eu")
    return plan(policies(tmp_path_factory.mktemp("select"), POLICIES, labels=labels), world(*tables))


@pytest.fixture(scope="module")
def found(made: Plan) -> dict[str, dict[str, Any]]:
    return decided(made)


@pytest.mark.parametrize(
    ("dataset", "policy"),
    [
        ("a.both", "both"),  # more labels than asked for, in another order
        ("a.one", "some"),  # one of two is not all
        ("a.us", "some"),  # the first that selects it, though `property` does too
        ("a.kept", None),  # excluded by a property
        ("a.kept_not", "some"),
        ("a.eu", None),
        ("a.half", None),  # every property must apply
        ("a.risk", "property"),
        ("a.delta", "format"),
        ("a.delta_us", "format"),  # one of the labels of the exclusion is not all of them
        ("a.delta_pii", None),
        ("a.hudi", None),  # excluded by its format
        ("hr.people", "name"),  # excluded by name from `some`
        ("hr.log", "format"),  # a later policy takes what an earlier one excludes
        ("hr.deep.people", None),  # `*` stops at dots
    ],
)
def test_the_first_policy_whose_every_key_applies_owns_a_dataset(
    found: dict[str, dict[str, Any]], dataset: str, policy: str | None
) -> None:
    row = found.get(f"lake.{dataset}#tables:lake.{dataset}")
    assert (row and row["policy"]) == policy


def test_branches_are_selected_by_pattern_and_excluded(found: dict[str, dict[str, Any]]) -> None:
    owners = {row["object"]: row["policy"] for row in found.values() if row["target"] == "branches"}
    assert owners == {"x1": "branch"}


def test_who_selects_nothing_is_told_the_nearest_of_what_there_is(made: Plan) -> None:
    assert made.warnings == (
        "policy 'no format' selects nothing; formats there are: delta, hudi, iceberg",
        "policy 'no label' selects nothing; nearest: Region.eu, Region.us",
        "policy 'no property' selects nothing; nearest: owner",
        "policy 'no value' selects nothing; nearest: owner=risk",
        "policy 'no branch' selects no branch; nearest: main, x1, xy",
        "the exclusion of policy 'excludes' names no table that there is; nearest: lake.hr.deep.people, lake.hr.people",
        "floor '1d (tax code)' names no table that there is; nearest: lake.hr.log, lake.hr.people",
        "promise 'gone within 110d' names no table that there is; nearest: lake.a.eu, lake.a.us",
    )
