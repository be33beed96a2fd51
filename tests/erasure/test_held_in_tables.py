"""Erasing from tables in which somebody is held: nobody is erased there, and everybody is elsewhere (spec §3, §4)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.tide import Tide

PERSON, HELD, NEIGHBOUR = 99887766005, 99887766006, 88413020072


@pytest.mark.deep
def test_nothing_is_begun_where_somebody_is_held_and_a_release_ends_it(spark: SparkSession, tmp_path: Path) -> None:
    tide = Tide(spark, Path(tmp_path, "p"), "iceberg", policies="policies: []\n")
    (catalog,), driver, app = tide.catalogs, tide.drivers["iceberg"], tide.app
    for name, people in (("alone", (PERSON,)), ("both", (PERSON, HELD)), ("theirs", (HELD,))):
        driver.append(driver.create(name), [(id_, "n", "2026-01-01") for id_ in (*people, NEIGHBOUR)])
    columns = ", ".join(f"{catalog}.db.{name}.id" for name in ("alone", "both", "theirs"))
    (tide.root / "subjects.yml").write_text(f"subjects:\n  user: {{columns: [{columns}]}}\n")
    app.scan()
    request = app.erase.request({"user": str(PERSON)}, law="gdpr").id or ""
    hold = app.hold(owner="counsel", reason="a suit", subject={"user": str(HELD)}, as_of=tide.at(0)).id or ""

    def decided() -> dict[str, str]:
        plan = app.erase.plan(request, at_once=True, as_of=tide.at(1))
        return {place.dataset.rpartition(".")[2]: f"{place.decision}: {place.because}" for place in plan.places}

    assert decided() == {"alone": "erase: it holds them", "both": "held: hold:counsel (a suit)"}
    app.release_hold(hold, as_of=tide.at(1))
    assert decided() == {"alone": "erase: it holds them", "both": "erase: it holds them"}
