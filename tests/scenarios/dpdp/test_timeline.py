"""The timeline of the original: a DELETE on day 0 leaves the bytes, and day 30 finds none of them (spec §4)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.oracle.bytes_by_hand import forms, where_values_are
from tests.tide import Tide

PERSON, NEIGHBOUR = 88413020071, 88413020072
PAN = "ABCDE-88413020071-F"
DAYS = ("2026-04-18", "2026-04-19")


@pytest.mark.deep
def test_a_row_stays_readable_until_the_purge_and_no_byte_by_day_30(spark: SparkSession, tmp_path: Path) -> None:
    tide = Tide(spark, tmp_path / "p", "iceberg", policies="policies: []\n")
    (catalog,), driver, erase = tide.catalogs, tide.drivers["iceberg"], tide.app.erase
    table = driver.create("payments", partitioned=True)
    driver.append(table, [(PERSON, PAN, DAYS[0]), (NEIGHBOUR, "ZYXWV", DAYS[0])])
    driver.append(table, [(PERSON, PAN, DAYS[1]), (NEIGHBOUR, "ZYXWV", DAYS[1])])
    first, second = driver.native_ids(table)
    in_flight = max(Path(table.location, "metadata").glob("*.metadata.json"))
    (tide.root / "subjects.yml").write_text(f"subjects:\n  user: {{columns: [{catalog}.db.payments.id]}}\n")
    tide.app.scan()

    def ids(version: str | None = None) -> list[int]:
        return [row["id"] for row in driver.rows(table, version=version)]

    def flying() -> list[int]:
        """What somebody reads who opened the table on day 0."""
        return sorted(row["id"] for row in spark.read.format("iceberg").load(str(in_flight)).collect())

    def left() -> set[tuple[str, str]]:
        return where_values_are(tide.root, {"it": [*forms(PERSON), *forms(PAN)]})["it"]

    # Day 0: what people do today. The statement succeeds, and the row is there for whoever asks for it.
    driver.delete(table, f"id = {PERSON}")
    request = erase.request({"user": str(PERSON)}, law="dpdp", as_of=tide.at(0)).id or ""
    assert (ids(), ids(first), ids(second)) == (
        [NEIGHBOUR] * 2, [PERSON, NEIGHBOUR], [PERSON, PERSON, NEIGHBOUR, NEIGHBOUR]
    )  # fmt: skip
    assert {layer for _, layer in left()} >= {"parquet"}
    files = tide.files()

    # Days 1 and 2: the cool-off holds.
    for day in (1, 2.99):
        waiting = erase.run(as_of=tide.at(day))
        assert (waiting.exit_code, [each.decision for each in waiting.plan.requests]) == (0, ["wait"])
    assert tide.files() == files
    assert PERSON in ids(second)

    # Day 3: whoever opens the table reads it without the person, at every version; whoever had it open goes on.
    assert erase.run(as_of=tide.at(3.01)).exit_code == 0
    assert erase.status(request).state == "deleted"
    assert (ids(), ids(first), ids(second)) == ([NEIGHBOUR] * 2, [NEIGHBOUR], [NEIGHBOUR] * 2)
    assert flying() == [PERSON, PERSON, NEIGHBOUR, NEIGHBOUR]
    assert erase.run(as_of=tide.at(3.02)).exit_code == 0
    assert (erase.status(request).state, PERSON in flying()) == ("deleted", True), "within the reader window"

    # After the reader window: the bytes go, time travel stays.
    assert erase.run(as_of=tide.at(3.1)).exit_code == 0
    assert erase.status(request).state == "purged"
    assert left() == set()
    assert (ids(), ids(first), ids(second)) == ([NEIGHBOUR] * 2, [NEIGHBOUR], [NEIGHBOUR] * 2)

    # Certified, well before the day that the law asks for.
    (verified,) = erase.verify(request, as_of=tide.at(4))
    assert (verified.grade, verified.found) == ("A", ())
    done = erase.certificate(request, tmp_path / "c.json", opening=tmp_path / "opening.json", as_of=tide.at(4))
    assert done.state == "certified"
    assert tide.at(30) <= datetime.fromisoformat(erase.status(request).deadline)
    assert erase.run(as_of=tide.at(30)).exit_code == 0
    assert left() == set()
    assert ids(second) == [NEIGHBOUR] * 2
