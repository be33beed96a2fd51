"""`erase run` from the request to the certificate, on Iceberg: who goes, who stays, what each place says (spec §4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from ebbtide.errors import InputError, RefusedError
from tests.conformance.driver import Table
from tests.oracle.bytes_by_hand import forms, where_values_are
from tests.tide import Tide

PERSON, NEIGHBOUR = 88413020071, 88413020072
NAME = "somebody-88413020071@example.org"
POLICIES = """
policies: []
floors:
  - {name: tax, select: {tables: ["*.db.books"]}, keep_at_least: 7y, basis: the tax code}
"""
SUBJECTS = "subjects:\n  user: {{columns: [{columns}]}}\n"
TABLES = """
tables:
  - name: {catalog}.db.payments
    erasure: {{method: redact, columns: {{id: null, name: gone}}}}
  - name: {catalog}.db.kept
    erasure: {{method: keep, basis: a contract with them, until: 2030-06-30}}
"""
HOLDING = ("users", "payments", "kept", "held", "books")


@dataclass
class Lake:
    tide: Tide
    tables: dict[str, Table] = field(default_factory=dict)
    before: dict[str, list[Row]] = field(default_factory=dict)

    def rows(self, name: str, ref: str = "") -> list[Row]:
        return sorted(self.tide.spark.sql(f"SELECT * FROM {self.tables[name].sql}{ref}").collect(), key=str)

    def ids(self, name: str, ref: str = "") -> set[object]:
        return {row["id"] for row in self.rows(name, ref)}

    def bytes_of(self, name: str, value: object) -> set[tuple[str, str]]:
        return where_values_are(Path(self.tables[name].location), {"it": forms(value)})["it"]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    tide = Tide(spark, tmp_path_factory.mktemp("erasing") / "p", "iceberg", policies=POLICIES)
    (catalog,) = tide.catalogs
    lake, driver = Lake(tide), tide.drivers["iceberg"]
    for name in (*HOLDING, "others"):
        table = lake.tables[name] = driver.create(name)
        driver.append(table, [(1, "a", "2026-01-01"), (NEIGHBOUR, "b", "2026-01-01")])
        if name in HOLDING:
            driver.append(table, [(PERSON, NAME, "2099-01-01"), (2, "c", "2099-01-01")])
    driver.create_tag(lake.tables["users"], "before")
    driver.append(lake.tables["users"], [(3, "d", "2026-01-02")])
    columns = ", ".join(f"{catalog}.db.{name}.id" for name in lake.tables)
    (tide.root / "subjects.yml").write_text(SUBJECTS.format(columns=columns))
    (tide.root / "tables").mkdir()
    (tide.root / "tables" / "t.yml").write_text(TABLES.format(catalog=catalog))
    tide.app.scan()
    tide.app.hold(f"{catalog}.db.held", owner="counsel", reason="a suit", as_of=tide.at(0))
    lake.before = {name: lake.rows(name) for name in lake.tables}
    return lake


def states(lake: Lake, request: str) -> dict[str, str]:
    steps = lake.tide.app.erase.status(request).steps
    return {step.place.rpartition(".")[2]: step.state for step in steps if step.kind == "dataset"}


def test_a_request_goes_its_way_and_everybody_else_stays(lake: Lake, tmp_path: Path) -> None:
    """The timeline of the original: asked on day 0, told of until the cool-off ends, no byte by day 30."""
    tide, erase = lake.tide, lake.tide.app.erase
    request = erase.request({"user": str(PERSON)}, law="gdpr").id
    assert request is not None
    first = tide.files()
    early = erase.run(as_of=tide.at(1))
    assert ([each.decision for each in early.plan.requests], tide.files() - first) == (["wait"], set())
    assert PERSON in lake.ids("users")

    plan = erase.plan(as_of=tide.at(4))
    decided = {place.dataset.rpartition(".")[2]: (place.decision, place.method) for place in plan.places}
    assert decided == {
        "users": ("erase", "delete"),
        "payments": ("erase", "redact"),
        "kept": ("keep", "keep"),
        "held": ("held", "delete"),
        "books": ("keep", "delete"),
    }
    assert erase.plan(as_of=tide.at(4)).digest == plan.digest
    dry = erase.run(dry_run=True, as_of=tide.at(4))
    assert (dry.plan.digest, dry.datasets, len(dry.stages)) == (plan.digest, (), 2)
    assert PERSON in lake.ids("users")

    assert erase.run(as_of=tide.at(4)).exit_code == 0, "readers, a hold and a term are no failure"
    assert states(lake, request) == {
        "users": "deleted", "payments": "deleted", "kept": "retained", "held": "held", "books": "retained"
    }  # fmt: skip
    assert erase.status(request).state == "deleted"
    for name in ("users", "payments"):
        assert PERSON not in lake.ids(name)
        assert lake.bytes_of(name, PERSON), "readers in flight still need its files"

    assert erase.run(as_of=tide.at(4.1)).exit_code == 0
    assert states(lake, request)["users"] == "removed"
    assert states(lake, request)["payments"] == "redacted"
    assert erase.status(request).state == "purged"
    for name in ("users", "payments"):
        assert lake.bytes_of(name, PERSON) == set()
    assert lake.bytes_of("users", NAME) == set()

    assert lake.rows("users") == [row for row in lake.before["users"] if row["id"] != PERSON]
    assert lake.ids("users", ".tag_before") == {1, 2, NEIGHBOUR}
    paid = [row.asDict() for row in lake.rows("payments") if row["id"] is None]
    assert paid == [{"id": None, "name": "gone", "day": "2099-01-01"}], "the payment stays, who paid goes"
    for name in ("kept", "held", "books", "others"):
        assert lake.rows(name) == lake.before[name]

    (verified,) = erase.verify(request, as_of=tide.at(5))
    assert verified.grade == "B"
    assert verified.found == ()
    assert {each.referenced_by for each in verified.left} != set()
    done = erase.certificate(request, tmp_path / "c.json", as_of=tide.at(5))
    assert done.state == "certified with exceptions"
    assert str(PERSON) not in (tmp_path / "c.json").read_text()


def test_a_second_run_finds_nothing_to_do(lake: Lake) -> None:
    request = lake.tide.app.erase.request({"user": str(10**11)}, law="gdpr").id
    before = lake.tide.files()
    done = lake.tide.app.erase.run(request or "", at_once=True, as_of=lake.tide.at(6))
    assert (done.plan.places, done.datasets, done.exit_code) == ((), (), 0)
    assert lake.tide.files() == before


def test_nobody_is_asked_for(lake: Lake) -> None:
    for request in ("0123",):
        with pytest.raises(InputError):
            lake.tide.app.erase.run(request, as_of=lake.tide.at(6))


def test_a_request_that_matches_half_a_table_is_refused_and_changes_nothing(lake: Lake) -> None:
    tide = lake.tide
    table = lake.tables["others"]
    tide.spark.sql(f"INSERT INTO {table.sql} SELECT 77777777, 'test account', '2026-01-03' FROM range(1500)")
    request = tide.app.erase.request({"user": "77777777"}, law="gdpr", as_of=tide.at(6.9)).id or ""
    done = tide.app.erase.run(request, at_once=True, as_of=tide.at(7))
    assert (done.exit_code, [each.decision for each in done.plan.requests]) == (3, ["refused"])
    assert len(lake.rows("others")) == 1502
    allowed = tide.app.erase.run(request, at_once=True, most_share=1.0, as_of=tide.at(7))
    assert allowed.exit_code == 0
    moved = [each for each in tide.ledger_entries() if each["kind"] == "request.moved" and each["request"] == request]
    assert "cool-off" in moved[0]["because"]
    assert len(lake.rows("others")) == 2
    late = tide.app.erase.request({"user": "2"}, law="gdpr", as_of=tide.at(7)).id or ""
    lake.tide.drivers["iceberg"].append(table, [(2, "late", "2026-01-03")])
    tide.app.erase.run(late, at_once=True, as_of=tide.at(7.02))
    assert states(lake, late)["others"] == "waiting", "an act for somebody else waits there for readers"
    assert tide.app.erase.status(late).state != "purged"
    for day in (7.1, 7.2):
        tide.app.erase.run(request, late, at_once=True, as_of=tide.at(day))
    assert states(lake, late)["others"] == states(lake, request)["others"] == "removed"


def test_what_comes_between_is_told_per_place(lake: Lake) -> None:
    """A table that forbids it, and one that is gone by the time of the run; the rest goes on."""
    tide, driver = lake.tide, lake.tide.drivers["iceberg"]
    person = 99887766554
    for name in ("users", "others", "books"):
        driver.append(lake.tables[name], [(person, "late", "2026-01-04")])
    driver.set_property(lake.tables["others"], "gc.enabled", "false")
    request = tide.app.erase.request({"user": str(person)}, law="gdpr").id or ""
    done = tide.app.erase.run(request, at_once=True, as_of=tide.at(8))
    assert person not in lake.ids("users")
    assert person in lake.ids("others")
    assert states(lake, request)["others"] == "waiting"
    assert (done.exit_code, done.left) == (4, (f"{next(iter(tide.catalogs))}.db.others",))
    driver.set_property(lake.tables["others"], "gc.enabled", "true")
    assert tide.app.erase.run(request, as_of=tide.at(8.5)).exit_code == 0
    assert tide.app.erase.run(request, as_of=tide.at(9)).exit_code == 0
    assert person not in lake.ids("others")
    assert {name: state for name, state in states(lake, request).items() if name != "books"} == {
        "users": "removed", "others": "removed"
    }  # fmt: skip


def test_a_table_that_could_not_be_looked_through_now_is_gone_on_with_later(lake: Lake) -> None:
    tide, person = lake.tide, 77887766553  # between others, so that bounds do not tell who is in their files
    lake.tide.drivers["iceberg"].append(lake.tables["users"], [(person, "late", "2026-01-05")])
    request = tide.app.erase.request({"user": str(person)}, law="gdpr").id or ""
    tide.app.erase.run(request, at_once=True, as_of=tide.at(9.2))
    assert states(lake, request)["users"] == "deleted"
    some = sorted(Path(lake.tables["users"].location, "data").rglob("*.parquet"))
    for path in some:
        path.rename(f"{path}.aside")
    done = tide.app.erase.run(request, at_once=True, as_of=tide.at(9.4))
    said = {step.place.rpartition(".")[2]: step.state for step in tide.app.erase.status(request).steps}
    assert (done.exit_code, said["users"]) == (4, "waiting")
    for path in some:
        Path(f"{path}.aside").rename(path)
    assert lake.bytes_of("users", person) != set()
    tide.app.erase.run(request, at_once=True, as_of=tide.at(9.6))
    assert states(lake, request)["users"] == "removed"
    assert lake.bytes_of("users", person) == set()


def test_a_closed_request_is_not_run_again(lake: Lake) -> None:
    listed = lake.tide.app.erase.list(only_open=True)
    closed = [row for row in lake.tide.app.erase.list() if row.id not in {each.id for each in listed}]
    for row in closed:
        with pytest.raises(RefusedError):
            lake.tide.app.erase.run(row.id, as_of=lake.tide.at(10))


def test_a_table_that_is_dropped_ends_what_was_begun_there_and_stops_nobody(lake: Lake) -> None:
    tide, person = lake.tide, 99887766555
    for name in ("users", "others"):
        lake.tide.drivers["iceberg"].append(lake.tables[name], [(person, "late", "2026-01-05")])
    request = tide.app.erase.request({"user": str(person)}, law="gdpr", as_of=tide.at(11)).id or ""
    tide.app.erase.run(request, at_once=True, as_of=tide.at(11))
    assert states(lake, request)["others"] == "deleted"
    tide.spark.sql(f"DROP TABLE {lake.tables['others'].sql} PURGE")
    assert tide.app.erase.run(request, as_of=tide.at(11.2)).exit_code == 0
    assert set(states(lake, request).values()) == {"removed"}
    assert tide.app.erase.status(request).state == "purged"
