"""SIGKILL at the boundaries of an erasure: nobody else loses a row, and the next run finishes.

A person for each kill, in files of two versions of one table. Whoever dies leaves a lease, an open act and files that
are named; the run after it ends them all. Beside Iceberg the run after a kill is killed as well, at the next boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import update

from ebbtide.app.ebbtide import Ebbtide
from ebbtide.app.ledger import open_ledger
from ebbtide.ledger.audit import audit
from ebbtide.state.lease import database_time
from ebbtide.state.tables import leases
from tests.conformance.driver import Driver, Table
from tests.faults.boundaries import watch
from tests.faults.child import Ended, die, in_child
from tests.oracle.bytes_by_hand import forms, where_values_are
from tests.tide import Tide
from tests.tiers import deep_after_first

FIRST = 88413020000
_MOMENTS = ("written, not committed", "committed, not signed", "signed")
BOUNDARIES = (
    "commit: after",
    *(f"act.intent: {moment}" for moment in _MOMENTS),
    "commit: before",
    "mark needed: after",
    "free: before",
    "a batch of files: gone",
    "free: after",
    "listing: after",
    *(f"act.outcome: {moment}" for moment in _MOMENTS),
    *(f"request.moved: {moment}" for moment in _MOMENTS),
)
"""Each is passed by the run that rewrites, or else by the one that purges."""
_PROPERTIES = {"delta": {"delta.deletedFileRetentionDuration": "interval 0 hours"}}
"""What lets old versions end at once."""


@dataclass
class Lake:
    tide: Tide
    driver: Driver
    table: Table
    day: int = 0

    def rows(self) -> set[tuple[int, str, str]]:
        return {(row["id"], row["name"], row["day"]) for row in self.driver.rows(self.table)}

    def run(self) -> None:
        """Both runs of one erasure, hours apart."""
        for hours in (0, 3):
            with Ebbtide(self.tide.project) as app:
                app.erase.run(at_once=True, as_of=self.tide.at(self.day + hours / 24))

    def killed(self, boundary: str) -> Ended:
        def work(say: Callable[[str], None]) -> None:
            began = False

            def point(passed: str) -> None:
                nonlocal began
                began = began or passed.startswith("act.intent")
                passed = passed.replace("request.batch", "request.moved")  # where several move at once
                if passed == boundary and (began or not boundary.startswith(("act.", "commit"))):
                    say(passed)
                    die()

            watch(point)
            self.run()

        return in_child(work)

    def kill(self, person: int, boundary: str) -> str:
        """Ask for somebody, and die at a boundary of the run; gives the request."""
        self.day += 1
        with Ebbtide(self.tide.project) as app:
            request = app.erase.request({"user": str(person)}, law="gdpr").id or ""
        ended = self.killed(boundary)
        assert (ended.killed, ended.said, ended.error) == (True, [boundary], None)
        self.time_passes()
        return request

    def finishes(self, requests: Mapping[int, str], others: set[tuple[int, str, str]]) -> None:
        """The next run erases these people whole, and one more changes nothing."""
        self.day += 1
        self.run()
        assert self.rows() == others
        wanted = {person: forms(person) for person in requests}
        assert where_values_are(Path(self.table.location), wanted) == {person: set() for person in requests}
        with Ebbtide(self.tide.project) as app:
            assert {app.erase.status(each).state for each in requests.values()} == {"purged"}
        assert audit(open_ledger(self.tide.project)).findings == ()
        files = self.tide.files()
        self.day += 1
        self.run()
        assert self.tide.files() == files, "running again changes nothing"

    def time_passes(self) -> None:
        ledger = open_ledger(self.tide.project)
        with ledger.database.writer() as state:
            past = database_time(state.connection) - timedelta(seconds=1)
            state.connection.execute(update(leases).values(expires_at=past))
        ledger.database.close()


def lake_of(spark: SparkSession, root: Path, format_: str) -> Lake:
    tide = Tide(spark, root, format_, policies="policies: []\n")
    (catalog,) = tide.catalogs
    driver = tide.drivers[format_]
    table = driver.create("users", properties=_PROPERTIES.get(format_))
    people = [(FIRST + n, f"person {FIRST + n}", "2026-01-01") for n in range(len(BOUNDARIES))]
    driver.append(table, [*people[::2], (1, "a", "2026-01-01")])
    driver.append(table, [*people[1::2], (2, "b", "2026-01-01")])
    driver.append(table, [(3, "c", "2026-01-02")])
    (tide.root / "subjects.yml").write_text(f"subjects:\n  user: {{columns: [{catalog}.db.users.id]}}\n")
    tide.app.scan()
    return Lake(tide, driver, table)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return lake_of(spark, tmp_path_factory.mktemp("killed") / "p", "iceberg")


@pytest.mark.parametrize("boundary", deep_after_first(*BOUNDARIES))
def test_a_kill_loses_nobody_else_and_the_next_run_finishes(lake: Lake, boundary: str) -> None:
    person, before = FIRST + BOUNDARIES.index(boundary), lake.rows()
    request = lake.kill(person, boundary)
    others = {row for row in before if row[0] != person}
    assert lake.rows() - {row for row in before if row[0] == person} == others
    lake.finishes({person: request}, others)


@pytest.mark.deep
@pytest.mark.parametrize("format_", ["delta", "paimon", "hudi"])
def test_kills_one_after_the_other_lose_nobody_else_and_the_next_run_finishes(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    lake, requests = lake_of(spark, tmp_path / "p", format_), dict[int, str]()
    others = {row for row in lake.rows() if row[0] < FIRST}
    for person, boundary in enumerate(BOUNDARIES, FIRST):
        requests[person] = lake.kill(person, boundary)
        there = lake.rows()
        assert {row for row in there if row[0] < FIRST} == others
        assert {row[0] for row in there} >= {FIRST + n for n in range(len(BOUNDARIES))} - requests.keys()
    lake.finishes(requests, others)
