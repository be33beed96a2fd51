"""A person who keeps coming: what an erasure let go of goes at the next run, whoever came since.

One lake of all formats; each arrival has a name of its own, so that a search of bytes tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conformance.driver import Table
from tests.oracle.bytes_by_hand import forms, where_values_are
from tests.tide import Tide

PERSON = 88413020071
OTHERS = {(1, "a", "2026-01-01"), (2, "b", "2026-01-01")}
_PROPERTIES = {"delta": {"delta.deletedFileRetentionDuration": "interval 0 hours"}}


@dataclass
class Lake:
    tide: Tide
    tables: dict[str, Table]

    def comes(self, name: str) -> None:
        for format_, table in self.tables.items():
            self.tide.drivers[format_].append(table, [(PERSON, name, "2026-01-02")])

    def rows(self, format_: str) -> set[tuple[object, ...]]:
        rows = self.tide.drivers[format_].rows(self.tables[format_])
        return {(row["id"], row["name"], row["day"]) for row in rows}

    def bytes_of(self, name: str) -> dict[str, set[tuple[str, str]]]:
        """Where the name stands in files, by the formats whose tables have it."""
        found = {
            f: where_values_are(Path(table.location), {"it": forms(name)})["it"] for f, table in self.tables.items()
        }
        return {format_: there for format_, there in found.items() if there}


@pytest.mark.parametrize(
    "formats", [["iceberg"], pytest.param(["delta", "paimon", "hudi"], marks=pytest.mark.deep)], ids="-".join
)
def test_who_comes_again_before_every_run_keeps_no_bytes_of_before(
    spark: SparkSession, tmp_path: Path, formats: list[str]
) -> None:
    tide = Tide(spark, tmp_path / "p", *formats, policies="policies: []\n")
    lake = Lake(tide, {f: tide.drivers[f].create("users", properties=_PROPERTIES.get(f)) for f in formats})
    for format_, table in lake.tables.items():
        tide.drivers[format_].append(table, sorted(OTHERS))
    lake.comes("somebody-first")
    columns = ", ".join(f"{table.id}.id" for table in lake.tables.values())
    (tide.root / "subjects.yml").write_text(f"subjects:\n  user: {{columns: [{columns}]}}\n")
    tide.app.scan()
    request = tide.app.erase.request({"user": str(PERSON)}, law="gdpr").id or ""
    names = ["somebody-first", "somebody-second", "somebody-third"]
    for hour, (name, next_) in enumerate(zip(names, [*names[1:], None], strict=True)):
        done = tide.app.erase.run(at_once=True, as_of=tide.at(1 + hour / 8))
        assert {each.state for each in done.datasets} == {"deleted"}, done.datasets
        for before in names[:hour]:
            assert lake.bytes_of(before) == {}, "what was let go of a run ago is gone"
        assert lake.bytes_of(name).keys() == set(formats), "readers in flight still need its files"
        for format_ in formats:
            assert lake.rows(format_) == OTHERS
        if next_ is not None:
            lake.comes(next_)
    tide.app.erase.run(at_once=True, as_of=tide.at(2))
    assert lake.bytes_of(names[-1]) == {}
    for format_ in formats:
        assert lake.rows(format_) == OTHERS
    assert tide.app.erase.status(request).state == "purged"
