"""Retention and erasure on one partitioned table in turn, half a year apart: both end on time (spec §1, §4)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conformance.driver import Table
from tests.oracle.bytes_by_hand import forms, where_values_are
from tests.tide import Tide

POLICIES = """
policies:
  - name: quarter
    select: {tables: ["**"]}
    partitions: {older_than: 90d}
    versions: {older_than: 1d, keep_min: 1}
"""
EVERY, ROUNDS = 183, 2
"""Half a year between two rounds, of which each brings three partitions, as old as `AGES` on its day."""
AGES = (60, 30, 0)
NEIGHBOUR = 77412020072


def person(number: int) -> int:
    return 88413020070 + number


class Year:
    """One table, and what it has to hold on each day."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.tide = Tide(spark, root, "iceberg", policies=POLICIES)
        (catalog,), self.driver = self.tide.catalogs, self.tide.drivers["iceberg"]
        self.table: Table = self.driver.create("payments", partitioned=True)
        (self.tide.root / "subjects.yml").write_text(f"subjects:\n  user: {{columns: [{catalog}.db.payments.id]}}\n")

    def days(self, number: int) -> list[str]:
        """The partitions that a round brings."""
        return [(self.tide.at(EVERY * number).date() - timedelta(days=age)).isoformat() for age in AGES]

    def write(self, number: int) -> None:
        """In each partition somebody who asks this time, somebody who asks the next time, and a neighbour."""
        who = (person(number), person(number + 1), NEIGHBOUR)
        self.driver.append(self.table, [(each, f"paid {day}", day) for day in self.days(number) for each in who])
        self.tide.app.scan()

    def rows(self) -> set[tuple[int, str]]:
        rows = self.driver.rows(self.table)
        found = {(row["id"], row["day"]) for row in rows}
        assert len(found) == len(rows), "no row stands twice"
        return found

    def of(self, number: int, *who: int) -> set[tuple[int, str]]:
        return {(each, day) for day in self.days(number) for each in who}

    def bytes_of(self, value: int) -> set[tuple[str, str]]:
        return where_values_are(Path(self.table.location), {"it": forms(value)})["it"]

    def rebound(self) -> list[dict[str, Any]]:
        return [entry for entry in self.tide.ledger_entries() if entry["kind"] == "mark.rebound"]


@pytest.mark.deep
def test_partitions_age_out_and_requests_end_on_time_though_each_round_has_both(
    spark: SparkSession, tmp_path: Path
) -> None:
    """An erasure between mark and sweep rewrites what is marked: the mark is bound anew, and the day stays."""
    year = Year(spark, tmp_path / "p")
    tide, erase = year.tide, year.tide.app.erase
    for number in range(ROUNDS):
        day = EVERY * number
        year.write(number)
        before = year.of(number - 1, person(number), NEIGHBOUR) if number else set()
        now = year.of(number, person(number), person(number + 1), NEIGHBOUR)
        assert year.rows() == before | now

        request = erase.request({"user": str(person(number))}, law="gdpr", as_of=tide.at(day)).id or ""
        marked = tide.mark(day)
        partitions = {key.object for key in marked.marked if key.target == "partitions"}
        old = year.days(number - 1) if number else []
        assert sorted(name.partition("day=")[2][:10] for name in partitions) == old, "strictly older than 90 days"

        bound = len(year.rebound())
        assert erase.run(as_of=tide.at(day + 4)).exit_code == 0
        anew = year.rebound()[bound:]
        assert len(anew) == len(old), "each mark on a partition that the erasure rewrote, and no other"
        assert len({entry["mark"] for entry in anew}) == len(old)
        assert year.rows() == {row for row in before | now if row[0] != person(number)}
        assert erase.run(as_of=tide.at(day + 4.1)).exit_code == 0
        assert year.bytes_of(person(number)) == set()

        swept = tide.sweep(day + 8)
        gone = {each.key.object: each.state for each in swept.results if each.key.target == "partitions"}
        assert gone.keys() == partitions, "each as it was marked, whatever the erasure rewrote"
        assert (swept.errors, swept.findings, swept.unread) == ((), (), ())
        assert year.rows() == year.of(number, person(number + 1), NEIGHBOUR), "all others within retention"
        left = {key for key, state in gone.items() if state != "swept"}
        last = tide.sweep(day + 10)
        gone = {each.key.object: each.state for each in last.results if each.key.target == "partitions"}
        assert gone == dict.fromkeys(left, "swept"), "the version that the sweep's own commit left behind is a day old"

        (verified,) = erase.verify(request, as_of=tide.at(day + 9))
        assert verified.grade == "A", verified
        done = erase.certificate(
            request, tmp_path / f"{number}.json", opening=tmp_path / f"{number}-opening.json", as_of=tide.at(day + 9)
        )
        assert done.state == "certified"
    assert len(erase.list(only_open=True)) == 0
