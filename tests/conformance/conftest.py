"""The same behaviours for every format: a bench with a driver that writes and the adapter that reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

import pytest
from pyspark.sql import SparkSession

from ebbtide.formats.base import Depth, Format, supports
from ebbtide.formats.registry import load_format
from ebbtide.model.capabilities import Capability
from ebbtide.model.dataset import Catalog, NotFound, Reading, TableHandle
from ebbtide.model.history import DatasetHistory, build_history
from ebbtide.spark.session import formats_of_session
from tests.conformance.driver import Driver, Table
from tests.conformance.drivers import load_driver

_CATALOGS = {"iceberg": "lake", "delta": "events", "hudi": "cdc", "paimon": "stream"}
VARIANTS = [  # `make test` runs the first of each format
    ("iceberg", "v2"),
    ("iceberg", "v1"),
    ("iceberg", "v3"),
    ("delta", "plain"),
    ("delta", "vectors"),
    ("hudi", "cow"),
    ("hudi", "mor"),
    ("paimon", "append"),
    ("paimon", "key"),
]


@dataclass
class Bench:
    """One format and table type under test."""

    driver: Driver
    adapter: Format
    catalog: Catalog
    spark: SparkSession
    variant: str
    _names: Iterator[int] = field(default_factory=count)

    @property
    def format(self) -> str:
        return self.adapter.name

    def needs(self, *capabilities: Capability) -> None:
        """Skip the test where the adapter declares that its format cannot do this."""
        for capability in capabilities:
            support = supports(self.adapter, capability)
            if not support:
                pytest.skip(f"{self.format}: no {capability}: {support.reason}")

    def new_name(self, stem: str) -> str:
        return f"{stem}_{self.variant}_{next(self._names)}"

    def create(self, stem: str, *, partitioned: bool = False, properties: Mapping[str, str] | None = None) -> Table:
        return self.driver.create(
            self.new_name(stem), variant=self.variant, partitioned=partitioned, properties=properties
        )

    def found(self, table: Table) -> TableHandle:
        answers = list(self.adapter.discover(self.catalog))
        matches = [a for a in answers if isinstance(a, TableHandle) and a.id == table.id]
        assert matches, f"{table.id} not among {[a.name if isinstance(a, NotFound) else str(a.id) for a in answers]}"
        return matches[0]

    def read(self, table: Table, depth: Depth = Depth.FILES) -> Reading:
        return self.adapter.read(self.found(table), self.catalog, depth, self.spark)

    def history(self, table: Table) -> DatasetHistory:
        reading = self.read(table)
        return build_history(reading.transactions, reading.refs)

    def newest(self, table: Table) -> str:
        """The native id of the main branch's head, as the adapter sees it."""
        (main,) = [ref for ref in self.read(table, Depth.HISTORY).refs if ref.main]
        assert main.head is not None
        return main.head


def _parameters(*, one_per_format: bool = False) -> list[object]:
    firsts = dict(reversed(VARIANTS))
    return [
        pytest.param(
            (format_, variant), id=f"{format_}-{variant}", marks=() if firsts[format_] == variant else pytest.mark.deep
        )
        for format_, variant in VARIANTS
        if format_ in formats_of_session() and (not one_per_format or firsts[format_] == variant)
    ]


MakeBench = Callable[[str, str], Bench]


@pytest.fixture(scope="session")
def make_bench(spark: SparkSession, catalogs: Mapping[str, Catalog]) -> MakeBench:
    made: dict[tuple[str, str], Bench] = {}

    def make(format_: str, variant: str) -> Bench:
        if (format_, variant) not in made:
            catalog = catalogs[_CATALOGS[format_]]
            made[format_, variant] = Bench(load_driver(spark, catalog), load_format(format_), catalog, spark, variant)
        return made[format_, variant]

    return make


@pytest.fixture(scope="session", params=_parameters(one_per_format=True))
def any_bench(request: pytest.FixtureRequest, make_bench: MakeBench) -> Bench:
    """One table type per format, for what does not depend on it."""
    return make_bench(*request.param)


@pytest.fixture(scope="session", params=_parameters())
def bench(request: pytest.FixtureRequest, make_bench: MakeBench) -> Bench:
    return make_bench(*request.param)
