"""Erasing from tables that others share files with, cannot be read beside, or that forbid it: nobody loses a file that
somebody else references, everybody else goes on, and each place says why it waits (spec §4, §7).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ebbtide.spark.session import quote
from tests.conformance.driver import Table
from tests.oracle.bytes_by_hand import forms, where_values_are
from tests.tide import Tide

NEIGHBOUR = 88413020072
AT_ONCE = {"delta.deletedFileRetentionDuration": "interval 0 hours"}
pytestmark = pytest.mark.deep


@dataclass
class Lake:
    tide: Tide
    tables: dict[str, Table] = field(default_factory=dict)
    declared: list[str] = field(default_factory=list)

    def create(self, format_: str, name: str, *people: int, asked: bool = True, setting: str = "") -> Table:
        driver = self.tide.drivers[format_]
        settings = AT_ONCE | ({setting: "true"} if setting else {})
        table = driver.create(name, properties=settings if format_ == "delta" else None)
        driver.append(table, [(id_, "n", "2026-01-01") for id_ in (*people, NEIGHBOUR)])
        return self.add(table, asked=asked)

    def add(self, table: Table, *, asked: bool) -> Table:
        self.tables[table.id.table] = table
        if asked:
            self.declared.append(f"{table.id}.id")
            text = f"subjects:\n  user: {{columns: [{', '.join(self.declared)}]}}\n"
            (self.tide.root / "subjects.yml").write_text(text)
        return table

    def clone(self, source: Table, name: str, *, asked: bool) -> Table:
        """A shallow clone of a Delta table: all of its files are the source's."""
        driver = self.tide.drivers["delta"]
        location = f"{driver.catalog.warehouse}/db/{name}"
        table = Table(type(source.id)(driver.catalog.name, ("db",), name), location, quote("delta", location))
        self.tide.spark.sql(f"CREATE TABLE {table.sql} SHALLOW CLONE {source.sql}")
        return self.add(table, asked=asked)

    def ids(self, name: str) -> list[int]:
        return sorted(row["id"] for row in self.tide.spark.sql(f"SELECT id FROM {self.tables[name].sql}").collect())

    def bytes_of(self, name: str, value: int) -> set[tuple[str, str]]:
        return where_values_are(Path(self.tables[name].location), {"it": forms(value)})["it"]

    def ask(self, person: int) -> str:
        self.tide.app.scan()
        return self.tide.app.erase.request({"user": str(person)}, law="gdpr").id or ""

    def states(self, request: str) -> dict[str, tuple[str, str]]:
        steps = self.tide.app.erase.status(request).steps
        return {step.place.rpartition(".")[2]: (step.state, step.because) for step in steps}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    lake = Lake(Tide(spark, tmp_path / "p", "iceberg", "delta", policies="policies: []\n", plainly=("delta",)))
    for format_ in ("iceberg", "delta"):  # a catalog without any table is not there yet
        lake.create(format_, f"of_{format_}")
    return lake


def test_a_clone_and_its_source_go_in_one_run_and_nobody_else_does(lake: Lake) -> None:
    person, tide = 99887766001, lake.tide
    source = lake.create("delta", "source", person)
    lake.clone(source, "clone", asked=True)
    request = lake.ask(person)
    assert tide.app.erase.run(request, at_once=True, as_of=tide.at(1)).exit_code == 0
    assert (lake.ids("source"), lake.ids("clone")) == ([NEIGHBOUR], [NEIGHBOUR])
    for day in (4, 8):  # Delta's log is cut when no writer can be in flight any more
        tide.app.erase.run(request, as_of=tide.at(day))
    assert {name: state for name, (state, _) in lake.states(request).items()} == {
        "source": "removed", "clone": "removed"
    }, lake.states(request)  # fmt: skip
    assert (lake.ids("source"), lake.ids("clone")) == ([NEIGHBOUR], [NEIGHBOUR])
    assert (lake.bytes_of("source", person), lake.bytes_of("clone", person)) == (set(), set())


def test_a_referrer_that_nobody_declared_keeps_its_files_and_the_plan_says_so(lake: Lake) -> None:
    """A shallow clone whose columns no lineage leads to: its rows are somebody's, whoever asks for the source."""
    person, tide = 99887766002, lake.tide
    source = lake.create("delta", "lent", person)
    clone = lake.clone(source, "borrows", asked=False)
    request = lake.ask(person)
    (place,) = tide.app.erase.plan(request, at_once=True, as_of=tide.at(2)).places
    assert (place.decision, place.waits_for) == ("erase", (str(clone.id),))
    assert (place.ends.at, "reference them" in place.ends.because) == (None, True)
    tide.app.erase.run(request, at_once=True, as_of=tide.at(2))
    tide.app.erase.run(request, as_of=tide.at(2.2))
    assert (lake.ids("lent"), lake.ids("borrows")) == ([NEIGHBOUR], [NEIGHBOUR, person])
    state, because = lake.states(request)["lent"]
    assert state not in ("removed", "redacted"), (state, because)
    assert str(clone.id) in because
    assert lake.bytes_of("lent", person) != set()
    tide.drivers["delta"].drop(clone)
    for day in (6, 10):
        tide.app.erase.run(request, as_of=tide.at(day))
    assert lake.states(request)["lent"][0] == "removed"
    assert lake.bytes_of("lent", person) == set()


def test_beside_what_cannot_be_read_rows_go_and_files_wait(lake: Lake) -> None:
    """A table, and then a whole catalog, that does not answer may reference any file of others."""
    person, tide = 99887766003, lake.tide
    for format_, name in (("iceberg", "paid"), ("delta", "clicks")):
        lake.create(format_, name, person)
    strange = lake.create("delta", "strange", asked=False)
    request = lake.ask(person)
    log = Path(strange.location, "_delta_log", f"{0:020d}.json")
    log.rename(aside := log.with_suffix(".aside"))
    log.write_text("not a commit\n")
    for day in (3.0, 3.2):
        done = tide.app.erase.run(request, at_once=True, as_of=tide.at(day))
        assert (done.exit_code, str(strange.id) in done.failed) == (4, True)
        assert (lake.ids("paid"), lake.ids("clicks")) == ([NEIGHBOUR], [NEIGHBOUR]), "no reader sees them any more"
        assert lake.bytes_of("paid", person)
        assert lake.bytes_of("clicks", person)
    aside.rename(log)
    database = tide.root / f"catalog-{tide.drivers['iceberg'].catalog.name}.db"
    database.rename(hidden := database.with_suffix(".aside"))
    database.write_text("no database")
    try:
        done = tide.app.erase.run(request, as_of=tide.at(3.4))
        assert done.exit_code == 4
        assert any(tide.drivers["iceberg"].catalog.name in name for name in done.failed)
        assert lake.bytes_of("clicks", person), "a catalog that is down may list a table that borrows it"
    finally:
        hidden.replace(database)
    for day in (3.6, 3.8):
        tide.app.erase.run(request, as_of=tide.at(day))
    assert {state for state, _ in lake.states(request).values()} == {"removed"}, lake.states(request)
    assert (lake.bytes_of("paid", person), lake.bytes_of("clicks", person)) == (set(), set())


def test_a_table_that_only_takes_rows_waits_with_the_setting_and_the_rest_goes_on(lake: Lake) -> None:
    person, tide = 99887766004, lake.tide
    lake.create("delta", "journal", person, setting="delta.appendOnly")
    lake.create("delta", "plain", person)
    request = lake.ask(person)
    done = tide.app.erase.run(request, at_once=True, as_of=tide.at(4))
    decided = {place.dataset.rpartition(".")[2]: place.decision for place in done.plan.places}
    assert decided == {"journal": "wait", "plain": "erase"}
    assert (done.exit_code, [name.rpartition(".")[2] for name in done.left]) == (4, ["journal"])
    state, because = lake.states(request)["journal"]
    assert (state, "floor:delta.appendOnly=true" in because) == ("waiting", True)
    assert (lake.ids("journal"), lake.ids("plain")) == ([NEIGHBOUR, person], [NEIGHBOUR])
    tide.drivers["delta"].set_property(lake.tables["journal"], "delta.appendOnly", "false")
    assert tide.app.erase.run(request, as_of=tide.at(4.2)).exit_code == 0
    assert lake.ids("journal") == [NEIGHBOUR]


def test_where_somebody_is_held_nobody_is_erased_and_a_release_ends_it(lake: Lake) -> None:
    person, held, tide = 99887766005, 99887766006, lake.tide
    lake.create("iceberg", "alone", person)
    lake.create("iceberg", "both", person, held)
    request = lake.ask(person)
    hold = tide.app.hold(owner="counsel", reason="a suit", subject={"user": str(held)}, as_of=tide.at(5)).id or ""
    done = tide.app.erase.run(request, at_once=True, as_of=tide.at(5))
    assert {place.dataset.rpartition(".")[2]: place.decision for place in done.plan.places} == {
        "alone": "erase", "both": "held"
    }  # fmt: skip
    assert (done.exit_code, lake.states(request)["both"]) == (0, ("held", "hold:counsel (a suit)"))
    assert (lake.ids("alone"), lake.ids("both")) == ([NEIGHBOUR], sorted([NEIGHBOUR, person, held]))
    # Whoever is held since then may be in the files that were replaced: no search of versions sees that any more.
    later = tide.app.hold(owner="counsel", reason="of her", subject={"user": str(person)}, as_of=tide.at(5.1)).id or ""
    tide.app.erase.run(request, as_of=tide.at(5.2))
    assert lake.states(request)["alone"][0] == "held"
    assert lake.bytes_of("alone", person)
    for each in (hold, later):
        tide.app.release_hold(each, as_of=tide.at(5.3))
    for day in (5.4, 5.6):
        tide.app.erase.run(request, as_of=tide.at(day))
    assert {state for state, _ in lake.states(request).values()} == {"removed"}, lake.states(request)
    assert (lake.ids("alone"), lake.ids("both")) == ([NEIGHBOUR], sorted([NEIGHBOUR, held]))
    assert (lake.bytes_of("alone", person), lake.bytes_of("both", person)) == (set(), set())
