"""SIGKILL at the boundaries of an erasure: nobody else loses a row, and the next run finishes.

A person for each kill, in files of two versions of one table. Whoever dies leaves a lease, an open act and files that
are named; the run after it ends them all.
"""

from __future__ import annotations

from collections.abc import Callable
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
from tests.conformance.driver import Table
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


@dataclass
class Lake:
    tide: Tide
    table: Table
    day: int = 0

    def rows(self) -> set[tuple[object, ...]]:
        return {tuple(row) for row in self.tide.spark.sql(f"SELECT * FROM {self.table.sql}").collect()}

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
                if passed == boundary and (began or not boundary.startswith(("act.", "commit"))):
                    say(passed)
                    die()

            watch(point)
            self.run()

        return in_child(work)

    def time_passes(self) -> None:
        ledger = open_ledger(self.tide.project)
        with ledger.database.writer() as state:
            past = database_time(state.connection) - timedelta(seconds=1)
            state.connection.execute(update(leases).values(expires_at=past))
        ledger.database.close()


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    tide = Tide(spark, tmp_path_factory.mktemp("killed") / "p", "iceberg", policies="policies: []\n")
    (catalog,) = tide.catalogs
    driver = tide.drivers["iceberg"]
    table = driver.create("users")
    people = [(FIRST + n, f"person {FIRST + n}", "2026-01-01") for n in range(len(BOUNDARIES))]
    driver.append(table, [*people[::2], (1, "a", "2026-01-01")])
    driver.append(table, [*people[1::2], (2, "b", "2026-01-01")])
    driver.append(table, [(3, "c", "2026-01-02")])
    (tide.root / "subjects.yml").write_text(f"subjects:\n  user: {{columns: [{catalog}.db.users.id]}}\n")
    tide.app.scan()
    return Lake(tide, table)


@pytest.mark.parametrize("boundary", deep_after_first(*BOUNDARIES))
def test_a_kill_loses_nobody_else_and_the_next_run_finishes(lake: Lake, boundary: str) -> None:
    person, lake.day = FIRST + BOUNDARIES.index(boundary), lake.day + 1
    before = lake.rows()
    with Ebbtide(lake.tide.project) as app:
        request = app.erase.request({"user": str(person)}, law="gdpr").id
    ended = lake.killed(boundary)
    assert (ended.killed, ended.said, ended.error) == (True, [boundary], None)
    lake.time_passes()
    others = {row for row in before if row[0] != person}
    assert lake.rows() - {row for row in before if row[0] == person} == others
    lake.day += 1
    lake.run()
    assert lake.rows() == others
    left = where_values_are(Path(lake.table.location), {"it": forms(person)})["it"]
    assert left == set()
    with Ebbtide(lake.tide.project) as app:
        assert app.erase.status(request or "").state == "purged"
    assert audit(open_ledger(lake.tide.project)).findings == ()
    files = lake.tide.files()
    lake.day += 1
    lake.run()
    assert lake.tide.files() == files, "running again changes nothing"
