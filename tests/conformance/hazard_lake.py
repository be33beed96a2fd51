"""One lake per format with a table for each hazard: marked once, swept once under bad luck, and once more without.

All bad luck comes in the first sweep: it runs in another time zone, a file cannot be removed, and the answer to one
table's commit is lost on its way. What a table is for is its name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from pyspark.sql import Row, SparkSession

from ebbtide.model.ids import DatasetId
from ebbtide.spark.session import quote, quote_text
from ebbtide.sweep.mark import MarkReport
from ebbtide.sweep.values import SweepReport
from tests.conformance.bad_luck import elsewhere, locked, lost_answer
from tests.conformance.driver import Driver, Table
from tests.conformance.drivers.hudi import HudiDriver
from tests.tide import Tide

MARK, FIRST, SECOND = 40, 48, 49
POLICIES = """
policies:
  - name: window
    select: {tables: ["*.db.window"]}
    versions: {older_than: 100d, keep_min: 1}
  - name: days
    select: {tables: ["*.db.zones", "*.db.timeout"]}
    partitions: {older_than: 30d}
    versions: {older_than: 1d, keep_min: 1}
  - name: rest
    select: {tables: ["**"]}
    versions: {older_than: 10d, keep_min: 1}
    orphans: {older_than: 3d}
"""
DAY, ODD = "2026-01-01", "a b%2F=ü:c"
# Where a writer of the format puts its files, `stray` standing for what tells them apart.
STRAY = {
    "iceberg": "data/stray.parquet",
    "delta": "part-stray.parquet",
    "paimon": "bucket-0/data-stray-0.parquet",
    "hudi": "stray-0_0-1-1_20990101000000000.parquet",
}
# What another format writes beside the data of a table that it shares.
SECOND_FORMAT = {
    "iceberg": ["_delta_log/00000000000000000000.json", "_delta_log/00000000000000000010.checkpoint.parquet"],
    "delta": ["metadata/00000-a.metadata.json", "metadata/snap-1-1-a.avro", ".hoodie/hoodie.properties"],
    "paimon": ["metadata/v1.metadata.json", "metadata/snap-1-1-a.avro"],
    "hudi": ["_delta_log/00000000000000000000.json", "metadata/v1.metadata.json"],
}


@dataclass
class HazardLake:
    """`old` are the data files that only a table's first commit references; `rows` what its head holds."""

    tide: Tide
    driver: Driver
    format: str
    tables: dict[str, Table] = field(default_factory=dict)
    old: dict[str, set[Path]] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    ids: dict[str, list[str]] = field(default_factory=dict)
    files: list[set[str]] = field(default_factory=list)
    """Every file before the first sweep, between the two, and after the second."""
    heads: list[dict[str, list[Row]]] = field(default_factory=list)
    marked: MarkReport = field(init=False)
    first: SweepReport = field(init=False)
    second: SweepReport = field(init=False)

    @property
    def spark(self) -> SparkSession:
        return self.tide.spark

    def under(self, name: str, when: int) -> set[str]:
        start = self.tide.relative(self.tables[name].location) + "/"
        return {path for path in self.files[when] if path.startswith(start)}

    def path(self, name: str, inside: str) -> Path:
        return Path(self.tables[name].location, inside)

    def stray(self, kind: str) -> Path:
        return self.path("t", STRAY[self.format].replace("stray", kind))

    def states(self, name: str, report: SweepReport) -> set[str]:
        return {r.state for r in report.results if r.key.dataset == str(self.tables[name].id)}

    def head(self, name: str) -> list[Row]:
        if name == "hidden":
            # The drivers know their own columns only.
            by_name = self.format in ("iceberg", "paimon")
            table = self.tables[name]
            frame = self.spark.table(table.sql) if by_name else self.spark.read.format(self.format).load(table.location)
            return sorted(frame.select("id", "_day").collect())
        return self.driver.rows(self.tables[name])

    @property
    def border(self) -> str:
        """The oldest day that the policy still keeps when the lake is marked."""
        return str(self.tide.at(MARK).date() - timedelta(days=30))


def data_files(table: Table) -> set[Path]:
    files = (path.relative_to(table.location) for path in Path(table.location).rglob("*.parquet"))
    return {Path(table.location, path) for path in files if path.parts[0] not in (".hoodie", "metadata")}


def build(spark: SparkSession, root: Path, format_: str) -> HazardLake:
    tide = Tide(spark, root, format_, policies=POLICIES)
    lake = HazardLake(tide, tide.drivers[format_], format_)
    for name in ("t", "t_2", "odd", "window", "stuck", "slashed", "hidden", "zones", "timeout"):
        _write(lake, name)
    _statistics(lake)
    for path, days in ((lake.stray("stray"), -10.0), (lake.stray("young"), -0.04), (lake.stray("timeless"), None)):
        _lay(lake, path, days)
    for inside in SECOND_FORMAT[format_]:
        _lay(lake, lake.path("t", inside), -10.0)
    for name, table in lake.tables.items():
        lake.rows[name] = lake.head(name)
        lake.ids[name] = lake.driver.native_ids(table) if name != "hidden" else []
    lake.files.append(tide.files())
    (stuck,) = lake.old["stuck"]
    with elsewhere(lake.spark, tide.at(MARK).hour), locked(stuck), lost_answer(str(lake.tables["timeout"].id)):
        lake.marked = tide.mark(MARK)
        lake.first = tide.sweep(FIRST)
    _look(lake)
    lake.second = tide.sweep(SECOND)
    _look(lake)
    return lake


def _look(lake: HazardLake) -> None:
    lake.files.append(lake.tide.files())
    lake.heads.append({name: lake.head(name) for name in lake.tables})


def _write(lake: HazardLake, name: str) -> None:
    driver = lake.driver
    if name == "hidden":
        table = lake.tables[name] = _hidden(lake)
        lake.spark.sql(f"INSERT INTO {table.sql} VALUES (1, 'a')")
        lake.old[name] = data_files(table)
        lake.spark.sql(f"INSERT OVERWRITE {table.sql} VALUES (2, 'a')")
        return
    if name == "slashed" and lake.format == "iceberg":
        table = lake.tables[name] = _slashed(lake)
    else:
        table = lake.tables[name] = driver.create(name, partitioned=name in ("odd", "zones", "timeout"))
    if name in ("zones", "timeout"):
        before = str(lake.tide.at(MARK).date() - timedelta(days=31))
        driver.append(table, [(1, "goes", before), (2, "stays", lake.border)])
        return
    driver.append(table, [(1, "old", ODD if name == "odd" else DAY)])
    if name == "t_2":
        return
    lake.old[name] = data_files(table)
    driver.overwrite(table, [(2, "new", ODD if name == "odd" else DAY)])


def _slashed(lake: HazardLake) -> Table:
    """Iceberg records locations: one with slashes too many."""
    warehouse = lake.driver.catalog.warehouse
    name = quote(lake.driver.catalog.name, "db", "slashed")
    lake.spark.sql(
        f"CREATE TABLE {name} (id BIGINT, name STRING, day STRING) USING iceberg "
        f"LOCATION {quote_text(f'file:{warehouse}//db///slashed/')}"
    )
    return Table(DatasetId(lake.driver.catalog.name, ("db",), "slashed"), f"{warehouse}/db/slashed", name)


def _hidden(lake: HazardLake) -> Table:
    """A partition column that begins with an underscore, as hidden files do."""
    catalog = lake.driver.catalog
    folder = "db.db" if lake.format == "paimon" else "db"
    location = f"{catalog.warehouse}/{folder}/hidden"
    sql = {"delta": quote("delta", location), "hudi": quote("default", f"{catalog.name}_hidden")}
    table = Table(
        DatasetId(catalog.name, ("db",), "hidden"), location, sql.get(lake.format, quote(catalog.name, "db", "hidden"))
    )
    more = {
        "paimon": "TBLPROPERTIES ('write-only' = 'true')",
        "hudi": "TBLPROPERTIES (primaryKey = 'id', 'hoodie.metadata.enable' = 'false', 'hoodie.clean.automatic' = "
        f"'false', 'hoodie.parquet.small.file.limit' = '0') LOCATION {quote_text(_place_in_sql(lake, location))}",
    }
    using = "" if lake.format == "paimon" else f"USING {lake.format}"
    lake.spark.sql(
        f"CREATE TABLE {table.sql} (id BIGINT, _day STRING) {using} PARTITIONED BY (_day) {more.get(lake.format, '')}"
    )
    return table


def _place_in_sql(lake: HazardLake, location: str) -> str:
    if not isinstance(lake.driver, HudiDriver):
        return location
    Path(location).mkdir(parents=True)
    return lake.driver.linked(location)


def _statistics(lake: HazardLake) -> None:
    """Statistics that are replaced by newer ones, where they are files."""
    for _ in range(2):
        if lake.format == "iceberg":
            catalog = quote(lake.driver.catalog.name)
            lake.spark.sql(f"CALL {catalog}.system.compute_table_stats(table => 'db.t')").collect()
        elif lake.format == "paimon":
            lake.spark.sql(f"ANALYZE TABLE {lake.tables['t'].sql} COMPUTE STATISTICS").collect()
    # Those that Iceberg forgot are orphans, and must be old enough.
    then = lake.tide.at(-10).timestamp()
    for path in lake.path("t", "metadata").glob("*.stats"):
        os.utime(path, (then, then))


def _lay(lake: HazardLake, path: Path, days: float | None) -> None:
    """A file of some age, by the real clock, which is the listing's; None is a store that knows no time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("not of this table's history")
    then = 0.0 if days is None else lake.tide.at(days).timestamp()
    os.utime(path, (then, then))
