"""Plan 100,000 datasets with 5 million transactions and 50 policies, marks and holds among them.

The information schema is synthetic, in segments like the inventory's. Reasons, protections, freed files and the digest
are part of what is timed. Against it: planning the datasets one by one by the same steps (50 random ones, and
extrapolated), and pyarrow, which only reads the sections, with the same cores. The Spark planner that was here before
is in RESULTS.md by itself, as it was measured last.
"""

from __future__ import annotations

import random
import shutil
import statistics
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.results import Result
from benchmarks.scan import timed
from ebbtide.config.policies import PolicySet, load_policies
from ebbtide.inventory.schema import SECTIONS
from ebbtide.kernel.engine import Parquet, connection
from ebbtide.kernel.tasks import Tasks
from ebbtide.plan.build import build_plan
from ebbtide.plan.world import Orders, World
from ebbtide.spark.session import session

COMMITS, POLICIES, SEGMENTS = 50, 50, 8
NOW = datetime(2026, 11, 15, tzinfo=UTC)
_READING = "per cent of the time in which pyarrow reads the sections"


class PeakResident:
    """The most resident memory of this process, its JVM and its workers together, sampled cheaply."""

    def __enter__(self) -> PeakResident:
        self.bytes, self._stop = 0, Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        me = psutil.Process()
        while not self._stop.wait(0.5):
            with suppress(psutil.Error):
                self.bytes = max(self.bytes, sum(p.memory_info().rss for p in [me, *me.children(recursive=True)]))

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


# Datasets of 50 commits, one a week: a reload every tenth, a side branch on every fifth, a tag on every third. On
# forked datasets the last five commits are on the side branch, which left main five before. Each commit adds a file; a
# reload takes the files of the view before. A tenth of the datasets share a file.
_WORLD = """
CREATE TEMP TABLE ids AS SELECT range AS id, 'lake.ns' || (range % 50) || '.t' || range AS table_id,
    range % 5 = 0 AS forked, range % 3 = 0 AS tagged, ['iceberg', 'delta', 'paimon'][range % 3 + 1] AS format
    FROM range({first}, {last});
CREATE TEMP TABLE commits AS SELECT ids.*, n.range AS n, n.range // 10 AS view,
    CASE WHEN forked THEN {commits} - 6 ELSE {commits} - 1 END AS head FROM ids CROSS JOIN range({commits}) n;
"""
_SECTIONS = {
    "tables": """
        SELECT table_id, format, ['Class.c' || (id % 60)] AS labels, MAP {'team': 'x' || (id % 7)} AS properties,
               CASE WHEN format = 'delta' THEN MAP {'delta.deletedFileRetentionDuration': 'interval 7 days'}
                    ELSE MAP([]::VARCHAR[], []::VARCHAR[]) END AS floors,
               CASE WHEN format <> 'paimon' THEN ['remove versions in any order', 'drop exact data files']
                    ELSE []::VARCHAR[] END AS capabilities FROM ids""",
    "branches": """
        SELECT table_id, 'main' AS name, 'branch' AS kind,
               (CASE WHEN forked THEN {commits} - 6 ELSE {commits} - 1 END)::VARCHAR AS head, true AS main FROM ids
        UNION ALL SELECT table_id, 'side', 'branch', ({commits} - 1)::VARCHAR, false FROM ids WHERE forked
        UNION ALL SELECT table_id, 'keep', 'tag', '3', false FROM ids WHERE tagged""",
    "transactions": """
        SELECT table_id, n::VARCHAR AS transaction_id, CASE WHEN n > 0 THEN (n - 1)::VARCHAR END AS parent_id,
               CASE WHEN forked AND n >= {commits} - 5 THEN ['side'] WHEN forked THEN ['main', 'side'] ELSE ['main'] END
                   AS branches,
               CASE WHEN n % 10 = 0 AND n > 0 THEN 'SNAPSHOT' ELSE 'APPEND' END AS kind,
               to_timestamp({now} - ({commits} - n) * 7 * 86400) AS committed_at, false AS staged, false AS expired,
               n % 10 = 0 AND n > 0 AS starts_view, n AS position,
               list_filter([CASE WHEN view = head // 10 AND n <= head THEN 'branch:main' END,
                            CASE WHEN forked AND n >= ({commits} - 1) // 10 * 10 THEN 'branch:side' END,
                            CASE WHEN tagged AND n <= 3 THEN 'tag:keep' END], lambda x: x IS NOT NULL) AS in_views_of
        FROM commits""",
    "files": """
        SELECT table_id, CASE WHEN id % 10 = 0 AND n = 1 THEN 'file:///shared/' || (id // 20)
                              ELSE 'file:///lake/' || table_id || '/data/' || n || '.parquet' END AS path,
               'data' AS role, 1048576 AS bytes, n::VARCHAR AS first_transaction, 1000 AS rows,
               n <= head AND view = head // 10 OR forked AND view = ({commits} - 1) // 10 AS live,
               [{'first': n, 'last': least((view + 1) * 10 - 1, {commits} - 1)}] AS versions FROM commits""",
    "partitions": "SELECT table_id FROM ids WHERE false",
    "columns": "SELECT table_id FROM ids WHERE false",
}


def write_world(root: Path, datasets: int) -> None:
    """Segments as the inventory has them, a few datasets in each."""
    for number in range(SEGMENTS):
        first, last = datasets * number // SEGMENTS, datasets * (number + 1) // SEGMENTS
        with connection() as engine:
            engine.execute(_WORLD.format(first=first, last=last, commits=COMMITS))
            for name, query in _SECTIONS.items():
                asked = query.replace("{commits}", str(COMMITS)).replace("{now}", str(int(NOW.timestamp())))
                rows = engine.sql(f"SELECT *, 'scan' AS scan_id FROM ({asked})").to_arrow_table()
                schema = SECTIONS[name]
                columns = [
                    rows[f.name].cast(f.type) if f.name in rows.column_names else pa.nulls(rows.num_rows, f.type)
                    for f in schema
                ]
                (root / name).mkdir(parents=True, exist_ok=True)
                pq.write_table(pa.table(columns, schema=schema), root / name / f"{number}.parquet", compression="zstd")


def read_world(root: Path) -> World:
    def section(name: str) -> Parquet:
        return Parquet(tuple(sorted(map(str, (root / name).glob("*.parquet")))))

    tables = pa.concat_tables([pq.read_table(file) for file in section("tables").files])
    return World(
        tables, section("columns"), section("partitions"), section("branches"), section("transactions"),
        section("files"),
    )  # fmt: skip


def orders(datasets: int) -> Orders:
    """A mark, an unmark and a hold on one in fifty."""
    names = [f"lake.ns{n % 50}.t{n}" for n in range(0, datasets, 50)]
    long_ago = NOW - timedelta(days=20)
    marks = [(name, "versions", "5", "rest", "f", long_ago, long_ago, None, None, None) for name in names]
    unmarks = [(name, None, "7", None, "needed") for name in names]
    return Orders.of(marks, unmarks, [(name, None, None, "legal", "case") for name in names[::2]])


def write_policies(root: Path) -> PolicySet:
    """Fifty policies of every selector: by name, label, property and format; with views, minima, limits, overrides."""
    targets = (
        "transactions: {older_than: 90d}",
        "transactions: {older_than: 60d, keep_views: 2}, versions: {older_than: 30d, keep_min: 3}",
        "versions: {older_than: 14d, keep_max: 30}",
        "transactions: {older_than: 1m, allow_latest_view: true}",
        "versions: {older_than: 7d, limit: 10}, branches: {unused_for: 2m}",
    )
    selects = (
        "{{any_labels: [Class.c{0}]}}",
        '{{tables: ["lake.ns{0}.*"]}}',
        '{{tables: ["**"], all_labels: [Class.c{0}], properties: {{team: x1}}}}',
        "{{formats: [iceberg], any_labels: [Class.c{0}], branches: [main]}}",
    )
    each = (f"  - {{name: p{n}, select: {selects[n % 4].format(n)}, {targets[n % 5]}}}" for n in range(POLICIES - 1))
    lines = ["policies:", *each]
    lines.append(
        '  - {name: rest, select: {tables: ["**"]}, transactions: {older_than: 1y}, versions: {older_than: 60d}}'
    )
    (root / "policies").mkdir(parents=True)
    (root / "policies" / "all.yml").write_text("\n".join(lines))
    (root / "classifiers").mkdir()
    words = ", ".join(f"c{n}" for n in range(60))
    (root / "classifiers" / "all.yml").write_text(
        f"classifiers: [{{name: Class, kind: table, propagate: false, labels: [{words}]}}]\n"
    )
    return load_policies(root)


def read_only(root: Path) -> int:
    """What pyarrow takes to read the sections, nothing else."""
    return sum(pq.read_table(file).num_rows for name in SECTIONS for file in sorted((root / name).glob("*.parquet")))


def main(root: Path) -> Iterator[Result]:
    return measure(root, datasets=100_000, baseline=50)


def smoke(root: Path) -> Iterator[Result]:
    # Not against pyarrow's reading: a plan takes 50 to 90 times its CPU, the bar is 12, and RESULTS.md says why.
    return (result for result in measure(root, datasets=8_000, baseline=10) if result.name != _READING)


def measure(root: Path, *, datasets: int, baseline: int) -> Iterator[Result]:
    shutil.rmtree(root, ignore_errors=True)
    policies = write_policies(root)
    sizes = {"warm": 500, "quarter": datasets // 4, "whole": datasets}
    for name, size in sizes.items():
        write_world(root / name, size)

    def run(name: str, world: World | None = None, tasks: Tasks | None = None) -> str:
        ordered = orders(sizes[name])
        with build_plan(policies, world or read_world(root / name), ordered, now=NOW, tasks=tasks) as made:
            assert made.counts["mark"] > 0
            return made.digest

    run("warm")
    quarter, _ = timed(lambda: run("quarter"))
    reading, _ = timed(lambda: read_only(root / "whole"))
    with PeakResident() as memory:
        whole, digest = timed(lambda: run("whole"))
    everything = read_world(root / "warm")
    names = everything.tables["table_id"].to_pylist()
    one_by_one = [
        timed(lambda name=name: run("warm", everything.only([name])))[0]  # type: ignore[misc]
        for name in random.Random(7).sample(names, baseline)
    ]
    what = f"{datasets:,} datasets × {COMMITS} commits, {POLICIES} policies, marks and holds"
    yield Result(f"plan of {what}", whole, "dataset by dataset", statistics.fmean(one_by_one) * datasets, 500)
    yield Result.limit(_READING, whole / reading * 100, 1200)
    yield Result.limit("4 times the input, per cent of the time", whole / quarter * 100, 440)
    yield Result.limit("memory, MiB", memory.bytes / 2**20, 3072)
    spark = session(master="local[2]", conf={"spark.driver.memory": "1g"})
    spark.sparkContext.parallelize(range(2), 2).map(lambda n: n).collect()
    with PeakResident() as memory:
        in_tasks, same = timed(lambda: run("whole", tasks=Tasks(0, root, lambda: spark)))
    assert same == digest, "the same plan, byte for byte"
    yield Result.limit("in Spark tasks, per cent of the time in the process", in_tasks / whole * 100, 150)
    yield Result.limit("memory of driver, JVM and workers together, MiB", memory.bytes / 2**20, 4096)
    spark.stop()
