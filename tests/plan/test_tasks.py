"""A large lake is planned in Spark tasks: the same steps, byte for byte the same plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ebbtide.app.plan import write_plan
from ebbtide.inventory.schema import SECTIONS
from ebbtide.kernel.engine import Parquet
from ebbtide.kernel.tasks import Tasks
from ebbtide.plan.build import build_plan
from ebbtide.plan.world import World
from tests.plan.test_pure import RULES, lake
from tests.plan.worlds import NOW, ago, orders, policies, world


def in_files(made: World, folder: Path) -> World:
    """The same with the sections in files, as the inventory has them, rows of an older scan among them."""
    found: dict[str, Any] = {}
    for name in ("columns", "partitions", "branches", "transactions", "files"):
        rows = getattr(made, name)
        for scan in ("old", "new"):
            some = rows.append_column("scan_id", [[scan] * rows.num_rows])
            (folder / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(some.select(SECTIONS[name].names).cast(SECTIONS[name]), folder / name / f"{scan}.parquet")
        found[name] = Parquet(tuple(sorted(map(str, (folder / name).glob("*.parquet")))))
    tables = made.tables.append_column("scan_id", [["new"] * made.tables.num_rows])
    return replace(made, tables=tables, **found)


def test_in_tasks_a_plan_is_the_same_plan(spark: SparkSession, tmp_path: Path) -> None:
    rules = policies(tmp_path, RULES, labels=("X.y",))
    lent = (lent_file := lake()[0].files["T1"]).path
    tables = lake()
    tables[1].files[lent] = lent_file  # a file that two datasets share keeps its transaction in both
    tables[1].live = {id_: paths | {lent} if id_ == "T1" else paths for id_, paths in tables[1].live.items()}
    state = orders(
        [(name, "versions", "T1", "all", "f", ago(20), ago(10), None) for name in ("lake.db.t0", "lake.db.nowhere")],
        [("lake.db.t2", None, "T2", None, "needed")],
        [("lake.db.t1", None, None, "counsel", "case 7")],
    )
    seen = in_files(world(*tables), tmp_path / "table_id=zz")
    alone = build_plan(rules, seen, state, now=NOW)
    tasks = Tasks(0, tmp_path, lambda: spark)
    together = build_plan(rules, seen, state, now=NOW, tasks=tasks)
    with alone, together:
        assert together.folder.parent == tmp_path
        assert len(list(together.folder.glob("objects-*.parquet"))) > 1
        write_plan(alone, tmp_path / "alone.json")
        write_plan(together, tmp_path / "together.json")
        assert (tmp_path / "alone.json").read_bytes() == (tmp_path / "together.json").read_bytes()
        assert (tmp_path / "alone.json.files").read_bytes() == (tmp_path / "together.json.files").read_bytes()
        assert build_plan(rules, world(*tables), state, now=NOW).digest == alone.digest, "old scans do not count"
    assert not together.folder.exists()
