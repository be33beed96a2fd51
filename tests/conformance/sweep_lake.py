"""One small lake per format for the conformance tests of sweeping: marked once, swept twice (spec §1, §2).

What a table is for is its name. `adhoc` goes whole, and `adhoc_rows` beside it, whose name begins alike, loses rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import cast

from pyspark.sql import Row, SparkSession

from ebbtide.formats.base import supports
from ebbtide.formats.registry import load_format
from ebbtide.model.capabilities import Capability
from ebbtide.model.ids import DatasetId
from ebbtide.spark.session import quote
from ebbtide.sweep.mark import MarkReport
from ebbtide.sweep.values import SweepReport
from tests.conformance.driver import Driver, Table
from tests.conformance.drivers.delta import DeltaDriver
from tests.tide import Tide

POLICIES = """
policies:
  - name: adhoc
    select: {tables: ["*.db.adhoc"]}
    tables: {older_than: 30d}
    rows: {where: "id = 2"}
  - name: ttl
    select: {tables: ["*.db.adhoc_rows"]}
    rows: {column: seen, older_than: 30d}
    versions: {older_than: 1d, keep_min: 1}
  - name: forgotten
    select: {tables: ["*.db.branched"]}
    branches: {unused_for: 30d}
  - name: days
    select: {tables: ["*.db.days"]}
    partitions: {older_than: 30d}
    versions: {older_than: 1d, keep_min: 1}
  - name: changes
    select: {tables: ["*.db.changes"]}
    versions: {older_than: 30d, keep_min: 2}
  - name: old
    select: {tables: ["**"]}
    versions: {older_than: 30d, keep_min: 1}
floors:
  - {name: law, tables: ["*.db.days"], keep_at_least: 2d, basis: a code}
"""
OLD, NEW = "2026-01-01", "2099-01-01"
SEEN = "id BIGINT, name STRING, seen DATE"
_TAG = {"iceberg": "tag", "paimon": "scan.tag-name"}


@dataclass
class Swept:
    """A lake of one format: as it was written, what the rounds said, and what lay there between the two sweeps."""

    tide: Tide
    driver: Driver
    format: str
    tables: dict[str, Table] = field(default_factory=dict)
    ids: dict[str, list[str]] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    between: dict[str, list[Row]] = field(default_factory=dict)
    pinned: set[str] = field(default_factory=set)
    """The data files that the tag of `tagged` holds, as they lay there when it was made."""
    marked: MarkReport = field(default_factory=lambda: MarkReport(None))
    foreseen: list[SweepReport] = field(default_factory=list)
    """What a dry run said just before each sweep."""
    sweeps: list[SweepReport] = field(default_factory=list)
    files: list[set[str]] = field(default_factory=list)
    changes: list[set[str]] = field(default_factory=list)
    """Delta's change data, delete by delete."""
    """What lay there before the first sweep, between the two, and after the second."""

    def can(self, capability: Capability) -> bool:
        return bool(supports(load_format(self.format), capability))

    def objects(self, report: MarkReport, name: str) -> set[str]:
        return {key.object for key in report.marked if key.dataset == str(self.tables[name].id)}

    def states(self, name: str, target: str = "versions", sweep: int = 0) -> dict[str, str]:
        return {
            r.key.object: r.state
            for r in self.sweeps[sweep].results
            if r.key.dataset == str(self.tables[name].id) and r.key.target == target
        }

    def data_files(self, name: str) -> set[str]:
        """The files below a table's folder that hold rows."""
        folder = self.folder(name)
        return {path for path in self.tide.files() if path.startswith(folder) and path.endswith((".parquet", ".orc"))}

    def folder(self, name: str) -> str:
        return self.tide.relative(self.tables[name].location.removeprefix("file:")) + "/"

    def tag_rows(self) -> list[Row]:
        """The rows that readers of the tag get, by its name."""
        reader = self.tide.spark.read.option(_TAG[self.format], "keep")
        return sorted(reader.table(self.tables["tagged"].sql).collect(), key=str)

    def day(self, after: int) -> date:
        return (self.tide.started + timedelta(days=after)).date()


def build(spark: SparkSession, root: Path, format_: str) -> Swept:
    tide = Tide(spark, root, format_, policies=POLICIES)
    lake = Swept(tide, tide.drivers[format_], format_)
    _write(lake)
    lake.marked = tide.mark(40)
    # Under the frozen cutoff, which is day 10, one of these rows goes; by the day of the sweep both would.
    lake.driver.append(lake.tables["adhoc_rows"], [(4, "came old", lake.day(0)), (5, "late", lake.day(14))])
    lake.files.append(tide.files())
    for days in (48, 60):
        lake.foreseen.append(tide.sweep(days, dry_run=True))
        lake.sweeps.append(tide.sweep(days))
        lake.files.append(tide.files())
        if not lake.between:
            lake.between = {n: lake.driver.rows(table) for n, table in lake.tables.items() if n != "adhoc"}
    return lake


def _write(lake: Swept) -> None:
    driver = lake.driver
    plain = lake.tables["plain"] = driver.create("plain")
    for number in range(3):
        driver.append(plain, [(number, f"n{number}", OLD)])
    driver.overwrite(plain, [(9, "kept", OLD)])
    tagged = lake.tables["tagged"] = driver.create("tagged")
    driver.append(tagged, [(1, "pinned", OLD)])
    if lake.can(Capability.TAGS):
        driver.create_tag(tagged, "keep")
        lake.pinned = lake.data_files("tagged")
    driver.overwrite(tagged, [(2, "now", OLD)])
    days = lake.tables["days"] = driver.create("days", partitioned=True)
    driver.append(days, [(1, "old", OLD), (2, "new", NEW)])
    driver.append(days, [(3, "new", NEW)])
    if lake.format == "delta":
        _write_changes(lake)
    adhoc = lake.tables["adhoc"] = driver.create("adhoc")
    driver.append(adhoc, [(1, "x", OLD)])
    driver.overwrite(adhoc, [(2, "y", OLD)])
    # Merge-on-read only hides rows until a compaction (docs/limits.md): here they go with the files of old versions.
    settings = {"write.delete.mode": "copy-on-write"} if lake.format == "iceberg" else {}
    seen = lake.tables["adhoc_rows"] = driver.create("adhoc_rows", columns=SEEN, properties=settings)
    driver.append(seen, [(1, "old", lake.day(0)), (2, "late", lake.day(14)), (3, "no day", None)])
    if lake.can(Capability.DROPS_BRANCHES):
        branched = lake.tables["branched"] = driver.create("branched")
        driver.append(branched, [(1, "both", OLD)])
        driver.create_branch(branched, "forgotten")
        driver.append(branched, [(2, "branch", OLD)], branch="forgotten")
        driver.append(branched, [(3, "main", OLD)])
    if lake.format == "delta":
        _write_delta(lake, cast(DeltaDriver, driver))
    for name, table in lake.tables.items():
        lake.ids[name] = driver.native_ids(table)
        lake.rows[name] = driver.rows(table)


def _write_delta(lake: Swept, driver: DeltaDriver) -> None:
    """A source with a shallow clone, and a table whose log was cleaned."""
    source = lake.tables["source"] = driver.create("source")
    driver.append(source, [(1, "of both", OLD)])
    location = f"{driver.catalog.warehouse}/db/clone"
    clone = Table(DatasetId(driver.catalog.name, ("db",), "clone"), location, quote("delta", location))
    driver.spark.sql(f"CREATE TABLE {clone.sql} SHALLOW CLONE {source.sql}")
    lake.tables["clone"] = clone
    driver.overwrite(source, [(2, "of nobody", OLD)])
    driver.overwrite(source, [(3, "now", OLD)])
    cleaned = lake.tables["cleaned"] = driver.create("cleaned")
    driver.append(cleaned, [(1, "before the log", OLD)])
    driver.append(cleaned, [(2, "old", OLD)])
    driver.checkpoint(cleaned)
    driver.clean_log(cleaned)
    driver.overwrite(cleaned, [(3, "now", OLD)])


def _write_changes(lake: Swept) -> None:
    """Two deletes with their change data, and a version after them."""
    driver = lake.driver
    table = lake.tables["changes"] = driver.create("changes", properties={"delta.enableChangeDataFeed": "true"})
    driver.append(table, [(number, "a", OLD) for number in range(4)])
    for number in (1, 2):
        before = lake.tide.files()
        driver.delete(table, f"id = {number}")
        new = lake.tide.files() - before
        lake.changes.append({path for path in new if "/_change_data/" in path and path.endswith(".parquet")})
    driver.append(table, [(9, "a", OLD)])
