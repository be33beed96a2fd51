"""Random histories on real Iceberg tables: what the scan says agrees with an oracle that works by other means."""

from __future__ import annotations

import ast
import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ebbtide.formats.base import Depth
from ebbtide.formats.registry import load_format
from ebbtide.model.dataset import Catalog, Reading, Role, TableHandle
from ebbtide.model.history import build_history
from ebbtide.model.paths import local_path
from tests.conformance.driver import Rows, Table
from tests.conformance.drivers.iceberg import IcebergDriver
from tests.oracle import iceberg_by_spark as oracle

SEEDS = range(int(os.environ.get("EBBTIDE_PROPERTY_SEEDS", "12")))
SHALLOW = 3
"""So many of the histories run in `make test`, the others in `make test-deep`."""
STEPS = 10
_PERFORMED: Counter[str] = Counter()


class RandomHistory:
    """Performs random operations on one table, the way its users might."""

    def __init__(self, driver: IcebergDriver, seed: int) -> None:
        self.driver, self.random, self.seed = driver, random.Random(seed), seed
        mode = self.random.choice(["merge-on-read", "copy-on-write"])
        self.table = driver.create(
            f"random_{seed}",
            variant=self.random.choice(["v1", "v2", "v3"]),
            partitioned=self.random.random() < 0.5,
            properties={} if mode == "merge-on-read" else {"write.delete.mode": mode, "write.update.mode": mode},
        )
        self.observed = oracle.Observed()
        self.next_id, self.names = 0, 0
        self.done: list[str] = []

    def _rows(self) -> Rows:
        rows = [(self.next_id + n, "r", f"2026-01-0{self.random.randint(1, 3)}") for n in range(3)]
        self.next_id += 3
        return rows

    def _branches(self) -> list[str]:
        return [name for name, (kind, _) in oracle.refs(self.driver.spark, self.table.sql).items() if kind == "branch"]

    def append(self) -> None:
        branch = self.random.choice([None, *[name for name in self._branches() if name != "main"]])
        self.driver.append(self.table, self._rows(), branch=branch)

    def overwrite(self) -> None:
        branch = self.random.choice([None, *[name for name in self._branches() if name != "main"]])
        self.driver.overwrite(self.table, self._rows(), branch=branch)

    def delete(self) -> None:
        self.driver.delete(self.table, f"id % 5 = {self.random.randint(0, 4)}")

    def delete_all(self) -> None:
        self.driver.delete_all(self.table)

    def compact(self) -> None:
        self.driver.compact(self.table)

    def branch(self) -> None:
        self.names += 1
        self.driver.create_branch(self.table, f"b{self.names}", self.random.choice(self._ids()))

    def drop_branch(self) -> None:
        if others := [name for name in self._branches() if name != "main"]:
            self.driver.drop_branch(self.table, self.random.choice(others))

    def tag(self) -> None:
        self.names += 1
        self.driver.create_tag(self.table, f"t{self.names}", self.random.choice(self._ids()))

    def expire(self) -> None:
        self.driver.expire(self.table)

    def _ids(self) -> list[str]:
        return self.driver.native_ids(self.table)

    def run(self) -> None:
        operations: list[tuple[Callable[[], None], int]] = [
            (self.append, 4), (self.overwrite, 2), (self.delete, 2), (self.delete_all, 1), (self.compact, 1),
            (self.branch, 2), (self.drop_branch, 1), (self.tag, 1), (self.expire, 1),
        ]  # fmt: skip
        self.append()
        for _ in range(STEPS):
            operation = self.random.choices([o for o, _ in operations], [w for _, w in operations])[0]
            operation()
            self.done.append(operation.__name__)
            _PERFORMED[operation.__name__] += 1
            self.observed.look(self.driver.spark, self.table.sql)


def read(table: Table, catalog: Catalog) -> Reading:
    adapter = load_format("iceberg")
    (found,) = [a for a in adapter.discover(catalog) if isinstance(a, TableHandle) and a.id == table.id]
    return adapter.read(found, catalog, Depth.FILES, None)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.deep if seed >= SHALLOW else ()) for seed in SEEDS]
)
def test_kinds_views_and_references_agree_with_the_oracle(
    seed: int, spark: SparkSession, catalogs: Mapping[str, Catalog]
) -> None:
    history = RandomHistory(IcebergDriver(spark, catalogs["lake"]), seed)
    history.run()
    reading = read(history.table, catalogs["lake"])
    seen, name, told = history.observed, history.table.sql, f"seed {seed}: {history.done}"

    assert {t.id: str(t.kind) for t in reading.transactions} == {id_: seen.kinds[id_] for id_ in seen.retained}, told
    assert {t.id for t in reading.transactions if t.starts_view} == seen.starts & seen.retained, told
    refs = oracle.refs(spark, name)
    assert {r.name: (str(r.kind), r.head) for r in reading.refs if r.head} == refs, told
    views = build_history(reading.transactions, reading.refs).views
    expected = {name_: seen.latest_view(head) for name_, (_, head) in refs.items()}
    assert {v.ref.name: set(v.members) for v in views if v.ref.head} == expected, told
    assert {local_path(f.path) for f in reading.files} == oracle.referenced(spark, name), told
    content = {Role.DATA, Role.DELETE_FILE, Role.DELETION_VECTOR}
    assert {local_path(f.path) for f in reading.files if f.live and f.role in content} == oracle.live(spark, name), told


@pytest.mark.jvm
@pytest.mark.deep
def test_the_random_histories_performed_every_operation() -> None:
    """Runs after the others, in the same worker; a history that never branches would prove little."""
    if len(SEEDS) < 12:
        pytest.skip("EBBTIDE_PROPERTY_SEEDS asks for fewer histories than cover every operation")
    assert set(_PERFORMED) >= {
        "append", "overwrite", "delete", "delete_all", "compact", "branch", "drop_branch", "tag", "expire",
    }, _PERFORMED  # fmt: skip


def test_the_oracle_shares_nothing_with_what_it_checks() -> None:
    tree = ast.parse(Path(oracle.__file__).read_text())
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }
    assert imported <= {"__future__", "dataclasses", "typing"}
    called = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    adapter = Path(load_format.__code__.co_filename).parent / "iceberg"
    adapters_calls = {
        node.attr
        for path in adapter.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
    }
    library = {
        "manifests",
        "entries",
        "fetch_manifest_entry",
        "table_metadata",
        "new_input",
        "snapshots",
        "metadata_log",
    }
    assert not called & adapters_calls & library
