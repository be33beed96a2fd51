"""A name is a name, not a text with variables: no statement reaches another table by it (hazard 31)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ebbtide.app.hold import add_hold
from ebbtide.app.sweep import exit_code
from ebbtide.spark import session as sessions
from tests.conformance.driver import Table
from tests.tide import Tide

POLICIES = """
policies:
  - {name: all, select: {tables: ["**"]}, rows: {where: "id > 0"}, grace: 1d}
"""
FORMATS = ("iceberg", "delta", "hudi")
"""Paimon lets no table be called so: a `$` begins the name of a system table."""
ODD = "users${x}"


def test_a_variable_in_a_name_leads_to_no_other_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice: where a session substitutes after all, the table's identity alone keeps `users` whole."""
    tide = Tide(spark, tmp_path / "p", *FORMATS, policies=POLICIES, plainly=("delta",))
    made: dict[tuple[str, str], Table] = {}
    for name, driver in tide.drivers.items():
        for table in ("users", ODD):
            made[name, table] = driver.create(table)
            driver.append(made[name, table], [(1, "x", "d")])

    def ids(table: str) -> dict[str, list[int]]:
        return {name: [row["id"] for row in driver.rows(made[name, table])] for name, driver in tide.drivers.items()}

    tide.app.scan()
    for name in FORMATS:
        add_hold(tide.project, str(made[name, "users"].id), owner="ann", reason="case 1", as_of=tide.at(1))
    assert len(tide.mark(2).marked) == len(FORMATS)

    substitutes = dict.fromkeys(sessions._NAMES_ARE_NAMES, "true")
    with monkeypatch.context() as patched:
        patched.setattr(sessions, "_NAMES_ARE_NAMES", substitutes)
        first = tide.sweep(4)
    whole: dict[str, list[int]] = {name: [1] for name in FORMATS}
    empty: dict[str, list[int]] = {name: [] for name in FORMATS}
    assert ids("users") == whole
    refused = {result.key.dataset.split(".")[0]: result for result in first.results if result.state == "failed"}
    by_name = {tide.drivers[name].catalog.name for name in FORMATS if name != "hudi"}  # which goes by path
    assert refused.keys() == by_name
    assert all("another table" in result.because for result in refused.values())
    assert exit_code(first) == 4

    second = tide.sweep(5)
    assert not second.errors
    assert not second.findings
    assert (ids("users"), ids(ODD)) == (whole, empty)
