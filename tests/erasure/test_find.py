"""What do we hold of a person: every dataset, branch, tag and version, as each format's own reader of it counts."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from ebbtide.config.subjects import load_identities
from ebbtide.erasure.find import Finder
from ebbtide.erasure.found import DatasetSearch
from ebbtide.erasure.identities import Resolved, resolve
from ebbtide.erasure.places import places_of
from ebbtide.inventory.information_schema import Inventory
from ebbtide.ledger.commitment import Identifier
from ebbtide.lineage.labelled import label_inventory
from ebbtide.run import quiet
from tests.erasure import find_lake
from tests.erasure.find_lake import KEPT, NEIGHBOUR, NEW_MAIL, OLD_MAIL, PERSON, Lake

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    built = find_lake.build(tmp_path_factory.mktemp("find"))
    built.tide.scan()
    yield built
    built.tide.close()


@pytest.fixture(scope="module")
def resolved(lake: Lake) -> Resolved:
    project = lake.tide.project
    people = [[Identifier("user_id", str(PERSON))], [Identifier("user_id", str(NEIGHBOUR))]]
    identities, inventory = load_identities(lake.root), Inventory.open(project.inventory)
    return resolve(lake.spark, project.catalogs, identities, inventory, people, quiet())


@pytest.fixture(scope="module")
def found(lake: Lake, resolved: Resolved) -> DatasetSearch:
    project = lake.tide.project
    identities, inventory = load_identities(lake.root), Inventory.open(project.inventory)
    places = places_of(identities.subjects, identities, label_inventory(project, inventory), inventory)
    finder = Finder(lake.spark, project.catalogs, identities, inventory, with_rows=True)
    return finder.find(resolved.people, places, quiet())


def test_identifiers_are_resolved_at_the_head_and_in_every_version(resolved: Resolved) -> None:
    assert not resolved.not_reachable
    assert {(one.type, one.value) for one in resolved.people[0]} == {
        ("user_id", str(PERSON)), ("email", OLD_MAIL.casefold()), ("email", NEW_MAIL), ("device", KEPT),
    }  # fmt: skip


def test_every_version_counts_what_its_own_reader_sees(lake: Lake, found: DatasetSearch) -> None:
    by_version: dict[tuple[str, str], int] = {}
    for dataset, refs in _refs(lake).items():
        for held in (one for one in found.held[0] if one.dataset == dataset):
            by_version[dataset, refs.get(held.ref) or held.ref.removeprefix("version:")] = held.rows
    assert by_version == find_lake.oracle(lake)


def _refs(lake: Lake) -> dict[str, dict[str, str]]:
    inventory = Inventory.open(lake.tide.project.inventory)
    refs: dict[str, dict[str, str]] = {table_id: {} for table_id in find_lake.WHERE}
    for row in inventory.rows("branches"):
        if row["table_id"] in refs and row["head"]:
            refs[row["table_id"]][f"{row['kind']}:{row['name']}"] = row["head"]
    return refs


def test_of_a_neighbour_nothing_is_counted_but_her_own_rows(found: DatasetSearch) -> None:
    assert ("fice.app.users", 1) in {(one.dataset, one.rows) for one in found.held[1]}
    assert "fice.app.nested" not in {one.dataset for one in found.held[1]}


def test_the_columns_say_where_in_a_row_the_person_stands(found: DatasetSearch) -> None:
    by_place = {(one.dataset, one.ref): one.columns for one in found.held[0]}
    assert by_place["fice.app.users", "branch:main"] == ("email", "user_id")
    assert by_place["fice.app.nested", "branch:main"] == ("attrs", "seen.user_id", "who.user_id")
    assert by_place["fice.app.typed", "branch:main"] == ("device", "txt", "uid")
    assert by_place["fice.app.daily", "branch:main"] == ("uid",)
    assert {"tag:first", "branch:audit", "tag:q3", "branch:side"} <= {ref for _, ref in by_place}


def test_what_cannot_be_followed_is_listed_with_the_reason(found: DatasetSearch) -> None:
    missed = {one.place: one.because for one in found.not_reachable}
    assert missed.pop("fice.app.hashed.uid").startswith("a hash or a mask lies between")
    assert missed.pop("fice.app.view.seen") == "no catalog lists it: a view, or a table of others"
    assert missed.pop("fice.app.view") == "lineage: no catalog has fice.app.view"
    assert not missed


def test_a_persons_own_rows_are_each_row_once_with_every_place_that_has_it(found: DatasetSearch) -> None:
    rows = [one for one in found.rows[0] if one.dataset == "fice.app.users"]
    texts = sorted((json.loads(one.row).get("email") or "", len(one.refs)) for one in rows)
    assert texts == [("", 1), (OLD_MAIL, 1), (NEW_MAIL, 2)]
    (old,) = (one for one in rows if OLD_MAIL in one.row)
    assert old.refs == ("tag:first",)
    for held in found.held[0]:
        assert held.rows == sum(1 for one in found.rows[0] if one.dataset == held.dataset and held.ref in one.refs)
