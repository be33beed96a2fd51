"""A lake of a few hundred random tables of all formats under one set of random policies."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from tests.conformance.driver import Driver, Table
from tests.property import delta_tables, iceberg_tables, policies
from tests.property.rows import Rows
from tests.tide import Tide

_GC_OFF = {"gc.enabled": "false"}
_MANY = {"history.expire.min-snapshots-to-keep": "3"}
_LONG = {"delta.deletedFileRetentionDuration": "interval 100 days"}
Named = list[tuple[str, dict[str, str]]]


class RandomLake:
    """`size` tables: mostly Iceberg and Delta by their Python writers, a few of each format by Spark."""

    def __init__(self, spark: SparkSession, root: Path, seed: int, size: int) -> None:
        self.seed, self.random, self.done = seed, Random(seed), Counter[str]()
        self.tide = Tide(
            spark, root, "iceberg", "delta", "paimon", "hudi", policies=policies.random_policies(self.random)
        )
        names = {format_: driver.catalog.name for format_, driver in self.tide.drivers.items()}
        self.names = names
        self.iceberg = iceberg_tables.Lake(
            names["iceberg"], root / f"catalog-{names['iceberg']}.db", root / names["iceberg"]
        )
        self.delta = root / names["delta"]
        self.read_by_spark: dict[str, tuple[Driver, Table, list[str]]] = {}
        self.size = size
        self._build(size)

    def _build(self, size: int) -> None:
        few = max(1, size // 100)
        pairs = [(f"views_s{n:04}", f"young_s{n:04}") for n in range(max(1, size // 30))]
        delta = self._named(policies.DELTA, size // 12, {0: _LONG})
        iceberg = self._named(policies.ICEBERG, size - len(delta) - 2 * len(pairs) - 3 * few, {0: _GC_OFF, 5: _MANY})
        catalog = self.iceberg.open()
        catalog.create_namespace_if_not_exists("db")
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            work: list[Future[Counter[str]]] = [
                pool.submit(iceberg_tables.build, self.iceberg, self.seed, iceberg[n::4]) for n in range(4)
            ]
            work.append(pool.submit(iceberg_tables.share, self.iceberg, self.seed, pairs))
            work.append(pool.submit(delta_tables.build, self.delta, self.seed, delta))
            for format_ in ("iceberg", "paimon", "hudi"):
                for number in range(few):
                    self._by_spark(format_, number)
            for future in work:
                self.done += future.result()

    def _named(self, kinds: tuple[str, ...], count: int, settings: dict[int, dict[str, str]]) -> Named:
        """Names with random kinds; every fifteenth table has a setting of its format that nothing goes below."""
        found: Named = []
        for number in range(count):
            special = settings.get(number % 15, {})
            kind = "both" if special else self.random.choice(kinds)
            found.append((f"{kind}_{number:04}", special))
        return found

    def _by_spark(self, format_: str, number: int) -> None:
        """What only Spark writes: merge-on-read deletes, primary keys, savepoints."""
        driver, random = self.tide.drivers[format_], Random(f"{self.seed}:{format_}:{number}")
        rows = Rows(random)
        kind = policies.OTHERS[number % len(policies.OTHERS)]
        variant = "v2" if format_ == "iceberg" else driver.variants[number % len(driver.variants)]
        table = driver.create(f"{kind}_x{format_}{number}", variant=variant)
        tags: list[str] = []
        steps: list[Callable[[], None]] = [
            lambda: driver.append(table, rows.tuples()),
            lambda: driver.overwrite(table, rows.tuples()),
            lambda: driver.delete(table, f"id % 3 = {random.randint(0, 2)}"),
        ]
        driver.append(table, rows.tuples())
        tag_at = random.randrange(4)
        for step in range(4):
            if step == tag_at:
                driver.create_tag(table, f"t{step}")
                tags.append(f"t{step}")
                self.done["tag"] += 1
            random.choices(steps, (2, 2, 1))[0]()
            self.done[f"{format_} by Spark"] += 1
        if format_ != "iceberg":
            self.read_by_spark[str(table.id)] = (driver, table, tags if format_ == "paimon" else [])

    def write_on(self, turn: int) -> None:
        """Writers go on: some tables are written to again, swept versions or not."""
        catalog = self.iceberg.open()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deletes that match nothing
            for name in self.random.sample([n for _, n in catalog.list_tables("db")], self.size // 10):
                history = iceberg_tables.History(
                    catalog.load_table(("db", name)), Random(f"{self.seed}:{name}:{turn}"), named=100 * turn
                )
                history.rows.next_id = 1000 * turn
                history.do("append")
                for _ in range(2):
                    history.step()
                self.done += history.done
        folders = sorted(path.parent.name for path in self.delta.glob("db/*/_delta_log"))
        for name in self.random.sample(folders, len(folders) // 3):
            delta_tables.append(self.delta, name, self.random)
            self.done["append"] += 1
