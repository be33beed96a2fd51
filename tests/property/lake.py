"""A lake of a few hundred random tables of all formats under one set of random policies."""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from tests.conformance.driver import Driver, Table
from tests.property import delta_tables, iceberg_tables, policies
from tests.property.planted import plant
from tests.property.rows import Rows
from tests.tide import Tide

_READABLE = {"avro.codec": "deflate"}
"""The oracle reads manifests without the libraries that Paimon's usual packing needs."""
_PAIMON_SETTINGS = {
    "least": {"snapshot.num-retained.min": "5"},
    "time": {"snapshot.time-retained": "300 d"},
    "consumer": {"consumer.expiration-time": "900 d"},
}
_GC_OFF = {"gc.enabled": "false"}
_MANY = {"history.expire.min-snapshots-to-keep": "3"}
_LONG = {"delta.deletedFileRetentionDuration": "interval 100 days"}
_PAIMON = {"append": {"deletion-vectors.enabled": "true"}, "key": {"changelog-producer": "input"}}
_UPGRADED, _REPLACED = "later_upgraded", "most_ureplaced"
_LENDER, _BORROWER = "views_s0000", "young_s0000"
Named = list[tuple[str, dict[str, str]]]


class RandomLake:
    """`size` tables: mostly Iceberg and Delta by their Python writers, a few of each format by Spark."""

    def __init__(self, spark: SparkSession, root: Path, seed: int, size: int) -> None:
        self.seed, self.random, self.done = seed, Random(seed), Counter[str]()
        self.tide = Tide(
            spark, root, "iceberg", "delta", "paimon", "hudi", policies=policies.random_policies(self.random),
            plainly=("paimon", "delta"),  # delta-rs ends where a folder has brackets in its name
        )  # fmt: skip
        self.names = {format_: driver.catalog.name for format_, driver in self.tide.drivers.items()}
        name = self.names["iceberg"]
        self.iceberg = iceberg_tables.Lake(name, self.tide.root / f"catalog-{name}.db", self.warehouse("iceberg"))
        self.delta = self.warehouse("delta")
        self.read_by_spark: dict[str, tuple[Driver, Table, list[str]]] = {}
        self.size = size
        self._build(size)

    def warehouse(self, format_: str) -> Path:
        return Path(self.tide.drivers[format_].catalog.warehouse)

    def _build(self, size: int) -> None:
        few = max(1, size // 100)
        pairs = [(f"{('views', 'gone')[n % 2]}_s{n:04}", f"young_s{n:04}") for n in range(max(2, size // 30))]
        delta = self._named(policies.DELTA, size // 12, {0: _LONG})
        iceberg = self._named(
            policies.ICEBERG, size - len(delta) - 2 * len(pairs) - 3 * few - 13, {0: _GC_OFF, 5: _MANY}
        )
        catalog = self.iceberg.open()
        catalog.create_namespace_if_not_exists("db")
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            work: list[Future[Counter[str]]] = [
                pool.submit(iceberg_tables.build, self.iceberg, self.seed, iceberg[n::4]) for n in range(4)
            ]
            work.append(pool.submit(iceberg_tables.share, self.iceberg, self.seed, pairs))
            work.append(pool.submit(iceberg_tables.nest, self.iceberg, self.seed, "most_outside", "most_inside"))
            steady: Named = [(_UPGRADED, {}), (_REPLACED, {})]
            work.append(pool.submit(iceberg_tables.build, self.iceberg, self.seed, steady, steady=True))
            work.append(pool.submit(delta_tables.build, self.delta, self.seed, delta))
            for format_ in ("iceberg", "paimon", "hudi"):
                for number in range(few):
                    self._by_spark(format_, number)
            for format_ in self.names:
                self._by_spark(format_, 98 + self.seed % 2, "expired")
            for format_ in ("iceberg", "delta"):
                self._by_spark(
                    format_, 98 + self.seed % 2, "expired", "${x}"
                )  # twins of the last ones, but for a variable
            for setting, properties in _PAIMON_SETTINGS.items():
                self._paimon_with(setting, properties)
            for future in work:
                self.done += future.result()
        self.planted = plant(self)

    def _named(self, kinds: tuple[str, ...], count: int, settings: dict[int, dict[str, str]]) -> Named:
        """Names with random kinds; every fifteenth table has a setting of its format that nothing goes below."""
        found: Named = []
        for number in range(count):
            special = settings.get(number % 15, {})
            kind = "both" if special else self.random.choice(kinds)
            # Every tenth table has a variable in its name, which must stay a name.
            found.append((f"{kind}_{number:04}" + ("${x}" if number % 10 == 9 else ""), special))
        return found

    def _by_spark(self, format_: str, number: int, kind: str | None = None, more: str = "") -> None:
        """What only Spark writes: merge-on-read deletes, primary keys, savepoints."""
        driver, random = self.tide.drivers[format_], Random(f"{self.seed}:{format_}:{number}{more}")
        rows = Rows(random)
        kind = kind or policies.OTHERS[number % len(policies.OTHERS)]
        # By hand the oracle reads no deletion vectors.
        variant = {"iceberg": "v2", "delta": "plain"}.get(format_) or driver.variants[number % len(driver.variants)]
        properties = _READABLE | _PAIMON[variant] if format_ == "paimon" else {}
        table = driver.create(f"{kind}_x{format_}{number}{more}", variant=variant, properties=properties)
        tags: list[str] = []
        steps: list[Callable[[], None]] = [
            lambda: driver.append(table, rows.tuples()),
            lambda: driver.overwrite(table, rows.tuples()),
            lambda: driver.delete(table, f"id % 3 = {random.randint(0, 2)}"),
        ]
        driver.append(table, rows.tuples())
        tag_at = random.randrange(4)
        for step in range(4):
            if step == tag_at and format_ != "delta":
                driver.create_tag(table, f"t{step}")
                tags.append(f"t{step}")
                self.done["tag"] += 1
            random.choices(steps, (2, 2, 1))[0]()
            self.done[f"{format_} by Spark"] += 1
        if format_ in ("paimon", "hudi"):
            self.read_by_spark[str(table.id)] = (driver, table, tags if format_ == "paimon" else [])

    def _paimon_with(self, name: str, properties: dict[str, str]) -> None:
        """A Paimon table with something that nothing goes below: a setting of its own, or a consumer."""
        driver, rows = self.tide.drivers["paimon"], Rows(Random(f"{self.seed}:{name}"))
        table = driver.create(f"most_x{name}", properties=_READABLE | properties)
        for _ in range(5):
            driver.overwrite(table, rows.tuples())
            self.done["paimon by Spark"] += 1
        if name == "consumer":
            file = Path(table.location, "consumer", "consumer-reader")
            file.parent.mkdir()
            file.write_text('{"nextSnapshot": 1}')
        self.read_by_spark[str(table.id)] = (driver, table, [])

    def upgrade_one(self) -> None:
        """Another engine writes one table in a version of the format that nobody here knows; people say that no file of
        others waits for it.
        """
        with (self.tide.root / "ebbtide.yml").open("a") as project:
            project.write(f"ignore: [{{dataset: {self.names['iceberg']}.db.{_UPGRADED}, reason: another engine}}]\n")
        old = self.iceberg.open().load_table(("db", _UPGRADED)).metadata_location
        new = old.replace(".metadata.json", "-9.metadata.json")
        told = json.loads(Path(old.removeprefix("file://")).read_text()) | {"format-version": 9}
        Path(new.removeprefix("file://")).write_text(json.dumps(told))
        with sqlite3.connect(self.iceberg.database) as catalog:
            catalog.execute("UPDATE iceberg_tables SET metadata_location = ? WHERE metadata_location = ?", (new, old))

    def replace_one(self) -> None:
        """Somebody drops a table and makes another one of its name, at the worst moment."""
        catalog = self.iceberg.open()
        catalog.drop_table(("db", _REPLACED))
        made = iceberg_tables.create(catalog, f"{self.seed}:again", _REPLACED, {}, by_day=False)
        for _ in range(3):
            made.do("overwrite" if made.table.current_snapshot() else "append")

    @property
    def replaced(self) -> str:
        return f"{self.names['iceberg']}.db.{_REPLACED}"

    def borrow_one(self) -> None:
        """A table takes over another's old file, which nobody reads of before a sweep."""
        catalog = self.iceberg.open()
        history = iceberg_tables.History(catalog.load_table(("db", _BORROWER)), self.random)
        history.borrow(catalog.load_table(("db", _LENDER)))

    @contextmanager
    def hiding_the_borrower(self) -> Iterator[str]:
        """Its metadata is away for a minute."""
        location = self.iceberg.open().load_table(("db", _BORROWER)).metadata_location
        metadata = Path(location.removeprefix("file://"))
        away = metadata.with_name("away")
        metadata.rename(away)
        yield f"{self.names['iceberg']}.db.{_BORROWER}"
        away.rename(metadata)

    def write_on(self, turn: int) -> None:
        """Writers go on: some tables are written to again, swept versions or not."""
        catalog = self.iceberg.open()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deletes that match nothing
            names = [name for _, name in catalog.list_tables("db") if name not in (_UPGRADED, _REPLACED)]
            for name in self.random.sample(names, self.size // 10):
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
